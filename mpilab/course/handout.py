"""Make the handout of a lab, without answers, and a course folder for an installed kit."""

import json
import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import jinja2
import jupytext
import nbformat
from nbformat import NotebookNode

from mpilab.errors import InputError
from mpilab.grading.release import KERNELSPEC, answer_id, release, write_release
from mpilab.judging import rubric
from mpilab.notebook.kernelspec import HELP, write_help
from mpilab.util.files import write_whole
from mpilab.util.kit import PACKAGES, ROOT
from mpilab.util.text import suggestion

START = "START.ipynb"
TEMPLATE = "START.md.j2"
ANSWERS = Path("checks") / "answers.json"

_LEARN, _NEED = "## What you will learn", "## What you need"
# "## Question 1: what a simulated time is worth (10 points)"
_HEADING = re.compile(r"#+\s+(.*?)(?:\s*\(\d+ points\))?\s*$")

# Files of the kit that students need besides their notebook. `grading/` and `labs/source/` hold
# the rubrics and the solutions and must never be on this list.
HANDED_OUT = (
    "mpilab",
    "src_c",
    "data",
    "hostfiles",
    "tools",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "Makefile",
    "README.md",
    "LICENSE",
)

# Folders that notebooks and jobs refer to by path. Everything else stays in the kit.
_COURSE = ("labs", "hostfiles", "slurm", "data", "docs")

# Build products contain the solutions as machine code.
_DERIVED = ("__pycache__", "*.py[cod]", "*.o", "*.so", "*.a", "build", "*.egg-info", ".*")


# labs/START.ipynb, the first page that students open. What it says about a lab is read from the
# lab's source, so the two cannot drift apart. With it goes labs/checks/answers.json: the unedited
# answer cells of each lab, by which mpilab.notebook.lab recognizes a blank one.


@dataclass(frozen=True)
class Exercise:
    """An answer cell.

    id         its grade_id
    stub       its text while it is blank
    checkable  whether `lab.check` can try the answer
    """

    id: str
    title: str
    stub: str
    checkable: bool


@dataclass(frozen=True)
class Front:
    """A lab's description, from its first cells, and its exercises."""

    name: str
    title: str
    learn: tuple[str, ...]
    time: str
    before: str
    needs: tuple[str, ...]
    exercises: tuple[Exercise, ...]

    @property
    def number(self) -> str:
        """The number at the start of the lab's name."""
        return self.name.partition("-")[0]


def front(source: Path) -> Front:
    """The Front of the lab in the file `source`; parts that the lab lacks are empty."""
    lab = release(source)
    texts = [cell.source for cell in lab.cells if cell.cell_type == "markdown"]
    title = next((text[2:].split("\n")[0] for text in texts if text.startswith("# ")), "")
    learn, need = (_bullets(texts, heading) for heading in (_LEARN, _NEED))
    first, *more = need or [""]
    time, _, before = first.partition(". ")
    needs = tuple(filter(None, (before, *more)))
    return Front(
        source.stem, title or source.stem, learn, time, before, needs, _exercises(lab, source)
    )


def write_start(sources: Iterable[Path], labs: Path, root: Path) -> Path:
    """Write START.ipynb and checks/answers.json into the folder `labs`; the Path of START.ipynb.

    They cover the labs in `sources`, in that order; `root` is the kit's folder.
    """
    fronts = [front(source) for source in sources]
    answers = {
        lab.name: {each.pop("id"): each for each in map(asdict, lab.exercises)} for lab in fronts
    }
    write_whole(labs / ANSWERS, json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
    notebook = _page(fronts, root)
    return write_whole(labs / START, nbformat.writes(notebook, version=4) + "\n")


def _page(fronts: list[Front], root: Path) -> NotebookNode:
    help_pages = [{"name": name, "title": _title(root, name)} for name in HELP]
    folder = jinja2.FileSystemLoader(root / "labs" / "source")
    template = jinja2.Environment(loader=folder, undefined=jinja2.StrictUndefined)
    text = template.get_template(TEMPLATE).render(labs=fronts, help=help_pages)
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": dict(KERNELSPEC), "language_info": {"name": "python"}}
    )
    for number, cell in enumerate(jupytext.reads(text, fmt="md").cells):
        make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
        notebook.cells.append(make[cell.cell_type](source=cell.source, id=f"start-{number}"))
    return notebook


def _title(root: Path, name: str) -> str:
    with open(root / "docs" / f"{name}.md", encoding="utf-8") as file:
        return file.readline().strip("# \n")


