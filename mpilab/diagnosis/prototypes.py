"""What the installed mpi.h and our mpilab.h declare: functions with their arguments, and names.

They are read once, from the headers that mpicc itself uses, so that hints name the arguments as
this MPI names them.
"""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mpilab import openmpi
from mpilab.build import INCLUDE
from mpilab.errors import SetupError

# A declaration or the head of a definition: 'int MPI_Send(...);', 'static inline void *block(...)'.
_FUNCTION = re.compile(
    r"^\s*(?:OMPI_DECLSPEC\s+|static\s+inline\s+)?(?!return\b)(?P<result>(?:const\s+)?\w+[\s*]+)"
    r"(?P<name>[A-Za-z_]\w*)\s*\((?P<parameters>[^()]*)\)\s*"
    r"""(?:__mpi_interface_\w+__\((?:"[^"]*"|[^;"()]*)\))?\s*[;{]""",
    re.MULTILINE,
)
_HANDLE = re.compile(r"^\s*#define\s+(MPI_\w+)\s+OMPI_PREDEFINED_GLOBAL\(\s*(\w+)", re.MULTILINE)
_POINTER = re.compile(r"^\s*#define\s+(MPI_\w+)\s+\(\((\w+) ?\*\) ?\d+\)", re.MULTILINE)
_NUMBER = re.compile(r"^\s*#define\s+(MPI_\w+)\s+-?\w+\s*(?:/\*|$)", re.MULTILINE)
_MEMBER = re.compile(r"^\s+(MPI_[A-Z0-9_]+)(?:\s*=\s*[^,]+)?,?\s*$", re.MULTILINE)
_TYPE = re.compile(r"^\s*typedef\s+[^;(]*?\b(MPI_\w+);", re.MULTILINE)
_OURS = re.compile(r"#define MPILAB_(\w+)\(name\)((?:.*\\\n)*.*)")


@dataclass(frozen=True)
class Parameter:
    """One argument of a prototype: `type` without const, an array as a pointer ('int *')."""

    type: str
    name: str
    text: str = ""

    @property
    def is_array(self):
        """Does it take an array, by its text or by MPI's way of naming those?"""
        return self.text.endswith("]") or self.name.startswith("array_of_")


@dataclass(frozen=True)
class Prototype:
    """A function: what it returns, and its Parameters."""

    name: str
    result: str
    parameters: tuple

    def __str__(self):
        return f"{self.name}({', '.join(p.name or p.type for p in self.parameters)})"


@cache
def include_directory():
    """The folder of the mpi.h that mpicc takes. Raises SetupError where mpicc cannot say."""
    command = [openmpi.tool("mpicc"), "--showme:incdirs"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=20)
    for folder in said.stdout.split():
        if (Path(folder) / "mpi.h").is_file():
            return Path(folder)
    raise SetupError(
        f"{' '.join(command)}: names no folder with mpi.h ({(said.stdout + said.stderr).strip()}). "
        "Install Open MPI again: 'make setup' in the kit's folder."
    )


@cache
def functions():
    """{name: Prototype} of MPI's functions and of the helpers of mpilab.h."""
    found = {}
    for text in (_mpi_header(), _our_header()):
        for match in _FUNCTION.finditer(_without_comments(text)):
            parameters = parse_parameters(match["parameters"])
            found[match["name"]] = Prototype(match["name"], plain_type(match["result"]), parameters)
    return {name: one for name, one in found.items() if not name.startswith("PMPI_")}


@cache
def constants():
    """{name: type} of MPI's constants: handles by their type, numbers as 'int'."""
    text = _mpi_header()
    found = dict.fromkeys(_NUMBER.findall(text), "int")
    found.update(dict.fromkeys(_MEMBER.findall(text), "int"))
    found.update((name, f"{kind} *") for name, kind in _POINTER.findall(text))
    found.update(_HANDLE.findall(text))
    return {name: kind for name, kind in found.items() if name == name.upper()}


@cache
def types():
    """The names of MPI's types."""
    return frozenset(_TYPE.findall(_mpi_header()))


@cache
def names():
    """All names that mpi.h gives: functions, constants and types."""
    return frozenset(n for n in functions() if n.startswith("MPI_")) | constants().keys() | types()


@cache
def own_names():
    """The names that mpilab.h adds: helpers, TAG, and the MPILAB_ macros."""
    text = _our_header()
    helpers = {match["name"] for match in _FUNCTION.finditer(_without_comments(text))}
    return frozenset(helpers | {"TAG"} | {f"MPILAB_{name}" for name, _ in _OURS.findall(text)})


def kernel_prototype(function):
    """The head that a kernel called `function` has by mpilab.h, in one line; '' if none has."""
    collective, _, algorithm = function.partition("_")
    for _, text in _OURS.findall(_our_header()):
        head = " ".join(text.replace("\\\n", " ").split())
        if algorithm and f" {collective}_##name(" in f" {head}":
            return head.replace(f"{collective}_##name", function)
    return ""


def parse_parameters(text):
    """The Parameters of the text between the brackets of a prototype."""
    text = " ".join(text.split())
    if text in ("", "void"):
        return ()
    return tuple(map(_parameter, text.split(",")))


def plain_type(text):
    """A type as it is compared: without const, with one blank before its stars: 'MPI_Comm *'."""
    words = re.sub(r"\b(?:const|volatile|restrict|struct|extern|static|inline)\b", " ", text)
    stars = words.count("*") + words.count("[")
    base = " ".join(re.sub(r"\[[^\]]*\]|\*", " ", words).split())
    return f"{base} {'*' * stars}".rstrip()


def _parameter(text):
    text = text.strip()
    array = re.search(r"(\[[^\]]*\])+$", text)
    bare = text[: array.start()] if array else text
    match = re.fullmatch(r"(?P<type>.*[\s*])(?P<name>[A-Za-z_]\w*)", bare)
    if match is None or not plain_type(match["type"]):
        return Parameter(plain_type(text), "", text)
    return Parameter(plain_type(match["type"] + ("[]" if array else "")), match["name"], text)


def _mpi_header():
    return (include_directory() / "mpi.h").read_text(encoding="utf-8", errors="replace")


def _our_header():
    return (INCLUDE / "mpilab.h").read_text(encoding="utf-8")


def _without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    return re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.MULTILINE)
