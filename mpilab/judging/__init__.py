"""Judge answers: rubrics, and verdicts on the results of their cases.

In: a rubric (TOML), and the results of an answer's cases or calls. Out: points for each item, with
the reason in words and the diagnosis it is based on. Nothing here runs a student's code, but
`calls`, the program that runs it elsewhere.

rubric        exercises, items, cases; which of them are public
judge         one answer by its results
agreement     simulated and real results of one answer, and what holds where they differ
verdict       points and reasons of a submission, as JSON
"""
