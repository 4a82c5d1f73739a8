"""What a notebook calls, for every collective: run, check with a choice of kernels, sweep."""

import os
import re
import resource
import signal
import threading
import time

import nbformat
import numpy as np
import papermill
import pytest
from c_kernels import build

from mpilab.cluster.engines import ASLEEP, TICKS_S, Cluster
from mpilab.diagnosis.model import DEADLOCK, LEAK, WRONG_RESULT
from mpilab.errors import InputError
from mpilab.judging.calls import call
from mpilab.judging.verdict import FAIL
from mpilab.measure.dataset import processor
from mpilab.notebook import lab, session
from mpilab.notebook.lab import limited, predict

CHECKS = """
lab = "99-test"
[[exercise]]
id = "tree"
title = "A tree of your choice"
kind = "kernel"
collective = "bcast"
allowed = ["point-to-point"]
[[exercise.variant]]
function = "bcast_flat"
[[exercise.variant.item]]
id = "flat"
title = "One round"
points = 2
ranks = [2, 4]
counts = [3]
roots = [0, -1]
rounds = "1"
[[exercise.variant]]
function = "bcast_line"
[[exercise.variant.item]]
id = "line"
title = "Nobody sends more than the message"
points = 1
ranks = [4]
counts = [64]
segments = [0, 64]
most_busiest_bytes = "m"
messages = "(P - 1) * S"
[[exercise.variant.item]]
id = "strict"
title = "Without buffering"
points = 1
ranks = [4]
counts = [64]
strict = true
"""
FLAT = """#include "mpilab.h"
MPILAB_BCAST(flat);
MPILAB_BCAST(flat)
{
    MPI_Request sent[64];
    int rank, size, started = 0;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int dest = 0; dest < size; dest++)
        if (dest != root)
            MPI_Isend(buffer, count, datatype, dest, TAG, comm, &sent[started++]);
    return MPI_Waitall(started, sent, MPI_STATUSES_IGNORE);
}
"""
LINE = """#include "mpilab.h"
MPILAB_BCAST(line);
MPILAB_BCAST(line)
{
    MPI_Aint low, extent;
    int rank, size, type_bytes, err = MPI_SUCCESS;
    MPI_Comm_rank(comm, &rank), MPI_Comm_size(comm, &size);
    MPI_Type_get_extent(datatype, &low, &extent), MPI_Type_size(datatype, &type_bytes);
    const long bytes = mpilab_tuning.segment_bytes;
    const int each = bytes > 0 ? (int)(bytes / type_bytes) : count;
    for (int first = 0; first < count && err == MPI_SUCCESS; first += each) {
        void *part = (char *)buffer + first * extent;
        const int length = count - first < each ? count - first : each;
        if (rank != root)
            err = MPI_Recv(part, length, datatype, (rank + size - 1) % size, TAG, comm,
                           MPI_STATUS_IGNORE);
        if (err == MPI_SUCCESS && (rank + 1) % size != root)
            err = MPI_Send(part, length, datatype, (rank + 1) % size, TAG, comm);
    }
    return err;
}
"""


@pytest.fixture(scope="module")
def cluster():
    with Cluster(4, progress=False) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lab")
    return {
        "bcast_flat": build(FLAT, folder, stem="flat"),
        "bcast_line": build(LINE, folder, stem="line"),
    }


@pytest.fixture
def checks(tmp_path, monkeypatch):
    """The Lab of CHECKS, in a notebook that has defined no kernel."""
    (tmp_path / "labs" / "checks").mkdir(parents=True)
    (tmp_path / "labs" / "checks" / "99-test.toml").write_text(CHECKS, encoding="utf-8")
    monkeypatch.setattr(lab, "ROOT", tmp_path)
    session.kernels.clear()
    yield lab.Lab("99-test")
    session.kernels.clear()


def test_a_choice_is_judged_by_the_kernel_that_was_defined_last(cluster, kernels, checks):
    session.kernels["bcast_line"] = kernels["bcast_line"]
    checked = checks.check("tree")
    assert checked.passed, repr(checked)
    assert checked.verdict.title == "A tree of your choice: bcast_line"
    assert [item.item for item in checked.verdict.items] == ["line", "strict"]
    session.kernels["bcast_flat"] = kernels["bcast_flat"]
    checked = checks.check("tree")
    assert checked.passed, repr(checked)
    assert [item.item for item in checked.verdict.items] == ["flat"]
    assert checked.verdict.points == 2


