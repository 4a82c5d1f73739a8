"""Lab 03, where it differs from the others (test_every_lab.py)."""

import re

import nbformat
import pytest
from lab_notebook import REDUCED, LabNotebook, execute, shown

from mpilab.cases.case import Case
from mpilab.grading.answers import answer_cells
from mpilab.grading.release import answer_id
from mpilab.judging.judge import judge_function
from mpilab.kernels.simgrid import kernels
from mpilab.measure.remapping import read
from mpilab.runners.simgrid import seconds_of, simulate
from tests.right_answers import answers_of

LAB = LabNotebook("03-rank-mapping")
# What is measured and simulated matters nothing where an answer is wrong.
QUICK = REDUCED[LAB.name] | {"SIZES": [1024], "REPETITIONS": 1}


def judged(text):
    """{item: reason} of the exercise with the hostfile, for one that says `text`."""
    verdict = judge_function(LAB.exercises["slowest"], {(): {"value": text}})
    return {item.item: item.reason for item in verdict.items}


# --- what is right


def test_bytes_are_counted_as_the_formulas_of_the_talk_say():
    count = answers_of(LAB.name).inter_node_bytes
    for nodes, each in ((2, 4), (4, 2), (8, 8)):
        all_of = nodes * each
        assert count("recursive_doubling", "SEQ", nodes, each, 3) == [
            3 * (nodes - 1) * each,
            3 * all_of * (nodes - 1) * each,
        ]
        assert count("recursive_doubling", "RR", nodes, each, 3) == [
            3 * (nodes - 1),
            3 * all_of * (nodes - 1),
        ]
        assert count("ring", "SEQ", nodes, each, 3)[1] == 3 * nodes * (all_of - 1)
        assert count("ring", "RR", nodes, each, 3) == [3 * (all_of - 1), 3 * all_of * (all_of - 1)]
    assert count("ring", "RR", 1, 8, 3) == [0, 0]


def test_two_orders_of_256_are_the_slowest_and_they_mirror_each_other():
    """With rank 0 on the first host, that is one."""
    found = []
    for number in range(256):
        text = "".join(f"n{1 + (number >> rank & 1)}\n" for rank in range(8))
        if judged(text) == {"form": "", "crosses": ""}:
            found.append(number)
    assert found == [0b01101001, 0b10010110]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("n1\nn2\nn2\nn1\nn2\nn1 slot=1\nn1\nn2", "slowest.txt:6: 'slot=1' is not understood"),
        (
            "n1 slots=4\nn2 slots=4",
            "slowest.txt: 2 lines name a host; write one line for each of 8",
        ),
        ("n1 slots=1\nn1 slots=1", "slowest.txt:2: n1 is already listed"),
        ("n1\n" * 5 + "n2\n" * 3, "it names n1 5 times, n2 3 times"),
        ("# nothing", "slowest.txt: it names no host"),
        (None, "a NoneType is not a hostfile; return a string"),
        ("n1\n" * 2000, "6000 characters"),
    ],
)
def test_a_wrong_hostfile_is_told_with_file_and_line(text, reason):
    told = judged(text)
    assert reason in told["form"] and reason in told["crosses"]


def test_messages_that_stay_on_a_host_are_named():
    told = judged("n1\nn2\n" * 4)
    assert told["form"] == ""
    assert told["crosses"] == (
        "4 of 7 messages cross between the hosts; 0 → 2, 0 → 4, 4 → 6 do not."
    )


# --- the notebook


@pytest.mark.slow
def test_the_table_that_is_handed_out_holds_and_leaves_out_what_students_write(blank_run):
    (cell,) = [c for c in blank_run(LAB).cells if "remapping.table(" in c.source]
    lines = shown(cell).splitlines()[2:]
    assert len(lines) == 4 * 5 and all(line.endswith("  =") for line in lines)
    assert not any(line.startswith("ring*") for line in lines)


