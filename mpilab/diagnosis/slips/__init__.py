"""Compile errors and warnings, explained at the cell's own lines, in the student's words.

    diagnose_build(error, source)            of a BuildError: kind 'compile-error'
    diagnose_warnings(diagnostics, source)   of what was built all the same: 'compile-warning'

Both understand gcc's and clang's words. The rules, a module for each family of mistakes, are in
arguments, names, syntax and doubts; causes puts together what they find.
"""

from mpilab.diagnosis.slips.causes import diagnose_build, diagnose_warnings

__all__ = ["diagnose_build", "diagnose_warnings"]
