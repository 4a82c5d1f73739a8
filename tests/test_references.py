"""Every module, file and folder of the kit that a comment, a page or a program names exists.

Moved files leave references behind that no compiler checks.
"""

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import mpilab
from mpilab.cli import GROUPS

ROOT = Path(__file__).resolve().parents[1]
READ = {".py", ".c", ".h", ".mk", ".md", ".toml", ".j2", ".js", ".html", ".sh", ".sbatch", ".txt"}
TOP = "deploy|docs|grading|hostfiles|labs|mpilab|slurm|src_c|tests|tools"
# A path in a sentence, not part of a longer one; placeholders are in capitals (LAB).
PATH = re.compile(rf"(?<![\w/.-])(?:{TOP})/(?![\w./-]*[A-Z]{{3}})[\w./-]*\w")
MODULE = re.compile(r"(?<![\w./-])mpilab(?:\.[A-Za-z_]\w*)+(?!\w*/)")
# Created by the kit's commands, or fictitious: a lab that an instructor writes, a student's own
# file.
ABSENT = re.compile(
    r"labs/help|mpilab/kit|mpilab\.(h|runn|__file__)|.*/90-example\b.*|labs/bcast_own\.c"
)
# tests/ names files and modules of fictitious kits.
LOOKED_AT = (
    "mpilab/",
    "src_c/",
    "docs/",
    "labs/source/",
    "tools/",
    "slurm/",
    "deploy/",
    "grading/",
)


def texts():
    """Paths, from ROOT, of the kit's texts that git tracks."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split("\0")
    if listed.returncode != 0:
        pytest.skip("NOT TESTED: git does not know this folder")
    return [
        name
        for name in names
        if Path(name).suffix in READ
        and (name.startswith(LOOKED_AT) or "/" not in name)
        and name != "CHANGELOG.md"
        and not name.startswith("grading/sample-class/")
    ]


@cache
def modules():
    """{dotted name: file} of the package."""
    found = {}
    for path in (ROOT / "mpilab").rglob("*.py"):
        dotted = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        found[dotted.removesuffix(".__init__")] = path
    return found


@cache
def names_in(module):
    """Every name that is defined, imported or used in a module."""
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    fields = ("name", "asname", "id", "attr", "arg")
    found = {getattr(node, field, None) for node in ast.walk(tree) for field in fields}
    return found | set(mpilab.__all__ if module == "mpilab" else ())


def is_module_or_name(dotted):
    """Is there a module of that name, or one that defines the first of the remaining names?"""
    parts = dotted.split(".")
    if parts[1] in mpilab._MODULES:
        parts = [*mpilab._MODULES[parts[1]].split("."), *parts[2:]]
    known = max(n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in modules())
    return known == len(parts) or parts[known] in names_in(".".join(parts[:known]))


def is_path(name):
    """Is there such a file or folder, or such files with any suffix (mpilab/osu)?"""
    return (ROOT / name).exists() or (ROOT / f"{name}.py").exists()


def test_every_file_and_module_that_is_named_is_there():
    wrong = []
    for name in texts():
        text = (ROOT / name).read_text(encoding="utf-8")
        for pattern, is_there in ((PATH, is_path), (MODULE, is_module_or_name)):
            for match in pattern.finditer(text):
                if not ABSENT.fullmatch(match[0]) and not is_there(match[0]):
                    wrong.append(f"{name}:{text[: match.start()].count(chr(10)) + 1}: {match[0]}")
    assert wrong == []


@pytest.mark.parametrize(
    "name", ["src_c/allgather/ring.c", "mpilab.cases.case.Case", "docs/rubrics.md"]
)
def test_what_is_there_is_found(name):
    assert (is_path if "/" in name else is_module_or_name)(name)


@pytest.mark.parametrize(
    "name", ["src_c/allgather/rign.c", "mpilab.cases.case.Csae", "mpilab.harnes"]
)
def test_what_is_not_there_is_noticed(name):
    assert (PATH if "/" in name else MODULE).fullmatch(name)
    assert not (is_path if "/" in name else is_module_or_name)(name)


SOURCES = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
SECTION = re.compile(r"(\d\d) \*(.+)\*")
COMMAND = re.compile(r"`mpilab (\w+)`")


def headings(lab):
    """The headings of the sections of a lab, without points and without '(optional)'."""
    (source,) = (ROOT / "labs" / "source").glob(f"{lab}-*.py")
    found = re.findall(r"^# ## (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r" \((?:\d+ points|optional)\)$", "", heading) for heading in found}


def places_of_sources():
    """(what a document has, its place in the kit, remarks) for each place in docs/sources.md."""
    for line in SOURCES.splitlines():
        if line.startswith("| ") and " in the kit |" not in line:
            what, places, remarks = (cell.strip() for cell in line[1:-1].split(" | ", 2))
            for place in places.split("; "):
                yield what, place, remarks


def is_place(place):
    """Is there such a section of a lab, such a command, or such a file?"""
    if section := SECTION.fullmatch(place):
        return section[2] in headings(section[1])
    if command := COMMAND.fullmatch(place):
        return any(command[1] in names for names in GROUPS.values())
    return place.startswith("`") and (ROOT / place.strip("`")).is_file()


def test_every_place_of_a_source_document_exists():
    places = list(places_of_sources())
    missing = [each for each in places if not is_place(each[1])]
    assert [each for each in missing if each[1] != "–" or "Not yet: " not in each[2]] == []
    # The figures and tables of the reports: nothing is dropped from the page in silence.
    told = " ".join(what for what, *_ in places)
    for number in range(1, 7):
        assert re.search(rf"figures? {number}\b|figures 1 and {number}\b", told), number
    assert len({what for what, *_ in places}) > 60


@pytest.mark.parametrize(
    "place", ["02 *Mesure*", "`mpilab swep`", "`data/rules/publshed.rules`", "the report"]
)
def test_a_place_that_does_not_exist_is_noticed(place):
    assert not is_place(place)