@pytest.mark.slow
def test_the_solved_lab_draws_what_it_promises(solved_run):
    cells = {cell.source: shown(cell) for cell in solved_run(LAB).cells if cell.cell_type == "code"}

    def of(words):
        return next(text for source, text in cells.items() if words in source)

    assert "crossing: 56 messages, 57344 bytes between nodes" in of('"allgather_ring", count=256')
    assert "32 KiB in 8 messages between nodes" in of("doubling_seq = ")
    assert "8 KiB in 8 messages between nodes" in of("doubling_rr = ")
    assert "SEQ, remapped  4 rounds, 30 messages; on the busiest link 6 KiB" in of("three = ")
    assert "ring, RR, yours, RR" in of("mine = mpilab.run(")
    (medians,) = [c for c in solved_run(LAB).cells if "points = sorted(" in c.source]
    table = medians.outputs[0]["data"]["text/markdown"]
    for row in ("allgather_ring_remapped | rr", "bcast_binomial | slowest"):
        assert re.search(rf"^\| {re.escape(row)} \| [\d.]+ .?s \|", table, re.MULTILINE), table
    assert "Times measured on" in table and "8 ranks" in table


@pytest.mark.slow
def test_an_answer_that_is_wrong_does_not_stop_the_lab(tmp_path):
    notebook = LAB.solved()
    assert {"slowest", "remap"} <= set(answer_cells(notebook))
    for cell in notebook.cells:
        if answer_id(cell) == "slowest":
            cell.source = cell.source.replace("n2  # 111", "n2 slots")
        if answer_id(cell) == "remap":
            cell.source = cell.source.replace("process[(self + 1) % size]", "process[self]")
    done = execute(notebook, tmp_path, **QUICK)
    said = [shown(cell) for cell in done.cells if cell.cell_type == "code"]
    assert any("slowest.txt:9: 'slots' is not understood" in text for text in said)
    assert any("timed in SEQ and RR order only" in text for text in said)


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_and_hosts_that_fail_do_not_stop_the_lab(tmp_path):
    """As from a handout, in which the kit's remapped ring is not."""
    notebook = LAB.solved()
    for cell in notebook.cells:
        if answer_id(cell) == "remap":
            cell.source = cell.source.replace("process[(self + 1) % size]", "proces[0]")
    refuse = nbformat.v4.new_code_cell(
        "from mpilab.errors import EngineDied\n\n"
        "_library_of = session.library_of\n\n\n"
        "def _as_from_a_handout(function):\n"
        "    if function == 'allgather_ring_remapped':\n"
        "        raise InputError('the kit does not have it')\n"
        "    return _library_of(function)\n\n\n"
        "def _fail(*_, **__):\n"
        "    raise EngineDied('a rank ended')\n\n\n"
        "session.library_of, remapping.measure = _as_from_a_handout, _fail"
    )
    first_import = next(i for i, c in enumerate(notebook.cells) if "import mpilab\n" in c.source)
    notebook.cells.insert(first_import + 1, refuse)
    done = execute(notebook, tmp_path, **QUICK)
    (told,) = [shown(cell) for cell in done.cells if "remapping.measure(SIZES" in cell.source]
    assert "Not here: a rank ended" in told
    assert f"{read()['machine'][0]}, {read()['date'][0]}" in told


@pytest.mark.slow
def test_on_16_nodes_of_12_the_wrong_order_costs_what_the_lab_says():
    def seconds(kernel, order):
        case = Case("allgather", 192, 16384, "byte", warmup=1, record=False, dump=False)
        (result,) = simulate(kernels(), f"allgather_{kernel}", [case], "flat-16x12", order=order)
        return seconds_of(result)

    ring, doubling = seconds("ring", "seq"), seconds("recursive_doubling", "rr")
    assert 6 <= seconds("ring", "rr") / ring < 6.5
    assert 7 <= seconds("recursive_doubling", "seq") / doubling < 7.6
    assert seconds("ring_remapped", "rr") == ring
    assert 1 < seconds("recursive_doubling_remapped", "seq") / doubling < 1.02
