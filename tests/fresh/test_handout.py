"""A student's machine: each command of a handout's README on a freshly installed Debian."""

import re
import shlex

import pytest
from fresh_system import FEWEST, fresh

pytestmark = [pytest.mark.slow, pytest.mark.privileged, pytest.mark.timeout(1800)]


def test_the_readme_of_a_handout_takes_a_student_from_a_zip_to_the_labs(source):
    with fresh("bookworm", (*FEWEST, "unzip"), source) as system:
        made = system.run(
            "git clone -q /source.bundle kit && cd kit && make setup &&"
            " .venv/bin/mpilab release all --handout /srv/labs.zip && chmod a+r /srv/labs.zip",
            "root",
            timeout=1500,
        )
        assert made.returncode == 0, made.stdout
        # What follows needs the system packages that set-up has installed for root.
        unpacked = system.run("unzip -q /srv/labs.zip && cat labs/README.md", "student")
        assert unpacked.returncode == 0, unpacked.stdout
        blocks = "".join(re.findall(r"^```sh\n(.*?)^```", unpacked.stdout, re.M | re.S))
        lines = [shlex.split(line, comments=True) for line in blocks.splitlines()]
        listed = [" ".join(line) for line in lines]
        assert listed[:3] == ["make setup", "make doctor", "make lab"]
        for command in listed:
            if command == "make lab":
                command = (  # as far as its address; then Ctrl-C
                    "(timeout -s INT 120 make lab 2>&1 || true) | grep -m 1 /lab/tree/START.ipynb"
                )
            elif command.startswith("cp "):
                command = f"mkdir -p ../NEW/labs && {command}"
            done = system.run(f"cd labs && {command}", "student", timeout=1500)
            assert done.returncode == 0, f"{command}\n{done.stdout}"
