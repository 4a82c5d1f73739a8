"""Files that are there whole or not at all, whatever becomes of the one who writes them."""

import fcntl
import os
from contextlib import contextmanager
from pathlib import Path


def write_whole(path, content):
    """Put `content`, a text (as UTF-8, with its line ends as they are) or bytes, into the file at
    `path` in one step; the Path. Folders on the way are made. Anybody may read it.

    Who is killed meanwhile leaves `.NAME.part` beside it, which the next one who writes takes over.
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
def _own(path):
    """A descriptor of the file at `path`, empty, and nobody else's who asks in this way."""
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


def _is_still_at(path, handle):
    """Whether the file behind `handle` still has the name `path`. Whoever had it before may have
    given it another one, and the next one may be about to do the same with its successor."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(handle))