def _bullets(texts: Iterable[str], heading: str) -> tuple[str, ...]:
    """The items of the list under `heading`, each on one line."""
    under = next((text.partition(heading)[2] for text in texts if heading in text), "")
    items = []
    for line in under.strip().split("\n"):
        if line.startswith("- "):
            items.append(line[2:])
        elif items and line.startswith("  "):
            items[-1] += " " + line.strip()
        else:
            break
    return tuple(items)


def _exercises(lab: NotebookNode, source: Path) -> tuple[Exercise, ...]:
    """The lab's answer cells, with titles from the public checks or from the heading above."""
    checks = source.parents[1] / "checks" / f"{source.stem}.toml"
    titles = {}
    if checks.is_file():
        titles = {each.id: each.title for each in rubric.load(checks).exercises}
    found, heading = [], ""
    for cell in lab.cells:
        name = answer_id(cell)
        if name is not None:
            title = titles.get(name, heading or name)
            found.append(Exercise(name, title, cell.source, name in titles))
        elif cell.cell_type == "markdown":
            for line in cell.source.split("\n"):
                if match := _HEADING.match(line):
                    heading = match[1]
    return tuple(found)


def handout(
    lab: str, directory: str | Path, leave_out: Iterable[str] = (), root: str | Path = ROOT
) -> Path:
    """Write the handout of `lab` into `directory`, which must be new or empty.

    It holds a fresh student version in `labs/`, its public checks, a START page, and the files of
    `HANDED_OUT` under `root` without build products. `leave_out` names files below `src_c/` that
    would give an answer away, e.g. 'allgather/pairwise.c'. Raises InputError if one of them does
    not exist, because a misspelled name would hand out the solution.
    """
    root, directory = Path(root), Path(directory)
    source = root / "labs" / "source" / f"{lab}.py"
    if not source.is_file():
        labs = [each.stem for each in source.parent.glob("*.py")]
        raise InputError(
            f"{source}: no such lab; 'ls {source.parent}' shows the labs there are"
            f"{suggestion(lab, labs)}"
        )
    hidden = {(root / "src_c" / name).resolve() for name in leave_out}
    for path in sorted(hidden):
        if not path.is_file() or not path.is_relative_to((root / "src_c").resolve()):
            raise InputError(
                f"{path}: to be left out of the handout of {lab}, but there is no such file in "
                f"{root / 'src_c'}; correct its name, e.g. 'allgather/pairwise.c'"
            )
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory}: is not an empty folder; name a new one for the handout")

    derived = shutil.ignore_patterns(*_DERIVED)

    def ignored(folder: str, names: list[str]) -> set[str]:
        here = Path(folder).resolve()
        links = {name for name in names if (here / name).is_symlink() or here / name == ROOT}
        return derived(folder, names) | links | {name for name in names if here / name in hidden}

    directory.mkdir(parents=True, exist_ok=True)
    for name in HANDED_OUT:
        # In an installed kit, the modules are not in the folder of its files.
        source_of = PACKAGES if name == "mpilab" and root == ROOT else root
        if (source_of / name).is_dir():
            shutil.copytree(source_of / name, directory / name, ignore=ignored)
        elif (root / name).is_file():
            shutil.copy2(root / name, directory / name)
    write_release(source, directory / "labs" / f"{lab}.ipynb")
    checks = root / "labs" / "checks" / f"{lab}.toml"
    if checks.is_file():
        (directory / "labs" / "checks").mkdir()
        shutil.copy2(checks, directory / "labs" / "checks" / checks.name)
    if (root / "labs" / "source" / TEMPLATE).is_file():
        write_start([source], directory / "labs", root)
        write_help(directory / "labs", root / "docs")
    return directory


def course_folder(directory: str | Path, root: str | Path = ROOT) -> Path:
    """Create a course folder in `directory`, which must be new or empty; its Path.

    It holds the student notebooks of all labs, hostfiles, Slurm scripts, data and docs. The kit
    stays where it is. Raises InputError if `directory` is not empty or cannot be written to.
    """
    directory, root = Path(directory), Path(root)
    try:
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise InputError(f"{directory}: is not an empty folder; name a new one for the course")
        leave_out = shutil.ignore_patterns("source", "checks", *_DERIVED)
        for name in _COURSE:
            shutil.copytree(root / name, directory / name, ignore=leave_out, copy_function=_copy)
        write_help(directory / "labs", root / "docs")
    except OSError as error:
        raise InputError(
            f"{error.filename or directory}: {error.strerror}; name a folder that you can write to"
        ) from None
    return directory


def _copy(source: str, target: str) -> None:
    """Copy a file and make it writable for its new owner, even if the kit's file is read-only."""
    shutil.copyfile(source, target)
    os.chmod(target, 0o755 if os.access(source, os.X_OK) else 0o644)
