"""The instructor's tools besides grading: collect, report, export, manual marks, similarity."""
