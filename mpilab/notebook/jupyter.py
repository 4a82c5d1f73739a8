"""What the kit adds to Jupyter: the cell magic %%kernel, help in its cells, and the kernel "mpilab
(Python)".

%%kernel compiles a notebook cell in C into one of the kit's kernels:

    %%kernel allgather_pairwise
    #include "mpilab.h"
    int allgather_pairwise(...)

Compiler messages refer to the lines of the cell. `%%kernel --sanitize NAME` compiles with
AddressSanitizer and UndefinedBehaviorSanitizer: slower, but reports every out-of-bounds access.

In these cells, completion (Tab) and inspection (Shift+Tab) know MPI's calls and constants and the
kit's headers instead of Python's names, in every editor that asks the Jupyter kernel.

A Jupyter in another environment (JupyterHub's, the system's) has Jupyter kernels of its own, which
cannot import mpilab. "mpilab (Python)" runs the interpreter of the kit's environment by its path.
"""

import html
import json
import os
import re
import sys
import tempfile
import weakref
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from ipykernel.kernelspec import install as install_kernel
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display

from mpilab.diagnosis import compiler
from mpilab.diagnosis.collectives import diagnose_world
from mpilab.diagnosis.compiler import missing_function
from mpilab.diagnosis.compiler.rules import Source
from mpilab.diagnosis.model import listing
from mpilab.errors import BuildError, InputError, SetupError
from mpilab.hosts.slurm import shared_folder
from mpilab.judging import rubric
from mpilab.kernels import build
from mpilab.kernels.build import parse
from mpilab.kernels.symbols import calls_not_allowed, defined
from mpilab.notebook import panel, session
from mpilab.util import faults
from mpilab.util.kit import ROOT

NAME, TITLE = "mpilab", "mpilab (Python)"


class Message:
    """A message as text, for the terminal and for papermill's feedback, and HTML for JupyterLab."""

    def __init__(self, text: str, fragment: str) -> None:
        self.text, self.fragment = text, fragment

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.fragment


@magics_class
class KernelMagics(Magics):
    """Registers %%kernel. Its shared objects exist as long as the notebook's process."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        folder = tempfile.TemporaryDirectory(prefix="mpilab-kernels-", dir=shared_folder())
        self.folder = Path(folder.name)
        self._finalizer = weakref.finalize(self, folder.cleanup)
        self.built = 0

    @cell_magic
    def kernel(self, line: str, cell: str) -> None:
        """%%kernel [--sanitize] FUNCTION: compile the cell; FUNCTION can then be run."""
        function, sanitize = parse(line)
        self.built += 1
        session.kernels.pop(function, None)
        # An empty line replaces the magic's, so that line numbers stay the same. The name is new
        # each time, because a library is never loaded twice under the same name.
        source, stem = f"\n{cell}", f"{function}-{self.built}"
        try:
            built = build.build(source, self.folder, stem=stem, sanitize=sanitize)
        except BuildError as error:
            panel.show(compiler.diagnose_build(error, source), marked=cell)
            return
        names = defined(built.object)
        if function not in names:
            panel.show(missing_function(function, names))
            return
        session.kernels[function] = built
        display(_compiled(function, sanitize))
        warned = compiler.diagnose_warnings(built.warnings, source)
        if warned is not None:
            panel.show(warned)
        world = diagnose_world(source, built.object)
        if world is not None:
            panel.show(world)


def _compiled(function: str, sanitize: bool) -> Message:
    state = "is compiled" + (" with sanitizers; its runs take longer" if sanitize else "")
    fragment = f'<div role="status"><code>{html.escape(function)}</code> {state}.</div>'
    return Message(f"{function} {state}.", fragment)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magic on `%load_ext mpilab.notebook.jupyter`, and help in its cells."""
    faults.install(shell)
    shell.register_magics(KernelMagics)
    kernel = getattr(shell, "kernel", None)  # a terminal has none
    if kernel is not None:
        help_in_cells(kernel)


# Completion and inspection in %%kernel cells.
#
# IPython's own hooks see a line of the cell, which is not enough to know that it is C; so the two
# methods of the Jupyter kernel are replaced that answer complete_request and inspect_request.

