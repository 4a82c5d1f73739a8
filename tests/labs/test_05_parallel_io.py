"""Lab 05, where it differs from the others (test_every_lab.py)."""

import itertools

import numpy as np
import pytest
from lab_notebook import REDUCED, ROOT, LabNotebook, checks, execute, shown

from mpilab.algorithms.requests import METHODS, UNNAMED, requests_of, unnamed_readers, write_readers
from mpilab.cases.case import Case
from mpilab.cases.distribution import distribution
from mpilab.grading.release import answer_id
from mpilab.kernels.build import KERNELS, need
from mpilab.mpiio import readers
from mpilab.mpiio.cannon import LARGE_CSV, PHASES, TWO_HOSTS_CSV, WAYS, io_share, read, tables
from mpilab.plots.cannon import cannon, held, scaling
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import leaves_state
from mpilab.util.text import filled
from tests.right_answers import answers_of

LAB = LabNotebook("05-parallel-io")
RIGHT = answers_of(LAB.name)


# --- what is right


def test_requests_by_pattern_are_those_that_are_counted_element_by_element():
    for method in METHODS:
        for n, rows, columns in ((1, 1, 1), (5, 4, 4), (12, 2, 3), (13, 3, 1)):
            spread = distribution(f"{n}x{n} on {rows}x{columns}", rows * columns)
            for buffer, aggregators in ((1, 1), (20, rows * columns), (64, 1), (10**6, rows)):
                found = requests_of(method, spread, buffer, aggregators)
                assert RIGHT.file_requests(method, n, rows, columns, buffer, aggregators) == [
                    np.bincount(found["rank"]).max(),
                    len(found),
                    found["bytes"].sum(),
                ], (method, n, rows, columns, buffer, aggregators)


@pytest.mark.slow
def test_patterns_are_what_the_kernels_ask_for():
    """Also for block-cyclic matrices: the same bytes of the file by the same ranks."""
    kernels = dict(zip(METHODS, ("scatter", "strided", "sieving", "two_phase"), strict=True))
    cases = [
        Case(
            "read",
            6,
            1,
            datatype="double",
            matrix=matrix,
            buffer=100,
            aggregators=2,
            function=f"read_{kernel}",
        )
        for kernel in kernels.values()
        for matrix in ("13x13 on 2x3", "12x10 by 2x3 on 2x3", "3x2 on 3x2")
    ]
    methods = {f"read_{kernel}": method for method, kernel in kernels.items()}
    for result in run_cases(need(KERNELS), "", cases):
        case = result.case
        expected = requests_of(methods[case.function], case.distribution, 100, 2)
        for name in ("rank", "offset", "bytes"):
            found = result.recording.requests[name]
            assert found.tolist() == expected[name].tolist(), (case, name)


@pytest.mark.slow
def test_a_collective_read_of_parts_of_different_sizes_leaves_nothing_behind():
    case = Case("read", 4, 1, datatype="double", matrix="7x5")
    (result,) = run_cases(need(KERNELS), "read_view_all", [case])
    assert len(set(result.recording.requests["bytes"].tolist())) > 1
    assert not leaves_state(result)


def test_cannons_blocks_meet_once_each_in_the_figure():
    figure = cannon(4)
    assert len(figure.frames) == 5
    met = set()
    for step in range(4):
        of_a, of_b = held(4, step)
        assert np.array_equal(of_a, of_b)
        met |= {(i, j, int(of_a[i, j])) for i in range(4) for j in range(4)}
    assert len(met) == 4**3
    assert "(1, 2) A(1, 3) B(3, 2)" in figure.layout.meta["alt"].splitlines()[2]


def test_the_unnamed_readers_that_are_handed_out_are_those_of_the_answer(tmp_path):
    fresh = write_readers(tmp_path / "fresh.csv", RIGHT.unnamed_readers())
    assert fresh.read_text() == UNNAMED.read_text(), "run grading/05-parallel-io/answers.py"
    for letter, requests in unnamed_readers().items():
        assert requests.tolist() == RIGHT.unnamed_readers()[letter].tolist()


def test_the_unnamed_readers_are_as_the_answer_to_question_2_says():
    x, y, z = unnamed_readers().values()
    assert [(r["rank"], r["offset"], r["bytes"]) for r in x] == [
        (0, 8, 384),
        (0, 392, 192),
        (2, 584, 384),
        (2, 968, 192),
    ]
    assert (len(y), y["bytes"].sum()) == (8, 2112)
    assert (len(z), z["bytes"].sum(), set(z["bytes"].tolist())) == (24, 1152, {48})
    assert max((each["offset"] + each["bytes"]).max() for each in (x, y, z)) == 1160


