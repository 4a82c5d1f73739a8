"""Every command in a handout's README works in that handout.

What `make setup` installs is a copy of this environment; in tests/fresh/test_fresh_systems.py it
installs everything.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from kit_copies import objects_for, python_in

from mpilab.course.handout import handout
from mpilab.grading.release import release
from mpilab.util.kit import ROOT

LABS = sorted(path.stem for path in (ROOT / "labs" / "source").glob("*.py"))
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """The handout of all labs, after `make setup` but for the last steps of its build."""
    course = handout(tmp_path_factory.mktemp("students") / "my labs", LABS).path
    python = python_in(course)
    script = course / ".venv" / "bin" / "mpilab"
    script.write_text(
        f'#!/bin/sh\nexec "{python}" -c "import sys; from mpilab.cli import main; '
        'sys.exit(main())" "$@"\n'
    )
    script.chmod(0o755)
    (packages,) = course.glob(".venv/lib/python3.*/site-packages")
    (packages / "handout.pth").write_text(f"{course}\n")
    (metadata,) = Path(np.__file__).parents[1].glob("mpilab-*.dist-info")
    shutil.copytree(metadata, packages / metadata.name)
    stamp = course / ".venv" / "mpilab-setup.json"
    stamp.write_text(json.dumps({"home": str(course)}, indent=2, ensure_ascii=False) + "\n")
    objects_for(course)
    return course


def environment():
    hidden = ("MAKE", "MPILAB", "CONDA", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}


def commands(readme):
    """The lines of the blocks of shell in the text of a README, without their comments."""
    lines = "".join(BLOCK.findall(readme)).splitlines()
    return [shlex.join(shlex.split(line, comments=True)).replace("'", "") for line in lines]


def run(command, course):
    done = subprocess.run(
        command,
        shell=True,
        cwd=course,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def opened(command, course):
    """Run `command`, which starts JupyterLab, until it says where it listens; then interrupt it."""
    with subprocess.Popen(
        shlex.split(command),
        cwd=course,
        env={**environment(), "BROWSER": "true", "JUPYTER_PREFER_ENV_PATH": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        said = []
        for line in process.stdout:
            said.append(line)
            if "/lab/tree/START.ipynb" in line:
                os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)
    return "".join(said)


@pytest.mark.slow
@pytest.mark.alone  # 'make doctor' inspects the whole machine, against its clock
def test_every_command_in_the_readme_of_a_handout_works_in_it(course):
    listed = commands((course / "README.md").read_text(encoding="utf-8"))
    assert {"make setup", "make lab", "make doctor"} < set(listed) and len(listed) > 8
    mine = course / "labs" / "02-allgather.ipynb"
    blank = mine.read_bytes()
    page = json.loads(blank)
    page["cells"][1]["source"] = "mine"
    mine.write_text(json.dumps(page), "utf-8")
    written = mine.read_bytes()
    (course / "labs" / f"{LABS[-1]}.ipynb").unlink()
    handout(course.parent / "mpi-labs.zip", LABS)
    for command in listed:
        if command == "make lab":
            assert "/lab/tree/START.ipynb" in opened(command, course)
        else:
            assert run(command, course), command
    assert {path.stem for path in (course / "labs").glob("[0-9]*.ipynb")} == set(LABS)
    assert mine.read_bytes() == written
    mine.write_bytes(blank)


@pytest.mark.slow
def test_every_other_verb_of_make_in_the_text_is_one_that_make_lists(course):
    verbs = set(re.findall(r"^  ([a-z]+) ", run("make", course), re.MULTILINE))
    assert verbs == {"setup", "lab", "update", "doctor", "build", "clean"}
    readme = (course / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`make ([a-z]+)", readme)) <= verbs
    run("make clean", course)
    assert (course / "labs" / "START.ipynb").is_file()


def test_no_answer_rubric_or_seeded_bug_is_in_a_handout_of_all_labs(course):
    names = {path.name for path in course.rglob("*") if ".venv" not in path.parts}
    assert not names & {"rubric.toml", "bugs.toml", "leaderboard.toml", "gradebook.sqlite"}
    assert not (course / "grading").exists() and not (course / "labs" / "source").exists()
    for lab in LABS:
        handed_out = json.loads((course / "labs" / f"{lab}.ipynb").read_text(encoding="utf-8"))
        cells = ["".join(cell["source"]) for cell in handed_out["cells"]]
        blank = release(ROOT / "labs" / "source" / f"{lab}.py")
        assert cells == [cell.source for cell in blank.cells]


def test_the_readme_of_a_handout_links_only_to_files_in_it(course):
    text = (course / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert "docs/failures.md" in links and len(links) > len(LABS)
    assert [link for link in links if not (course / link).is_file()] == []
    folders = re.findall(r"`([a-z_]+/)`", text)
    assert [folder for folder in folders if not (course / folder).is_dir()] == []
