"""Measure the figures of docs/performance.md.

Every figure is a ratio of two things measured in the same run, in turn, or a plain duration; none
is asserted by a test. The result is a list of {name, value, unit, aim, against, spread, n,
measured, machine}: the median, half the distance between the quartiles as its spread, when and
where.
"""

import json
import os
import platform
from datetime import date
from pathlib import Path

import numpy as np

from mpilab.errors import InputError
from mpilab.tables_in_pages import update
from mpilab.whole_file import write_whole

FIGURES = {}


def figure(unit, aim, against):
    """Register a function that returns the measured values as a figure of its own name."""

    def register(measure):
        FIGURES[measure.__name__] = (measure, unit, aim, against)
        return measure

    return register


def run_figures(name, out):
    """Measure one figure, or 'all', and bring the JSON file `out` up to date; the list in it."""
    from tqdm.auto import tqdm

    if name != "all" and name not in FIGURES:
        raise InputError(f"figure {name!r}: unknown; write 'all' or one of {', '.join(FIGURES)}")
    out = Path(out)
    known = {entry["name"]: entry for entry in _read(out)}
    for one in tqdm(list(FIGURES) if name == "all" else [name], desc="bench"):
        measure, unit, aim, against = FIGURES[one]
        values = np.asarray(measure(), float)
        low, median, high = np.percentile(values, [25, 50, 75])
        known[one] = {"name": one, "value": round(float(median), 4), "unit": unit, "aim": aim,
                      "against": against, "spread": round(float(high - low) / 2, 4),
                      "n": len(values), "measured": str(date.today()),
                      "machine": machine()}  # fmt: skip
        write_whole(out, json.dumps(list(known.values()), indent=1) + "\n")
    print(table(known.values()))
    return list(known.values())


def _read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise InputError(f"{path}: not the JSON of a bench run: {error}; remove it") from None


def table(entries):
    """The figures as a Markdown table."""
    lines = ["| figure | value | spread | n | aim | against |", "|---|---|---|---|---|---|"]
    for entry in entries:
        unit = f" {entry['unit']}" if entry["unit"] else ""
        lines.append(
            f"| `{entry['name']}` | {entry['value']:.3g}{unit} | ± {entry['spread']:.2g} "
            f"| {entry['n']} | {entry['aim']} | {entry['against']} |"
        )
    return "\n".join(lines)


def machine():
    """This machine in a line: processor, cores, memory, system, Python."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{model}, {os.cpu_count()} cores, {pages / 2**30:.0f} GiB, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}"
    )


def write_docs(entries, path):
    """Put the figures between the marks in a Markdown file: a table for each day and machine, the
    earliest first."""
    by_run = {}
    for entry in entries:
        by_run.setdefault((entry["measured"], entry["machine"]), []).append(entry)
    tables = [f"Measured {day} on {where}.\n\n{table(of_run)}"
              for (day, where), of_run in sorted(by_run.items())]  # fmt: skip
    update(path, {"bench": "\n\n".join(tables)})
