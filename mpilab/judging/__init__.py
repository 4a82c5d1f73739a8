"""Judge answers: rubrics, and verdicts on the results of their cases."""