def test_the_scaling_that_is_handed_out_has_every_stage_at_every_point():
    rows = read()
    points = np.unique(rows[["stage", "files", "ranks", "n", "phase"]], return_counts=True)[1]
    ranks, sizes = (np.unique(rows[name]) for name in ("ranks", "n"))
    assert set(rows[["stage", "files"]].tolist()) == set(WAYS)
    assert len(points) == len(WAYS) * len(ranks) * len(sizes) * 3
    assert set(points.tolist()) == {rows["repetition"].max()}
    assert ranks.tolist() == [1, 4, 9, 16] and len(sizes) > 1
    assert rows["repetition"].max() >= 30  # as the lab says
    figure = scaling(rows, int(sizes[-1]))
    assert len(figure.data) == 12
    of_one = rows[(rows["stage"] == 3) & (rows["ranks"] == 4)]
    assert 0 < io_share(of_one) < 1


@pytest.mark.parametrize(
    ("file", "sizes", "ranks"),
    [(LARGE_CSV, (1024, 2048, 4096), (4, 9, 16)), (TWO_HOSTS_CSV, (1024, 2048), (4, 16))],
    ids=["one host", "two hosts"],
)
def test_the_large_products_are_there(file, sizes, ranks):
    rows = read(file)
    points, counts = np.unique(rows[["stage", "files", "n", "ranks", "phase"]], return_counts=True)
    every = itertools.product(WAYS, sizes, ranks, PHASES)
    assert set(points.tolist()) == {(*way, *others) for way, *others in every}
    assert set(counts.tolist()) == {3}


def test_the_page_on_performance_has_their_shares():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert filled(page, tables()) == page, "run 'make refresh'"


def test_the_readers_that_are_handed_out_are_of_all_sizes_and_ranks():
    rows = readers.read()
    points = np.unique(rows[["matrix", "ranks", "algorithm", "mpi_io", "cold"]], return_counts=True)
    assert set(rows["matrix"].tolist()) == {"2048x2048", "4096x4096"}
    assert set(rows["ranks"].tolist()) == {4, 9, 16}
    assert set(points[1].tolist()) == {rows["repetition"].max()} and rows["repetition"].max() >= 7
    every = {*readers.READERS, *readers.RIVALS}
    assert len(points[0]) == len(every) * 2 * 3 * 2
    # Rank 0 alone, and by two-phase reads: every byte once.
    once = rows[np.isin(rows["algorithm"], ["scatter", "two_phase", "two_phase_alltoallv"])]
    size = np.where(once["matrix"] == "2048x2048", 2048, 4096)
    assert (once["bytes"] == 8 * size.astype(np.int64) ** 2).all()


# --- the notebook


@pytest.mark.slow
def test_the_solved_lab_shows_what_it_promises(solved_run):
    cells = {cell.source: cell for cell in solved_run(LAB).cells if cell.cell_type == "code"}

    def of(words):
        return next(cell for source, cell in cells.items() if words in source)

    def table(words):
        return of(words).outputs[-1]["data"]["text/markdown"]

    assert "files of C that differ: 0" in shown(of("runs = {"))
    assert "24 requests of 4 ranks, 1.125 KiB" in shown(of("file_access.of_result(run.result))"))
    told = shown(of("BY_METHOD = ")).splitlines()
    compared = [line.partition("recorded ")[2].split(", yours ") for line in told if line.strip()]
    compared = [pair for pair in compared if len(pair) == 2]
    assert len(compared) == 10 and all(recorded == yours for recorded, yours in compared)
    assert "| 256, 1022 MiB | 512, 1.993 GiB |\n| two-phase | 32, 128 MiB" in table("patterns = {")
    assert "read_my_two_phase" in table("session.sweep_reads(")


@pytest.mark.slow
def test_the_blank_lab_goes_on_without_the_readers_that_students_write(blank_run):
    done = blank_run(LAB)
    assert set(checks(done)) == {"view", "sieving", "two_phase", "file_requests"}
    said = [shown(cell) for cell in done.cells if cell.cell_type == "code"]
    assert any("none of your readers passes its checks" in text for text in said)
    (told,) = [text for text in said if text.startswith("rank 0     12 x 12")]
    assert "recorded [6, 6, 1152], yours not yet" in told
    assert "two-phase  12 x 12 on 2 x 2: recorded not yet, yours not yet" in told


@pytest.mark.slow
def test_a_reader_that_does_not_compile_does_not_stop_the_lab(tmp_path):
    notebook = LAB.solved()
    for cell in notebook.cells:
        if answer_id(cell) == "two_phase":
            cell.source = cell.source.replace("const int wanted", "const wanted int")
    done = execute(notebook, tmp_path, **REDUCED[LAB.name] | {"SIZES": [32], "REPETITIONS": 1})
    assert "not yet" in checks(done)["two_phase"]
