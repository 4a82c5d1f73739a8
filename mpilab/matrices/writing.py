"""Write a matrix file piece by piece: little memory, and a file that is whole or isn't there."""

import os
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from mpilab.errors import InputError
from mpilab.matrices import texts
from mpilab.matrices.files import ELEMENT, HEADER, check_size

_NO_ROOM = "free some room, or name a file on another disk"


class Writer:
    """A matrix file of `rows` by `columns` that is being written, as a context manager.

    Under another name beside its place until all rows are there. Raises InputError for a size that
    can't be, and where the file cannot be written.
    """

    def __init__(self, path, rows, columns, *, text=False):
        check_size(rows, columns, path)
        self.path, self.rows, self.columns, self.text = Path(path), rows, columns, text
        self.written = 0
        self._partial = self.path.with_name(f"{self.path.name}.{os.getpid()}.part")
        self._file = None

    def __enter__(self):
        if self.path.exists() and not self.path.is_file():
            raise InputError(f"{self.path}: is not a file; give the name of one")
        with self._refusing("name a folder that is there, and yours"):
            self._file = open(self._partial, "wb")
        if self.text:
            self._file.write(f"{self.rows} {self.columns}\n".encode())
        else:
            self._file.write(np.array([self.rows, self.columns], HEADER).tobytes())
        return self

    def append(self, piece):
        """Write the next rows, [some rows, columns]. Raises InputError where there is no room."""
        piece = np.ascontiguousarray(piece, ELEMENT)
        self.written += len(piece)
        with self._refusing(_NO_ROOM):
            self._file.write(texts.lines(piece).encode() if self.text else piece.data)

    def __exit__(self, kind, error, traceback):
        try:
            if kind is not None:
                with suppress(OSError):  # what has gone wrong before is what counts
                    self._file.close()
                return
            assert self.written == self.rows, f"{self.written} rows of {self.rows}"
            with self._refusing(_NO_ROOM):
                self._file.close()  # a full disk may be noticed only here
                os.replace(self._partial, self.path)
        finally:
            self._partial.unlink(missing_ok=True)

    @contextmanager
    def _refusing(self, remedy):
        """What the system refuses becomes an InputError."""
        try:
            yield
        except (OSError, ValueError) as error:  # ValueError: a null character in the name
            reason = getattr(error, "strerror", None) or error
            raise InputError(f"{self.path}: cannot be written: {reason}; {remedy}") from None
