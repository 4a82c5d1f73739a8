"""The files of a download, a folder or a zip: nothing is unpacked, no link is followed."""

import io
import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath

from mpilab.errors import InputError, Ungradable
from mpilab.grading.zips import limited, member_of, member_path, open_archive

_JUNK = ("__MACOSX", ".git", ".ipynb_checkpoints")


@dataclass(frozen=True)
class Found:
    """A file of the download.

    parts   its path below the source
    time    when it was last changed, an aware datetime; None where nobody knows
    read    a function that returns its bytes; Ungradable where it is too large, or damaged
    """

    parts: tuple
    time: datetime | None
    read: object

    @property
    def name(self):
        """The name of the file alone."""
        return self.parts[-1]

    @property
    def path(self):
        """The whole path, for people."""
        return "/".join(self.parts)


@dataclass(frozen=True)
class Files:
    """What `opened` found.

    name      of the folder or zip, without a suffix
    files     a list of Found by path
    refused   lines on links and what is no file
    folders   paths of folders, as tuples, those that are left out among them
    """

    name: str
    files: list
    refused: list
    folders: set


@contextmanager
def opened(source):
    """The Files of a folder or zip; they can be read as long as the context lasts."""
    source = Path(source)
    if source.is_dir():
        yield _folder(source)
    elif source.is_file():
        with open(source, "rb") as file, open_archive(file, source) as archive:
            yield _archive(archive, source)
    else:
        raise InputError(f"{source}: no such folder or zip; name what you have downloaded")


def notebooks_within(found):
    """The notebooks of a student's own zip, as a list of Found; [] of any other file.

    Raises InputError or Ungradable for a zip that cannot be meant well.
    """
    if not found.name.lower().endswith(".zip"):
        return []
    data = io.BytesIO(found.read())
    with open_archive(data, found.path) as archive:
        inner = _archive(archive, found.path)
        # Read at once: the zip is closed when we return.
        return [
            Found((*found.parts, *each.parts), found.time, partial(bytes, each.read()))
            for each in inner.files
            if each.name.endswith(".ipynb")
        ]


def _folder(source):
    files, refused, folders = [], [], set()
    for where, names, leaves in os.walk(source, followlinks=False):
        here = Path(where).relative_to(source).parts
        for name in [*names]:
            if name in _JUNK:
                names.remove(name)
                folders.add((*here, name))
            elif os.path.islink(os.path.join(where, name)):
                names.remove(name)
                refused.append(f"{'/'.join((*here, name))}: a link, not followed")
            else:
                folders.add((*here, name))
        for leaf in leaves:
            path, parts = os.path.join(where, leaf), (*here, leaf)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                time = datetime.fromtimestamp(int(status.st_mtime)).astimezone()
                files.append(Found(parts, time, partial(_read, path)))
            elif not _hidden(leaf):
                kind = "a link, not followed" if stat.S_ISLNK(status.st_mode) else "not a file"
                refused.append(f"{'/'.join(parts)}: {kind}")
    return Files(source.resolve().name, _visible(files), sorted(refused), folders)


def _archive(archive, name):
    files, folders = [], set()
    for member in archive.infolist():
        parts = member_path(member).parts
        folders.update(parts[:end] for end in range(1, len(parts)))
        if parts and not member.is_dir():
            read = partial(member_of, archive, [member], PurePosixPath(str(name)).name)
            files.append(Found(parts, _zip_time(member), read))
    return Files(PurePosixPath(str(name)).stem, _visible(files), [], folders)


def _visible(files):
    kept = [each for each in files if not any(part in _JUNK for part in each.parts)]
    return sorted((each for each in kept if not _hidden(each.name)), key=lambda each: each.parts)


def _hidden(name):
    return name.startswith(".")


def _read(path):
    # Between the listing and now a file could have become a link, or a pipe that waits for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Ungradable(f"{path} is not a file")
        return limited(file, os.path.basename(path))


def _zip_time(member):
    """A zip's time, local on the machine where it was made; None for the first moment it knows."""
    if member.date_time[:3] == (1980, 1, 1):
        return None
    try:
        return datetime(*member.date_time).astimezone()
    except ValueError:
        return None
