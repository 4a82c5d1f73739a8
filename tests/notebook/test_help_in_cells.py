"""Completion and inspection in %%kernel cells, asked of a real Jupyter kernel as an editor does."""

import re

import pytest
from jupyter_client.manager import start_new_kernel

from mpilab.diagnosis.compiler import rules
from mpilab.kernels.symbols import GROUPS, mpi_calls
from mpilab.notebook import jupyter

CELL = """%%kernel bcast_linear
#include "mpilab.h"

/* 𝛼 + mβ: not MPI_Sen */
int bcast_linear(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    HERE
"""
TYPES = "_jupyter_types_experimental"


@pytest.fixture(scope="module")
def client():
    manager, client = start_new_kernel(kernel_name="python3")
    client.execute_interactive("%load_ext mpilab\n%reload_ext mpilab", timeout=120)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def written(text, cell=CELL):
    """(the cell with `text` in it, the cursor at the end of that)."""
    return cell.replace("HERE", text), cell.index("HERE") + len(text)


def completed(client, code, cursor):
    """{completion: its type}, of which each replaces the same part of the code; that part."""
    said = client.complete(code, cursor, reply=True, timeout=120)["content"]
    assert said["status"] == "ok"
    found = {each["text"]: each["type"] for each in said["metadata"].get(TYPES, [])}
    assert [*found] == said["matches"]
    return found, code[said["cursor_start"] : said["cursor_end"]]


def inspected(client, code, cursor):
    """What the kernel says of the name at the cursor, as text; "" if it knows nothing."""
    said = client.inspect(code, cursor, reply=True, timeout=120)["content"]
    assert said["status"] == "ok" and said["found"] == bool(said["data"])
    return re.sub(r"\x1b\[[\d;]*m", "", said["data"].get("text/plain", ""))


def test_calls_constants_and_our_helpers_are_completed(client):
    found, replaced = completed(client, *written("MPI_Se"))
    assert replaced == "MPI_Se" and found["MPI_Send"] == "function"
    assert {"MPI_Sendrecv", "MPI_Send_init"} < found.keys()
    for begun, name in [
        ("MPI_BY", "MPI_BYTE"),
        ("MPI_STATUS_", "MPI_STATUS_IGNORE"),
        ("x = MPI_IN_", "MPI_IN_PLACE"),
        ("MPI_Datat", "MPI_Datatype"),
        ("place_", "place_own_block"),
        ("mpi_wait", "MPI_Waitall"),
        ("status.MPI_S", "MPI_SOURCE"),
        ("mpilab_tuning.seg", "segment_bytes"),
    ]:
        assert name in completed(client, *written(begun))[0]


def test_a_call_that_the_exercise_does_not_allow_is_offered_only_if_nothing_else_begins_so(client):
    found, _ = completed(client, *written("MPI_B"))
    assert found["MPI_Bsend"] == "function" and "MPI_Bcast" not in found
    assert completed(client, *written("MPI_Bc"))[0] == {"MPI_Bcast": "forbidden"}
    said = inspected(client, *written("MPI_Bcast"))
    assert "✗ Not allowed in the exercise on bcast_linear, which allows: point-to-point." in said
    own = CELL.replace("bcast_linear", "bcast_mine")
    assert {"MPI_Bsend", "MPI_Bcast"} < completed(client, *written("MPI_B", own))[0].keys()
    assert "Not allowed" not in inspected(client, *written("MPI_Bcast", own))


def test_helpers_of_a_header_are_known_if_the_cell_includes_it(client):
    assert completed(client, *written("split_by"))[0] == {}
    cell = CELL.replace('"mpilab.h"', '"splitting.h"')
    assert [*completed(client, *written("split_by", cell))[0]] == ["split_by_name"]
    assert [*completed(client, *written("place_own", cell))[0]] == ["place_own_block"]
    said = inspected(client, *written("split_by_name", cell))
    assert said.startswith("int split_by_name(MPI_Comm comm, const char *name, int key")
    assert "The caller frees it." in said


def test_a_call_is_shown_with_the_meaning_of_each_argument(client):
    said = inspected(client, *written("MPI_Send"))
    head = "int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, "
    assert " ".join(said.split()).startswith(f"{head}int tag, MPI_Comm comm)")
    (count,) = re.findall(r"^ +count +in +(.*)$", said, re.MULTILINE)
    assert "elements" in count and "not in bytes" in count
    for name in ("buf", "datatype", "dest", "tag", "comm"):
        assert re.search(rf"^ +{name} +in +\w", said, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("MPI_Send(", "buf"),
        ("MPI_Send(buffer, ", "count"),
        ("MPI_Send(block(buffer, 1, count, datatype), count, datatype, de", "dest"),
    ],
)
def test_between_the_brackets_the_argument_at_the_cursor_is_pointed_to(client, text, argument):
    said = inspected(client, *written(text))
    assert re.findall(r"^→ (\w+)", said, re.MULTILINE) == [argument]


def test_in_a_comment_and_for_names_of_ones_own_there_is_nothing(client):
    at = CELL.index("MPI_Sen */") + len("MPI_Sen")
    assert completed(client, CELL, at)[0] == {}
    assert inspected(client, CELL, at) == ""
    assert inspected(client, *written("own_name")) == ""


def test_a_cursor_beyond_the_end_is_at_the_end(client):
    # JupyterLab asks so for what it shows beside a list of completions.
    code = CELL.partition("HERE")[0] + "MPI_Recv"
    assert inspected(client, code, len(code) + 4).startswith("int MPI_Recv(")


def test_cells_in_python_and_the_line_of_the_magic_are_completed_as_before(client):
    assert "%%kernel" in client.complete("%%ker", 5, reply=True, timeout=120)["content"]["matches"]
    client.execute_interactive("import math", timeout=120)
    assert "sqrt" in str(completed(client, "math.sq", 7)[0])
    assert completed(client, "MPI_Se", 6)[0] == {}
    assert "square root" in inspected(client, "math.sqrt", 9)


def known():
    return {name: one for name, one in jupyter._of_mpi().items() if one.kind == "function"}


def test_every_call_that_some_exercise_allows_is_known_as_mpi_h_declares_it():
    declared = rules.functions()
    allowed = mpi_calls(GROUPS)
    old = r"MPI_Type_(extent|hindexed|hvector|lb|struct|ub)|MPI_\w+_(c2f|f2c)|MPI_Type_\w+_f90_\w+"
    others = rf"{old}|MPI_Type_match_size|MPI_Group_from_session_pset"
    expected = {n for n in declared if allowed.fullmatch(n) and not re.fullmatch(others, n)}
    assert expected <= known().keys()
    for name, entry in known().items():
        arguments = re.fullmatch(r".*?\((.*)\)", entry.signature)[1]
        types = [each.type for each in rules.parse_parameters(arguments)]
        assert types == [each.type for each in declared[name].parameters], name
        assert [each.name for each in rules.parse_parameters(arguments)] == [
            argument for argument, _, _ in entry.arguments
        ]
        assert all(meaning for _, _, meaning in entry.arguments)


def test_every_constant_is_one_of_mpi_h():
    constants = {n for n, each in jupyter._of_mpi().items() if each.kind == "constant"}
    assert constants <= rules.constants().keys()
