"""The kit in any place, for any user: blanks, umlauts and quotes in all paths; a kit of another
owner; a kit installed from a wheel."""

import csv
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
import problem
import pyenvironment
import pytest
from kit_copies import copy_of_kit, python_in
from plain_user import python_for, start_as

from mpilab.diagnosis.compiler import rules
from mpilab.grading.sandbox import open_sandbox
from mpilab.kernels import openmpi
from mpilab.util.kit import ROOT

ODD = 'my läb\'s "kit"'
LIMIT_S = 600
KERNEL = """
#include "mpilab.h"

MPILAB_ALLGATHER(own)
{
    return MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);
}
"""
# User ids that no other test uses.
ANN, BOB = 64331, 64332


def run(command, **options):
    """The CompletedProcess of a command that must succeed."""
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=LIMIT_S, **options
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done


def own_places(folder, **more):
    """The environment of a user whose home and temporary files are in odd folders of `folder`."""
    places = {name: folder / f"{name.lower()} für Anna's kit" for name in ("HOME", "TMPDIR")}
    for place in places.values():
        place.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "CI") if name in os.environ}
    return kept | {name: str(place) for name, place in places.items()} | more


def marks(file):
    """{student: row} of a table of marks."""
    with open(file, newline="", encoding="utf-8") as lines:
        return {row["student"]: row for row in csv.DictReader(lines)}


def hand_in(folder, *students):
    """A folder with the submissions of these students of the sample class."""
    for student in students:
        shutil.copytree(ROOT / "grading" / "sample-class" / student, folder / student)
    return folder


@pytest.mark.slow
def test_the_sample_class_gets_its_marks_where_all_paths_hold_blanks_umlauts_and_quotes(tmp_path):
    kit = copy_of_kit(tmp_path / ODD)
    python = python_in(kit)
    environment = own_places(tmp_path, PYTHONPATH=str(kit))
    submissions = hand_in(tmp_path / "Abgaben \"WS\" für 'Anna'", "finn")
    out = tmp_path / "Nöten 'WS' \"25\""
    run(
        [
            python,
            "-m",
            "mpilab",
            "grade",
            submissions,
            "--lab",
            "02-allgather",
            "--out",
            out,
            "--no-progress",
        ],
        env=environment,
        cwd=kit,
    )
    expected = marks(ROOT / "grading" / "sample-class" / "expected.csv")
    assert marks(out / "grades.csv") == {"finn": expected["finn"]}
    page = (out / "feedback" / "finn.html").read_text(encoding="utf-8")
    # The explanation of the forgotten semicolon uses mpi.h's declarations, in the .venv with that
    # path.
    assert "Traceback" not in page and "semicolon" in page
    assert (kit / "build" / "simulated" / "mpilab_kernels.so").exists()
    assert os.listdir(environment["HOME"]) == os.listdir(environment["TMPDIR"]) == []


