"""A handout grows lab by lab, holds no answers, keeps what others put into it, and is never half
written."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile

import pytest

from mpilab import __version__, cli
from mpilab.course import handout as module
from mpilab.course.handout import LIST, course_folder, handout, update
from mpilab.errors import InputError
from mpilab.util.kit import ROOT, revision

SOURCE = """\
# %% [markdown]
# # {lab}

# %% nbgrader={{"grade": true, "grade_id": "mine", "solution": true, "points": 20}}
# %%kernel {function}
# int {function}(int count, MPI_Comm comm)
# {{
#     // BEGIN SOLUTION
#     // STUB: return MPI_ERR_OTHER;
#     return the_secret_of_{function}(count, comm);
#     // END SOLUTION
# }}

# %%
{calls}
"""
RUBRIC = """\
lab = "{lab}"
title = "{lab}"

[[exercise]]
id = "mine"
title = "Mine"
kind = "kernel"
collective = "allgather"
function = "{function}"
allowed = ["point-to-point"]
reference = "{reference}"

[[exercise.item]]
id = "result"
title = "The right result"
points = 20
ranks = [1, 2]
counts = [1]
public = {{ title = "The right result on 2 ranks", ranks = [2], counts = [1] }}
"""
# lab: (its answer, what it calls)
LABS = {
    "01-first": ("pairwise", "pass"),
    "02-second": ("ring", "pass"),
    "03-third": ("neighbor", 'mpilab.run("allgather_pairwise")'),
}


@pytest.fixture
def kit(tmp_path):
    """A kit of three labs and a few files; the real kit's Makefile and pages."""
    root = tmp_path / "kit"
    for lab, (answer, calls) in LABS.items():
        words = {"lab": lab, "function": f"allgather_{answer}", "calls": calls}
        put(root / "labs" / "source" / f"{lab}.py", SOURCE.format(**words))
        rubric = RUBRIC.format(**words, reference=f"allgather/{answer}.c")
        put(root / "grading" / lab / "rubric.toml", rubric)
        put(root / "src_c" / "allgather" / f"{answer}.c", f"the_secret_of_{answer}();\n")
    for name in ("src_c/allgather/bruck.c", "mpilab/__init__.py", "tools/setup.py", "LICENSE"):
        put(root / name, f"{name} 1\n")
    for name in ("mpilab/__pycache__/x.pyc", "src_c/build/pairwise.o", "tools/trust.py"):
        put(root / name, "not handed out")
    (root / "mpilab" / "link").symlink_to(root / "grading")
    for name in ("labs/source/START.md.j2", "labs/source/HANDOUT.md.j2", "Makefile"):
        shutil.copy2(ROOT / name, root / name)
    shutil.copytree(ROOT / "docs", root / "docs")
    return root


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != LIST
    }


def test_a_handout_holds_what_students_need_and_no_solution_in_any_form(kit, tmp_path):
    out = handout(tmp_path / "out", ["02-second"], kit).path
    pages = {f"{folder}/{name}.md" for folder in ("docs", "labs/help") for name in module.HELP}
    assert set(files(out)) == pages | {
        *("LICENSE", "Makefile", "README.md", "mpilab/__init__.py", "tools/setup.py"),
        *(".gitignore", "REVISION"),
        *("labs/02-second.ipynb", "labs/START.ipynb"),
        *("labs/checks/02-second.toml", "labs/checks/answers.json"),
        # The answer of an earlier lab, whose students have had it back.
        *("src_c/allgather/bruck.c", "src_c/allgather/pairwise.c"),
    }
    text = b"".join(files(out).values()).decode()
    assert "secret_of_ring" not in text and "secret_of_allgather" not in text
    assert "secret_of_neighbor" not in text, "of a lab to come"


def test_what_students_conclude_from_the_published_table_is_only_where_graders_look(tmp_path):
    answer = (ROOT / "grading" / "02-allgather" / "published-table.md").read_text()
    sentences = [line for line in answer.splitlines() if line.startswith(("- **", "| **"))]
    assert len(sentences) > 5
    out = handout(tmp_path / "out", ["02-allgather"]).path
    assert "allgather-huang-2021.csv" in (out / "data" / "README.md").read_text()
    handed_out = b"".join(files(out).values()).decode(errors="replace")
    assert [line for line in sentences if line in handed_out] == []


