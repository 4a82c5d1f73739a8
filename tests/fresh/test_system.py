"""A fresh system contains what was requested, and leaves nothing behind."""

import subprocess
from pathlib import Path

import pytest
from fresh_system import FEWEST, fresh

pytestmark = [pytest.mark.privileged, pytest.mark.timeout(900)]


def running(word):
    """The command lines on this machine that hold `word`."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    return [line for line in lines if word in line]


def test_a_plain_user_finds_what_was_installed_and_no_way_to_root():
    with fresh("bookworm", FEWEST) as system:
        done = system.run("git --version && id -un && ! command -v sudo gcc bwrap", "student")
        assert done.returncode == 0, done.stdout
        assert done.stdout.splitlines()[-1] == "student"
        assert system.run("touch /usr/bin/mine", "student").returncode != 0


def test_later_commands_see_what_earlier_ones_wrote_and_the_next_system_does_not():
    with fresh("bookworm", FEWEST) as system:
        system.run("echo written > file", "student")
        assert system.run("cat file", "student").stdout == "written\n"
    with fresh("bookworm", FEWEST) as system:
        assert system.run("cat file", "student").returncode != 0


def test_no_process_and_no_mount_outlives_a_command():
    with fresh("bookworm", FEWEST) as system:
        done = system.run("mount -t tmpfs left /mnt && { sleep 86397 & }", "root")
        assert done.returncode == 0, done.stdout
        with pytest.raises(subprocess.TimeoutExpired):
            system.run("sleep 86398 & sleep 86399", timeout=3)
        assert running("sleep 8639") == []
        assert str(system.work) not in Path("/proc/self/mountinfo").read_text()
    assert not system.work.exists()
