"""Grade submissions: run them in a sandbox, judge them, record marks, write feedback pages.

In: a folder of submissions, and a lab's rubric. Out: a gradebook, grades.csv, and a page of
feedback for each student. `grade.grade` runs all steps:

submission    find and read what was submitted, without trusting it
answers       put its answers into a trusted copy of the lab
sandbox       run that copy where it can do no harm (run, supervisor, workers, inside)
referee       judge it by the results, outside the process that ran it
gradebook     all verdicts and decisions; decisions and regrade build on it
marks         grades.csv, the printed table, and the marks on pages, after each decision
feedback      a student's page
release       create the student version of a lab
proving       prove a rubric with answers whose marks are known, and test it with mutants
"""

import sys

# nbformat and papermill use jsonschema, which imports these optional checkers of formats if they
# are installed. The notebook schema does not need them, and the imports take up to 1.6 s (the first
# one builds a grammar) in every process of every submission.
for _checker in ("rfc3987_syntax", "rfc3986_validator", "isoduration"):
    sys.modules.setdefault(_checker, None)  # type: ignore[arg-type]  # "not to be found"
