"""Run figures, and report them as JSON and in the tables of docs/performance.md.

The result is a list of {name, value, unit, aim, against, spread, n, measured,
machine}: value is the median, spread half the interquartile range, measured the date.
"""

import json
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mpilab.errors import InputError
from mpilab.measure.dataset import machine
from mpilab.util.files import write_whole
from mpilab.util.text import suggestion, update

Measure = Callable[..., ArrayLike]  # called without arguments
# {name: (function, unit, aim, what it is held against)}.
FIGURES: dict[str, tuple[Measure, str, str, str]] = {}


def figure(unit: str, aim: str, against: str) -> Callable[[Measure], Measure]:
    """Register the decorated function, which returns measured values, as a figure of its name."""

    def register(measure: Measure) -> Measure:
        FIGURES[measure.__name__] = (measure, unit, aim, against)
        return measure

    return register


def run_figures(name: str, out: str | Path) -> list[dict[str, Any]]:
    """Measure one figure, or 'all', and update the JSON file `out`; the list in it."""
    from tqdm.auto import tqdm

    if name != "all" and name not in FIGURES:
        listed = f"{', '.join(FIGURES)}{suggestion(name, FIGURES)}"
        raise InputError(f"figure {name!r}: unknown; write 'all' or one of {listed}")
    out = Path(out)
    known = {entry["name"]: entry for entry in _read(out)}
    for one in tqdm(list(FIGURES) if name == "all" else [name], desc="bench"):
        measure, unit, aim, against = FIGURES[one]
        values = np.asarray(measure(), float)
        low, median, high = np.percentile(values, [25, 50, 75])
        known[one] = {
            "name": one,
            "value": round(float(median), 4),
            "unit": unit,
            "aim": aim,
            "against": against,
            "spread": round(float(high - low) / 2, 4),
            "n": len(values),
            "measured": str(date.today()),
            "machine": machine(),
        }
        write_whole(out, json.dumps(list(known.values()), indent=1) + "\n")
    return list(known.values())


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise InputError(f"{path}: not the JSON of a bench run: {error}; remove it") from None


def table(entries: Iterable[dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    lines = ["| figure | value | spread | n | aim | against |", "|---|---|---|---|---|---|"]
    for entry in entries:
        unit = f" {entry['unit']}" if entry["unit"] else ""
        lines.append(
            f"| `{entry['name']}` | {entry['value']:.3g}{unit} | ± {entry['spread']:.2g} "
            f"| {entry['n']} | {entry['aim']} | {entry['against']} |"
        )
    return "\n".join(lines)


def write_docs(entries: Iterable[dict[str, Any]], path: str | Path) -> None:
    """Write the figures between the marks in a Markdown file, a table per day and machine."""
    by_run: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for entry in entries:
        by_run.setdefault((entry["measured"], entry["machine"]), []).append(entry)
    tables = [
        f"Measured {day} on {where}.\n\n{table(of_run)}"
        for (day, where), of_run in sorted(by_run.items())
    ]
    update(path, {"bench": "\n\n".join(tables)})
