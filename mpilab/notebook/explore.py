"""Select an algorithm with controls and draw it: in a notebook, `mpilab.explore.trees()`.

The figure is a separate output below the controls, with its own slider for the rounds. So without a
running kernel (papermill's output, nbviewer, a reopened notebook) the figure still works, and only
the controls do not.
"""

import uuid
from collections.abc import Sequence
from typing import Any

from IPython.display import HTML, display, update_display
from ipywidgets import BoundedIntText, Dropdown, HBox, IntSlider, Layout, VBox, Widget
from traitlets import link

from mpilab.algorithms import (
    COLLECTIVES,
    ROOTED,
    algorithm_of,
    algorithms,
    schedule_in_segments,
    tunables,
)
from mpilab.algorithms.algorithm import Schedule
from mpilab.errors import InputError
from mpilab.plots import style
from mpilab.plots.schedule import drawing, pipeline
from mpilab.plots.style import Figure

MOST_RANKS, MOST_SEGMENTS, MOST_CHILDREN = 16, 8, 8
VIEWS = {"who sends to whom": drawing, "who sends when": pipeline}
_NO_KERNEL = (
    "[The controls of the figure below need a running kernel: run this cell. The figure's own "
    "slider and play button work without one.]"
)
_WIDGET = "application/vnd.jupyter.widget-view+json"
_STYLE = {"description_width": "6.5em"}


class Explorer:
    """Controls and the figure that they select. Displayed as the last expression of a cell.

    controls   a widget with labeled controls that can be reached by keyboard: collective,
               algorithm, view, P, root, fan-out or radix, segments; those that do not apply to the
               algorithm are disabled.
    figure     the plotly Figure of the current selection.
    """

    def __init__(
        self, collective: str = "bcast", algorithm: str | None = None, ranks: int = 8
    ) -> None:
        names = algorithms(collective)
        algorithm = names[0] if algorithm is None else algorithm
        tunables(collective, algorithm)  # raises InputError for unknown names
        if not 1 <= ranks <= MOST_RANKS:
            raise InputError(f"ranks={ranks} cannot be drawn; give 1 to {MOST_RANKS}")
        self._displayed: list[tuple[str, str]] = []
        self._is_settling = False
        self.collective = _choice("collective", COLLECTIVES, collective)
        self.algorithm = _choice("algorithm", names, algorithm)
        self.ranks = _number("ranks P", ranks, 1, MOST_RANKS)
        self.root = _number("root", 0, 0, ranks - 1)
        self.children = _number("fan-out", 2, 1, MOST_CHILDREN)
        self.segments = _number("segments", 1, 1, MOST_SEGMENTS)
        self.view = _choice("view", tuple(VIEWS), next(iter(VIEWS)))
        lines = (
            (self.collective, self.algorithm, self.view),
            (_with_slider(self.ranks), _with_slider(self.root)),
            (_with_slider(self.children), _with_slider(self.segments)),
        )
        self.controls = VBox([HBox(line, layout=Layout(flex_flow="row wrap")) for line in lines])
        self._settle(None)
        for control in (
            self.collective,
            self.algorithm,
            self.ranks,
            self.root,
            self.children,
            self.segments,
            self.view,
        ):
            control.observe(self._changed, names="value")

    @property
    def schedule(self) -> Schedule:
        """The Schedule of the current selection."""
        collective, algorithm = self.collective.value, self.algorithm.value
        tuned = {
            name: self.children.value
            for name in tunables(collective, algorithm)
            if name in ("fanout", "radix")
        }
        return schedule_in_segments(
            collective,
            algorithm,
            self.ranks.value,
            self.segments.value,
            root=self.root.value if collective in ROOTED else 0,
            **tuned,
        )

    @property
    def figure(self) -> Figure:
        """The figure of the current selection."""
        return VIEWS[self.view.value](self.schedule)

    def _changed(self, change: dict[str, Any]) -> None:
        # One change may cause others; draw the figure once all are settled.
        if self._is_settling:
            return
        self._is_settling = True
        try:
            self._settle(change["owner"])
        finally:
            self._is_settling = False
        if not self._displayed:
            return
        figure = self.figure
        for drawn, said in self._displayed:
            # Plotly's renderer never redraws its output; after other content, JupyterLab uses a new
            # renderer. The stand-in has the figure's height so that the page does not jump.
            stand_in = f'<div style="height: {figure.layout.height}px"></div>'
            update_display(HTML(stand_in), display_id=drawn)
            update_display(style.bundle(figure), raw=True, display_id=drawn)
            update_display(HTML(style.note(figure)), display_id=said)

    def _settle(self, changed: Widget | None) -> None:
        """Make the controls consistent after `changed` has changed (None: all of them)."""
        if changed is not None and changed is self.collective:
            names = algorithms(self.collective.value)
            self.algorithm.options = names
            self.algorithm.value = names[0]
        collective, algorithm = self.collective.value, self.algorithm.value
        about = algorithm_of(collective, algorithm)
        known = about.tunables
        self.root.max = self.ranks.value - 1
        self.root.disabled = collective not in ROOTED
        self.segments.disabled = "segment" not in known
        self.children.disabled = not {"fanout", "radix"} & set(known)
        self.children.description = "radix" if "radix" in known else "fan-out"
        self.children.min = 2 if "radix" in known else 1
        if changed in (None, self.collective, self.algorithm) and not self.children.disabled:
            self.children.value = about.fanout or about.radix

    def _ipython_display_(self) -> None:
        controls = self.controls._repr_mimebundle_()
        bundle = {_WIDGET: controls[_WIDGET], "text/plain": _NO_KERNEL}
        display(bundle, raw=True)
        figure, ids = self.figure, (uuid.uuid4().hex, uuid.uuid4().hex)
        display(style.bundle(figure), raw=True, display_id=ids[0])
        display(HTML(style.note(figure)), display_id=ids[1])
        self._displayed.append(ids)


def trees(collective: str = "bcast", algorithm: str = "binomial", ranks: int = 8) -> Explorer:
    """An Explorer of the communication schedules of all collectives.

    It starts with `algorithm` of `collective` on `ranks` ranks (1 to 16). Raises InputError for
    unknown names and for other numbers of ranks.
    """
    return Explorer(collective, algorithm, ranks)


def _choice(description: str, options: Sequence[str], value: str) -> Dropdown:
    return Dropdown(
        description=description,
        options=options,
        value=value,
        style=_STYLE,
        layout=Layout(width="20em"),
    )


def _number(description: str, value: int, least: int, most: int) -> BoundedIntText:
    return BoundedIntText(
        description=description,
        value=value,
        min=least,
        max=most,
        style=_STYLE,
        layout=Layout(width="11em"),
    )


def _with_slider(field: BoundedIntText) -> HBox:
    """A numeric field with a slider next to it.

    The field carries the label: handles of ipywidgets' sliders have none for screen readers.
    """
    # Update on release: drawing a figure for every value in between would lag.
    slider = IntSlider(
        min=field.min,
        max=field.max,
        value=field.value,
        readout=False,
        continuous_update=False,
        layout=Layout(width="11em"),
    )
    for name in ("min", "max", "value", "disabled"):
        link((field, name), (slider, name))
    return HBox([field, slider])
