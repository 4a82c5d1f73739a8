"""The README's commands on a freshly installed Debian, and nowhere else.

Each system, and each user, gets a clone in a path with a blank. An administrator has already
installed what is needed to get a clone and run its verbs (if the user is root), or the README's
line (for a normal user).
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from fresh_system import FEWEST, SUITES, System, fresh, readme_packages

ROOT = Path(__file__).resolve().parents[2]
CLASS = ROOT / "grading" / "sample-class"
# A kernel in a notebook's cluster; runs by mpirun; the sandbox; simulations, whose times are known.
CORE = (
    "tests/runners/test_engine_runs.py",
    "tests/runners/test_mpirun.py",
    "tests/grading/test_sandbox.py::test_an_mpi_program_is_compiled_and_runs_inside",
    "tests/grading/test_sandbox.py::test_python_with_numpy_and_mpi4py_runs_inside",
    "tests/grading/test_sandbox.py::test_the_hosts_files_are_out_of_sight",
    "tests/grading/test_sandbox.py::test_only_the_loopback_is_reachable",
    "tests/simulated/test_any_simgrid.py",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.privileged,
    pytest.mark.timeout(1800),
]


@dataclass
class Demo:
    """A clone in which `user` has run `make demo`, and what that printed."""

    system: System
    user: str
    clone: str
    status: int
    output: str

    def run(self, command, **options):
        """Run `command` in the clone, as its user."""
        return self.system.run(f"cd '{self.clone}' && {command}", self.user, **options)

    def read(self, path):
        """The bytes of a file in the clone."""
        home = "root" if self.user == "root" else f"home/{self.user}"
        return (self.system.upper / home / self.clone / path).read_bytes()


@pytest.fixture(
    scope="module", params=[(s, u) for s in SUITES for u in ("root", "student")], ids=" ".join
)
def demo(request, source):
    suite, user = request.param
    packages = FEWEST if user == "root" else readme_packages(source)
    clone = "my lab"
    with fresh(suite, packages, source) as system:
        done = system.run(
            f"git clone -q /source.bundle '{clone}' && cd '{clone}' && make demo",
            user,
            timeout=1500,
        )
        yield Demo(system, user, clone, done.returncode, done.stdout)


class TestMakeDemo:
    def test_gives_the_marks_that_are_expected(self, demo):
        assert demo.status == 0, demo.output
        graded = demo.read("out/sample-class/grades.csv").decode().splitlines()
        assert graded == (CLASS / "expected.csv").read_text(encoding="utf-8").splitlines()

    def test_sandboxes_the_submissions_simulates_and_isolates(self, demo):
        assert "WITHOUT A SANDBOX" not in demo.output
        assert "not confirmed by simulation" not in demo.output
        assert "not isolated" not in demo.output.lower()

    def test_leaves_a_kit_in_which_lab_00_runs_blank_in_papermill(self, demo):
        done = demo.run(
            "cd labs && ../.venv/bin/papermill 00-first-contact.ipynb /tmp/00-first-contact.ipynb"
        )
        assert done.returncode == 0, done.stdout

    def test_leaves_a_kit_that_passes_a_core_of_its_tests(self, demo):
        done = demo.run(
            ".venv/bin/python -m pip install -q -c constraints.txt"
            " pytest pytest-timeout pytest-xdist &&"
            f" .venv/bin/python -m pytest -q -m 'not slow' -p no:cacheprovider {' '.join(CORE)}",
            CI="true",
        )
        assert done.returncode == 0, done.stdout


def test_the_line_that_set_up_prints_for_an_administrator_is_all_that_was_missing(source):
    with fresh("trixie", FEWEST, source) as system:
        first = system.run(
            "git clone -q /source.bundle 'my lab' && cd 'my lab' && make setup", "student"
        )
        asked = re.findall(r"apt-get install -y ([a-z0-9. +-]+)", first.stdout)
        assert len(set(asked)) == 1, first.stdout
        got = system.run(
            f"apt-get -qq update && apt-get -qq install -y --no-install-recommends {asked[0]}",
            "root",
        )
        assert got.returncode == 0, got.stdout
        second = system.run("cd 'my lab' && make setup", "student")
        assert second.returncode == 0, second.stdout
        assert "apt-get" not in second.stdout
