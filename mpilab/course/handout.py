"""Make handouts, course folders without answers, and a course folder for an installed kit."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import jinja2
import jupytext
import nbformat
from nbformat import NotebookNode

from mpilab import __version__
from mpilab.errors import InputError
from mpilab.grading.release import (
    KERNELSPEC,
    answer_id,
    release,
    write_checks,
    write_release,
)
from mpilab.grading.submission import ZIP_ERRORS
from mpilab.judging import rubric
from mpilab.util.files import atomic_write, replace_folder
from mpilab.util.kit import PACKAGES, REVISION, ROOT, revision
from mpilab.util.text import suggestion

START = "START.ipynb"
TEMPLATE = "START.md.j2"
README = "HANDOUT.md.j2"
ANSWERS = Path("checks") / "answers.json"

_LEARN, _NEED = "## What you will learn", "## What you need"
# "## Question 1: what a simulated time is worth (10 points)"
_HEADING = re.compile(r"#+\s+(.*?)(?:\s*\(\d+ points\))?\s*$")

# Files of the kit that students need besides what `_write_handout` makes for them. `grading/` and
# `labs/source/` hold the rubrics and the solutions and must never be on this list.
HANDED_OUT = (
    "mpilab",
    "src_c",
    "data",
    "hostfiles",
    "slurm",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "LICENSE",
    # What 'make setup' and 'make lab' run.
    "tools/kit_parts.py",
    "tools/lab.py",
    "tools/machine.py",
    "tools/no_python.sh",
    "tools/packages.py",
    "tools/problem.py",
    "tools/provision.py",
    "tools/pyenvironment.py",
    "tools/setup.py",
    "tools/wheel_with_kit.py",
)

# The parts of the Makefile between these two comments are left out of a handout.
_NOT_FOR_STUDENTS = re.compile(r"^# Not in a handout:.*?^# End\n\n?", re.MULTILINE | re.DOTALL)

# Folders that notebooks and jobs refer to by path. Everything else stays in the kit.
_COURSE = ("labs", "hostfiles", "slurm", "data", "docs")

# So that a handout can be the repository that students' own are made from.
_IGNORED_BY_GIT = """\
/.venv/
/.venv.lock
/build/
/out/
/labs/help/
mpilab-logs/
.mpilab-checks/
*.egg-info/
__pycache__/
.ipynb_checkpoints/
.virtual_documents/
"""

# Build products contain the solutions as machine code.
_DERIVED = ("__pycache__", "*.py[cod]", "*.o", "*.so", "*.a", "build", "*.egg-info", ".*")

# Pages of docs/ for students. JupyterLab is started in labs/ and shows nothing above it, so 'make
# lab', a handout and a course folder copy the pages to labs/help/. The copies are not in the
# repository, so they cannot become outdated.

HELP = tuple(
    "glossary failures emulated-hosts simulation topology file-access rules scale slurm".split()
)
_LINK = re.compile(r"\[[^\]]*\]\(([^):#\s]+)(#[^)\s]*)?\)")
_LAB_LINK = re.compile(r"\[(?P<text>[^\]\n]*)\]\((?P<path>(?:labs/)?\d\d-[\w-]+\.ipynb)\)")


def write_help(labs: Path, docs: Path, *, keep: bool = False) -> None:
    """Copy the help pages that exist in the folder `docs` to `labs`/help.

    With `keep`, pages that are there already stay as they are. A link to a file that is not copied
    becomes the path of that file in the kit. Raises OSError if the pages cannot be written.
    """
    copied = {f"{name}.md" for name in HELP}

    def reachable(link: re.Match[str]) -> str:
        return link[0] if link[1] in copied else f"`{os.path.normpath(f'docs/{link[1]}')}`"

    for page in (docs / f"{name}.md" for name in HELP):
        target = labs / "help" / page.name
        if page.is_file() and not (keep and os.path.lexists(target)):
            text = _LINK.sub(reachable, page.read_text(encoding="utf-8"))
            atomic_write(target, text.encode("utf-8"))


# labs/START.ipynb, the first page that students open. What it says about a lab is read from the
# lab's source, so the two cannot drift apart. It comes with labs/checks/answers.json: the unedited
# answer cells of each lab, from which mpilab.notebook.lab recognizes a blank one.


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


def front(source: Path, checks: Path | None = None) -> Front:
    """The Front of the lab in the file `source`; parts that the lab lacks are empty.

    checks   the folder with its public checks; default: that of the kit
    """
    lab = release(source)
    texts = [cell.source for cell in lab.cells if cell.cell_type == "markdown"]
    title = next((text[2:].split("\n")[0] for text in texts if text.startswith("# ")), "")
    learn, need = (_bullets(texts, heading) for heading in (_LEARN, _NEED))
    first, *more = need or [""]
    time, _, before = first.partition(". ")
    needs = tuple(filter(None, (before, *more)))
    return Front(
        source.stem,
        title or source.stem,
        learn,
        time,
        before,
        needs,
        _exercises(lab, (checks or source.parents[1] / "checks") / f"{source.stem}.toml"),
    )


def write_start(
    sources: Iterable[Path], labs: Path, root: Path, checks: Path | None = None
) -> Path:
    """Write START.ipynb and checks/answers.json into the folder `labs`; the Path of START.ipynb.

    They cover the labs in `sources`, in that order; `root` is the kit's folder, `checks` the folder
    with the public checks, as for `front`.
    """
    fronts = [front(source, checks) for source in sources]
    answers = {
        lab.name: {each.pop("id"): each for each in map(asdict, lab.exercises)} for lab in fronts
    }
    atomic_write(labs / ANSWERS, json.dumps(answers, indent=1, ensure_ascii=False) + "\n")
    notebook = _page(fronts, root)
    return atomic_write(labs / START, nbformat.writes(notebook, version=4) + "\n")


def _page(fronts: list[Front], root: Path) -> NotebookNode:
    help_pages = [{"name": name, "title": _title(root, name)} for name in HELP]
    text = _template(root, TEMPLATE).render(labs=fronts, help=help_pages)
    notebook = nbformat.v4.new_notebook(
        metadata={"kernelspec": dict(KERNELSPEC), "language_info": {"name": "python"}}
    )
    for number, cell in enumerate(jupytext.reads(text, fmt="md").cells):
        make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
        notebook.cells.append(make[cell.cell_type](source=cell.source, id=f"start-{number}"))
    return notebook


def _template(root: Path, name: str) -> jinja2.Template:
    folder = jinja2.FileSystemLoader(root / "labs" / "source")
    return jinja2.Environment(loader=folder, undefined=jinja2.StrictUndefined).get_template(name)


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


def _exercises(lab: NotebookNode, checks: Path) -> tuple[Exercise, ...]:
    """The lab's answer cells, with titles from the public checks or from the heading above."""
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


