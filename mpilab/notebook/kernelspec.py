"""Install the Jupyter kernel "mpilab (Python)", and copy the help pages into labs/help/.

A Jupyter in another environment (JupyterHub's, the system's) has its own kernels, which cannot
import mpilab. This kernel runs the interpreter of the kit's environment by its path.
"""

import os
import sys
from pathlib import Path

from ipykernel.kernelspec import install as install_kernel

from mpilab.errors import SetupError
from mpilab.util.files import write_whole

# Pages of docs/ for students. JupyterLab is started in labs/ and shows nothing above it, so 'make
# lab', a handout and a course folder copy the pages to labs/help/. The copies are not in the
# repository, so they cannot become outdated.

HELP = tuple("failures emulated-hosts simulation topology file-access rules scale slurm".split())


def write_help(labs: Path, docs: Path) -> None:
    """Copy the help pages that exist in the folder `docs` to `labs`/help.

    Raises OSError if they cannot be written.
    """
    for page in (docs / f"{name}.md" for name in HELP):
        if page.is_file():
            write_whole(labs / "help" / page.name, page.read_bytes())


NAME, TITLE = "mpilab", "mpilab (Python)"


def install(*, user: bool = False, prefix: str | Path | None = None) -> Path:
    """Install the kernelspec and return its folder, replacing a previous one.

    It is installed for this user, or below `prefix` (PREFIX/share/jupyter), or, with neither, for
    all users of this machine. Raises SetupError if the folder cannot be written.
    """
    # Cells find the commands of this environment (!mpilab doctor), whatever the server's PATH is.
    path = f"{Path(sys.executable).parent}{os.pathsep}${{PATH}}"
    try:
        folder = install_kernel(
            user=user,
            prefix=None if prefix is None else str(prefix),
            kernel_name=NAME,
            display_name=TITLE,
            env={"PATH": path},
        )
    except OSError as error:
        raise SetupError(
            f"the kernel {NAME!r} cannot be installed: {error.strerror}\n"
            f"  where:  {error.filename or prefix}\n"
            "  remedy: 'mpilab kernelspec install --user' needs no special rights; for all users "
            "of the machine run the command as root"
        ) from error
    return Path(folder)
