"""The instructor's tools besides grading: collect, report, export, manual marks, similarity.

In: downloads of a learning platform, and the gradebook that `mpilab.grading` has written. Out:
pages and files for people and platforms. Nothing here decides marks.

collect       submissions of Moodle, Canvas, nbgrader, GitHub Classroom and Gradescope
handout       what students get: a lab without answers, or a course folder
prose         Markdown with formulas as safe HTML, for the marking page
manual        points for free text and lateness, in a spreadsheet or in the browser
marks         the marks in effect, and what went wrong most often
report        the report on a class, as a page or as text
export        marks for CSV, Moodle, Canvas, Gradescope and nbgrader (nbgrader_writer)
feedback      pages and reasons, in the form that each platform imports (gradescope_autograder)
similarity    C answers that resemble each other
leaderboard   kernels of a class ranked by simulated time
"""
