"""Measure the figures of docs/performance.md.

Every figure is a ratio of two things measured in the same run, in turn, or a plain duration; none
is asserted by a test. The result is a list of {name, value, unit, aim, against, spread, n}: the
median, and half the distance between the quartiles as its spread.
"""

import json
import os
import platform
import subprocess
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np

from mpilab.build import INCLUDE, ROOT
from mpilab.errors import InputError

FIGURES = {}
_BEGIN, _END = "<!-- bench: begin -->", "<!-- bench: end -->"


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
                      "n": len(values)}  # fmt: skip
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(list(known.values()), indent=1) + "\n", encoding="utf-8")
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
    """Put the table, the machine and today's date between the marks in a Markdown file."""
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    if _BEGIN not in text or _END not in text:
        raise InputError(f"{path}: the marks {_BEGIN} and {_END} are missing; put them in")
    before, rest = text.split(_BEGIN, 1)
    after = rest.split(_END, 1)[1]
    made = f"{_BEGIN}\nMeasured {date.today()} on {machine()}.\n\n{table(entries)}\n{_END}"
    path.write_text(before + made + after, encoding="utf-8")


@figure("", "≤ 0.3", "`mpicc … && mpirun -n 4 …` by hand, Open MPI's default settings")
def cell_to_result_ratio(repeats=7):
    """From an edited cell to a verified result on 4 ranks, over the same by hand."""
    from mpilab import openmpi, session
    from mpilab.build import build
    from mpilab.cluster.engines import Cluster

    kernel = (ROOT / "src_c" / "allgather" / "ring.c").read_text(encoding="utf-8")
    driver = ROOT / "src_c" / "bench" / "by_hand.c"
    ratios = []
    defaults = {name: value for name, value in os.environ.items() if "_MCA_" not in name}
    with tempfile.TemporaryDirectory() as folder, Cluster(4, progress=False):
        for number in range(repeats):
            edited = f"{kernel}\n/* edit {number} */\n"
            begin = time.perf_counter()
            session.kernels["allgather_ring"] = build(edited, folder, stem=f"cell{number}")
            run = session.run("allgather_ring", count=64)
            in_notebook = time.perf_counter() - begin
            if not run.right:
                raise InputError(f"allgather_ring: {run.trouble}")

            source = Path(folder) / "hand.c"
            source.write_text(edited, encoding="utf-8")
            begin = time.perf_counter()
            subprocess.run([openmpi.tool("mpicc"), "-O2", f"-I{INCLUDE}", str(source), str(driver),
                            "-o", f"{folder}/hand"], check=True)  # fmt: skip
            subprocess.run([openmpi.tool("mpirun"), "--oversubscribe", "-n", "4", f"{folder}/hand"],
                           check=True, env={**defaults, **openmpi.ROOT}, timeout=60,
                           stdout=subprocess.DEVNULL)  # fmt: skip
            by_hand = time.perf_counter() - begin
            ratios.append(in_notebook / by_hand)
        del session.kernels["allgather_ring"]
    return ratios[1:]  # the first one loads what stays loaded


@figure("", "≤ 1.3", "mpirun of 4 interpreters that import ipyparallel and mpi4py")
def cluster_ready_ratio(repeats=5):
    """From Cluster(4).start() to the first result, over the bare floor."""
    from mpilab.cluster.readiness import measure_ready

    return [ready / floor for ready, floor in measure_ready(4, repeats)]


@figure("s", "≤ 12", "wall time of the whole sample class over its submissions")
def grade_seconds_per_submission(repeats=2):
    """Wall seconds that a submission of the sample class takes."""
    from mpilab.grading.grade import grade

    seconds = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            report = grade(
                ROOT / "grading" / "sample-class", "02-allgather", folder, progress=False
            )
            seconds.append(report.seconds / len(report.verdicts))
    return seconds
