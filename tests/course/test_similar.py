"""Similar answers are found, even if disguised; others are not."""

import re

import nbformat
import pytest

from mpilab.cli import main
from mpilab.course.similarity import search
from mpilab.grading.release import answer_id, release
from mpilab.util.kit import ROOT

LAB, EXERCISE = "02-allgather", "pairwise"
KERNELS = ("bruck", "neighbor_exchange", "nonblocking_all", "recursive_doubling")

ORIGINAL = """%%kernel allgather_pairwise
#include "mpilab.h"

/* The rank that is so many places away, in a circle. */
static int neighbour(int me, int steps, int total)
{
    return ((me + steps) % total + total) % total;
}

// One round: hand over everything that has come in so far.
static int hand_over(char *all, int blocks, int count, MPI_Datatype type, int to, int from,
                     int mine, MPI_Comm comm)
{
    MPI_Request pending[2];
    MPI_Aint low, extent;
    MPI_Type_get_extent(type, &low, &extent);
    for (int part = 0; part < blocks; part++) {
        MPI_Irecv(all + (from * blocks + part) * extent, count, type, from, 7, comm, &pending[0]);
        MPI_Isend(all + (mine * blocks + part) * extent, count, type, to, 7, comm, &pending[1]);
        MPI_Waitall(2, pending, MPI_STATUSES_IGNORE);
    }
    return MPI_SUCCESS;
}

int allgather_pairwise(const void *sendbuf, int sendcount, MPI_Datatype sendtype,
                       void *recvbuf, int recvcount, MPI_Datatype recvtype, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    int known = 1;
    while (known < size && err == MPI_SUCCESS) {
        int to = neighbour(rank, known, size), from = neighbour(rank, -known, size);
        err = hand_over(recvbuf, known, recvcount, recvtype, to, from, rank, comm);
        if (known * 2 > size)
            known = size;
        else
            known = known * 2;
    }
    return err;
}
"""
RENAMED = {
    "neighbour": "wrap",
    "hand_over": "do_step",
    "pending": "rq",
    "extent": "width",
    "part": "i",
    "blocks": "n",
    "known": "have",
    "mine": "r",
    "to": "dst",
    "from": "src",
    "me": "x",
    "steps": "d",
    "total": "p",
    "all": "buffer",
    "low": "lb",
    "rank": "myid",
    "size": "nprocs",
    "err": "ret",
    "count": "cnt",
    "type": "dt",
    "7": "4711",
}


def renamed(source):
    words = "|".join(RENAMED)
    return re.sub(rf"\b({words})\b", lambda word: RENAMED[word[0]], source)


def reformatted(source):
    """Different comments, different line breaks, braces around single statements."""
    bare = re.sub(r"/\*.*?\*/|//[^\n]*", "", source, flags=re.DOTALL)
    head, _, body = bare.partition("\n\n")
    body = " ".join(body.split())
    body = body.replace(
        "have = nprocs; else have = have * 2;", "{ have = nprocs; } else { have = have * 2; }"
    )
    return f"{head}\n{body.replace(';', ';  // my own idea' + chr(10))}"


def reordered(source):
    """The second helper before the first, and declarations in another order."""
    start, first, second, main_one = re.split(r"\n\n(?=/\*|// One|int allgather)", source)
    main_one = main_one.replace("int rank, size;", "int size, rank;")
    second = second.replace(
        "MPI_Request pending[2];\n    MPI_Aint low, extent;",
        "MPI_Aint extent, low;\n    MPI_Request pending[2];",
    )
    return "\n\n".join([start, second, first, main_one])


def padded(source):
    """A lot of text around it that does nothing."""
    lines = "".join(
        f"int unused_{n} = {n} * {n}; if (unused_{n} > {n}) unused_{n}--;\n" for n in range(60)
    )
    return source.replace("int known = 1;", f"int known = 1;\n{lines}")


def hand_in(folder, answers):
    """A class whose students answer the exercise in this way, and leave the rest as released."""
    text = nbformat.writes(release(ROOT / "labs" / "source" / f"{LAB}.py"))
    for student, answer in answers.items():
        notebook = nbformat.reads(text, as_version=4)
        (cell,) = [cell for cell in notebook.cells if answer_id(cell) == EXERCISE]
        cell.source = answer if answer is not None else cell.source
        (folder / student).mkdir(parents=True)
        nbformat.write(notebook, folder / student / f"{LAB}.ipynb")
    return folder


