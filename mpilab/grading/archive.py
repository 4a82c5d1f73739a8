"""Files into and out of a sandbox, as a tar stream.

What goes in is ours. What comes out may be forged by the submission, and is read accordingly: of
tarfile only the check of a single header is used, because its reader follows extended headers of
any kind (sparse files of terabytes; CVE-2025-8194, an endless loop, in Pythons still in use).
"""

import fnmatch
import io
import shlex
import tarfile
from pathlib import PurePosixPath

from mpilab.errors import InputError

BLOCK = tarfile.BLOCKSIZE
PROGRAMS = (b"\x7fELF", b"#!")


def pack(files):
    """A tar of `files`, {relative path: bytes}. ELF files and scripts with a #! are executable.

    Raises InputError for a path that is absolute or leads out of the work directory.
    """
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in files.items():
            if not is_safe(name):
                raise InputError(
                    f"files: {name!r} is not a path inside the work directory; "
                    "give a relative one without '..', e.g. 'answers/ring.c'"
                )
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith(PROGRAMS) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def packing_script(patterns):
    """The shell commands that write what `unpack` reads to descriptor 3.

    Plain files of the current directory that match one of `patterns`; in a pattern `*` stands for
    any characters, '/' too.
    """
    choice = " -o ".join(f"-path {shlex.quote('./' + pattern)}" for pattern in patterns)
    return (
        f"find . -type f \\( {choice} \\) -print0 | tar --create --format=ustar --null "
        "--no-recursion --hard-dereference --files-from=- --file=- >&3"
    )


def unpack(stream, patterns):
    """{relative posix path: bytes} of the plain files in the tar `stream` that match `patterns`.

    Links, devices, folders and paths that lead out of the work directory are passed over; reading
    ends at the first block that is no header. Takes no more memory than the stream itself.
    """
    files = {}
    position = 0
    while position + BLOCK <= len(stream):
        try:
            entry = tarfile.TarInfo.frombuf(
                stream[position : position + BLOCK], "utf-8", "surrogateescape"
            )
        except tarfile.HeaderError:
            break
        position += BLOCK
        if entry.size < 0 or position + entry.size > len(stream):
            break
        name = entry.name.removeprefix("./")
        if entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE) and is_safe(name):
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
                files[name] = stream[position : position + entry.size]
        position += -(-entry.size // BLOCK) * BLOCK
    return files


def is_safe(name):
    """Whether `name` is a relative posix path, in its plainest spelling, that stays where it is."""
    path = PurePosixPath(name)
    return (
        name == str(path) != "."
        and not path.is_absolute()
        and ".." not in path.parts
        and "\0" not in name
    )
