"""What the tests on fresh systems share: a machine that can make them, and the clone to try."""

from pathlib import Path

import fresh_system as system
import pytest

from tests.conftest import skip

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def able():
    """Skip where no fresh system can be made; fail there under CI=true, where set-up owes it."""
    why = system.why_not()
    if why:
        skip(f"no fresh system on this machine: {why}")


@pytest.fixture(scope="session")
def source():
    """The clone under test: its HEAD is what fresh systems get."""
    return ROOT