# A handout: the course folder of students. The instructor releases labs into it, one by one.


@dataclass(frozen=True)
class Handout:
    """What `handout` has written.

    labs      all labs in the handout
    kept      files that had been changed since they were handed out, and stay as they are; for
              some, a new version lies beside them as NAME.new.EXT
    revealed  kernels that a lab asks for and that stay because another lab here calls them: (file
              below src_c, the lab that asks for it, the lab that calls it)
    """

    path: Path
    labs: tuple[str, ...]
    kept: tuple[str, ...] = ()
    revealed: tuple[tuple[str, str, str], ...] = ()


def handout(target: str | Path, labs: Iterable[str], root: str | Path = ROOT) -> Handout:
    """Release `labs` into the handout `target`: a folder, or a file if its name ends in '.zip'.

    A handout has all that students need, and no answers, rubrics or seeded bugs: the notebooks of
    its labs, their public checks, a START page, the pages of `HELP`, a README and a Makefile for
    students, and the kit without the kernels that its labs, and all labs after the first of them,
    ask for. If `target` is a handout already, it keeps its labs, and every file in it that somebody
    has added or changed. All is written beside `target`, which is then replaced as a whole. Raises
    InputError, before anything is written, if a lab is unknown or `target` is something else.
    """
    root, target = Path(root), Path(target)
    if Path(os.path.realpath(target)) in (here := Path.cwd(), *here.parents):
        raise InputError(
            f"{target}: holds the folder in which you are, and is replaced as a whole; 'cd' out of "
            "it, and name it from there"
        )
    parent = next(folder for folder in target.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(
            f"{target}: cannot be written, because {parent} is not a folder that you can write to; "
            "name another folder for the handout"
        )
    known = [path.stem for path in sorted((root / "labs" / "source").glob("*.py"))]
    wanted = list(labs)
    for lab in wanted:
        if lab not in known:
            listed = f"write one of {', '.join(known)}, or all{suggestion(lab, known)}"
            raise InputError(f"lab {lab!r}: no such lab; {listed}")
    before = _handed_out(target)
    if before:
        wanted += before["labs"]
        for lab in set(wanted) - set(known):
            raise InputError(
                f"{target}: holds lab {lab!r}, which this kit does not have; release with the kit "
                "that made this handout, or into a new folder"
            )
    chosen = tuple(lab for lab in known if lab in wanted)
    withheld, revealed = _withheld(chosen, known, root)

    def make(new: Path) -> None:
        _write_handout(new, chosen, withheld, root)

    return Handout(target, chosen, _replace(target, chosen, before, make), revealed)


# The list in a handout: its labs, and a fingerprint of each file as it was handed out.
LIST = ".mpilab-handout.json"


def _is_zip(path: Path) -> bool:
    return path.suffix.lower() == ".zip"


def _handed_out(path: Path) -> dict[str, Any] | None:
    """The list in the handout at `path`; None if there is nothing; InputError otherwise."""
    try:
        if _is_zip(path):
            if not os.path.lexists(path):
                return None
            text = _list_in_zip(path)
        elif path.is_dir():
            if not any(path.iterdir()):
                return None
            text = (path / LIST).read_text(encoding="utf-8")
        elif os.path.lexists(path):
            raise InputError(
                f"{path}: is a file, not a folder; name a new folder for the handout, or a file "
                "ending in .zip"
            )
        else:
            return None
    except FileNotFoundError:
        raise InputError(
            f"{path}: is not empty and not a handout; name a new or empty folder, or a handout to "
            "which the labs are to be added"
        ) from None
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; name a handout that you can read and write"
        ) from None
    try:
        found = json.loads(text)
        if not all(isinstance(lab, str) for lab in found["labs"]):
            raise TypeError
        return {"labs": list(found["labs"]), "files": dict(found["files"])}
    except (ValueError, KeyError, TypeError):
        raise InputError(
            f"{path}: the list of its files, {LIST}, is damaged; release into a new folder"
        ) from None