def test_mpi_h_is_found_by_a_compiler_whose_folder_holds_blanks_and_quotes(tmp_path, monkeypatch):
    folder = tmp_path / ODD
    (folder / "bin").mkdir(parents=True)
    (folder / "include").mkdir()
    (folder / "include" / "mpi.h").write_text("int MPI_Init(int *argc, char ***argv);\n")
    wrapper = folder / "bin" / "mpicc"
    wrapper.write_text('#!/bin/sh\nexec cc -I"$(dirname "$0")/../include" "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setattr(openmpi, "tool", lambda name: str(wrapper))
    found = rules.include_directory.__wrapped__()
    assert (found / "mpi.h").samefile(folder / "include" / "mpi.h")


@pytest.mark.parametrize("name", [ODD, "mpi lab #2", "it's"])
def test_make_knows_its_set_up_folder_again_whatever_it_is_called(name, tmp_path):
    kit = tmp_path / name
    python = kit / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    for file in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy2(ROOT / file, kit)
    shutil.copytree(ROOT / "tools", kit / "tools")
    machine.check_folder(kit)
    told = {"home": str(kit)}
    code = (
        "import json, sys; open('.venv/mpilab-setup.json', 'w').write(json.dumps("
        f"{told!r}, indent=2, ensure_ascii=False))"
    )
    run([sys.executable, "-c", code], cwd=kit)
    done = run(["make", "-n", ".venv/mpilab-setup.json"], cwd=kit)
    assert "tools/setup.py" not in done.stdout and done.stderr == ""


@pytest.mark.parametrize("sign", [":", "$", "\\", "\n"])
def test_a_folder_that_make_or_pip_would_misread_is_refused(sign):
    with pytest.raises(problem.Problem, match="cannot take") as refused:
        machine.check_folder(Path(f"/home/ann/mpi{sign}lab"))
    assert repr(sign) in str(refused.value) and "mv " in str(refused.value)


def test_the_scripts_of_pip_start_where_quotes_are_in_the_path(tmp_path):
    venv = tmp_path / ODD / ".venv"
    (venv / "bin").mkdir(parents=True)
    python = pyenvironment.python_of(venv)
    python.symlink_to(sys.executable)
    # As pip writes them.
    code = (
        "import sys; from pip._vendor.distlib.scripts import ScriptMaker\n"
        "maker = ScriptMaker(None, sys.argv[1])\n"
        "maker.variants = {''}; maker.set_mode = True; maker.make('greet = platform:system')\n"
    )
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    run([python, "-c", code, venv / "bin"], env={"PYTHONPATH": packages})
    assert subprocess.run([venv / "bin" / "greet"], capture_output=True).returncode != 0
    pyenvironment.repair_scripts(venv)
    greeted = subprocess.run([venv / "bin" / "greet"], capture_output=True, text=True)
    assert greeted.stderr.strip() == "Linux"  # sys.exit() of what the function returned


@pytest.mark.slow
@pytest.mark.privileged
def test_two_users_at_once_work_with_a_kit_that_belongs_to_root():
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED: only root can be two other users")
    folder = Path(tempfile.mkdtemp(prefix="mpilab ü "))  # only root can access pytest's own folders
    folder.chmod(0o755)
    try:
        kit = copy_of_kit(folder / ODD)
        run(["chmod", "-R", "go=rX", kit])
        before = sorted(kit.rglob("*"))
        (folder / "own.c").write_text(KERNEL)
        packages = next(path for path in sys.path if path.endswith("site-packages"))
        beside = os.path.dirname(openmpi.tool("mpirun"))
        running = []
        for user in (ANN, BOB):
            home = folder / f"home of {user}"
            home.mkdir()
            environment = own_places(
                home,
                PATH=f"{beside}:{os.environ['PATH']}",
                PYTHONPATH=f"{kit}:{packages}",
            )
            # Bob's home is not writable, like that of a user who was never set up.
            for place in [home, environment["TMPDIR"], *([environment["HOME"]] * (user == ANN))]:
                os.chown(place, user, user)
            mpilab = [*start_as(user), python_for(user), "-m", "mpilab"]
            commands = [
                [*mpilab, "run", "allgather_own", "--source", folder / "own.c", "--sanitize"],
                [*mpilab, "simulate", "allgather_ring", "--ranks", "4"],
            ]
            running.append((user, environment, commands))
        started = [
            (
                subprocess.Popen(
                    list(map(str, command)),
                    env=environment,
                    cwd=folder,
                    text=True,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                ),
                user,
            )
            for user, environment, commands in running
            for command in commands
        ]
        for process, user in started:
            stdout, stderr = process.communicate(timeout=LIMIT_S)
            assert process.returncode == 0, (user, stdout, stderr)
            assert "right" in stdout, (user, stdout)
        assert sorted(kit.rglob("*")) == before
        caches = {
            user: list(folder.glob(f"home of {user}/*/**/build-*/libmpilab_kernels.so"))
            for user in (ANN, BOB)
        }
        assert [len(found) for found in caches.values()] == [1, 1]
        for user, (library,) in caches.items():
            assert library.stat().st_uid == user
    finally:
        shutil.rmtree(folder)


@pytest.mark.slow
def test_a_wheel_brings_a_kit_that_runs_grades_and_lays_out_course_folders(tmp_path):
    sources = copy_of_kit(tmp_path / "sources", compiled=False)
    python = python_in(tmp_path / "pip's bläck box")
    run([python, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", tmp_path, sources])
    (wheel,) = tmp_path.glob("mpilab-*.whl")
    run([python, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", wheel])
    shutil.rmtree(sources)
    environment = own_places(tmp_path, PYTHONDONTWRITEBYTECODE="1")
    mpilab = [python.parent / "mpilab"]
    course = tmp_path / "my cöurse"

    assert run([*mpilab, "--version"], env=environment).stdout.startswith("mpilab ")
    told = run([*mpilab, "new", course], env=environment, cwd=tmp_path)
    assert "jupyter lab labs" in told.stdout
    assert sorted(path.name for path in course.iterdir()) == [
        "data",
        "docs",
        "hostfiles",
        "labs",
        "slurm",
    ]
    assert "02-allgather.ipynb" in os.listdir(course / "labs")
    extension = python.parent.parent / "share" / "jupyter" / "labextensions" / "mpilab-c-cells"
    assert (extension / "static" / "remoteEntry.js").is_file()
    assert (python.parent.parent / "etc" / "jupyter" / "jupyter_config.json").is_file()
    assert not list(course.rglob("source")) + list(course.rglob("rubric.toml"))
    again = subprocess.run(
        [*mpilab, "new", course], env=environment, capture_output=True, text=True
    )
    assert again.returncode == 1 and "is not an empty folder" in again.stderr

    first = run([*mpilab, "run", "allgather_ring"], env=environment, cwd=course)
    assert "right on every rank" in first.stdout and "compiling the kit's C code" in first.stderr
    (course / "own.c").write_text(KERNEL)
    second = run(
        [*mpilab, "run", "allgather_own", "--source", "own.c"], env=environment, cwd=course
    )
    assert "right on every rank" in second.stdout and second.stderr == ""
    unknown = subprocess.run(
        [*mpilab, "run", "allgather_rign"],
        env=environment,
        cwd=course,
        capture_output=True,
        text=True,
    )
    assert unknown.returncode == 1 and "allgather_ring" in unknown.stderr

    # In the notebooks' folder: checks, hostfiles and data by name.
    code = (
        "import mpilab, mpilab.hosts.hostfile, mpilab.measure.dataset as csv\n"
        "from mpilab.util.kit import ROOT\n"
        "print(mpilab.Lab('02-allgather').rubric.exercises[0].id, ROOT.name, csv.DATA.is_dir())\n"
        "print(len(mpilab.hosts.hostfile.read('two-groups.txt').hosts))\n"
    )
    known = run([python, "-c", code], env=environment, cwd=course / "labs")
    assert known.stdout.split() == ["nonblocking_all", "kit", "True", "4"]

    submissions = hand_in(tmp_path / "submissions", "finn")
    run(
        [
            *mpilab,
            "grade",
            submissions,
            "--lab",
            "02-allgather",
            "--out",
            tmp_path / "out",
            "--no-progress",
        ],
        env=environment,
        cwd=course,
    )
    expected = marks(ROOT / "grading" / "sample-class" / "expected.csv")
    assert marks(tmp_path / "out" / "grades.csv") == {"finn": expected["finn"]}

    examined = run([*mpilab, "doctor", "--for", "labs"], env=environment, cwd=course)
    assert str(course.parent / "pip's bläck box") in " ".join(examined.stdout.split())


@pytest.mark.privileged
def test_no_rubric_and_no_solution_of_an_installed_kit_is_seen_in_the_sandbox(tmp_path):
    package = tmp_path / "site-packages" / "mpilab"
    for name in (
        "cases.py",
        "kit/src_c/include/mpilab.h",
        "kit/src_c/allgather/ring.c",
        "kit/grading/02-allgather/rubric.toml",
        "kit/labs/source/02.py",
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text("text")
    shown = [tmp_path / "site-packages", package / "kit" / "src_c" / "include"]
    hidden = [str(package / "kit"), str(package)]
    command = ["find", str(tmp_path), "-type", "f"]

    def files(readable):
        outcome = open_sandbox().run(command, readable=map(str, readable), hidden=hidden)
        assert outcome.returncode == 0, outcome.stderr
        return {Path(line).name for line in outcome.stdout.decode().splitlines()}

    assert files(shown) == {"mpilab.h"}
    assert files([*shown, package]) == {"mpilab.h", "cases.py"}
