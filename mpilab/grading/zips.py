"""Zips from strangers: read in memory, never unpacked to disk, never trusted in what they say."""

import io
import re
import stat
import struct
import zipfile
import zlib
from pathlib import PurePosixPath

from mpilab.errors import InputError, Ungradable

MiB = 1024 * 1024
NOTEBOOK_LIMIT = 20 * MiB
ARCHIVE_LIMIT = 64 * MiB
MEMBER_LIMIT = 10_000
# Deflate reaches 1032 at most; a notebook that printed one line a million times stays below 500.
RATIO_LIMIT = 500

_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error),
    *(NotImplementedError, RuntimeError, ValueError),
)


def open_archive(file, name):
    """The zip in the binary file object `file` as a ZipFile, once its directory looks harmless.

    Raises InputError where it is no zip, has more than 10,000 members or more than 64 MiB
    unpacked, or where a member's name leads out of the archive. Nothing is ever unpacked to disk.
    """
    again = "make the zip again from the folder"
    size = file.seek(0, io.SEEK_END)
    if size > ARCHIVE_LIMIT or _directory_bytes(file, size) > MEMBER_LIMIT * 512:
        raise InputError(f"{name}: the zip is too large ({size} bytes); hand in the notebook alone")
    try:
        archive = zipfile.ZipFile(file)
    except _ZIP_ERRORS as error:
        raise InputError(f"{name}: not a readable zip ({error}); {again}") from error
    members = archive.infolist()
    if len(members) > MEMBER_LIMIT:
        raise InputError(
            f"{name}: {len(members)} files in the zip, more than {MEMBER_LIMIT}; leave out what "
            "the lab didn't ask for"
        )
    total = sum(member.file_size for member in members)
    if total > ARCHIVE_LIMIT:
        raise InputError(
            f"{name}: {total // MiB} MiB unpacked, more than {ARCHIVE_LIMIT // MiB}; clear the "
            "outputs, or unpack the zip of a large class and name the folder"
        )
    for member in members:
        parts = member_path(member).parts
        if ".." in parts or parts[:1] == ("/",) or re.match(r"[A-Za-z]:", "".join(parts[:1])):
            raise InputError(
                f"{name}: the zip holds {ascii(member.filename)}, a path out of it; {again}"
            )
    return archive


def member_of(archive, members, name):
    """The bytes of the one notebook among `members` of a zip."""
    if len(members) > 1:
        raise Ungradable(f"{name}: {len(members)} notebooks of that name in the zip; keep one")
    (member,) = members
    shown = f"{name}: {ascii(member.filename)[1:-1]}"
    if stat.S_ISLNK(member.external_attr >> 16):
        raise Ungradable(f"{shown} is a symbolic link; hand in the file itself")
    if member.flag_bits & 1:
        raise Ungradable(f"{shown} is encrypted; make the zip without a password")
    # The other methods are rare, and lzma lets the file choose how much memory it takes.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Ungradable(f"{shown} is packed in an unusual way; make an ordinary zip")
    if member.file_size > max(MiB, RATIO_LIMIT * member.compress_size):
        raise Ungradable(f"{shown} unpacks to {member.file_size} bytes; clear the outputs first")
    try:
        with archive.open(member) as file:
            return limited(file, shown)
    except _ZIP_ERRORS as error:
        raise Ungradable(f"{shown} is damaged ({error}); make the zip again") from error


def limited(file, name):
    data = file.read(NOTEBOOK_LIMIT + 1)
    if len(data) > NOTEBOOK_LIMIT:
        raise Ungradable(
            f"{name} is larger than {NOTEBOOK_LIMIT // MiB} MiB; clear the outputs and save again"
        )
    return data


def member_path(member):
    """The path of a zip member; some programs of Windows write backslashes into it."""
    return PurePosixPath(member.filename.replace("\\", "/"))


def _directory_bytes(file, size):
    """Bytes of a zip's directory as its end record says, 0 where there is none to be found.

    zipfile reads the whole directory into memory before anyone can count its members.
    """
    file.seek(max(0, size - 65_557 - 76))
    tail = file.read()
    file.seek(0)
    # As zipfile does: the end record without a comment first, else the last one there is.
    at = len(tail) - 22
    if at < 0 or tail[at : at + 4] != b"PK\x05\x06" or tail[-2:] != b"\0\0":
        at = tail.rfind(b"PK\x05\x06")
    if not 0 <= at <= len(tail) - 22:
        return 0
    (stated,) = struct.unpack_from("<I", tail, at + 12)
    if at >= 76 and tail[at - 20 : at - 16] == b"PK\x06\x07":
        stated = max(stated, *struct.unpack_from("<Q", tail, at - 76 + 40))
    return stated
