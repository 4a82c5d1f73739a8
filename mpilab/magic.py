"""%%kernel: a notebook cell in C becomes a kernel on every rank.

    %%kernel allgather_pairwise
    #include "mpilab.h"
    int allgather_pairwise(...)

What the compiler says is shown with the cell's own lines. `%%kernel --sanitize NAME` compiles with
AddressSanitizer and UndefinedBehaviorSanitizer: slower, and every access out of bounds is reported.
"""

import html
import tempfile
import weakref
from pathlib import Path

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display

from mpilab import build, session
from mpilab.allocation import shared_folder
from mpilab.diagnosis import slips
from mpilab.diagnosis.missing_function import missing_function
from mpilab.diagnosis.world import diagnose_world
from mpilab.errors import BuildError
from mpilab.kernelcell import parse
from mpilab.panel import notebook
from mpilab.symbols import defined


class Message:
    """Text for the terminal and for papermill's feedback, HTML for JupyterLab."""

    def __init__(self, text, fragment):
        self.text, self.fragment = text, fragment

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        return self.fragment


@magics_class
class KernelMagics(Magics):
    """Registers %%kernel; its shared objects live as long as the notebook's process."""

    def __init__(self, shell):
        super().__init__(shell)
        folder = tempfile.TemporaryDirectory(prefix="mpilab-kernels-", dir=shared_folder())
        self.folder = Path(folder.name)
        self._finalizer = weakref.finalize(self, folder.cleanup)
        self.built = 0

    @cell_magic
    def kernel(self, line, cell):
        """%%kernel [--sanitize] FUNCTION: compile the cell; FUNCTION can then be run."""
        function, sanitize = parse(line)
        self.built += 1
        session.kernels.pop(function, None)
        # The magic's line becomes an empty one: lines keep their numbers. And a new name each
        # time: a library that is loaded under one name is never loaded again.
        source, stem = f"\n{cell}", f"{function}-{self.built}"
        try:
            built = build.build(source, self.folder, stem=stem, sanitize=sanitize)
        except BuildError as error:
            notebook.show(slips.diagnose_build(error, source))
            return
        names = defined(built.object)
        if function not in names:
            notebook.show(missing_function(function, names))
            return
        session.kernels[function] = built
        display(_compiled(function, sanitize))
        warned = slips.diagnose_warnings(built.warnings, source)
        if warned is not None:
            notebook.show(warned)
        world = diagnose_world(source, built.object)
        if world is not None:
            notebook.show(world)


def _compiled(function, sanitize):
    state = "is compiled" + (" with sanitizers; its runs take longer" if sanitize else "")
    fragment = f'<div role="status"><code>{html.escape(function)}</code> {state}.</div>'
    return Message(f"{function} {state}.", fragment)


def load_ipython_extension(shell):
    """%load_ext mpilab.magic"""
    shell.register_magics(KernelMagics)
