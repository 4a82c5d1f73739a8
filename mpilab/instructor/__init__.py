"""What instructors work with beside the grader: reports, exports, and what comes from elsewhere."""
