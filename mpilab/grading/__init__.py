"""Grade submissions: run them in a sandbox, judge them, record marks, write feedback pages."""

import sys

# nbformat and papermill use jsonschema, which imports this optional URL checker if it is installed.
# The notebook schema does not need it, and the import takes 1.6 s (it builds a grammar) in every
# process of every submission.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # "not to be found"
