"""Matrix files: read, write, check, make, convert and multiply them, in one of two formats.

- *binary*: two int32, the numbers of rows and columns, then rows * columns doubles, row by row; all
  in the byte order of the machine.
- *text*: a line "ROWS COLUMNS", then a line for each row, its elements separated by blanks. Every
  number that float() accepts is valid: 1, 1.0, -2.5e3, inf, nan. It is written with as many digits
  as are needed to read the same double back. (NaN has many bit patterns; one is written.)

These are the formats of the published worksheet on MPI-IO (data/README.md). The C code
(src_c/common/matrix/matrix_file.c) reports errors in the same words.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from mpilab.cases import distribution
from mpilab.cases.distribution import ELEMENT_BYTES, HEADER_BYTES, MOST
from mpilab.errors import InputError
from mpilab.util.text import aligned

Matrix = NDArray[np.float64]

# The rows of a text file: errors give the line number, and numbers are written exactly.

LINES_BYTES = 1 << 20
_NO_ROOM = "free some space, or name a file on another disk"
SHOWN = 8  # rows and columns of a large matrix that are shown, half at each end
HEADER = np.dtype("i4")
ELEMENT = np.dtype("f8")
PRINTED = frozenset([*range(32, 127), *b"\t\r\n"])
LONGEST_HEADER = 64  # characters of the first line of a text file, with its two numbers
UNIT_ROUNDOFF = 2.0**-53
INTEGERS = 9  # integer matrices have elements from -9 to 9


def text_pieces(path: Path | str, file: BinaryIO, rows: int, columns: int) -> Iterator[Matrix]:
    """The rows of a text file, a piece at a time: float64 [some rows, columns].

    file   open for reading bytes, at its second line.

    Raises InputError with the number of the line that is too short, too long or not of numbers, and
    for too few or too many lines. Blank lines at the end are ignored.
    """
    number, line = 1, b""
    ready, ready_bytes = [], 0
    # No valid line is longer: a double has at most 24 characters, the rest is for blanks.
    longest = 64 * columns + 1024
    for row in range(rows):
        line = file.readline(longest)
        number += 1
        if not line or (not line.strip() and not file.read(1)):
            raise InputError(
                f"{path}:{number}: the file ends after {row} of {rows} rows; it is truncated, or "
                "its first line is wrong"
            )
        ready.append(_row(path, number, line, columns))
        ready_bytes += ready[-1].nbytes
        if ready_bytes >= LINES_BYTES:
            yield np.array(ready)
            ready, ready_bytes = [], 0
    if ready:
        yield np.array(ready)
    _expect_end(path, file, rows, number)


def lines(piece: Matrix) -> str:
    """The lines, with line ends, of rows [some rows, columns] of float64."""
    return "".join(" ".join(map(repr, row)) + "\n" for row in piece.tolist())


def _row(path: Path | str, number: int, line: bytes, columns: int) -> Matrix:
    words = line.split()
    if len(words) != columns:
        raise InputError(
            f"{path}:{number}: a row of {len(words)} numbers, in a matrix of {columns} columns; "
            "correct the line, or the first one"
        )
    try:
        row = np.array(list(map(float, words)))
    except ValueError:
        row = None
    if row is None or b"_" in line:
        wrong = next(word for word in words if not _is_number(word)).decode(errors="replace")
        column = [_is_number(word) for word in words].index(False) + 1
        raise InputError(
            f"{path}:{number}: {wrong[:40]!r} in column {column} is not a number; write e.g. 1.5"
        )
    return row


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word  # float() accepts 1_000


def _expect_end(path: Path | str, file: BinaryIO, rows: int, number: int) -> None:
    for line in iter(lambda: file.readline(1024), b""):
        number += 1
        if line.strip():
            shown = line.decode(errors="replace").strip()[:40]
            raise InputError(
                f"{path}:{number}: {shown!r} follows the last of {rows} rows; remove it, or "
                "correct the first line"
            )


# Writing piece by piece takes little memory; the file appears complete or not at all.


class Writer:
    """A context manager that writes a matrix file of `rows` by `columns`.

    The file has a temporary name in the same folder until all rows are there. Raises InputError for
    an invalid size, and if the file cannot be written.
    """

    def __init__(self, path: Path | str, rows: int, columns: int, *, text: bool = False) -> None:
        check_size(rows, columns, path)
        self.path, self.rows, self.columns, self.text = Path(path), rows, columns, text
        self.written = 0
        self._partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        self._file: BinaryIO  # opened at the beginning of the block

    def __enter__(self) -> "Writer":
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{self.path}: is not a file; give the name of one")
        with self._refusing("name an existing folder that you own"):
            self._file = open(self._partial, "wb")
        if self.text:
            self._file.write(f"{self.rows} {self.columns}\n".encode())
        else:
            self._file.write(np.array([self.rows, self.columns], HEADER).tobytes())
        return self

    def append(self, piece: ArrayLike) -> None:
        """Write the next rows, [some rows, columns]. Raises InputError if there is no room."""
        piece = np.ascontiguousarray(piece, ELEMENT)
        self.written += len(piece)
        with self._refusing(_NO_ROOM):
            self._file.write(lines(piece).encode() if self.text else piece.data)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is not None:
                with suppress(OSError):  # the earlier error is the one to report
                    self._file.close()
                return
            assert self.written == self.rows, f"{self.written} rows of {self.rows}"
            with self._refusing(_NO_ROOM):
                self._file.close()  # a full disk may be detected only here
                self._partial.replace(self.path)
        finally:
            self._partial.unlink(missing_ok=True)

    @contextmanager
    def _refusing(self, remedy: str) -> Iterator[None]:
        """Turn system errors into an InputError."""
        try:
            yield
        except (OSError, ValueError) as error:  # ValueError: a null character in the name
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{self.path}: cannot be written: {reason}; {remedy}") from None


# The contents of a matrix file: checked to its end, summarized, or as a table of numbers.


@dataclass(frozen=True)
class Account:
    """What a complete matrix file contains.

    least, largest   of its finite elements; NaN if there are none.
    not_finite       number of elements that are infinite or NaN.
    is_integer       are all its elements integers?
    """

    path: Path
    is_text: bool
    rows: int
    columns: int
    bytes: int
    least: float
    largest: float
    not_finite: int
    is_integer: bool

    def __str__(self) -> str:
        kind = "text" if self.is_text else "binary"
        parts = [f"{self.path}: {kind}, {self.rows} x {self.columns}, {self.bytes:,} bytes"]
        if not np.isnan(self.least):
            what = "integers" if self.is_integer else "elements"
            parts.append(f"{what} from {self.least:.6g} to {self.largest:.6g}")
        if self.not_finite:
            parts.append(f"{self.not_finite} infinite or NaN")
        return ", ".join(parts)


def check(path: Path | str, *, progress: bool = False) -> Account:
    """Read a file to its end: its Account. Raises InputError if the file is invalid."""
    rows, columns = size(path)
    least, largest, not_finite, is_integer = np.inf, -np.inf, 0, True
    with tqdm(
        total=rows, desc=f"check {path}", unit="row", delay=1, leave=False, disable=not progress
    ) as bar:
        for piece in pieces(path):
            finite = piece[np.isfinite(piece)]
            least = min(least, finite.min(initial=np.inf))
            largest = max(largest, finite.max(initial=-np.inf))
            not_finite += piece.size - finite.size
            is_integer = is_integer and finite.size == piece.size and not (piece % 1).any()
            bar.update(len(piece))
    if least > largest:
        least = largest = float("nan")
    return Account(
        Path(path),
        is_text(path),
        rows,
        columns,
        Path(path).stat().st_size,
        float(least),
        float(largest),
        not_finite,
        bool(is_integer),
    )


def table(path: Path | str) -> str:
    """The matrix of a file as aligned lines of numbers; for a large one, only the corners.

    Of a binary file, only these are read; of a text file, everything.
    """
    rows, columns = size(path)
    if is_text(path):
        matrix = read(path)
    else:
        matrix = np.memmap(path, ELEMENT, "r", distribution.HEADER_BYTES, (rows, columns))
    # numpy itself would read the whole matrix to find the widest number.
    few_rows, few_columns = _ends(rows), _ends(columns)
    cells = [[_number(matrix[row, column]) for column in few_columns] for row in few_rows]
    if columns > len(few_columns):
        cells = [[*row[: SHOWN // 2], "…", *row[SHOWN // 2 :]] for row in cells]
    if rows > len(few_rows):
        cells.insert(SHOWN // 2, ["…"] * len(cells[0]))
    return f"{rows} x {columns}\n{aligned(cells, left=())}"


def _ends(count: int) -> list[int]:
    """Indices to show: all if there are at most 2 * SHOWN, otherwise the first and the last few."""
    if count <= 2 * SHOWN:
        return list(range(count))
    return [*range(SHOWN // 2), *range(count - SHOWN // 2, count)]


def _number(value: float) -> str:
    return f"{float(value):.6g}"


def read(path: Path | str) -> Matrix:
    """The matrix of a file in either format: float64 [rows, columns], in memory.

    Raises InputError for an incomplete or invalid file.
    """
    return np.concatenate(list(pieces(path)))


def write(path: Path | str, matrix: ArrayLike, *, text: bool = False) -> None:
    """Write a matrix, [rows, columns] of numbers, to a file.

    The file appears complete or not at all. Raises InputError for anything but a matrix of 1 x 1 or
    more, and if the file cannot be written.
    """

    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or not np.can_cast(matrix.dtype, ELEMENT, "same_kind"):
        raise InputError(
            f"{path}: the array to write has the shape {matrix.shape} and elements of "
            f"{matrix.dtype}; give a matrix of real numbers"
        )
    with Writer(path, *matrix.shape, text=text) as file:
        file.append(matrix)


def size(path: Path | str) -> tuple[int, int]:
    """(rows, columns) of a file in either format; the length is checked only of a binary one.

    Raises InputError if the file does not give a valid size.
    """
    return _text_size(path)[:2] if is_text(path) else _binary_size(path)


def is_text(path: Path | str) -> bool:
    """Is it a text file?

    A binary file has nonprintable bytes in its header: the first or the fourth byte of any possible
    number of rows is nonprintable. Raises InputError for a file that cannot be read, and for an
    empty one.
    """
    with _opened(path) as file:
        first = file.read(HEADER_BYTES)
    if not first:
        raise InputError(f"{path}: is empty; create the file again, e.g. with mpilab matrix make")
    return PRINTED.issuperset(first)


def pieces(path: Path | str) -> Iterator[Matrix]:
    """The rows of a file in either format, a piece at a time: float64 [some rows, columns].

    Raises InputError as `read` does, once it reaches the error in the file.
    """

    if is_text(path):
        rows, columns, _ = _text_size(path)
        with _opened(path) as file:
            file.readline()
            yield from text_pieces(path, file, rows, columns)
        return
    rows, columns = _binary_size(path)
    with _opened(path) as file:
        file.seek(HEADER_BYTES)
        for some in rows_at_a_time(rows, columns):
            piece = np.fromfile(file, ELEMENT, some * columns)
            if len(piece) < some * columns:
                raise InputError(f"{path}: was truncated while it was read; create it again")
            yield piece.reshape(some, columns)


def rows_at_a_time(rows: int, columns: int, most_bytes: int = 1 << 20) -> Iterator[int]:
    """The number of rows of each piece: as many as fit into `most_bytes`, at least one."""
    some = max(1, most_bytes // (columns * ELEMENT_BYTES))
    yield from [some] * (rows // some)
    if rows % some:
        yield rows % some


def check_size(rows: int, columns: int, where: object) -> None:
    """Raise InputError, with `where` in front, for invalid numbers of rows and columns."""
    if not (0 < rows <= MOST and 0 < columns <= MOST):
        raise InputError(
            f"{where}: {rows} rows and {columns} columns; both must be from 1 to {MOST}"
        )


def bytes_of(rows: int, columns: int) -> int:
    """Bytes of the binary file of a matrix of `rows` by `columns`."""
    return HEADER_BYTES + rows * columns * ELEMENT_BYTES


def _opened(path: Path | str) -> BinaryIO:
    """Open a file to read bytes from; InputError if that is not possible."""
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISREG(mode):
            return open(path, "rb")
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{path}: cannot be opened: {reason}; check its name, folder and permissions"
        ) from None
    kind = "a directory" if stat.S_ISDIR(mode) else "something else"
    raise InputError(f"{path}: is {kind}, not a file; give the name of a matrix file")


def _binary_size(path: Path | str) -> tuple[int, int]:
    length = Path(path).stat().st_size
    with _opened(path) as file:
        header = np.fromfile(file, HEADER, 2)
    if len(header) < 2:
        raise InputError(
            f"{path}: has {length} bytes, too few for the header of a matrix ({HEADER_BYTES}); "
            "create the file again: mpilab matrix make"
        )
    rows, columns = map(int, header)
    there = list(map(int, header.byteswap()))
    if min(rows, columns) > 0 and bytes_of(rows, columns) == length:
        return rows, columns
    if min(there) > 0 and bytes_of(*there) == length:
        raise InputError(
            f"{path}: written on a machine with the other byte order ({there[0]} x {there[1]} "
            "there); write it as text there, and convert it here: mpilab matrix to-binary"
        )
    check_size(rows, columns, f"{path}: its header is wrong")
    needed = bytes_of(rows, columns)
    what = "truncated" if length < needed else "too long"
    raise InputError(
        f"{path}: {what}: its header says {rows} x {columns}, that is {needed} bytes, but it has "
        f"{length}. Create it again, or, if it is text, start it with a line such as '16 16'"
    )


def _text_size(path: Path | str) -> tuple[int, int, int]:
    """(rows, columns, bytes of the first line) of a text file."""
    with _opened(path) as file:
        line = file.readline(LONGEST_HEADER)
    words = line.split()
    try:
        rows, columns = (int(word) for word in words if word.lstrip(b"-").isdigit())
        if len(words) != 2 or len(line) == LONGEST_HEADER:
            raise ValueError
    except ValueError:
        shown = line.decode(errors="replace").strip()
        raise InputError(
            f"{path}:1: {shown!r} does not give the numbers of rows and columns; write e.g. '16 "
            "16', and below it a line for each row"
        ) from None
    check_size(rows, columns, f"{path}:1")
    return rows, columns, len(line)


# The product of two matrix files by numpy, and how far another correct product may be from it.


def operands(a: Path | str, b: Path | str) -> tuple[Matrix, Matrix]:
    """The matrices of two files that can be multiplied; InputError if they cannot."""
    left, right = size(a), size(b)
    if left[1] != right[0]:
        raise InputError(
            f"{a} is {left[0]} x {left[1]} and {b} is {right[0]} x {right[1]}: the first needs as "
            f"many columns as the second has rows ({left[1]} and {right[0]})"
        )
    return read(a), read(b)


def product(a: Path | str, b: Path | str, c: Path | str, *, text: bool = False) -> None:
    """Write the product of the files `a` and `b`, as computed by numpy, to the file `c`."""
    left, right = operands(a, b)
    with np.errstate(all="ignore"):  # infinite elements are allowed
        write(c, left @ right, text=text)


def error_bound(left: Matrix, right: Matrix) -> Matrix:
    """Bound on the difference of two correct products, for each element: float64 [n, m].

    Each product is off by at most k u |A||B|, to first order, with k terms in a sum and u = 2^-53
    (Higham 2002, "Accuracy and stability of numerical algorithms", 2nd ed., section 3.5). What our
    implementation of Cannon's algorithm drops (src_c/programs/cannon/sums.c) is far below that,
    unless an element is far below the largest of its row of A times the largest of its column of B.
    The second term covers that case.
    """
    inner = left.shape[1]
    log2 = max(2, (inner - 1).bit_length())
    dropped = np.abs(left).max(axis=1)[:, None] * np.abs(right).max(axis=0)[None, :]
    return (
        2 * (inner + 1) * UNIT_ROUNDOFF * (np.abs(left) @ np.abs(right))
        + 2.0 ** (3 * log2 - 108) * dropped
    )


# Making matrices of any size, and converting files, a piece at a time.


def elements(first: int, count: int, seed: int, *, integers: bool = False) -> Matrix:
    """Elements number `first` to `first + count - 1` of the matrix of a seed: float64 [count].

    Multiples of 2^-52 from -1 up to 1, or integers from -9 to 9. An element depends on its number
    and the seed only: SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
    generators", OOPSLA), whose n-th value does not require any other.
    """
    numbers = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    golden = 0x9E3779B97F4A7C15
    start = np.uint64((seed * 0xD1342543DE82EF95 + 1) % 2**64)  # keeps neighboring seeds far apart
    bits = numbers * np.uint64(golden) + start
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    top = (bits >> np.uint64(11)).astype(np.float64)  # 53 bits, exact
    if integers:
        return np.floor(top * 2.0**-53 * (2 * INTEGERS + 1)) - INTEGERS
    return top * 2.0**-52 - 1.0


def make(
    path: Path | str,
    rows: int,
    columns: int,
    *,
    seed: int = 1,
    text: bool = False,
    integers: bool = False,
    progress: bool = False,
) -> None:
    """Write a matrix of any size, the same for the same seed on every machine.

    integers   from -9 to 9, whose products and sums are exact; otherwise elements from -1 to 1.
    progress   show a progress bar on stderr.

    Raises InputError for an invalid size, or if the file cannot be written.
    """
    done = 0
    with (
        Writer(path, rows, columns, text=text) as file,
        _bar(f"make {path}", rows, progress) as bar,
    ):
        for some in rows_at_a_time(rows, columns):
            file.append(
                elements(done * columns, some * columns, seed, integers=integers).reshape(
                    some, columns
                )
            )
            done += some
            bar.update(some)


def convert(source: Path | str, target: Path | str, *, text: bool, progress: bool = False) -> None:
    """Write the matrix of the file `source`, in either format, to `target` as text or binary.

    No bit of an element changes, except that a NaN read from text is the usual one. Raises
    InputError for an incomplete or invalid file, and leaves `target` unchanged.
    """
    rows, columns = size(source)
    with (
        Writer(target, rows, columns, text=text) as file,
        _bar(f"convert {source}", rows, progress) as bar,
    ):
        for piece in pieces(source):
            file.append(piece)
            bar.update(len(piece))


def _bar(words: str, rows: int, progress: bool) -> tqdm:
    """A progress bar that appears after a second."""
    return tqdm(total=rows, desc=words, unit="row", delay=1, leave=False, disable=not progress)
