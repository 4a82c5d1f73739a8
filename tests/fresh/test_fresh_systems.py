"""The README's commands on a freshly installed Debian, and nowhere else.

Each system, and each user, gets a clone in a path with a blank. An administrator has already
installed what is needed to get a clone and run its verbs (if the user is root), or the README's
line (for a normal user); on one system, a normal user's setup says what is missing.
"""

import re
import shlex
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


# Root on the newer one would meet nothing that these do not.
SYSTEMS = [(SUITES[0], "root"), (SUITES[0], "student"), (SUITES[1], "student")]
# Where an administrator installs what a normal user's setup asks for, and where a student gets a
# handout. One of each is enough, since every system takes minutes.
HANDED_OUT, ASKED = SYSTEMS[0], SYSTEMS[-1]
# What the kit can do once it is set up is tried on one system of each suite, and as each user.
on_two_systems = pytest.mark.parametrize("demo", [HANDED_OUT, ASKED], indirect=True, ids=" ".join)
# On HANDED_OUT, `make demo` grades the whole class; on the others, what it sets up grades these:
# one that is right, one that deadlocks, and one with another algorithm.
FEW = ("ada", "dan", "gina")
FOLDERS = " ".join(f"grading/sample-class/{student}" for student in FEW)
OF_FEW = (
    f"make setup && mkdir few && cp -r {FOLDERS} few"
    " && .venv/bin/mpilab grade few --lab 02-allgather --out out/sample-class"
)


@dataclass
class Demo:
    """A clone in which `user` has run `make demo`, and what that printed.

    asked   what setup printed before, where the administrator had not installed the README's line
    few     whether only FEW of the class were graded, by the commands of OF_FEW
    """

    system: System
    user: str
    clone: str
    few: bool
    asked: str
    status: int
    output: str

    def run(self, command, **options):
        """Run `command` in the clone, as its user."""
        return self.system.run(f"cd '{self.clone}' && {command}", self.user, **options)

    def read(self, path):
        """The bytes of a file in the clone."""
        home = "root" if self.user == "root" else f"home/{self.user}"
        return (self.system.upper / home / self.clone / path).read_bytes()


@pytest.fixture(scope="module", params=SYSTEMS, ids=" ".join)
def demo(request, source):
    suite, user = request.param
    bare = user == "root" or request.param is ASKED
    few = request.param is not HANDED_OUT
    clone = "my lab"
    with fresh(suite, FEWEST if bare else readme_packages(source), source) as system:
        cloned = system.run(f"git clone -q /source.bundle '{clone}'", user)
        assert cloned.returncode == 0, cloned.stdout
        asked = ""
        if request.param is ASKED:
            asked = system.run(f"cd '{clone}' && make setup", user).stdout
            install(system, *packages_asked_for(asked))
        verb = OF_FEW if few else "make demo"
        done = system.run(f"cd '{clone}' && {verb}", user, timeout=1500)
        yield Demo(system, user, clone, few, asked, done.returncode, done.stdout)


def packages_asked_for(said):
    """The packages of the one line for an administrator in what setup `said`."""
    lines = set(re.findall(r"apt-get install -y ([a-z0-9. +-]+)", said))
    assert len(lines) == 1, said
    return lines.pop().split()


def install(system, *packages):
    """Install `packages` as an administrator does."""
    names = " ".join(packages)
    got = system.run(
        f"apt-get -qq update && apt-get -qq install -y --no-install-recommends {names}", "root"
    )
    assert got.returncode == 0, got.stdout


class TestMakeDemo:
    def test_gives_the_marks_that_are_expected(self, demo):
        assert demo.status == 0, demo.output
        graded = demo.read("out/sample-class/grades.csv").decode().splitlines()
        head, *rows = (CLASS / "expected.csv").read_text(encoding="utf-8").splitlines()
        wanted = [row for row in rows if not demo.few or row.startswith(FEW)]
        assert len(wanted) == (len(FEW) if demo.few else 12) and graded == [head, *wanted]

    def test_sandboxes_the_submissions_simulates_and_isolates(self, demo):
        assert "WITHOUT A SANDBOX" not in demo.output
        assert "not confirmed by simulation" not in demo.output
        assert "not isolated" not in demo.output.lower()

    @on_two_systems
    def test_leaves_a_kit_in_which_lab_00_runs_blank_in_papermill(self, demo):
        done = demo.run(
            "cd labs && ../.venv/bin/papermill 00-first-contact.ipynb /tmp/00-first-contact.ipynb"
        )
        assert done.returncode == 0, done.stdout

    @on_two_systems
    def test_leaves_a_kit_that_passes_a_core_of_its_tests(self, demo):
        done = demo.run(
            ".venv/bin/python -m pip install -q -c constraints.txt"
            " pytest pytest-timeout pytest-xdist &&"
            f" .venv/bin/python -m pytest -q -m 'not slow' -p no:cacheprovider {' '.join(CORE)}",
            CI="true",
        )
        assert done.returncode == 0, done.stdout

    @pytest.mark.parametrize("demo", [ASKED], indirect=True, ids=" ".join)
    def test_needs_no_more_than_the_line_that_set_up_prints_for_an_administrator(self, demo):
        assert "apt-get" in demo.asked
        assert "apt-get" not in demo.output

    @pytest.mark.parametrize("demo", [HANDED_OUT], indirect=True, ids=" ".join)
    def test_leaves_a_kit_whose_handout_takes_a_student_from_a_zip_to_the_labs(self, demo):
        made = demo.run(
            ".venv/bin/mpilab release all --handout /srv/labs.zip && chmod a+r /srv/labs.zip"
        )
        assert made.returncode == 0, made.stdout
        # What follows needs the system packages that setup has installed for root.
        install(demo.system, "unzip")
        unpacked = demo.system.run("unzip -q /srv/labs.zip && cat labs/README.md", "student")
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
            elif command.startswith("make update"):
                command = f"cp /srv/labs.zip ../mpi-labs.zip && {command}"
            done = demo.system.run(f"cd labs && {command}", "student", timeout=1500)
            assert done.returncode == 0, f"{command}\n{done.stdout}"
