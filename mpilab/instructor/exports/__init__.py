"""Marks for other programs: learning platforms, Gradescope, nbgrader, spreadsheets."""