def _list_in_zip(path: Path) -> str:
    """The text of the list in a zipped handout; InputError if the file is something else."""
    if path.is_file():
        try:
            with zipfile.ZipFile(path) as archive:
                lists = [name for name in archive.namelist() if Path(name).name == LIST]
                if len(lists) == 1 and len(Path(lists[0]).parts) == 2:
                    return archive.read(lists[0]).decode()
        except OSError:
            raise
        except ZIP_ERRORS:
            pass
    raise InputError(f"{path}: is not a zipped handout; name a new file, or a handout to add to")


def _withheld(
    chosen: tuple[str, ...], known: list[str], root: Path
) -> tuple[set[Path], tuple[tuple[str, str, str], ...]]:
    """The kernels that are not handed out with the labs `chosen`, and what is revealed."""
    texts = {}
    for lab in chosen:
        cells = release(root / "labs" / "source" / f"{lab}.py").cells
        checks = rubric.public_checks(root / "grading" / lab / "rubric.toml")
        texts[lab] = [checks, *(cell.source for cell in cells)]
    hidden, revealed = set(), []
    for lab in known[known.index(chosen[0]) :] if chosen else []:
        path = root / "grading" / lab / "rubric.toml"
        # A lab without a rubric is still being written.
        if lab not in chosen and not path.is_file():
            continue
        for name in rubric.load(path).references:
            file = (root / "src_c" / name).resolve()
            if not file.is_file() or not file.is_relative_to((root / "src_c").resolve()):
                raise InputError(
                    f"{file}: should be omitted from the handout because of {path}, but there is "
                    f"no such file in {root / 'src_c'}; correct its name, e.g. "
                    "'allgather/pairwise.c'"
                )
            callers = [other for other in chosen if other != lab and _calls(texts[other], name)]
            if callers:
                revealed.append((name, lab, callers[0]))
            else:
                hidden.add(file)
    return hidden, tuple(revealed)


def _calls(texts: Iterable[str], file: str) -> bool:
    """Whether one of the texts names the kernel of a file such as 'gather/binomial.c'.

    In one piece, gather_binomial, or in two: f"gather_{name}" and "binomial".
    """
    collective, _, name = file.removesuffix(".c").partition("/")
    whole = re.compile(rf"\b{re.escape(collective)}_{re.escape(name)}\b")
    first, second = re.compile(rf"\b{re.escape(collective)}_\{{"), re.compile(rf"[\"']{name}[\"']")
    return any(whole.search(t) or (first.search(t) and second.search(t)) for t in texts)


