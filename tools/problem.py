"""What set-up says when it cannot go on: what was wrong, where, and what to do.

Like setup.py this file must be readable by old Pythons (3.6 and later).
"""


class Problem(Exception):
    """Set-up cannot go on, or goes on without something; three sentences for the reader."""

    def __init__(self, what, where, remedy):
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self):
        return f"{self.what}\n  where:  {self.where}\n  remedy: {self.remedy}"