def test_the_makefile_of_a_handout_has_the_verbs_of_students_only(kit, tmp_path):
    text = (handout(tmp_path / "out", ["01-first"], kit).path / "Makefile").read_text()
    assert "lab: setup" in text and "build: $(STAMP)" in text
    for word in ("grade", "-m pytest", "release", "handout", "constraints:"):
        assert word not in text


def test_a_later_lab_joins_those_that_are_there(kit, tmp_path):
    out = tmp_path / "out"
    handout(out, ["02-second"], kit)
    (out / "build").mkdir()
    venv = put(out / ".venv" / "bin" / "python", "an environment")
    inode = venv.stat().st_ino
    put(kit / "src_c" / "allgather" / "bruck.c", "version 2\n")
    done = handout(out, ["03-third"], kit)
    assert done.labs == ("02-second", "03-third") and done.kept == ()
    assert {"labs/02-second.ipynb", "labs/03-third.ipynb"} < set(files(out))
    for page in ("README.md", "labs/START.ipynb"):
        text = (out / page).read_text()
        assert "02-second.ipynb" in text and "03-third.ipynb" in text
    assert (out / "src_c" / "allgather" / "bruck.c").read_text() == "version 2\n"
    assert venv.stat().st_ino == inode and (out / "build").is_dir()
    assert sorted(os.listdir(tmp_path)) == ["kit", "out"]