# In the headers of kernels: fields that lab 04 asks for as formulas, with their further lines.
_CROSSING = re.compile(r"^ \* Between (?:nodes|groups):.*\n(?: \* {3,}.*\n)*", re.MULTILINE)


def _write_handout(new: Path, labs: tuple[str, ...], withheld: set[Path], root: Path) -> None:
    """Write a handout of `labs` into the new folder `new`."""
    derived = shutil.ignore_patterns(*_DERIVED)

    def ignored(folder: str, names: list[str]) -> set[str]:
        here = Path(folder).resolve()
        links = {name for name in names if (here / name).is_symlink() or here / name == ROOT}
        answers = {name for name in names if here / name in withheld}
        return derived(folder, names) | links | answers

    for name in HANDED_OUT:
        # In an installed kit, the modules are not in the folder of its files.
        source = PACKAGES if name == "mpilab" and root == ROOT else root
        if (source / name).is_dir():
            shutil.copytree(source / name, new / name, ignore=ignored, copy_function=_copy)
        elif (source / name).is_file():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            _copy(str(source / name), str(new / name))
    for kernel in (new / "src_c").glob("*/*.c"):
        text = kernel.read_text(encoding="utf-8")
        if _CROSSING.search(text):
            atomic_write(kernel, _CROSSING.sub("", text))
    folder = new / "labs"
    sources = [root / "labs" / "source" / f"{lab}.py" for lab in labs]
    for source in sources:
        write_release(source, folder / f"{source.stem}.ipynb")
        write_checks(
            root / "grading" / source.stem / "rubric.toml",
            folder / "checks" / f"{source.stem}.toml",
        )
    write_start(sources, folder, root, folder / "checks")
    # START links to labs/help, the README to docs.
    write_help(folder, root / "docs")
    if (folder / "help").is_dir():
        shutil.copytree(folder / "help", new / "docs")
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    atomic_write(new / "Makefile", _NOT_FOR_STUDENTS.sub("", makefile))
    atomic_write(new / ".gitignore", _IGNORED_BY_GIT)
    # In a student's repository, git would name the student's commit.
    atomic_write(new / REVISION, f"{revision() or __version__}\n")
    fronts = [front(source, folder / "checks") for source in sources]
    help_pages = [{"name": name, "title": _title(root, name)} for name in HELP]
    text = _template(root, README).render(labs=fronts, help=help_pages)
    atomic_write(new / "README.md", text.rstrip("\n") + "\n")
    for page in (new / "README.md", *folder.glob("*.ipynb")):
        _without_links_to_absent_labs(page)


def _without_links_to_absent_labs(page: Path) -> None:
    """In a page or notebook, turn each link to a lab that the handout does not have into text."""

    def kept(link: re.Match[str]) -> str:
        return link[0] if (page.parent / link["path"]).is_file() else link["text"]

    text = page.read_text(encoding="utf-8")
    atomic_write(page, _LAB_LINK.sub(kept, text))


# Replace a handout as a whole.


def _replace(
    target: Path,
    labs: tuple[str, ...],
    before: dict[str, Any] | None,
    make: Callable[[Path], None],
) -> tuple[str, ...]:
    """Let `make` write a handout, add what of `target` is to stay, and put it in its place.

    Until then, `target` is unchanged. Returns the files that stay though they were changed.
    """
    target = Path(os.path.realpath(target))
    beside = target.with_name(f".{target.name}.part")
    kept: tuple[str, ...] = ()
    try:
        beside.mkdir(parents=True, exist_ok=True)
        with _alone(beside, target):
            new, old = beside / "new", target
            try:
                shutil.rmtree(new, ignore_errors=True)  # by a release that was killed
                new.mkdir()
                make(new)
                released = _fingerprints(new)
                if before and _is_zip(target):
                    old = beside / "old"
                    _unpack(target, old)
                if before:
                    kept = _keep(old, new, before["files"], released)
                listed = {"labs": labs, "files": dict(sorted(released.items()))}
                atomic_write(new / LIST, json.dumps(listed, indent=1, ensure_ascii=False) + "\n")
                if _is_zip(target):
                    _pack(new, beside / target.name, target.stem).replace(target)
                else:
                    replace_folder(new, target)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
    except OSError as error:
        raise InputError(
            f"{error.filename or target}: {error.strerror or error}; name a handout in a folder "
            "that you can write to"
        ) from None
    return kept


