"""What the kit adds to Jupyter: the cell magic %%kernel, and the kernel "mpilab (Python)".

%%kernel compiles a notebook cell in C into one of the kit's kernels:

    %%kernel allgather_pairwise
    #include "mpilab.h"
    int allgather_pairwise(...)

Compiler messages refer to the lines of the cell. `%%kernel --sanitize NAME` compiles with
AddressSanitizer and UndefinedBehaviorSanitizer: slower, but reports every out-of-bounds access.

A Jupyter in another environment (JupyterHub's, the system's) has Jupyter kernels of its own, which
cannot import mpilab. "mpilab (Python)" runs the interpreter of the kit's environment by its path.
"""

import html
import os
import sys
import tempfile
import weakref
from pathlib import Path

from ipykernel.kernelspec import install as install_kernel
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display

from mpilab.diagnosis import compiler
from mpilab.diagnosis.collectives import diagnose_world
from mpilab.diagnosis.compiler import missing_function
from mpilab.errors import BuildError, SetupError
from mpilab.hosts.slurm import shared_folder
from mpilab.kernels import build
from mpilab.kernels.build import parse
from mpilab.kernels.symbols import defined
from mpilab.notebook import panel, session
from mpilab.util import faults

NAME, TITLE = "mpilab", "mpilab (Python)"


class Message:
    """A message as text, for the terminal and for papermill's feedback, and HTML for JupyterLab."""

    def __init__(self, text: str, fragment: str) -> None:
        self.text, self.fragment = text, fragment

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.fragment


@magics_class
class KernelMagics(Magics):
    """Registers %%kernel. Its shared objects exist as long as the notebook's process."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        folder = tempfile.TemporaryDirectory(prefix="mpilab-kernels-", dir=shared_folder())
        self.folder = Path(folder.name)
        self._finalizer = weakref.finalize(self, folder.cleanup)
        self.built = 0

    @cell_magic
    def kernel(self, line: str, cell: str) -> None:
        """%%kernel [--sanitize] FUNCTION: compile the cell; FUNCTION can then be run."""
        function, sanitize = parse(line)
        self.built += 1
        session.kernels.pop(function, None)
        # An empty line replaces the magic's, so that line numbers stay the same. The name is new
        # each time, because a library is never loaded twice under the same name.
        source, stem = f"\n{cell}", f"{function}-{self.built}"
        try:
            built = build.build(source, self.folder, stem=stem, sanitize=sanitize)
        except BuildError as error:
            panel.show(compiler.diagnose_build(error, source))
            return
        names = defined(built.object)
        if function not in names:
            panel.show(missing_function(function, names))
            return
        session.kernels[function] = built
        display(_compiled(function, sanitize))
        warned = compiler.diagnose_warnings(built.warnings, source)
        if warned is not None:
            panel.show(warned)
        world = diagnose_world(source, built.object)
        if world is not None:
            panel.show(world)


def _compiled(function: str, sanitize: bool) -> Message:
    state = "is compiled" + (" with sanitizers; its runs take longer" if sanitize else "")
    fragment = f'<div role="status"><code>{html.escape(function)}</code> {state}.</div>'
    return Message(f"{function} {state}.", fragment)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magic on `%load_ext mpilab.notebook.jupyter`."""
    faults.install(shell)
    shell.register_magics(KernelMagics)


# The Jupyter kernel.


def install(*, user: bool = False, prefix: str | Path | None = None) -> Path:
    """Install the kernel "mpilab (Python)" and return its folder, replacing a previous one.

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
            f"the kernel {NAME!r} cannot be installed: {error.strerror}\n  where:  "
            f"{error.filename or prefix}\n  remedy: 'mpilab kernelspec install --user' needs no "
            "special rights; to install it for all users, run the command as root"
        ) from error
    return Path(folder)
