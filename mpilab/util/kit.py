"""Locations of the kit's files: sources, compiled C code and the user's cache.

In a clone, all are in one folder. In an installation from a wheel, sources and labs are in
`mpilab/kit/`. Compiled code goes to `build/` in a clone that the user may write to, otherwise to a
folder in the user's cache: a kit may belong to another user, and several users may share it.
"""

import fcntl
import hashlib
import os
import site
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpilab.errors import SetupError

PACKAGES = Path(__file__).resolve().parents[2]

# Tells the grader's sandbox, where HOME differs, the location of the compiled code.
BUILD_VARIABLE = "MPILAB_BUILD"


def _root() -> Path:
    installed = PACKAGES / "mpilab" / "kit"
    return installed if installed.is_dir() else PACKAGES


# The folder of src_c, labs, grading, hostfiles, slurm, data and docs.
ROOT = _root()
REVISION = "REVISION"
# The environment with nbgrader that tools/nbgrader_venv.py creates.
NBGRADER_PYTHON = ROOT / "build" / "nbgrader" / "bin" / "python"


def is_clone() -> bool:
    """True if this kit is a clone (or an unpacked archive of one), not installed from a wheel."""
    return ROOT == PACKAGES


def revision() -> str:
    """The commit of this kit as `git describe` names it, e.g. v0.1.0-12-g3643bdd; '' if unknown.

    A wheel has it in a file, from the clone that it was built in.
    """
    noted = ROOT / REVISION
    if noted.is_file():
        return noted.read_text(encoding="utf-8").strip()
    if not (ROOT / ".git").exists():
        return ""
    describe = ("describe", "--tags", "--match", "v*", "--always", "--dirty")
    try:
        ran = subprocess.run(["git", "-C", ROOT, *describe], capture_output=True, text=True)
    except OSError:  # no git
        return ""
    return ran.stdout.strip() if ran.returncode == 0 else ""


def user_cache() -> Path:
    """Create, if needed, the user's folder for regenerable files; return its absolute path.

    `$XDG_CACHE_HOME/mpilab` or `~/.cache/mpilab`; a private folder among the temporary files if
    those are not writable. Raises SetupError if that one belongs to another user.
    """
    wished = os.environ.get("XDG_CACHE_HOME", "")
    caches = [Path(wished)] if Path(wished).is_absolute() else []
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - no error for a user without a home
    if home.is_absolute():
        caches.append(home / ".cache")
    for folder in (cache / "mpilab" for cache in caches):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            return folder
    return _private(Path(tempfile.gettempdir()).absolute() / f"mpilab-{os.getuid()}")


def _private(folder: Path) -> Path:
    """Create `folder` for this user alone; SetupError if another user has put something there."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise SetupError(
            f"{folder}: cannot be created: {error.strerror}. Neither your home folder nor the "
            "folder for temporary files is writable; set XDG_CACHE_HOME to one that can"
        ) from None
    if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise SetupError(
            f"{folder}: belongs to another user, or others may write to it, so it is not used; set "
            "XDG_CACHE_HOME to a folder that you own"
        )
    return folder


def _build() -> Path:
    given = os.environ.get(BUILD_VARIABLE, "")
    if Path(given).is_absolute():
        return Path(given)
    own = ROOT / "build"
    if is_clone() and os.access(own if own.is_dir() else ROOT, os.W_OK | os.X_OK):
        return own
    return user_cache() / f"build-{_fingerprint()}"


def _fingerprint() -> str:
    """A hash that distinguishes the compiled C code of different kits and versions."""
    digest = hashlib.sha256()
    for word in (ROOT, sys.prefix, os.environ.get("OMPI_CC", "")):
        digest.update(f"{word}\0".encode(errors="surrogateescape"))
    for folder, folders, files in os.walk(ROOT / "src_c"):
        folders.sort()
        for name in sorted(files):
            path = Path(folder, name)
            found = path.stat()
            digest.update(
                f"{path}\0{found.st_size}\0{found.st_mtime_ns}\0".encode(errors="surrogateescape")
            )
    return digest.hexdigest()[:16]


# The folder of the compiled C code. mpilab.kernels.build.need compiles what is missing.
BUILD = _build()


def is_cached() -> bool:
    """True if the compiled C code is in the user's cache, not in the kit's own `build/`."""
    return BUILD != ROOT / "build"


def environment() -> dict[str, str]:
    """Variables that let a Python with another HOME find this package and its compiled code."""
    folders = dict.fromkeys((str(PACKAGES), *user_site()))
    return {"PYTHONPATH": os.pathsep.join(folders), BUILD_VARIABLE: str(BUILD)}


def user_site() -> list[str]:
    """[the folder for 'pip install --user'], or [] if none is in use."""
    folder = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    return [folder] if folder in sys.path and Path(folder).is_dir() else []


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock file `path`, created if missing: one process at a time runs the block."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