def shares(similar):
    return {(pair.one.student, pair.other.student): pair.share for pair in similar.pairs}


DISGUISES = {
    "same": lambda source: source,
    "renamed": renamed,
    "reordered": reordered,
    "padded": padded,
    "all of it": lambda source: reformatted(renamed(reordered(source))),
}


@pytest.mark.parametrize("how", DISGUISES)
def test_a_copy_is_found_whatever_was_done_to_it(how, tmp_path):
    box = hand_in(tmp_path, {"anna": ORIGINAL, "ben": DISGUISES[how](ORIGINAL)})
    (share,) = shares(search(box, LAB, EXERCISE)).values()
    assert share == 1 if how in ("same", "renamed") else 0.85 < share < 1


def test_kernels_that_were_written_for_themselves_stay_below_the_threshold(tmp_path):
    sources = {name: (ROOT / f"src_c/allgather/{name}.c").read_text() for name in KERNELS}
    found = search(hand_in(tmp_path, {**sources, "anna": ORIGINAL}), LAB, EXERCISE)
    assert found.compared == len(KERNELS) + 1 and found.chosen == []
    assert max(share for pair, share in shares(found).items() if "anna" in pair) < 0.3


def test_other_names_in_another_pattern_are_no_copy(tmp_path):
    """The same statement structure for a different task: renaming cannot turn one into the
    other."""
    one = "".join(f"a{n} = f(a{n}, b) + a{n};\n" for n in range(12))
    other = "".join(f"a{n} = f(b, c) + a{n + 1};\n" for n in range(12))
    found = search(hand_in(tmp_path, {"anna": one, "ben": other}), LAB, EXERCISE)
    assert found.pairs == [] and found.compared == 2


def test_an_answer_made_to_keep_the_comparison_busy_does_not(tmp_path):
    """Unclosed strings, one repeated line, and a megabyte: each could take quadratic time."""
    repeated = ORIGINAL + "int a = b * c + d[e] - f(g, h, i);\n" * 2000
    evil = {"quotes": '\\"' * 40_000, "anna": repeated, "ben": repeated, "long": "x;" * 500_000}
    found = search(hand_in(tmp_path, evil), LAB, EXERCISE)
    assert shares(found)["anna", "ben"] == 1
    assert any(note.startswith("long: 1000000 characters") for note in found.notes)


def test_the_command_prints_the_pairs_and_writes_a_page_that_runs_nothing(tmp_path, capsys):
    evil = renamed(ORIGINAL).replace("// One round", "// </code><script>alert(1)</script> round")
    box = hand_in(
        tmp_path / "class", {"anna": ORIGINAL, "<b>ben": evil, "cleo": None, "dan": "int x;"}
    )
    (box / "eva").mkdir()
    (box / "eva" / f"{LAB}.ipynb").write_text("{")
    page = tmp_path / "similar.html"
    status = main(
        [
            "similar",
            str(box),
            "--lab",
            LAB,
            "--exercise",
            EXERCISE,
            "-o",
            str(page),
            "--no-progress",
        ]
    )
    said = capsys.readouterr().out
    assert status == 0
    assert re.search(r"100 % +(\d+)  \1 / \1  <b>ben  anna\n", said)
    assert "not compared: cleo: blank" in said and "dan: only 3 tokens" in said
    assert "not compared: eva/02-allgather.ipynb: not valid JSON" in said
    text = page.read_text()
    assert "<script" not in text and "<b>ben" not in text
    assert "script-src &#39;none&#39;" in text and text.count("<sup>1</sup>") == 2
    listing = re.findall(r"<pre.*?><code>(.*?)</code></pre>", text, re.DOTALL)
    assert len(listing) == 2 and "hand_over" in listing[1] and "do_step" in listing[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--exercise", "cost_model"], "of kind python; only answers in C are compared: nonblock"),
        (["--exercise", "ring"], "exercise 'ring': not in lab 02-allgather"),
        (["--exercise", EXERCISE, "--threshold", "70"], "threshold 70: not a share"),
    ],
)
def test_what_cannot_be_compared_is_said_with_what_can(arguments, words, capsys, tmp_path):
    box = hand_in(tmp_path, {"anna": ORIGINAL})
    assert main(["similar", str(box), "--lab", LAB, *arguments, "--no-progress"]) == 1
    assert words in capsys.readouterr().err
