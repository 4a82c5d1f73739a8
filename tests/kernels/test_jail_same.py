"""Kernels behave in the jail as they do natively: all of src_c, and every kind of datatype,
operation, attribute and request. Answers of labs are judged in both (labs/test_rubrics.py)."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.errors import BuildError
from mpilab.kernels import build, jail
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT

SRC = ROOT / "src_c"
ALL = [path for name in jail.ENTRY for path in sorted((SRC / name).glob("*.c"))]
# The cannon program reads and writes files on its own; no kernel uses it.
COMMON = [path for path in sorted((SRC / "common").glob("*/*.c")) if path.stem != "matrix_file"]
# They query the environment, and read a rules file that it names.
NEED_FILES = [path for path in ALL if path.stem == "auto"]


@pytest.fixture(autouse=True)
def tools(require_tool):
    for name in jail.TOOLS:
        require_tool(name)


@pytest.fixture(scope="module")
def objects(tmp_path_factory):
    """All of src_c for the jail, compiled once: kernels call other kernels."""
    jail.prepare(simulated=False)
    folder, made = tmp_path_factory.mktemp("objects"), []
    for path in [*ALL, *COMMON]:
        made.append(folder / f"{path.parent.name}-{path.stem}.o")
        include = [f"-I{one}" for one in (jail.SOURCES / "inside", jail.FOLDER, build.INCLUDE)]
        subprocess.run(
            [
                "clang",
                "--target=wasm32-wasi",
                "-std=c11",
                "-O2",
                *include,
                "-c",
                path,
                "-o",
                made[-1],
            ],
            check=True,
        )
    return made


def same(case, native, jailed):
    assert (native.outcome, jailed.outcome) == (DONE, DONE), (
        case.describe(),
        native.log,
        jailed.crashed,
        jailed.log,
    )
    for here, there in zip(native.outputs, jailed.outputs, strict=True):
        assert np.array_equal(here.received, there.received), case.describe()
    for name in ("messages", "requests"):
        fields = {
            "messages": ["source", "dest", "bytes"],
            "requests": ["rank", "operation", "offset", "bytes", "got_bytes"],
        }[name]
        one, other = getattr(native.recording, name), getattr(jailed.recording, name)
        assert sorted(one[fields].tolist()) == sorted(other[fields].tolist()), case.describe()
    if case.collective != "read":  # where ranks read ahead, rounds are a matter of time
        assert native.recording.rounds == jailed.recording.rounds, case.describe()


PARTS = {
    **{f"datatype {number}": number for number in range(14)},
    "operations": 14,
    "attributes": 15,
    "collectives": 16,
    "groups": 17,
    "requests": 18,
}


@pytest.mark.parametrize("ranks", [3, 4])
def test_datatypes_operations_and_attributes_are_the_same(ranks, tmp_path):
    source = Path(__file__).with_name("jail_same.c")
    made = build.build(source.read_text(), tmp_path)
    library = jail.build_kernel([source], "allgather_same", "allgather", tmp_path / "jailed.so")
    cases = [Case("allgather", ranks, 64 + part) for part in PARTS.values()]
    natively = run_cases(made.library, "allgather_same", cases)
    jailed = run_cases(library, "allgather_same", cases)
    for case, one, other in zip(cases, natively, jailed, strict=True):
        same(case, one, other)


READS = [
    Case("read", ranks, 1, "double", matrix=matrix, buffer=buffer, aggregators=aggregators)
    for ranks, matrix in ((1, "5x3"), (4, "12x10 by 4x2 on 2x2"), (6, "13x7"))
    for buffer, aggregators in ((0, 0), (64, 2))
]


@pytest.mark.parametrize("path", [p for p in ALL if p.parent.name == "read"], ids=lambda p: p.stem)
def test_a_read_kernel_reads_the_same_of_the_file(path, objects, tmp_path):
    function = f"read_{path.stem}"
    library = jail.build_kernel(objects, function, "read", tmp_path / "k.so")
    natively = run_cases(KERNELS, function, READS)
    for case, one, other in zip(READS, natively, run_cases(library, function, READS), strict=True):
        same(case, one, other)
        assert compare(case, other.outputs) == []


def cases_of(collective):
    if collective == "barrier":
        return [Case("barrier", ranks, 0) for ranks in (1, 5)]
    rooted = collective in ("bcast", "gather", "scatter", "reduce")
    found = [
        Case(
            collective,
            ranks,
            count,
            datatype=datatype,
            seed=ranks + count,
            **({"root": ranks - 1} if rooted else {}),
        )
        for ranks, datatypes, counts in (
            (4, ("int", "shifted"), (7, 1000)),
            (5, ("int", "contiguous", "vector", "shifted"), (0, 7, 1000)),
        )
        for datatype in datatypes
        for count in counts
    ]
    if collective in ("allgather", "alltoallv"):
        found.append(Case(collective, 5, 5, in_place=True, seed=3))
    if collective in ("reduce", "allreduce"):
        root = {"root": 1} if rooted else {}
        found.append(Case(collective, 5, 9, datatype="int", op="compose", seed=3, **root))
    return found


@pytest.mark.parametrize(
    "path",
    [p for p in ALL if p.parent.name != "read" and p not in NEED_FILES],
    ids=lambda p: f"{p.parent.name}_{p.stem}",
)
def test_a_kernel_of_src_c_is_the_same(path, objects, tmp_path):
    collective, function = path.parent.name, f"{path.parent.name}_{path.stem}"
    library = jail.build_kernel(objects, function, collective, tmp_path / "k.so")
    cases = cases_of(collective)
    natively = run_cases(KERNELS, function, cases, limit=120.0)
    jailed = run_cases(library, function, cases, limit=120.0)
    for case, one, other in zip(cases, natively, jailed, strict=True):
        same(case, one, other)


@pytest.mark.parametrize("path", NEED_FILES, ids=lambda p: p.parent.name)
def test_a_kernel_that_reads_files_by_itself_is_refused(path, objects, tmp_path):
    with pytest.raises(BuildError, match="no environment"):
        jail.build_kernel(objects, f"{path.parent.name}_auto", path.parent.name, tmp_path / "k.so")