_REFERENCE = Path(__file__).with_name("mpi_calls.json")  # tools/mpi_calls.py writes it
_TYPES_KEY = "_jupyter_types_experimental"  # where JupyterLab and VS Code look for types
_FORBIDDEN = "forbidden"  # the type of a call that the exercise does not allow
# In a header: a comment, and the function that follows; the fields of a structure; a constant.
_COMMENT = r"/\*(?P<said>(?:[^*]|\*(?!/))*)\*/\s*\n"
_HELPER = re.compile(
    _COMMENT + r"(?:static inline )?(?P<head>[^\S\n]*[\w *]*?(?P<name>\w+)"
    r"\((?P<arguments>[^()]*)\))(?=;|\s*\{)"
)
_STRUCT = re.compile(_COMMENT + r"struct (?P<name>\w+) \{\n(?P<fields>.*?)^\};", re.DOTALL | re.M)
_FIELD = re.compile(
    r"^ +(?P<type>[\w ]+?) (?P<names>[\w*, ]+?)(?:\[\w*\])?;(?: */\*(?P<said>.*?)\*/)?", re.M
)
_ENUM = re.compile(_COMMENT + r"enum \{ (?P<name>\w+) = (?P<value>\w+) \};")
_INCLUDED = re.compile(r'^\s*#\s*include\s+"(\w+\.h)"', re.MULTILINE)


@dataclass(frozen=True)
class Entry:
    """What is known of a name in C.

    kind        'function', 'constant', 'type' or 'member'
    signature   its prototype or declaration
    said        what it does or is, in one sentence; '' if that is not known
    arguments   (name, 'in', 'out' or 'inout', meaning) of each argument
    """

    name: str
    kind: str
    signature: str
    said: str = ""
    arguments: tuple[tuple[str, str, str], ...] = ()

    def as_text(self, refusal: str = "", argument: str = "") -> str:
        """The entry for an editor without HTML; an arrow points to `argument`."""
        lines = [_wrapped(self.signature), *filter(None, [self.said])]
        if self.arguments:
            wide = max(len(name) for name, _, _ in self.arguments)
            lines.append("")
            lines += [
                f"{'→' if name == argument else ' '} {name:{wide}}  {direction:5}  {meaning}"
                for name, direction, meaning in self.arguments
            ]
        if refusal:
            lines += ["", f"✗ {refusal}"]
        return "\n".join(lines)

    def as_html(self, refusal: str = "", argument: str = "") -> str:
        """The entry as a fragment of HTML; `argument` is bold."""
        parts = [f'<pre style="margin: 0">{html.escape(_wrapped(self.signature))}</pre>']
        if refusal:
            parts.append(f"<p><strong>✗ {html.escape(refusal)}</strong></p>")
        if self.said:
            parts.append(f"<p>{html.escape(self.said)}</p>")
        rows = [("argument", "", "meaning"), *self.arguments] if self.arguments else []
        for number, (name, direction, meaning) in enumerate(rows):
            cells = [f"<code>{name}</code>" if number else name, direction, html.escape(meaning)]
            if number and name == argument:
                cells = [f"<strong>{cell}</strong>" for cell in cells]
            tag = "td" if number else "th"
            row = "".join(f'<{tag} style="text-align: left">{cell}</{tag}>' for cell in cells)
            parts.append(f"{'' if number else '<table>'}<tr>{row}</tr>")
        if rows:
            parts.append("</table>")
        return "".join(parts)


def _wrapped(signature: str) -> str:
    """A prototype in lines of at most 80 characters, if its arguments allow it."""
    head, opened, rest = signature.partition("(")
    if len(signature) <= 80 or not opened:
        return signature
    lines = [f"{head}("]
    for number, part in enumerate(rest.split(", ")):
        separate = ", " if number else ""
        if len(lines[-1]) + len(separate) + len(part) > 78:
            lines[-1] += separate.rstrip()
            lines.append(f"        {part}")
        else:
            lines[-1] += separate + part
    return "\n".join(lines)


@cache
def _of_mpi() -> dict[str, Entry]:
    """{name: Entry} of MPI's calls, constants and types."""
    content = json.loads(_REFERENCE.read_text(encoding="utf-8"))
    found = {
        name: Entry(
            name,
            "function",
            call["prototype"],
            call["summary"],
            tuple((each[0], each[1], each[2]) for each in call["arguments"]),
        )
        for name, call in content["calls"].items()
    }
    for name, (kind, said) in content["constants"].items():
        found[name] = Entry(name, "constant", f"{kind} {name}".replace("* ", "*"), said)
    for name, said in content["types"].items():
        found[name] = Entry(name, "type", name, said)
    return found


