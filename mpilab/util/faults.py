"""Unexpected exceptions: a three-part message for the user, the traceback in a log file.

Every entry point of mpilab (the command, the notebook, the grader, the marking page) passes
unexpected exceptions to `report` and shows the text that it returns:

    unexpected KeyError: 'rounds'
      where:  mpilab matrix show, at mpilab/mpiio/files.py:33
      remedy: this is a bug in mpilab, not in your code. Please report it, with
              /home/anna/.local/state/mpilab/logs/20261122-233001-4711-00001.log

Logs go to $XDG_STATE_HOME/mpilab/logs or ~/.local/state/mpilab/logs; if neither is writable, to a
private folder among the temporary files. The newest KEPT logs are kept.
"""

import contextlib
import errno
import itertools
import linecache
import os
import platform
import re
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from mpilab.errors import MpilabError

KEPT = 50
# Environment variable, set if a student reads our messages but cannot read our logs, and another
# person is notified. Messages then contain no paths and no exception text.
TOLD = "MPILAB_FAULTS_ARE_TOLD"
SUFFIX = ".log"
PACKAGE = Path(__file__).resolve().parents[1]
_LOGGED = "_mpilab_log"
_numbers = itertools.count(1)
_recorded: list["Logged"] = []
_lock = threading.Lock()

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}
_TOO_MANY = {errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM}
_NOT_THERE = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR}

# Whose code a frame runs: the kit's, the user's, or a package's.
OURS, THEIRS, LIBRARY = "ours", "theirs", "library"
_LIBRARIES = tuple(
    {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_CELL = re.compile(r"<ipython-input-|<cell")
_MAGIC = re.compile(r"get_ipython\(\)\.run_(cell|line)_magic\('(\w+)', '([^']*)'")


def report(error: BaseException, where: str) -> str:
    """The user's message for an exception that reached an entry point; logs the traceback.

    `where` says what was being done, e.g. "mpilab grade". An error that mpilab raised deliberately
    is not logged: its own message is returned.
    """
    if isinstance(error, MpilabError):
        return str(error)
    return describe(error, where, record(error, where))


def describe(error: BaseException, where: str, log: Path | None) -> str:
    """The three-part message about `error`, whose traceback is in the file `log`."""
    place = _place(error)
    if os.environ.get(TOLD):
        return (
            f"internal error in mpilab\n  where:  {where}\n"
            "  remedy: you did nothing wrong; your instructor has been informed."
        )
    details = (
        f"the log file\n          {log}" if log else "this message; the log could not be written"
    )
    return (
        f"{_what(error)}\n  where:  {where}{f', at {place}' if place else ''}\n"
        f"  remedy: {_remedy(error)} {details}"
    )


def record(error: BaseException, where: str) -> Path | None:
    """Write the traceback of an exception to a log file; return its path, or None if that failed.

    Never raises. An exception that passes several entry points is logged at the first.
    """
    with contextlib.suppress(Exception):  # an exception's own __str__ may raise anything
        if getattr(error, _LOGGED, None) is None:
            path = keep("".join(traceback.format_exception(error)), where)
            setattr(error, _LOGGED, path)
        return getattr(error, _LOGGED)
    return None


def keep(details: str, where: str) -> Path | None:
    """Write the text `details`, for the kit's maintainer, to a log file, as `record` does."""
    text = f"{_heading(where)}\n\n{details.rstrip()}\n"
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{next(_numbers):05}{SUFFIX}"
    for folder in _folders():
        try:
            path = folder() / name
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(text)
        except (OSError, RuntimeError):  # RuntimeError: no home directory
            continue
        with _lock:
            _recorded.append(Logged(where, path))
        _remove_old(path.parent)
        return path
    return None


class Logged(NamedTuple):
    """A log entry: what was being done, and the log file."""

    where: str
    path: Path

    def __str__(self) -> str:
        return f"an internal error of mpilab was logged ({self.where}): {self.path}"


def recorded() -> list[Logged]:
    """The logs that this process has written, oldest first."""
    with _lock:
        return list(_recorded)


def log_folder() -> Path:
    """The preferred folder for logs; it need not exist."""
    wished = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification says to ignore relative paths.
    base = Path(wished) if Path(wished).is_absolute() else Path.home() / ".local" / "state"
    return base / "mpilab" / "logs"


def reason(error: OSError) -> str:
    """The operating system's reason for `error`, worded for the middle of a sentence."""
    words = error.strerror or str(error) or "the operating system gives no reason"
    return words[:1].lower() + words[1:]


def _folders() -> tuple[Callable[[], Path], ...]:
    """Functions that create a folder for logs and return its path, best first."""
    return (_in_state, _among_temporary_files, _in_a_new_folder)


def _in_state() -> Path:
    folder = log_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _among_temporary_files() -> Path:
    folder = Path(tempfile.gettempdir()) / f"mpilab-logs-{os.geteuid()}"
    folder.mkdir(exist_ok=True, mode=0o700)
    about = folder.lstat()
    # Another user may have created a folder of that name.
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & 0o077:
        raise PermissionError(errno.EACCES, "not a private folder", str(folder))
    return folder


def _in_a_new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="mpilab-logs-"))


