"""Logs of failures, kept beside the notebook so that the panel can link them."""

import os
import re
from pathlib import Path

from mpilab.panel import words
from mpilab.plain import plain

DIRECTORY = "mpilab-logs"
KEPT = 20
MOST_BYTES = 4 << 20

_NAME = re.compile(r"(\d{4,})-[a-z-]+\.txt")


def keep(text, directory=None, *, kind="failure"):
    """Write `text` into a new file of ./mpilab-logs (or of `directory`); its path, or None.

    The file is called after a counter and the `kind` of the failure, e.g. 0007-deadlock.txt; the
    20 newest are kept. The path is relative to the notebook's folder, where JupyterLab opens it
    from a link; outside a notebook, to the current one. A log is an extra: where it can't be
    written there is none, and nobody is bothered.
    """
    try:
        folder = Path(DIRECTORY if directory is None else directory).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        path = _write(folder, kind, _bounded(text))
        _prune(folder)
        return Path(os.path.relpath(path, _home()))
    except (OSError, ValueError):
        return None


def whole(diagnosis):
    """All that was printed and logged, for the file: without colours, otherwise unabridged."""
    parts = [f"Printed by rank {rank}:\n{text}" for rank, text in diagnosis.printed]
    if diagnosis.log:
        parts.append(f"What {words.speaker(diagnosis.kind)} said:\n{diagnosis.log}")
    symbol, kind = words.title(diagnosis.kind)
    return plain("\n\n".join([f"{symbol} {kind}: {diagnosis.headline}", *parts])) + "\n"


def _home():
    """The notebook's folder, which the server tells the kernel, or the current one."""
    session = Path(os.environ.get("JPY_SESSION_NAME", ""))
    return session.parent if session.is_absolute() and session.parent.is_dir() else Path.cwd()


def _bounded(text):
    data = text.encode("utf-8", errors="replace")
    return data if len(data) <= MOST_BYTES else b"[cut here]\n" + data[-MOST_BYTES:]


def _write(folder, kind, data):
    kind = re.sub(r"[^a-z-]+", "-", kind.lower()).strip("-") or "failure"
    number = max(_numbers(folder), default=0)
    while True:
        number += 1
        path = folder / f"{number:04}-{kind}.txt"
        try:
            # Another notebook of this folder may have taken the name meanwhile.
            with open(path, "xb") as file:
                file.write(data)
            return path
        except FileExistsError:
            continue


def _numbers(folder):
    return {int(m[1]): entry for entry in folder.iterdir() if (m := _NAME.fullmatch(entry.name))}


def _prune(folder):
    for _, old in sorted(_numbers(folder).items())[:-KEPT]:
        old.unlink(missing_ok=True)
