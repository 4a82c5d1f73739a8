"""Compile errors and warnings, explained at the cell's own lines in a student's terms.

    diagnose_build(error, source)            for a BuildError: kind 'compile-error'
    diagnose_warnings(diagnostics, source)   for a build that succeeded: 'compile-warning'

Both understand the messages of gcc and clang. The rules are in `values` (arguments and values) and
`names` (names and syntax), what they share in `rules`; `causes` combines what they find.
"""

from mpilab.diagnosis.compiler.causes import diagnose_build, diagnose_warnings

__all__ = ["diagnose_build", "diagnose_warnings"]