def test_an_answer_may_use_the_c_library_as_in_the_grader(cluster, checks, tmp_path):
    headers = "#include <ctype.h>\n#include <math.h>\n#include <stdlib.h>\n#include <string.h>\n"
    uses = 'char words[] = "0 0", *rest;\n    started = isdigit(*strtok(words, " ")) ? 0 : 3;\n'
    uses += "    started += (int)fmin(strtol(words, &rest, 10), 3);\n"
    answer = headers + FLAT.replace("    if (rank", f"    {uses}    if (rank", 1)
    session.kernels["bcast_flat"] = build(answer, tmp_path)
    checked = checks.check("tree")
    assert checked.passed, repr(checked)


def test_without_any_of_them_the_check_names_them_all(checks):
    checked = checks.check("tree")
    assert not checked.passed
    assert "no %%kernel cell has defined one of bcast_flat, bcast_line yet" in repr(checked)


def test_a_variant_that_is_another_algorithm_is_told_what_was_counted(
    cluster, kernels, checks, tmp_path
):
    session.kernels["bcast_line"] = build(FLAT.replace("flat", "line"), tmp_path)
    checked = checks.check("tree")
    first, second = checked.verdict.items
    assert "768 bytes from one rank where the algorithm has at most 256" in first.reason
    assert first.evidence["reproduce"] == 'mpilab.run("bcast_line", ranks=4, count=64)'
    assert second.outcome == "pass"


def test_a_kernel_reads_what_it_is_tuned_by(cluster, kernels, checks):
    session.kernels["bcast_line"] = kernels["bcast_line"]
    assert len(session.run("bcast_line", count=64).messages) == 3
    run = session.run("bcast_line", count=64, segment=64, root=3)
    assert run.right and len(run.messages) == 12
    assert "count 64, datatype int, root 3, segments of 64 bytes" in repr(run)


def test_blocks_of_ranks_without_a_receive_buffer_are_masked(cluster):
    blocks = session.run("gather_binomial", root=1, count=2).blocks
    assert blocks.shape == (4, 4, 2)
    assert blocks.mask[[0, 2, 3]].all() and not blocks.mask[1].any()
    reduced = session.run("reduce_linear", root=2, ranks=3, op="compose").blocks
    assert reduced.mask[:, 0, 0].tolist() == [True, True, False]


def test_blocks_of_an_alltoallv_may_have_any_length(cluster):
    run = session.run("alltoallv_pairwise", count=2, pattern="ragged")
    blocks = run.blocks  # i sends j (i + 2j + 1) mod 5 elements
    assert run.right and blocks.shape == (4, 4, 4)
    assert blocks.mask.sum(axis=2)[1].tolist() == [1, 0, 4, 3]
    assert session.run("alltoallv_linear", count=2).blocks.shape == (4, 4, 2)
    with pytest.raises(InputError, match="each pair of ranks has its own block"):
        run.figure("rounds")


def test_a_bcast_has_one_block_on_every_rank_and_a_barrier_none(cluster):
    blocks = session.run("bcast_chain", root=2).blocks
    assert blocks.shape == (4, 1, 4)
    assert (blocks == blocks[2]).all() and not np.ma.isMaskedArray(blocks)
    assert session.run("scatter_linear", count=3).blocks.shape == (4, 1, 3)
    run = session.run("barrier_tree")
    assert run.right and run.result.case.count == 0
    with pytest.raises(InputError, match="a barrier moves no data"):
        _ = run.blocks


def test_a_root_that_the_kernel_ignores_shrinks_to_the_smallest_case(cluster, tmp_path):
    ignores = FLAT.replace("MPI_Request sent", "root = 0;\n    MPI_Request sent")
    session.kernels["bcast_flat"] = build(ignores, tmp_path)
    run = session.run("bcast_flat", root=3, count=8)
    assert not run.right
    assert (run.smallest.ranks, run.smallest.root, run.smallest.count) == (2, 1, 1)
    session.kernels.clear()


def test_mpis_own_collectives_are_run_without_their_messages(cluster):
    for name in ("barrier_openmpi", "bcast_openmpi"):
        run = session.run(name)
        assert run.right
        assert "messages: MPI's own, not recorded" in repr(run)


