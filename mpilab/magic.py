"""%%kernel: a notebook cell in C becomes a kernel on every rank.

    %%kernel allgather_pairwise
    #include "mpilab.h"
    int allgather_pairwise(...)

What the compiler says is shown with the cell's own lines.
"""

import html
import tempfile
import weakref
from pathlib import Path

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display

from mpilab import session
from mpilab.build import build
from mpilab.errors import BuildError, InputError
from mpilab.symbols import forbidden


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
        folder = tempfile.TemporaryDirectory(prefix="mpilab-kernels-")
        self.folder = Path(folder.name)
        self._finalizer = weakref.finalize(self, folder.cleanup)
        self.built = 0

    @cell_magic
    def kernel(self, line, cell):
        """%%kernel FUNCTION: compile the cell; FUNCTION can then be run and checked."""
        function = line.strip()
        if not function.isidentifier():
            raise InputError(f"%%kernel {line!r}: name the function, e.g. %%kernel allgather_ring")
        self.built += 1
        # A new name each time: a library that is loaded under one name is never loaded again.
        session.kernels.pop(function, None)
        try:
            built = build("\n" + cell, self.folder, stem=f"{function}-{self.built}")
        except BuildError as error:
            display(_message(function, "was not compiled", error.diagnostics, str(error)))
            return
        missing = [
            reason
            for reason in forbidden(built.object, function, ["point-to-point"])
            if "does not define" in reason
        ]
        if missing:
            display(_message(function, f"is not in this cell: {missing[0]}", built.warnings, ""))
            return
        session.kernels[function] = built
        display(_message(function, "is compiled", built.warnings, ""))


def _message(function, state, diagnostics, otherwise):
    notes = [str(d) for d in diagnostics] or ([otherwise] if otherwise else [])
    text = "\n".join([f"{function} {state}.", *notes])
    items = "".join(f"<pre>{html.escape(note)}</pre>" for note in notes)
    fragment = (
        f'<div role="status"><code>{html.escape(function)}</code> '
        f"{html.escape(state)}.{items}</div>"
    )
    return Message(text, fragment)


def load_ipython_extension(shell):
    """%load_ext mpilab.magic"""
    shell.register_magics(KernelMagics)
