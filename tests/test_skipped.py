"""A test that cannot run here is skipped, but fails in CI if setup should have installed what is
missing."""

import os

import pytest


@pytest.mark.parametrize(
    ("in_ci", "user", "outcome"),
    [("true", 0, "fail"), ("true", 1000, "skip"), ("", 0, "skip"), ("false", 0, "skip")],
)
def test_a_test_that_needs_namespaces_fails_for_root_in_ci(
    in_ci, user, outcome, no_hosts, monkeypatch
):
    monkeypatch.setenv("CI", in_ci)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(getattr(pytest, outcome).Exception, match="no emulated hosts.*: unshare no"):
        no_hosts("unshare no")


def test_a_test_that_needs_a_tool_fails_in_ci(require_tool, monkeypatch):
    for in_ci, outcome in (("1", pytest.fail), ("", pytest.skip)):
        monkeypatch.setenv("CI", in_ci)
        with pytest.raises(outcome.Exception, match="no-such-tool: not found on PATH"):
            require_tool("no-such-tool")