def test_a_sweep_times_every_collective_and_rounds_the_sizes_of_reductions_up(cluster):
    names = [
        "bcast_chain",
        "gather_linear",
        "scatter_linear",
        "reduce_chain",
        "allreduce_ring",
        "allgather_ring",
        "barrier_tree",
        "bcast_openmpi",
    ]
    table = session.sweep(
        names,
        sizes=[1, 64],
        ranks=[2, 3],
        repetitions=2,
        warmup=1,
        root=1,
        segment=32,
        fanout=2,
        oversubscribe=True,
        progress=False,
    )
    sizes = {
        name: sorted(set(table["bytes"][table["collective"] == name].tolist()))
        for name in set(table["collective"].tolist())
    }
    assert sizes.pop("barrier") == [0]
    assert sizes.pop("reduce") == sizes.pop("allreduce") == [4, 64]
    assert all(bytes == [1, 64] for bytes in sizes.values())
    assert len(table) == 2 * 2 * (7 * 2 + 1)
    assert (table["segment"] == 32).all() and (table["fanout"] == 2).all()
    own = table[table["library"] == "openmpi"]
    assert set(own["algorithm"].tolist()) == {"default"} and (own["number"] == 0).all()
    assert (table["number"][table["library"] == "ours"] == -1).all()
    assert (table["span_s"] >= table["max_s"]).all()
    assert (table["max_s"] >= table["mean_s"]).all() and (table["mean_s"] >= table["min_s"]).all()


READ_NOTHING = """#include "mpilab.h"
MPILAB_READ(nothing);
MPILAB_READ(nothing)
{
    return MPI_SUCCESS;
}
"""