def _remove_old(folder: Path) -> None:
    """Delete all but the newest KEPT logs of a folder. Their names sort by time."""
    with contextlib.suppress(OSError):  # another process may be deleting them, too
        for path in sorted(folder.glob(f"*{SUFFIX}"))[:-KEPT]:
            path.unlink(missing_ok=True)


def _heading(where: str) -> str:
    return "\n".join(
        [
            f"{time.strftime('%Y-%m-%d %H:%M:%S %z')}  {where}",
            f"command: {' '.join(sys.argv)}",
            f"Python {platform.python_version()} ({sys.executable}) on {platform.platform()}",
            f"mpilab in {PACKAGE}",
        ]
    )


def _what(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        named = [str(name) for name in (error.filename, error.filename2) if name is not None]
        subject = " and ".join(named) or "a file, or standard output"
        return f"{subject}: {reason(error)}"
    if isinstance(error, MemoryError):
        return "out of memory"
    if isinstance(error, subprocess.TimeoutExpired):
        program = error.cmd if isinstance(error.cmd, str) else " ".join(map(str, error.cmd))
        return f"{program}: did not end within {error.timeout:g} s"
    try:
        text = str(error).strip()
    except Exception as another:  # the exception cannot be converted to text
        text = f"(its message cannot be shown: {type(another).__name__})"
    first = text.splitlines()[0] if text else ""
    shortened = first if len(first) <= 300 else f"{first[:300]} …"
    return f"unexpected {type(error).__name__}{f': {shortened}' if shortened else ''}"


def _remedy(error: BaseException) -> str:
    if isinstance(error, ImportError):
        return (
            "a package that mpilab needs is missing or broken. Run 'make setup' in the kit's "
            "folder, then 'mpilab doctor'. Details are in"
        )
    if isinstance(error, MemoryError):
        return "close other programs, or use smaller sizes. Details are in"
    if isinstance(error, subprocess.TimeoutExpired):
        return "try again when the machine is less busy, and run 'mpilab doctor'. Details are in"
    number = error.errno if isinstance(error, OSError) else None
    if number in _NO_ROOM:
        return "free some space, and run the same command again: finished work is kept. Details in"
    if number in _REFUSED:
        return "name a place that you can read and write, or change its permissions. Details in"
    if number in _NOT_THERE:
        return "check the path, and that it was not removed meanwhile. Details are in"
    if number in _TOO_MANY:
        return "close other programs, or raise your limits (ulimit -a). Details are in"
    return "this is a bug in mpilab, not in your code. Please report it, with"


def _place(error: BaseException) -> str:
    """'mpilab/mpiio/files.py:33', the innermost frame of the kit; '' if there is none."""
    with contextlib.suppress(Exception):  # an exception that was never raised, or a broken one
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            path = Path(frame.filename)
            if path.is_relative_to(PACKAGE):
                return f"{PACKAGE.name}/{path.relative_to(PACKAGE)}:{frame.lineno}"
    return ""


# Tracebacks in a notebook: students see lines of their own code, never the kit's.
#
# An error that mpilab raised deliberately is shown as its message and the line of the cell that led
# to it, an unexpected one as a three-part message. An error in the student's own code keeps its
# traceback, without the kit's frames in between. In each case the cell has failed, for IPython,
# papermill and nbclient as well.


def install(shell: Any) -> None:
    """Make an IPython shell show errors this way. Safe to call twice."""
    if getattr(shell.InteractiveTB, "mpilab_original", None) is not None:
        return
    original = shell.InteractiveTB.structured_traceback

    def structured(
        etype: type[BaseException],
        value: BaseException,
        tb: TracebackType | None,
        *arguments: Any,
        **options: Any,
    ) -> list[str]:
        lines = shortened(value, tb)
        return lines or original(etype, value, without_kit(tb), *arguments, **options)

    def show(
        self: Any,
        etype: type[BaseException],
        value: BaseException,
        tb: TracebackType | None,
        tb_offset: int | None = None,
    ) -> None:
        if lines := shortened(value, tb):
            self._showtraceback(etype, value, lines)
        else:
            self.showtraceback((etype, value, tb), tb_offset=tb_offset, running_compiled_code=True)

    # `structured` is for errors raised while a result is displayed.
    shell.set_custom_exc((Exception, KeyboardInterrupt), show)
    shell.InteractiveTB.structured_traceback = structured
    shell.InteractiveTB.mpilab_original = original


def shortened(error: BaseException, tb: TracebackType | None) -> list[str] | None:
    """The lines to show for an error raised in the kit; None for any other error."""
    frames = list(_walk(tb))
    kinds = [_kind(frame) for frame, _ in frames]
    while kinds and kinds[-1] == LIBRARY:
        kinds.pop()
    # The kit raises the error for `mpilab.runn`, an unknown name, but the typo is the user's.
    raised = frames[len(kinds) - 1][0].f_code.co_name if kinds else ""
    if not kinds or kinds[-1] != OURS or raised == "__getattr__":
        return None
    places = [frame for frame, kind in zip(frames, kinds, strict=False) if kind == THEIRS]
    place = _line(*places[-1]) if places else ""
    if isinstance(error, KeyboardInterrupt):
        text = "KeyboardInterrupt: interrupted"
    elif isinstance(error, MpilabError):
        text = f"{type(error).__name__}: {error}"
    else:
        return [f"mpilab: {report(error, place or 'a cell of this notebook')}"]
    return [text, "", f"raised by {place}"] if place else [text]


def without_kit(tb: TracebackType | None) -> TracebackType | None:
    """A traceback without the kit's frames between two of the user's."""
    found = [(entry, _kind(entry.tb_frame)) for entry in _entries(tb)]
    kinds = [kind for _, kind in found]
    if OURS not in kinds or THEIRS not in kinds:
        return tb
    first, last = kinds.index(THEIRS), len(kinds) - 1 - kinds[::-1].index(THEIRS)
    kept = [
        entry
        for number, (entry, kind) in enumerate(found)
        if kind == THEIRS or not first < number < last
    ]
    following = None
    for entry in reversed(kept):
        following = TracebackType(following, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return following


def _entries(tb: TracebackType | None) -> Iterator[TracebackType]:
    while tb is not None:
        yield tb
        tb = tb.tb_next


def _walk(tb: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    return ((entry.tb_frame, entry.tb_lineno) for entry in _entries(tb))


def _kind(frame: FrameType) -> str:
    """Whose code a frame runs: OURS, THEIRS or LIBRARY."""
    name = frame.f_code.co_filename
    if _CELL.match(name):
        return THEIRS
    path = Path(name)
    if path.is_relative_to(PACKAGE):
        return OURS
    if name.startswith("<") or any(path.is_relative_to(folder) for folder in _LIBRARIES):
        return LIBRARY
    return THEIRS


def _line(frame: FrameType, number: int) -> str:
    """'line 3 of the cell: mpilab.run("allgather_rign")'."""
    text = linecache.getline(frame.f_code.co_filename, number).strip()
    if magic := _MAGIC.match(text):
        sign = "%%" if magic[1] == "cell" else "%"
        return f"{sign}{magic[2]} {magic[3]}".rstrip()
    return f"line {number} of the cell: {text}" if text else f"line {number} of the cell"
