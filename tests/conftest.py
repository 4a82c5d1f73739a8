"""What every test may ask for. Nothing heavy here: it is imported for each run."""

import os
import shutil

import pytest


@pytest.fixture
def require_tool():
    """A function: the path of a program, by name; several names are tried in turn.

    Where there is none the test is skipped, but fails under CI=true: there set-up had to bring it.
    """

    def find(*names):
        for name in names:
            path = shutil.which(name)
            if path is not None:
                return path
        message = (
            f"{' or '.join(names)}: not found on PATH; 'make test' run by root installs what tests "
            "need, or see tools/packages.py for the Debian package"
        )
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(message)
        pytest.skip(message)

    return find