BOUND = """#define _GNU_SOURCE
#include "mpilab.h"
#include <sched.h>
#include <stdlib.h>
MPILAB_BARRIER(bound);
MPILAB_BARRIER(bound)
{
    cpu_set_t mine, all;
    CPU_ZERO(&all);
    sched_getaffinity(0, sizeof mine, &mine);
    int size, cpu = 0;
    MPI_Comm_size(comm, &size);
    while (!CPU_ISSET(cpu, &mine))
        cpu++;
    MPI_Allreduce(&(int){1 << cpu}, &cpu, 1, MPI_INT, MPI_BOR, comm);
    const int naps = getenv("OMPI_MCA_mpi_yield_when_idle") != NULL;
    const int bound = CPU_COUNT(&mine) == 1 && __builtin_popcount((unsigned)cpu) == size;
    return bound && !naps ? MPI_SUCCESS : MPI_ERR_OTHER;
}
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_sweep_is_a_job_whose_ranks_are_bound_and_spin_while_those_of_the_cluster_sleep(
    cluster, tmp_path
):
    session.kernels["barrier_bound"] = build(BOUND, tmp_path)
    one = dict(repetitions=200, progress=False)
    spent, began = cluster.processor_seconds(), time.monotonic()
    table = session.sweep(["barrier_bound"], ranks=[2], **one)
    spent, lasted = cluster.processor_seconds() - spent, time.monotonic() - began
    assert len(table) == 200  # it returned no error: every rank had a core of its own
    assert 0 <= spent <= ASLEEP * lasted + TICKS_S and cluster.processor_seconds() > 0
    cores = len(os.sched_getaffinity(0))
    assert set(table["cores"]) == {cores} and set(table["machine"]) == {processor()}
    with pytest.warns(UserWarning, match="barrier_bound is left out"):  # they share cores
        table = session.sweep(["barrier_bound"], ranks=[cores + 1], oversubscribe=True, **one)
    assert len(table) == 0
    with pytest.raises(InputError, match=rf"ranks={cores + 1}: there are {cores} cores.*simulate"):
        session.sweep(["barrier_linear"], ranks=[2, cores + 1], **one)
    session.kernels.clear()


def test_reads_are_timed_in_a_job_of_their_own_and_compared_first(cluster, tmp_path):
    how = dict(matrix="12x12", ranks=2, repetitions=3, progress=False, oversubscribe=True)
    table = session.sweep_reads(["read_strided", "read_two_phase"], **how)
    assert list(dict.fromkeys(table["algorithm"])) == ["strided", "two_phase"]
    assert len(table) == 2 * 3 and set(table["bytes"]) == {12 * 12 * 8}
    assert set(table["cores"]) == {len(os.sched_getaffinity(0))} and (table["span_s"] > 0).all()
    session.kernels["read_nothing"] = build(READ_NOTHING, tmp_path)
    with pytest.warns(
        UserWarning, match="read_nothing is left out of the sweep with 2 ranks and a"
    ):
        assert len(session.sweep_reads(["read_nothing"], **how)) == 0
    session.kernels.clear()
    cores = len(os.sched_getaffinity(0))
    with pytest.raises(InputError, match=f"ranks={cores + 1}: there"):
        session.sweep_reads(["read_strided"], matrix="12x12", ranks=cores + 1)


def test_a_sweep_without_sizes_is_for_barriers(cluster):
    once = dict(ranks=[2], repetitions=3, progress=False, oversubscribe=True)
    assert len(session.sweep(["barrier_linear"], **once)) == 3
    with pytest.raises(InputError, match="sweep of bcast_chain: no sizes; give bytes"):
        session.sweep(["bcast_chain"], **once)


ENDLESS = """#include "mpilab.h"
MPILAB_BARRIER(endless)
{
    for (volatile int i = 0;;) i++;
    (void)comm;
}
"""


def test_a_kernel_that_computes_without_end_is_left_out_of_a_sweep_by_processor_time(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(session, "LIMIT_S", 1000.0)
    session.kernels["barrier_endless"] = build(ENDLESS, tmp_path)
    with pytest.warns(UserWarning, match="barrier_endless is left out .*compute without end"):
        table = session.sweep(["barrier_endless"], ranks=[2], oversubscribe=True, progress=False)
    assert len(table) == 0
    session.kernels.clear()


def test_a_barrier_that_is_none_has_no_picture_and_is_left_out_of_a_sweep(cluster, tmp_path):
    source = (
        '#include "mpilab.h"\nMPILAB_BARRIER(none);\n'
        "MPILAB_BARRIER(none) { (void)comm; return MPI_SUCCESS; }\n"
    )
    session.kernels["barrier_none"] = build(source, tmp_path)
    run = session.run("barrier_none")
    assert run.diagnosis.kind == WRONG_RESULT and run.figures() == []
    assert run.smallest.ranks == 2
    with pytest.warns(UserWarning, match="barrier_none is left out .* with 4 ranks: no barrier"):
        table = session.sweep(["barrier_none"], repetitions=2, progress=False, oversubscribe=True)
    assert len(table) == 0
    session.kernels.clear()


STUB = """#include "mpilab.h"
MPILAB_BCAST(flat);
MPILAB_BCAST(flat)
{
    (void)buffer, (void)count, (void)datatype, (void)root, (void)comm;
    return MPI_ERR_OTHER;
}
"""


def test_a_cell_that_nobody_has_written_in_gets_no_panel(cluster, checks, tmp_path):
    session.kernels["bcast_flat"] = build(STUB, tmp_path)
    checked = checks.check("tree")
    assert not checked.passed
    assert checked.telling is None
    assert "returned error code" in repr(checked)


def test_a_right_answer_that_leaves_a_message_behind_is_told_so(cluster, checks, tmp_path):
    nobody = "MPI_Send(NULL, 0, MPI_BYTE, rank, TAG, comm);"  # no message between two ranks
    leaves = FLAT.replace("    if (rank != root)", f"    {nobody}\n    if (rank != root)")
    session.kernels["bcast_flat"] = build(leaves, tmp_path)
    checked = checks.check("tree")
    assert checked.passed, repr(checked)
    assert checked.telling.diagnosis.kind == LEAK
    assert "never received" in repr(checked)


def test_after_a_deadlock_the_later_items_of_a_check_are_not_tried(
    cluster, checks, tmp_path, monkeypatch
):
    ran = []

    def run_cases(*arguments, **options):
        return engines_run_cases(*arguments, on_result=ran.append, **options)

    engines_run_cases = session.run_cases
    monkeypatch.setattr(session, "run_cases", run_cases)
    stuck = LINE.replace("if (rank != root)", "if (rank != root || size == 4)", 1)
    session.kernels["bcast_line"] = build(stuck, tmp_path)
    checked = checks.check("tree")
    assert [result.outcome for result in ran] == [DEADLOCK]  # the cluster restarted only once
    first, second = checked.verdict.items
    assert "deadlock" in first.reason and not checked.passed
    assert second.reason == (
        f"Not tried: an earlier case ({ran[0].case.describe()}) ended in a deadlock. Fix that "
        "first."
    )
    assert "– Without buffering" in repr(checked)
    assert checked.telling.diagnosis.kind == DEADLOCK


def test_a_prediction_and_the_answer_are_side_by_side_and_neither_is_markup():
    answered = predict("a < b").answer("b < a & c", right=None)
    assert repr(answered) == "You predicted: a < b\nWhat happens:  b < a & c"
    shown = answered._repr_html_()
    assert re.findall(r'<th scope="row"[^>]*>(.*?)</th><td[^>]*>(.*?)</td>', shown) == [
        ("You predicted", "a &lt; b"),
        ("What happens", "b &lt; a &amp; c"),
    ]


@pytest.mark.parametrize(
    "predicted, right",
    [
        ("56", True),
        (56, True),
        ("56 blocks", True),
        ("55 blocks", False),
        ("many", None),  # not a number: the reader compares
        ("rank 0 sends 56", None),  # which of the two is meant?
        ("", None),
    ],
)
def test_a_predicted_number_is_judged_if_there_is_exactly_one(predicted, right):
    assert predict(predicted).answer("56 blocks", right=56).right is right


@pytest.mark.parametrize(
    "predicted, right", [("4", False), (5, True), ("6.5 times", True), ("9", False), ("", None)]
)
def test_a_number_can_be_right_within_limits(predicted, right):
    assert predict(predicted, between=(0, 20)).answer("By 5 to 8.", right=(5, 8)).right is right


def test_a_bare_number_is_shown_with_its_unit():
    assert predict("5", unit="rounds").answer("").prediction == "5 rounds"
    assert predict("5 of 6", unit="rounds").answer("").prediction == "5 of 6"
    assert predict("", unit="rounds").answer("").prediction == ""


@pytest.mark.parametrize(
    "given, message",
    [
        ({"between": (8, 0)}, r"between=\(8, 0\)\): the first number is not less"),
        ({"between": (3, 3)}, r"between=\(3, 3\)\): the first number is not less"),
        ({"between": (0, 8), "choices": ["a"]}, r"either a choice or a number\n.*leave out one"),
    ],
)
def test_limits_that_no_slider_can_have_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        predict("", **given)


def test_a_choice_is_judged_whatever_its_case_and_must_be_one_of_those_offered():
    colors = ["Red", "green"]
    assert predict("red", choices=colors).answer("It is red.", right="Red").right is True
    assert predict(" green ", choices=colors).answer("It is red.", right="Red").right is False
    assert predict("", choices=colors).answer("It is red.", right="Red").right is None
    with pytest.raises(InputError, match=r"predict\('blue'\).*\n.*write one of 'Red', 'green'"):
        predict("blue", choices=colors)
    for predicted in ("red", ""):
        with pytest.raises(InputError, match="right='blue' is not among the choices"):
            predict(predicted, choices=colors).answer("", right="blue")


def test_a_prediction_stays_in_the_notebook_and_papermill_shows_it_beside_the_answer(tmp_path):
    cells = [
        'import mpilab\n\nwritten = mpilab.predict("30 arrows")\nblank = mpilab.predict("")',
        'written.answer("6 times 5", right=30)',
        'blank.answer("not asked")',
    ]
    notebook = nbformat.v4.new_notebook(
        cells=list(map(nbformat.v4.new_code_cell, cells)),
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    before, after = tmp_path / "before.ipynb", tmp_path / "after.ipynb"
    nbformat.write(notebook, before)
    papermill.execute_notebook(before, after, progress_bar=False)
    first, *others = nbformat.read(after, as_version=4).cells
    assert first.source == cells[0] and first.outputs == []
    assert [cell.outputs[0].data["text/plain"] for cell in others] == [
        "You predicted: ✓ 30 arrows\nWhat happens:  6 times 5",
        "You predicted: (nothing written)\nWhat happens:  not asked",
    ]


def test_a_limited_call_ends_in_time_and_within_its_memory():
    def endless():
        while True:
            pass

    limits = resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)
    assert call(limited(endless, 0.05, 1 << 30), []) == {
        "error": "TimeoutError: not done after 0.05 s; does it go through all of something?"
    }
    long_list = limited(lambda ranks: [0 for _ in range(ranks)], 60, 64 << 20)
    assert call(long_list, [10**12]) == {
        "error": "MemoryError: out of memory; does it make a list as long as an argument is large?"
    }
    assert call(long_list, [3]) == {"value": [0, 0, 0]}
    assert (resource.getrlimit(resource.RLIMIT_AS), signal.getsignal(signal.SIGALRM)) == limits
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_outside_of_the_main_thread_memory_alone_is_limited():
    found = []
    limit = limited(lambda ranks: [0] * ranks, 60, 64 << 20)
    thread = threading.Thread(target=lambda: found.append([call(limit, [n]) for n in (2, 10**12)]))
    thread.start()
    thread.join()
    assert found[0][0] == {"value": [0, 0]} and found[0][1]["error"].startswith("MemoryError: out")


def test_an_answer_that_lists_all_ranks_of_a_large_cluster_does_not_take_all_memory(monkeypatch):
    def placement(hostfile, rank, policy):
        slots = [int(line.split("slots=")[1]) for line in hostfile.splitlines()]
        return [host for host, number in enumerate(slots) for _ in range(number)][rank]

    monkeypatch.setattr(lab, "CALL_BYTES", 64 << 20)
    checked = lab.Lab("00-first-contact").check("placement", placement)
    assert {item.outcome for item in checked.verdict.items} == {FAIL}
    assert "out of memory; does it make a list as long as an argument" in repr(checked)
