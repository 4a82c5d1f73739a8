"""Display a diagnosis in the notebook as a panel (HTML and text) with figures, and keep its log."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mpilab.diagnosis import render
from mpilab.diagnosis.model import Diagnosis
from mpilab.diagnosis.render import fragment, text
from mpilab.plots import style
from mpilab.plots.style import Figure
from mpilab.util.text import plain

# Logs of failures, kept next to the notebook so that the panel can link to them.

DIRECTORY = "mpilab-logs"
KEPT = 20
MOST_BYTES = 4 << 20

_NAME = re.compile(r"(\d{4,})-[a-z-]+\.txt")


def keep(text: str, directory: str | Path | None = None, *, kind: str = "failure") -> Path | None:
    """Write `text` to a new file in ./mpilab-logs (or in `directory`); its path, or None.

    The file name has a counter and the `kind` of the failure, e.g. 0007-deadlock.txt; the 20 newest
    files are kept. The path is relative to the notebook's folder, so that JupyterLab can open it
    from a link; outside a notebook, to the current folder. If the log cannot be written, None is
    returned and no error is raised.
    """
    try:
        folder = Path(DIRECTORY if directory is None else directory).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        path = _write(folder, kind, _bounded(text))
        _prune(folder)
        return Path(os.path.relpath(path, home()))
    except (OSError, ValueError):
        return None


def whole(diagnosis: Diagnosis) -> str:
    """The complete output and log as text for the file, without terminal colors."""
    parts = [f"Printed by rank {rank}:\n{text}" for rank, text in diagnosis.printed]
    if diagnosis.log:
        parts.append(f"What {render.speaker(diagnosis.kind)} said:\n{diagnosis.log}")
    symbol, kind = render.title_of(diagnosis.kind)
    return plain("\n\n".join([f"{symbol} {kind}: {diagnosis.headline}", *parts])) + "\n"


def home() -> Path:
    """The notebook's folder, if the Jupyter server has set it; otherwise the current folder."""
    session = Path(os.environ.get("JPY_SESSION_NAME", ""))
    return session.parent if session.is_absolute() and session.parent.is_dir() else Path.cwd()


def _bounded(text: str) -> bytes:
    data = text.encode("utf-8", errors="replace")
    return data if len(data) <= MOST_BYTES else b"[cut here]\n" + data[-MOST_BYTES:]


def _write(folder: Path, kind: str, data: bytes) -> Path:
    kind = re.sub(r"[^a-z-]+", "-", kind.lower()).strip("-") or "failure"
    number = max(_numbers(folder), default=0)
    while True:
        number += 1
        path = folder / f"{number:04}-{kind}.txt"
        try:
            # Another notebook in this folder may have created the file in the meantime.
            with open(path, "xb") as file:
                file.write(data)
            return path
        except FileExistsError:
            continue


def _numbers(folder: Path) -> dict[int, Path]:
    return {int(m[1]): entry for entry in folder.iterdir() if (m := _NAME.fullmatch(entry.name))}


def _prune(folder: Path) -> None:
    for _, old in sorted(_numbers(folder).items())[:-KEPT]:
        old.unlink(missing_ok=True)


# Marks at the lines of a cell, which the kit's extension of JupyterLab shows in the editor. They
# are metadata of the panel's output: they are saved with it, and other readers of the notebook
# ignore them.

METADATA = "mpilab"


def marks(diagnosis: Diagnosis, cell: str) -> dict[str, Any]:
    """The metadata of an output that marks the diagnosis' places in the cell that was compiled.

    cell  the text of the cell below its first line. Its fingerprint is kept: there are no marks in
          a cell that has changed since.
    """
    found = [
        {"line": place.line, "column": place.column, "text": place.label or diagnosis.headline}
        for place in diagnosis.places
        if not place.file and place.line > 0
    ]
    return {METADATA: {"of": fingerprint(cell), "marks": found}}


def fingerprint(cell: str) -> int:
    """A hash (32 bits) of a text without the white space at its end, as remoteEntry.js computes it
    from the units of UTF-16."""
    data = cell.rstrip(" \t\r\n").encode("utf-16-le", errors="surrogatepass")
    value = 0
    for low, high in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + low + 256 * high) & 0xFFFFFFFF
    return value


def show(
    diagnosis: Diagnosis,
    figures: Iterable[Figure] = (),
    *,
    title: str = "",
    marked: str | None = None,
) -> None:
    """Display the diagnosis as one output (HTML and text), then the plotly `figures`.

    title   what was run, e.g. 'allgather_ring with 4 ranks'; shown above the headline.
    marked  the cell whose lines it marks (`marks`).
    """
    from IPython.display import display  # noqa: PLC0415 (slow; a notebook has it)

    kept = None
    if _is_worth_keeping(diagnosis):
        kept = keep(whole(diagnosis), kind=diagnosis.kind)
    link = "" if kept is None else kept.as_posix()
    bundle = {
        "text/html": fragment(diagnosis, link, title=title),
        "text/plain": text(diagnosis, link, title=title),
    }
    display(bundle, raw=True, metadata={} if marked is None else marks(diagnosis, marked))
    if figures:
        for figure in figures:
            style.show(figure)


def _is_worth_keeping(diagnosis: Diagnosis) -> bool:
    """Whether the log holds more than the panel shows, or messages worth keeping for later."""
    shown, omitted = render.printed(diagnosis)
    if omitted or any(each.left_out for each in shown):
        return True
    if render.speaker(diagnosis.kind) == "the compiler":
        return render.last_lines(diagnosis.log, render.LOG_LINES)[1] > 0
    return bool(diagnosis.log)