@contextlib.contextmanager
def _alone(beside: Path, target: Path) -> Iterator[None]:
    """Hold a lock on the folder `beside`; InputError if another release holds it."""
    handle = os.open(beside, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{target}: another release into it is at work; wait for its end"
            ) from None
        yield
    finally:
        os.close(handle)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files and links below `folder`, with their paths in it."""
    for here, folders, names in os.walk(folder):
        links = [name for name in folders if Path(here, name).is_symlink()]
        for name in (*names, *links):
            path = Path(here, name)
            yield path.relative_to(folder).as_posix(), path


def _fingerprints(folder: Path) -> dict[str, str]:
    return {name: _fingerprint(path) for name, path in _files(folder)}


def _fingerprint(path: Path) -> str:
    """A hash of a file. Of a notebook, only the cells' texts count: to run it changes nothing."""
    is_link = path.is_symlink()
    content = f"link to {path.readlink()}".encode() if is_link else path.read_bytes()
    if path.suffix == ".ipynb":
        try:
            cells = json.loads(content)["cells"]
            texts = [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
            content = json.dumps(texts).encode()
        except (ValueError, KeyError, TypeError):
            pass  # not a notebook: its bytes count
    return hashlib.sha256(content).hexdigest()


def _keep(
    old: Path, new: Path, before: dict[str, str], released: dict[str, str]
) -> tuple[str, ...]:
    """Put into the handout `new` what has been added to or changed in the handout `old`.

    `before` and `released` are the fingerprints of both as they were handed out. Where both have
    changed a file, the new version gets another name, also in `released`. Returns the files of the
    kit that were changed in `old`.
    """
    kept = []
    for name, path in _files(old):
        if name == LIST:
            continue
        was, fresh = before.get(name), released.get(name)
        found = _fingerprint(path) if was or fresh else ""
        if found and found == was and found != fresh:
            continue  # unchanged, and replaced or no longer handed out
        place = new / name
        if found != fresh and (was or fresh):
            kept.append(name)
            aside = place.with_name(f"{place.stem}.new{place.suffix}")
            other = aside.relative_to(new).as_posix()
            if fresh and (fresh != was or other in before):
                place.replace(aside)
                released[other] = fresh
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        try:
            os.link(path, place, follow_symlinks=False)
        except OSError:  # exFAT and some network shares have no hard links
            shutil.copy2(path, place, follow_symlinks=False)
    for here, folders, names in os.walk(old):
        if not folders and not names:
            (new / Path(here).relative_to(old)).mkdir(parents=True, exist_ok=True)
    return tuple(sorted(kept))


# A student's handout gets what the next one has.


@dataclass(frozen=True)
class Updated:
    """What `update` has done, as lists of files below the handout.

    kept     files that the student has changed, and that stay
    beside   {such a file: the new version, which lies beside it}
    """

    labs: tuple[str, ...]
    added: list[str]
    replaced: list[str]
    removed: list[str]
    kept: list[str]
    beside: dict[str, str]


def update(source: str | Path, root: str | Path = ROOT) -> Updated:
    """Bring the handout in the folder `root` up to `source`, a later one: a folder or a zip.

    New files come, and those change that are as they were handed out; a notebook that was only run
    counts as such. Whatever else somebody has changed stays, with the new version beside it as
    NAME.new.EXT, and so does everything that was added. Each file changes at once, and the list of
    files last: after an interruption, `update` can be called again. Raises InputError, before
    anything changes, if one of the two is not a handout, or if `source` lacks a lab of `root`.
    """
    source, root = Path(source), Path(root)
    if not (root / LIST).is_file():
        raise InputError(
            f"{root}: is not a handout but a kit; update it with 'git pull' and 'make setup'"
        )
    before, later = _handed_out(root), _handed_out(source)
    if before is None or later is None:
        raise InputError(f"{source}: there is no handout; name the zip or folder that you got")
    if missing := [lab for lab in before["labs"] if lab not in later["labs"]]:
        raise InputError(
            f"{source}: has no lab {', '.join(missing)}, which is in {root}; ask for a handout "
            "with all labs, or unpack this one into a folder of its own"
        )
    try:
        with tempfile.TemporaryDirectory(prefix="mpilab-update-") as scratch:
            new = source
            if _is_zip(source):
                new = Path(scratch, "new")
                _unpack(source, new)
            return _update(new, root, before["files"], later)
    except OSError as error:
        raise InputError(
            f"{error.filename or root}: {error.strerror or error}; then run 'make update' again"
        ) from None


def _update(new: Path, root: Path, before: dict[str, str], later: dict[str, Any]) -> Updated:
    """Like `update`, from the folder `new`, after its checks."""
    done = Updated(tuple(later["labs"]), [], [], [], [], {})
    released = {}
    for name, path in sorted(_files(new)):
        if name == LIST or path.is_symlink():
            continue
        place, fresh, was = root / name, _fingerprint(path), before.get(name)
        released[name] = fresh
        found = _fingerprint(place) if os.path.lexists(place) else None
        if found == fresh:
            continue
        if found is None or found == was:
            (done.added if found is None else done.replaced).append(name)
            _put(path, place)
            continue
        done.kept.append(name)
        aside = place.with_name(f"{place.stem}.new{place.suffix}")
        other = aside.relative_to(root).as_posix()
        if fresh != was or other in before:
            _put(path, aside)
            done.beside[name], released[other] = other, fresh
    for name, was in before.items():
        place = root / name
        gone = name not in released and not name.startswith("labs/")
        if gone and place.is_file() and _fingerprint(place) == was:
            place.unlink()
            done.removed.append(name)
    listed = {"labs": later["labs"], "files": dict(sorted(released.items()))}
    atomic_write(root / LIST, json.dumps(listed, indent=1, ensure_ascii=False) + "\n")
    return done


def _put(source: Path, place: Path) -> None:
    """Put a copy of a file at `place`, with the time of now, by which make sees that it is new."""
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}.part")
    _copy(str(source), str(part))
    os.utime(part)
    part.replace(place)


