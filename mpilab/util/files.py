"""Read a text file or explain why that fails, write files atomically, and read and write CSV.

A written file is either complete or absent, even if the writer is killed.
"""

import csv
import ctypes
import fcntl
import io
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mpilab.errors import InputError


def read_text(path: Path, remedy: str, what: str = "") -> str:
    """The content of a text file (UTF-8); InputError, ending in `remedy`, if it cannot be read.

    what   the expected kind of file, for the message: "a hostfile".
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        wanted = f" as {what}" if what else ""
        raise InputError(f"{path}: cannot be read{wanted}: {reason}; {remedy}") from None


def atomic_write(path: str | Path, content: str | bytes) -> Path:
    """Write `content`, text (UTF-8, line ends unchanged) or bytes, to `path` atomically.

    Returns the Path. Missing folders are created. A file that was there keeps its mode, as chmod
    may have set it; the umask decides that of a new one. A writer that is killed leaves
    `.NAME.part` beside it, which the next writer reuses.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    scratch = path.with_name(f".{path.name}.part")
    with _own(scratch) as handle, open(handle, "wb", closefd=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(handle)
            if path.exists():
                shutil.copymode(path, scratch)
            scratch.replace(path)
        except BaseException:
            scratch.unlink()
            raise
    return path


# Of renameat2(2): its value of a file descriptor that stands for the current folder, and a flag.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def replace_folder(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of the folder `target`, if that exists, and delete that.

    Both are on one file system. At any moment, `target` is one of the two as a whole, even if the
    process is killed (on Linux; elsewhere, for a moment, there may be none). It keeps its rights.
    """
    if not target.exists():
        new.rename(target)
        return
    shutil.copymode(target, new)
    libc = ctypes.CDLL(None, use_errno=True)
    exchange = getattr(libc, "renameat2", None)
    names = (_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(target), _RENAME_EXCHANGE)
    if exchange is not None and exchange(*names) == 0:
        shutil.rmtree(new)
        return
    old = new.with_name(f"{new.name}.old")
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old)


@contextmanager
def _own(path: Path) -> Iterator[int]:
    """A descriptor of the empty file at `path`, locked against other callers of this function."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_still_at(path, handle):
                os.ftruncate(handle, 0)
                yield handle
                return
        finally:
            os.close(handle)


def _is_still_at(path: Path, handle: int) -> bool:
    """True if the open file still has the name `path`.

    Its previous owner may have renamed it; the name may then belong to the next owner's file.
    """
    try:
        found = path.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(handle))


# CSV that spreadsheets read and write: no cell is run as a formula, any separator is read. All CSV
# that the kit writes comes from `csv_text`, which guards the cells. OWASP's page "CSV Injection"
# lists what it guards against.

# A spreadsheet runs a cell that begins with one of these, or of their wide and small forms.
_RUNS = frozenset("=+-@＝＋－＠﹦﹢﹣﹫")
# It begins a new cell at these, whatever separates our own: in a locale with a decimal comma, it
# splits a file of ours at semicolons and takes most of our quotes for text.
_SEPARATORS = ",;|\t\r\n"
# What may be between the beginning of a cell and its formula: separators, quotes, and what a
# spreadsheet trims or does not show.
_BEFORE = re.compile(r"[\s,;|'\"\x00-\x1f\ufeff\u200b-\u200f\u2060]+")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?([eE][+-]?\d+)?")
# A tab or line break at the very beginning is dangerous without a formula, too.
_BREAK_FIRST = re.compile(r"'*[\t\r\n]")


def safe_cell(text: str) -> str:
    """A text as a cell of a CSV, with a ' wherever a spreadsheet would begin to run a formula."""
    for place in reversed(list(_beginnings(text))):
        text = f"{text[:place]}'{text[place:]}"
    return f"'{text}" if _BREAK_FIRST.match(text) else text


def bare_cell(text: str) -> str:
    """The original of a text from `safe_cell`."""
    if text.startswith("'") and _BREAK_FIRST.match(text, 1):
        text = text[1:]
    parts, done = [], 0
    for place in _beginnings(text):
        if text[place] == "'":
            parts.append(text[done:place])
            done = place + 1
    return "".join([*parts, text[done:]])


def _beginnings(text: str) -> Iterator[int]:
    """The places where a spreadsheet might see the beginning of a cell with a formula.

    They are the same in a text and in what `safe_cell` makes of it, each moved by the ' before it.
    """
    if text[:1] in _RUNS and text:
        yield 0
    for found in _BEFORE.finditer(text):
        if found.end() == len(text) or text[found.end()] not in _RUNS:
            continue
        before = found[0]
        last = max(map(before.rfind, _SEPARATORS))
        if last >= 0:
            yield found.start() + last + 1
        elif found.start() == 0:
            yield 0
        elif '"' in before:
            yield found.start() + before.index('"') + 1


def csv_text(
    rows: Iterable[Iterable[object]], *, guarded: bool = True, line_end: str = "\n"
) -> str:
    """Rows of cells as the text of a CSV file.

    Texts that are not numbers are guarded by `safe_cell`, unless `guarded` is False: for cells that
    a platform must find again as it wrote them.
    """
    lines = []
    for row in rows:
        line = io.StringIO()
        # With another end, it would not quote a cell with a \r.
        writer = csv.writer(line, lineterminator="\r\n")
        writer.writerow([_cell(value) if guarded else value for value in row])
        lines.append(line.getvalue().removesuffix("\r\n") + line_end)
    return "".join(lines)


def _cell(value: object) -> object:
    is_text = isinstance(value, str) and not _NUMBER.fullmatch(value)
    return safe_cell(str(value)) if is_text else value


def read_csv(path: str | Path) -> str:
    """The text of a CSV file that a spreadsheet may have saved, with its line ends as they are.

    Raises InputError if it cannot be read.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the name") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} is not UTF-8; save it as 'CSV UTF-8'"
        ) from error


def read_rows(path: str | Path) -> list[list[str]]:
    """The nonempty rows of a CSV file as lists of strings; comma, semicolon or tab separated.

    Raises InputError if it cannot be read.
    """
    return [row for _, row in _numbered_rows(path)]


def read_table(path: str | Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """(columns, (line, {column: cell}) of each nonempty row) of a CSV file with a header.

    Like `read_rows`; `line` is where the row begins, and cells that a row lacks are empty.
    """
    (_, header), *body = _numbered_rows(path)
    columns = [name.strip() for name in header]
    blank = dict.fromkeys(columns, "")
    return columns, [(line, blank | dict(zip(columns, row, strict=False))) for line, row in body]


def _numbered_rows(path: str | Path) -> list[tuple[int, list[str]]]:
    """(line where it begins, cells) of each row of `read_rows`."""
    text = read_csv(path).replace("\r\n", "\n").replace("\r", "\n")
    first = text.partition("\n")[0]
    # In locales with a decimal comma, spreadsheets separate columns by semicolons.
    separator = max(",;\t", key=first.count)
    # By default, csv refuses cells of more than 128 KiB, such as Moodle's "Online text".
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.reader(io.StringIO(text), delimiter=separator)
    rows, line = [], 1
    for row in reader:
        if any(row):
            rows.append((line, row))
        line = reader.line_num + 1
    if not rows:
        raise InputError(f"{path}: is empty; a CSV with a header is needed")
    return rows