@cache
def _of_header(name: str) -> tuple[dict[str, Entry], dict[str, Entry]]:
    """(functions and constants, members of structures) of a header of the kit, and of the headers
    that it includes; nothing if there is no such header."""
    path = build.INCLUDE / name
    names: dict[str, Entry] = {}
    members: dict[str, Entry] = {}
    if not path.is_file():
        return names, members
    text = path.read_text(encoding="utf-8")
    for other in _INCLUDED.findall(text):
        for mine, theirs in zip((names, members), _of_header(other), strict=True):
            mine.update(theirs)
    for match in _HELPER.finditer(text):
        head = " ".join(match["head"].split())
        names[match["name"]] = Entry(match["name"], "function", head, _prose(match["said"]))
    for match in _ENUM.finditer(text):
        signature = f"{match['name']} = {match['value']}"
        names[match["name"]] = Entry(match["name"], "constant", signature, _prose(match["said"]))
    for match in _STRUCT.finditer(text):
        of = f"struct {match['name']}"
        names[match["name"]] = Entry(match["name"], "type", of, _prose(match["said"]))
        for field in _FIELD.finditer(match["fields"]):
            for one in field["names"].split(","):
                declared = f"{field['type']} {one.strip()}"
                member = one.strip().lstrip("*")
                said = _prose(field["said"] or "")
                members[member] = Entry(member, "member", f"{declared} (in {of})", said)
    return names, members


def _prose(comment: str) -> str:
    """The text of a C comment on one line, without the stars at the beginnings of its lines."""
    return " ".join(re.sub(r"^\s*\* ?", "", comment, flags=re.MULTILINE).split())


@cache
def _allowed(function: str) -> tuple[str, ...] | None:
    """The groups of MPI calls that the exercise on this kernel allows; None if there is none."""
    for path in sorted((ROOT / "labs" / "checks").glob("*.toml")):
        if f'"{function}"' not in path.read_text(encoding="utf-8"):
            continue
        checks = rubric.load(path)
        for exercise in (*checks.exercises, *checks.practice):
            if exercise.kind == rubric.KERNEL and function in exercise.functions:
                return (exercise.variant(function) or exercise).allowed
    return None


def _refusal(entry: Entry, function: str) -> str:
    """Why the exercise on the kernel `function` refuses this call; '' if it does not."""
    if entry.kind != "function" or not function:
        return ""
    try:
        allowed = _allowed(function)
    except (InputError, OSError):  # an edited lab: help goes on
        return ""
    if allowed is None or not calls_not_allowed([entry.name], allowed):
        return ""
    return f"Not allowed in the exercise on {function}, which allows: {listing(allowed)}."


class Cell:
    """A %%kernel cell as far as help needs it. `is_c`: whether it is one."""

    def __init__(self, code: str) -> None:
        first = len(code) - len(code.lstrip())
        self.begin = code.find("\n", first) + 1 or len(code) + 1
        line = code[first : self.begin - 1]
        self.is_c = line.split(maxsplit=1)[:1] == [build.MAGIC]
        self.function = build.function_of(code)
        # The line of the magic is blanked, so that offsets stay.
        self.source = Source(re.sub(r"[^\n]", " ", code[: self.begin]) + code[self.begin :])
        self.names = dict(_of_mpi()) if self.is_c else {}
        self.members: dict[str, Entry] = {}
        for header in _INCLUDED.findall(code) if self.is_c else ():
            names, members = _of_header(header)
            self.names.update(names)
            self.members.update(members)

    def completions(self, cursor: int) -> tuple[int, list[tuple[str, str, str]]]:
        """(begin of the word before the cursor, [(name, type, signature)] that complete it)."""
        match = re.search(r"(?:(\.|->)\s*)?\b([A-Za-z_]\w*)?$", self.source.code[:cursor])
        member, word = (match[1], match[2] or "") if match else (None, "")
        if not member and not word:
            return cursor, []
        known = {**self.members, **_status()} if member else self.names
        found = [name for name in known if name.startswith(word)]
        found = found or [name for name in known if name.lower().startswith(word.lower())]
        rows = [
            (
                name,
                _FORBIDDEN if _refusal(known[name], self.function) else known[name].kind,
                known[name].signature,
            )
            for name in sorted(found)
        ]
        # What the exercise forbids is offered only if nothing else begins so.
        rows = [row for row in rows if row[1] != _FORBIDDEN] or rows
        return cursor - len(word), rows

    def about(self, cursor: int) -> tuple[str, dict[str, str]] | None:
        """The known name at the cursor, or the call whose arguments are there, with what it is by
        MIME type; None if there is nothing known."""
        word = self.source.word(cursor)
        begin = cursor - len(re.search(r"\w*$", self.source.code[:cursor])[0])  # type: ignore[index]
        is_member = re.search(r"(\.|->)\s*$", self.source.code[:begin])
        known = {**self.members, **_status()} if is_member else self.names
        entry, argument = known.get(word), ""
        if entry is None:
            around = [
                call
                for call in self.source.calls
                if call.begin <= cursor < call.end and call.function in self.names
            ]
            if not around:
                return None
            call = max(around, key=lambda each: each.begin)
            entry = self.names[call.function]
            commas = sum(each.end < cursor for each in call.arguments)
            if commas < len(entry.arguments):
                argument = entry.arguments[commas][0]
        refusal = _refusal(entry, self.function)
        return entry.name, {
            "text/plain": entry.as_text(refusal, argument),
            "text/html": entry.as_html(refusal, argument),
        }