def _pack(folder: Path, path: Path, top: str) -> Path:
    """Zip `folder`, called `top` in the zip, into the file `path`; its Path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in sorted(_files(folder)):
            if file.is_file():
                archive.write(file, f"{top}/{name}")
    return path


def _unpack(path: Path, folder: Path) -> None:
    """Unpack a zipped handout into the new folder `folder`, without the folder at its top.

    Raises InputError for a damaged or encrypted file in it.
    """
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            parts = Path(member.filename).parts[1:]
            if parts and ".." not in parts and not member.is_dir():
                file = folder.joinpath(*parts)
                try:
                    data = archive.read(member)
                except ZIP_ERRORS as error:
                    raise InputError(
                        f"{path}: {member.filename} cannot be unpacked ({error}); make the zip "
                        "again, or download it again"
                    ) from None
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
                file.chmod(0o755 if member.external_attr >> 16 & 0o100 else 0o644)


def course_folder(directory: str | Path, root: str | Path = ROOT, *, add: bool = False) -> Path:
    """Create a course folder in `directory`, which must be new or empty; its Path.

    It holds the student notebooks of all labs, hostfiles, Slurm scripts, data and docs. The kit
    stays where it is. With `add`, `directory` may be a course folder, which gets the files that it
    lacks; what it has stays as it is. Raises InputError if `directory` is not empty or cannot be
    written to.
    """
    directory, root = Path(directory), Path(root)

    def copied(source: str, target: str) -> None:
        if not os.path.lexists(target):
            _copy(source, target)

    try:
        is_used = directory.exists() and (not directory.is_dir() or any(directory.iterdir()))
        if is_used and not (add and (directory / "labs" / START).is_file()):
            kind = "a course folder" if add else "an empty folder"
            raise InputError(f"{directory}: is not {kind}; name a new one for the course")
        leave_out = shutil.ignore_patterns("source", "checks", *_DERIVED)
        for name in _COURSE:
            if (root / name).is_dir():  # a handout may have no data
                shutil.copytree(
                    *(root / name, directory / name),
                    ignore=leave_out,
                    copy_function=copied,
                    dirs_exist_ok=add,
                )
        write_help(directory / "labs", root / "docs", keep=is_used)
    except OSError as error:
        raise InputError(
            f"{error.filename or directory}: {error.strerror}; name a folder that you can write to"
        ) from None
    return directory


def _copy(source: str, target: str) -> None:
    """Copy a file, with its time, and make it writable for its new owner."""
    shutil.copy2(source, target)
    Path(target).chmod(0o755 if os.access(source, os.X_OK) else 0o644)
