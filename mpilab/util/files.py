"""Atomic file writes: a file is there whole or not at all, even if the writer is killed."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Write `content`, text (UTF-8, line ends unchanged) or bytes, to `path` atomically.

    Returns the Path. Missing folders are created. The file is readable by all. A writer that is
    killed leaves `.NAME.part` beside it, which the next writer reuses.
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
            os.chmod(scratch, 0o644)
            os.replace(scratch, path)
        except BaseException:
            os.unlink(scratch)
            raise
    return path


@contextmanager
def _own(path: Path) -> Iterator[int]:
    """A descriptor of the empty file at `path`, locked against other callers of this function."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
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
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(handle))