def test_a_later_lab_joins_on_a_file_system_without_hard_links(kit, tmp_path, monkeypatch):
    out = handout(tmp_path / "out", ["02-second"], kit).path
    program = put(out / ".venv" / "bin" / "python", "an environment")
    program.chmod(0o755)
    (out / "link").symlink_to("LICENSE")

    def refused(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    assert handout(out, ["03-third"], kit).labs == ("02-second", "03-third")
    assert program.read_text() == "an environment" and os.access(program, os.X_OK)
    assert (out / "link").is_symlink() and (out / "labs" / "03-third.ipynb").is_file()


def test_a_link_to_a_lab_that_is_not_there_is_text_until_it_comes(kit, tmp_path):
    source = kit / "labs" / "source" / "02-second.py"
    needs = "# ## What you need\n#\n# - An hour. [Lab 03](03-third.ipynb): trees."
    put(source, f"{source.read_text()}\n# %% [markdown]\n{needs}\n")
    folders = {"labs/02-second.ipynb": "", "labs/START.ipynb": "", "README.md": "labs/"}
    out = handout(tmp_path / "out", ["02-second"], kit).path
    for page in folders:
        text = (out / page).read_text()
        assert "Lab 03: trees." in text and "03-third.ipynb" not in text, page
    handout(out, ["03-third"], kit)
    for page, folder in folders.items():
        assert f"[Lab 03]({folder}03-third.ipynb): trees." in (out / page).read_text()


def test_an_earlier_lab_takes_its_answer_out_of_the_handout(kit, tmp_path):
    out = tmp_path / "out"
    assert "src_c/allgather/pairwise.c" in files(handout(out, ["02-second"], kit).path)
    assert "src_c/allgather/pairwise.c" not in files(handout(out, ["01-first"], kit).path)


def test_an_answer_that_another_lab_calls_stays_and_is_named(kit, tmp_path):
    done = handout(tmp_path / "out", LABS, kit)
    assert done.revealed == (("allgather/pairwise.c", "01-first", "03-third"),)
    there = [path.name for path in (done.path / "src_c" / "allgather").iterdir()]
    assert sorted(there) == ["bruck.c", "pairwise.c"]


def test_an_answer_whose_name_a_cell_puts_together_stays_too(kit, tmp_path):
    source = kit / "labs" / "source" / "03-third.py"
    calls = 'run(f"allgather_{name}" for name in ("pairwise", "bruck"))'
    put(source, source.read_text().replace('mpilab.run("allgather_pairwise")', calls))
    assert handout(tmp_path / "out", LABS, kit).revealed[0][0] == "allgather/pairwise.c"
    put(source, source.read_text().replace('"pairwise"', '"all_pairwise"'))
    assert handout(tmp_path / "other", LABS, kit).revealed == ()


def test_what_somebody_has_changed_or_added_stays_and_is_named(kit, tmp_path):
    out = tmp_path / "out"
    handout(out, ["02-second"], kit)
    put(out / "README.md", "Our room is 2.014.\n")
    put(out / "LICENSE", "ours\n")
    put(out / "labs" / "03-third.ipynb", "mine")
    put(out / "labs" / "syllabus.md", "added")
    done = handout(out, ["03-third"], kit)
    assert done.kept == ("LICENSE", "README.md", "labs/03-third.ipynb")
    now = files(out)
    assert now["README.md"] == b"Our room is 2.014.\n" and now["LICENSE"] == b"ours\n"
    assert now["labs/syllabus.md"] == b"added" and now["labs/03-third.ipynb"] == b"mine"
    assert b"03-third" in now["README.new.md"] and b"allgather" in now["labs/03-third.new.ipynb"]
    assert "LICENSE.new" not in now, "the kit's has not changed"
    again = handout(out, ["03-third"], kit)
    assert again.kept == done.kept and files(out) == now
    for name in ("README.md", "README.new.md"):
        (out / name).unlink()
    handout(out, ["03-third"], kit)
    assert files(out)["README.md"] == now["README.new.md"]


def test_a_notebook_that_was_only_run_is_not_changed(kit, tmp_path):
    out = tmp_path / "out"
    start = handout(out, ["02-second"], kit).path / "labs" / "START.ipynb"
    page = json.loads(start.read_text())
    for cell in page["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"execution_count": 3, "source": cell["source"]}
    put(start, json.dumps(page))
    assert handout(out, ["03-third"], kit).kept == ()
    assert "03-third" in start.read_text()


def test_a_handout_may_be_a_zip_with_one_folder_to_which_labs_are_added(kit, tmp_path):
    first = handout(tmp_path / "mpi labs.zip", ["02-second"], kit).path
    before = first.read_bytes()
    with zipfile.ZipFile(first, "a") as archive:
        archive.writestr("mpi labs/labs/syllabus.md", "added")
    done = handout(first, ["03-third"], kit)
    assert done.labs == ("02-second", "03-third") and first.read_bytes() != before
    folder = handout(tmp_path / "folder", ["02-second", "03-third"], kit).path
    with zipfile.ZipFile(first) as archive:
        got = {name: archive.read(name) for name in archive.namelist()}
    got.pop(f"mpi labs/{LIST}")
    assert got.pop("mpi labs/labs/syllabus.md") == b"added"
    assert got == {f"mpi labs/{name}": content for name, content in files(folder).items()}
    assert sorted(os.listdir(tmp_path)) == ["folder", "kit", "mpi labs.zip"]


# The student's side: `mpilab update` in a handout.


def edit(notebook, text):
    page = json.loads(notebook.read_text())
    page["cells"][1]["source"] = text
    put(notebook, json.dumps(page))


@pytest.mark.parametrize("form", ["zip", "folder"])
def test_an_update_adds_labs_and_changes_nothing_that_a_student_has_written(form, kit, tmp_path):
    mine = handout(tmp_path / "mine", ["02-second"], kit).path
    edit(mine / "labs" / "02-second.ipynb", "my answer")
    put(mine / "LICENSE", "mine")
    put(mine / "labs" / "notes.md", "mine")
    stamp = (mine / "src_c" / "allgather" / "bruck.c").stat().st_mtime_ns
    put(kit / "src_c" / "allgather" / "bruck.c", "newer\n")
    source = kit / "labs" / "source" / "02-second.py"
    put(source, source.read_text().replace("# # 02-second", "# # 02-second, corrected"))
    name = "next.zip" if form == "zip" else "next"
    later = handout(tmp_path / name, ["02-second", "03-third"], kit).path
    done = update(later, mine)
    assert done.labs == ("02-second", "03-third")
    assert {"labs/03-third.ipynb", "labs/checks/03-third.toml"} <= set(done.added)
    assert {"src_c/allgather/bruck.c", "labs/START.ipynb", "README.md"} <= set(done.replaced)
    assert done.kept == ["LICENSE", "labs/02-second.ipynb"]
    assert done.beside == {"labs/02-second.ipynb": "labs/02-second.new.ipynb"}
    now = files(mine)
    assert b"my answer" in now["labs/02-second.ipynb"] and now["labs/notes.md"] == b"mine"
    assert b"corrected" in now["labs/02-second.new.ipynb"] and now["LICENSE"] == b"mine"
    # make compiles what is newer than what it has compiled.
    assert (mine / "src_c" / "allgather" / "bruck.c").stat().st_mtime_ns > stamp
    again = update(later, mine)
    assert (again.added, again.replaced, again.removed) == ([], [], []) and files(mine) == now


def test_an_update_takes_out_what_a_lab_to_come_asks_for_unless_somebody_has_changed_it(
    kit, tmp_path
):
    put(kit / "src_c" / "allgather" / "old.c", "1")
    mine = handout(tmp_path / "mine", ["02-second"], kit).path
    (kit / "src_c" / "allgather" / "old.c").unlink()
    later = handout(tmp_path / "next.zip", ["02-second"], kit).path
    assert update(later, mine).removed == ["src_c/allgather/old.c"]
    put(kit / "src_c" / "allgather" / "old.c", "1")
    mine = handout(tmp_path / "other", ["02-second"], kit).path
    put(mine / "src_c" / "allgather" / "old.c", "mine")
    assert update(later, mine).removed == []


def test_an_update_that_is_interrupted_is_finished_by_the_next(kit, tmp_path, monkeypatch):
    mine = handout(tmp_path / "mine", ["02-second"], kit).path
    edit(mine / "labs" / "02-second.ipynb", "my answer")
    later = handout(tmp_path / "next.zip", ["02-second", "03-third"], kit).path
    whole = shutil.copytree(mine, tmp_path / "whole")
    update(later, whole)
    put_one, left = module._put, iter(range(3))

    def interrupted(source, place):
        if next(left, None) is None:
            raise OSError(28, "No space left on device", str(place))
        put_one(source, place)

    monkeypatch.setattr(module, "_put", interrupted)
    with pytest.raises(InputError, match="No space left on device; then run 'make update' again"):
        update(later, mine)
    monkeypatch.undo()
    update(later, mine)
    assert files(mine) == files(whole)
    assert (mine / LIST).read_text() == (whole / LIST).read_text()


def test_an_update_is_refused_before_anything_changes(kit, tmp_path):
    mine = handout(tmp_path / "mine", ["02-second", "03-third"], kit).path
    less = handout(tmp_path / "less.zip", ["02-second"], kit).path
    climber = tmp_path / "climber.zip"
    shutil.copy(handout(tmp_path / "full.zip", ["02-second", "03-third"], kit).path, climber)
    with zipfile.ZipFile(climber, "a") as archive:
        archive.writestr("full/../../escaped.txt", "x")
    before = files(mine)
    for source, root, words in [
        (
            less,
            mine,
            "less.zip: has no lab 03-third, which is in .*ask for a handout with all labs",
        ),
        (tmp_path / "gone.zip", mine, "gone.zip: there is no handout; name the zip"),
        (put(tmp_path / "no.zip", "x"), mine, "no.zip: is not a zipped handout"),
        (less, kit, "kit: is not a handout but a kit; update it with 'git pull'"),
    ]:
        with pytest.raises(InputError, match=words):
            update(source, root)
    assert files(mine) == before
    update(climber, mine)
    assert not list(tmp_path.rglob("escaped.txt"))


@pytest.mark.parametrize("trouble", ["encrypted", "damaged"])
def test_a_damaged_or_encrypted_handout_is_refused_with_a_reason(trouble, kit, tmp_path):
    mine = handout(tmp_path / "mine", ["02-second"], kit).path
    later = handout(tmp_path / "later.zip", ["02-second"], kit).path
    whole, before = later.read_bytes(), files(mine)

    def spoil(name):
        """Spoil the compressed data of a file, or its flags in the directory of the zip."""
        data, path = bytearray(whole), f"later/{name}".encode()
        if trouble == "damaged":
            data[data.find(path) + len(path)] = 0xFF
        else:
            data[data.rfind(path) - 46 + 8] |= 1
        later.write_bytes(data)

    for name, words in [(LIST, "is not a zipped handout"), ("LICENSE", "LICENSE cannot be unpack")]:
        spoil(name)
        with pytest.raises(InputError, match=f"later.zip: .*{words}"):
            update(later, mine)
    assert files(mine) == before


def test_a_handout_is_a_repository_that_names_the_kits_version(kit, tmp_path, require_tool):
    require_tool("git")
    out = handout(tmp_path / "out", ["02-second"], kit).path
    for name in (".venv/x", "build/x.so", "labs/mpilab-logs/x", "labs/.ipynb_checkpoints/x"):
        put(out / name, "made")
    committed = files(out).keys() - {".venv/x", "build/x.so"}
    git = ["git", "-C", out, "-c", "user.name=x", "-c", "user.email=x@x"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "mine"]):
        subprocess.run([*git, *words], check=True)
    listed = subprocess.run([*git, "ls-files"], capture_output=True, text=True, check=True)
    kept = {name for name in committed if "mpilab-logs" not in name and "checkpoints" not in name}
    assert set(listed.stdout.split()) == {
        name for name in kept | {LIST} if not name.startswith("labs/help/")
    }
    told = (out / "REVISION").read_text().strip()
    assert told == (revision() or __version__)


def test_a_course_folder_gets_the_labs_that_it_lacks_and_keeps_what_it_has(kit, tmp_path):
    for name in ("labs/START.ipynb", "labs/02-second.ipynb", "hostfiles/a", "slurm/a", "data/a"):
        put(kit / name, "kit")
    folder = course_folder(tmp_path / "course", kit)
    put(folder / "labs" / "02-second.ipynb", "mine")
    put(kit / "labs" / "03-third.ipynb", "new")
    with pytest.raises(InputError, match="is not an empty folder"):
        course_folder(folder, kit)
    gone, *others = sorted((folder / "labs" / "help").iterdir())
    page = gone.read_text()
    gone.unlink()
    put(others[0], "mine")
    course_folder(folder, kit, add=True)
    assert gone.read_text() == page and others[0].read_text() == "mine"
    assert (folder / "labs" / "03-third.ipynb").read_text() == "new"
    assert (folder / "labs" / "02-second.ipynb").read_text() == "mine"
    other = put(tmp_path / "other" / "file", "x").parent
    with pytest.raises(InputError, match="is not a course folder"):
        course_folder(other, kit, add=True)


def test_bad_input_is_refused_before_anything_is_written(kit, tmp_path):
    full = put(tmp_path / "full" / "mine", "x").parent
    file = put(tmp_path / "file", "x")
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a/b", "c")
    damaged = handout(tmp_path / "damaged", ["02-second"], kit).path
    put(damaged / LIST, "{")
    before = sorted(tmp_path.rglob("*"))
    for target, labs, words in [
        (tmp_path / "new", ["02-secnd"], "lab '02-secnd': no such lab.*Did you mean '02-second'"),
        (full, ["02-second"], "full: is not empty and not a handout; name a new or empty folder"),
        (file, ["02-second"], "file: is a file, not a folder; name a new folder"),
        (file / "below", ["02-second"], "below: cannot be written, because .*file is not a folder"),
        (other, ["02-second"], "other.zip: is not a zipped handout; name a new file"),
        (put(tmp_path / "no.zip", "x"), ["02-second"], "no.zip: is not a zipped handout"),
        (damaged, ["02-second"], f"{LIST}, is damaged; release into a new folder"),
        (tmp_path, ["02-second"], "not empty and not a handout"),
    ]:
        with pytest.raises(InputError, match=words):
            handout(target, labs, kit)
    (tmp_path / "no.zip").unlink()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_misspelt_reference_is_refused_because_it_would_hand_out_the_answer(kit, tmp_path):
    rubric = kit / "grading" / "02-second" / "rubric.toml"
    given = rubric.read_text()
    for wrong in ("allgather/rign.c", "../Makefile"):
        put(rubric, given.replace("allgather/ring.c", wrong))
        with pytest.raises(InputError, match="no such file in"):
            handout(tmp_path / "out", ["02-second"], kit)
    rubric.unlink()
    with pytest.raises(InputError, match="no such file"):
        handout(tmp_path / "out", ["02-second"], kit)
    assert not (tmp_path / "out").exists()


def test_the_folder_in_which_one_is_cannot_be_replaced(kit, tmp_path, monkeypatch):
    out = handout(tmp_path / "out", ["02-second"], kit).path
    monkeypatch.chdir(out / "labs")
    with pytest.raises(InputError, match="'cd' out of it"):
        handout(out, ["03-third"], kit)


@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_a_release_that_fails_leaves_the_handout_as_it_was(kit, tmp_path, monkeypatch, name):
    out = handout(tmp_path / name, ["02-second"], kit).path
    before = files(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device", str(out))

    monkeypatch.setattr(module, "_fingerprints", full)
    with pytest.raises(InputError, match="No space left on device; name a handout"):
        handout(out, ["03-third"], kit)
    with pytest.raises(InputError, match="No space left on device"):
        handout(tmp_path / f"new-{name}", ["03-third"], kit)
    assert files(tmp_path) == before and len(os.listdir(tmp_path)) == 2


KILLED = """\
import os, signal, sys
from mpilab.course import handout
step, target, kit = sys.argv[1:]
original = getattr(handout, step)
def last(*values):
    if step == "replace_folder":  # as late as can be
        import shutil
        shutil.rmtree = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
        return original(*values)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(handout, step, last)
handout.handout(target, ["03-third"], kit)
"""


@pytest.mark.parametrize("step", ["write_help", "_keep", "replace_folder"])
def test_a_release_that_is_killed_leaves_a_whole_handout_and_the_next_one_tidies_up(
    kit, tmp_path, step
):
    out = handout(tmp_path / "out", ["02-second"], kit).path
    put(out / "labs" / "syllabus.md", "added")
    before = files(out)
    done = subprocess.run([sys.executable, "-c", KILLED, step, out, kit])
    assert done.returncode == -signal.SIGKILL
    if step == "replace_folder":
        assert files(out).keys() > before.keys()
    else:
        assert files(out) == before
    assert handout(out, ["03-third"], kit).labs == ("02-second", "03-third")
    assert files(out)["labs/syllabus.md"] == b"added"
    assert sorted(os.listdir(tmp_path)) == ["kit", "out"]


def test_two_releases_into_one_handout_do_not_mix(kit, tmp_path, monkeypatch):
    def at_once(*_):
        with pytest.raises(InputError, match="another release into it is at work"):
            handout(tmp_path / "out", ["03-third"], kit)

    monkeypatch.setattr(module, "write_help", at_once)
    assert handout(tmp_path / "out", ["02-second"], kit).labs == ("02-second",)
    assert "labs/03-third.ipynb" not in files(tmp_path / "out")


def test_the_command_takes_several_labs_or_all_and_leaves_the_kit_alone(tmp_path, capsys):
    labs = {path: path.stat().st_mtime_ns for path in (ROOT / "labs").rglob("*")}
    out = str(tmp_path / "out")
    assert cli.main(["release", "--handout", out, "02-allgather", "05-parallel-io"]) == 0
    said = capsys.readouterr()
    assert said.out == f"handout: {out}\nlabs: 02-allgather, 05-parallel-io\n" and not said.err
    assert cli.main(["release", "all", "--handout", out]) == 0
    said = capsys.readouterr()
    assert "00-first-contact" in said.out and "06-tune-and-scale" in said.out
    named = re.findall(r"src_c/(\S+), for which (\d+)\S+ asks, because (\d+)", said.err)
    assert named == [("bcast/binomial.c", "01", "03")]
    assert cli.main(["release", "all", "02-algather", "--handout", out]) == 1
    assert "lab '02-algather': no such lab" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in (ROOT / "labs").rglob("*")} == labs