@cache
def _status() -> dict[str, Entry]:
    """The members of MPI_Status."""
    content = json.loads(_REFERENCE.read_text(encoding="utf-8"))["status"]
    return {name: Entry(name, "member", f"int {name}", said) for name, said in content.items()}


def help_in_cells(kernel: Any) -> None:
    """Let an ipykernel complete and inspect C in %%kernel cells; Python elsewhere, as before."""
    kind = type(kernel)  # its own methods, also if this is called again
    kernel.do_complete = partial(_complete, partial(kind.do_complete, kernel))
    kernel.do_inspect = partial(_inspect, partial(kind.do_inspect, kernel))


def _cell_at(code: str, cursor: int) -> Cell | None:
    """The %%kernel cell, if the cursor is in its C text."""
    if not code.lstrip().startswith(build.MAGIC):
        return None
    cell = Cell(code)
    return cell if cell.is_c and cursor >= cell.begin else None


def _complete(others: Any, code: str, cursor_pos: int | None) -> Any:
    """The reply to a complete_request; `others` answers for cells that are not C."""
    cursor = len(code) if cursor_pos is None else min(cursor_pos, len(code))
    try:
        cell = _cell_at(code, cursor)
        if cell is None:
            return others(code, cursor_pos)
        begin, rows = cell.completions(cursor)
    except Exception as fault:  # an error would end in the server's log, unseen
        faults.record(fault, "completing C")
        begin, rows = cursor, []
    types = [
        {"start": begin, "end": cursor, "text": name, "type": kind, "signature": signature}
        for name, kind, signature in rows
    ]
    return {
        "status": "ok",
        "matches": [name for name, _, _ in rows],
        "cursor_start": begin,
        "cursor_end": cursor,
        "metadata": {_TYPES_KEY: types},
    }


def _inspect(
    others: Any, code: str, cursor_pos: int, detail_level: int = 0, omit_sections: Any = ()
) -> Any:
    """The reply to an inspect_request; `others` answers for cells that are not C."""
    cursor = min(cursor_pos, len(code))  # JupyterLab may ask beyond the end
    try:
        cell = _cell_at(code, cursor)
        if cell is None:
            return others(code, cursor_pos, detail_level, omit_sections)
        found = cell.about(cursor)
    except Exception as fault:
        faults.record(fault, "explaining C")
        found = None
    name, data = found or ("", {})
    # The extension of JupyterLab compares the name with the one below the pointer.
    metadata = {panel.METADATA: {"name": name}}
    return {"status": "ok", "found": bool(data), "data": data, "metadata": metadata}


# The Jupyter kernel.


def install(*, user: bool = False, prefix: str | Path | None = None) -> Path:
    """Install the kernel "mpilab (Python)" and return its folder, replacing a previous one.

    It is installed for this user, or below `prefix` (PREFIX/share/jupyter), or, with neither, for
    all users of this machine. Raises SetupError if the folder cannot be written.
    """
    # Cells find the commands of this environment (!mpilab doctor), whatever the server's PATH is.
    path = f"{Path(sys.executable).parent}{os.pathsep}${{PATH}}"
    try:
        folder = install_kernel(
            user=user,
            prefix=None if prefix is None else str(prefix),
            kernel_name=NAME,
            display_name=TITLE,
            env={"PATH": path},
        )
    except OSError as error:
        raise SetupError(
            f"the kernel {NAME!r} cannot be installed: {error.strerror}\n  where:  "
            f"{error.filename or prefix}\n  remedy: 'mpilab kernelspec install --user' needs no "
            "special rights; to install it for all users, run the command as root"
        ) from error
    return Path(folder)
