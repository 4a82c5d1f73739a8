"""Judge answers: rubrics, and verdicts on the results of their cases.

In: a rubric (TOML), and the results of an answer's cases or calls. Out: points for each item, with
the reason in words and the diagnosis it is based on. Only `calls`, a program that is run elsewhere,
runs a student's code.

rubric        exercises, items, cases; which of them are public
battery       what every answer to an exercise on a collective must stand, by facet
judge         judges one answer by its results
transfers     what recorded messages must have carried for a result to be correct
agreement     simulated and real results of one answer, and what holds where they differ
verdict       points and reasons of a submission, as JSON
mutation      references with one small mistake each, and how many of them a rubric detects
"""
