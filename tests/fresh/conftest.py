"""Fixtures of the tests on fresh systems: a machine that can create them, and the clone under
test."""

from pathlib import Path

import fresh_system as system
import pytest

from tests.conftest import skip

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def able():
    """Skip if no fresh system can be created; fail under CI=true, where setup must ensure it."""
    why = system.why_not()
    if why:
        skip(f"no fresh system on this machine: {why}")


@pytest.fixture(scope="session")
def source():
    """The clone under test: its HEAD is what fresh systems get."""
    return ROOT
