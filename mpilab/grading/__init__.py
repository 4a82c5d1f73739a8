"""Grading: from a submission to a mark and a page of feedback."""

import sys

# jsonschema, on which nbformat and papermill stand, looks for this optional checker of web
# addresses. The notebook schema has no use for it, and importing it takes 1.6 s of building a
# grammar, in every process of every submission.
sys.modules.setdefault("rfc3987_syntax", None)
