"""Cannon's algorithm in its three stages: results, files, rejected input.

How the file of C appears: test_cannon_output.py.
What a run reports: tests/mpiio/test_cannon_runs.py.
"""

import math
import subprocess

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.kernels import build, openmpi
from mpilab.measure.dataset import DATA
from mpilab.mpiio import cannon, files
from mpilab.mpiio.files import elements, error_bound, make, product

A, B, C = (DATA / "matrices" / f"{name}-16x16.bin" for name in "abc")
GRIDS = (1, 4, 9, 16)
STAGES = (1, 2, 3)
WHOLE = A.read_bytes()


def awkward():
    """13 x 37 and 37 x 10: not all sizes are divisible by 2, 3 or 4, and ordinary sums would depend
    on the order.

    Sizes span 30 decimal orders; the terms of row 0 and column 0 cancel each other except for 1.
    """
    random = np.random.default_rng(6)
    a = random.normal(size=(13, 37)) * 10.0 ** random.integers(-15, 15, (13, 37))
    b = random.normal(size=(37, 10)) * 10.0 ** random.integers(-3, 3, (37, 10))
    a[0] = 0
    a[0, [1, 11, 30]] = 2.0**70, 1, -(2.0**70)
    b[:, 0] = 1
    return a, b


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """{name: (file of A, file of B)}."""
    folder = tmp_path_factory.mktemp("operands")

    def written(name, *pair):
        paths = folder / f"{name}-a", folder / f"{name}-b"
        for path, matrix in zip(paths, pair, strict=True):
            files.write(path, matrix)
        return paths

    a, b = awkward()
    strange = a.copy(), b.copy()
    strange[0][3, 4], strange[0][5, :2], strange[1][7, 2] = np.inf, (np.inf, -np.inf), np.nan
    return {
        "16 x 16": (A, B),
        "13 x 37 x 10": written("awkward", a, b),
        "3 x 2 x 5": written(
            "small", *(elements(0, n, n).reshape(s) for n, s in ((6, (3, 2)), (10, (2, 5))))
        ),
        "not finite": written("strange", *strange),
        "1 x 1 x 1": written("one", [[1e308]], [[1e308]]),
    }


@pytest.mark.parametrize("name", ["16 x 16", "13 x 37 x 10"])
def test_all_stages_on_all_grids_write_the_same_file(pairs, tmp_path, name):
    a, b = pairs[name]
    contents = set()
    for ranks in GRIDS:
        for stage in STAGES:
            cannon.run(stage, ranks, a, b, tmp_path / "c")
            contents.add((tmp_path / "c").read_bytes())
    assert len(contents) == 1
    product(a, b, tmp_path / "numpy")
    left, right = files.read(a), files.read(b)
    got, expected = files.read(tmp_path / "c"), files.read(tmp_path / "numpy")
    assert (np.abs(got - expected) <= error_bound(left, right)).all()
    if name == "16 x 16":
        assert contents == {C.read_bytes()}
    else:
        assert got[0, 0] == 1.0
        # Closer to the exact sums than sums in an ordinary order need be.
        exact = [[math.fsum(row * column) for column in right.T] for row in left]
        np.testing.assert_allclose(got, exact, rtol=1e-15, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("n", [2048, 4096])
def test_all_stages_on_all_grids_write_the_same_large_file(tmp_path, n):
    """C is n x n; sums have few terms, because more would take long."""
    a, b, c = (tmp_path / name for name in "abc")
    make(a, n, 16, seed=1)
    make(b, 16, n, seed=2)
    digests = {
        (stage, ranks): cannon.run(stage, ranks, a, b, c).digest
        for ranks in (4, 9, 16)
        for stage in STAGES
    }
    assert len(set(digests.values())) == 1, digests
    left, right = files.read(a), files.read(b)
    assert files.size(c) == (n, n)
    assert (np.abs(files.read(c) - left @ right) <= error_bound(left, right)).all()


@pytest.mark.parametrize("ranks, stage", [(9, 1), (9, 3), (16, 2), (16, 3)])
def test_ranks_without_a_part_do_no_harm(pairs, tmp_path, ranks, stage):
    a, b = pairs["3 x 2 x 5"]
    cannon.run(stage, ranks, a, b, tmp_path / "c")
    cannon.run(1, 1, a, b, tmp_path / "one")
    assert (tmp_path / "c").read_bytes() == (tmp_path / "one").read_bytes()
    np.testing.assert_allclose(
        files.read(tmp_path / "c"), files.read(a) @ files.read(b), rtol=0, atol=1e-15
    )


def test_infinities_and_nan_spread_as_they_should(pairs, tmp_path):
    a, b = pairs["not finite"]
    contents = set()
    for ranks in (1, 4, 9):
        cannon.run(3, ranks, a, b, tmp_path / "c")
        contents.add((tmp_path / "c").read_bytes())
    assert len(contents) == 1
    product(a, b, tmp_path / "numpy")
    got, expected = files.read(tmp_path / "c"), files.read(tmp_path / "numpy")
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    np.testing.assert_array_equal(got[np.isinf(expected)], expected[np.isinf(expected)])
    cannon.run(1, 1, *pairs["1 x 1 x 1"], tmp_path / "c")
    assert files.read(tmp_path / "c") == np.inf


def test_products_of_integers_are_exact_as_far_as_is_promised(tmp_path):
    """Up to 4 terms: the largest of the row and of the column may have 103 bits together."""
    large = 2.0**52 + 1  # 53 bits
    files.write(tmp_path / "a", [[2.0**49, 1.0], [2.0**50, 1.0], [3.0, -(2.0**49)]])
    files.write(tmp_path / "b", [[0.0], [large]])
    cannon.run(3, 4, tmp_path / "a", tmp_path / "b", tmp_path / "c")
    (at_bound,), (above,), _ = files.read(tmp_path / "c")
    assert at_bound == large
    assert above != large
    files.write(tmp_path / "a", [[2.0**49, 1.0, -(2.0**49), 3.0]])
    files.write(tmp_path / "b", [[8.0], [2.0**52 + 1], [8.0], [5.0]])
    cannon.run(1, 4, tmp_path / "a", tmp_path / "b", tmp_path / "c")
    assert files.read(tmp_path / "c") == large + 15


@pytest.mark.parametrize("ranks, stage", [(2, 1), (3, 2), (6, 3)])
def test_ranks_that_form_no_square_are_refused(tmp_path, ranks, stage):
    with pytest.raises(InputError, match=f"^{ranks} ranks form no square grid.*; take . or 4|9"):
        cannon.run(stage, ranks, A, B, tmp_path / "c", limit=30)
    assert list(tmp_path.iterdir()) == []


LINE = b"1 " * 15 + b"1\n"


def headed(rows, columns, kind="=i4"):
    return np.array([rows, columns], kind).tobytes() + WHOLE[8:]


WRONG = {
    "empty": (b"", r"has 0 bytes, too few for the header of a matrix \(8\)"),
    "truncated": (WHOLE[:-8], "truncated: its header says 16 x 16, that is 2056 bytes, and it has"),
    "too long": (WHOLE + b"\0", "too long: its header says 16 x 16, .* has 2057"),
    "negative": (headed(-16, 16), "says -16 rows and 16 columns; both must be 1 or"),
    "absurd": (headed(2**31 - 1, 2**31 - 1), "x 2147483647, more than any file holds"),
    "other byte order": (
        headed(16, 16, ">i4"),
        r"machine with the other byte order \(16 x 16 there",
    ),
    "text": (A.with_suffix(".txt").read_bytes(), "is a text file; it takes a binary one here: mpi"),
    "text without sizes": (b"16 rows\n", ":1: not the numbers of rows and columns of a matrix"),
    "short row": (b"16 16\n" + LINE + b"3 4\n", ":3: a row of 2 numbers, in a matrix of 16 co"),
    "long row": (b"16 16\n0 " + LINE, ":2: a row of 17 numbers, in a matrix of 16 columns; fix"),
    "a word": (b"16 16\n1 two\n", ":2: 'two' in column 2 is not a number; write e.g. 1.5"),
    "long word": (
        b"16 16\n1." + 500 * b"0" + b"x 1\n",
        ":2: '1.0{38}' in column 1 is not a number",
    ),
    "hexadecimal word": (b"16 16\n1 0x10\n", ":2: '0x10' in column 2 is not a number; write e.g."),
    "C's word": (b"16 16\nnan(123) 1\n", r":2: 'nan\(123\)' in column 1 is not a number; write"),
    "few rows": (b"16 16\n" + 9 * LINE, ":11: the file ends after 9 of 16 rows; it is truncated"),
    "many rows": (b"16 16\n" + 16 * LINE + b"\n3 4\n", ":19: '3' follows the last of 16 r"),
    "other inner size": (headed(8, 32), r"as many as the rows of the second \("),
}


# Stages 1 and 2 check each line of text files; stage 3 does not accept them as matrices.
STAGES_OF = {
    "text": [3],
    **dict.fromkeys(
        (kind for kind in WRONG if kind.endswith(("row", "rows", "word", "sizes"))), [2]
    ),
}


def test_text_files_give_the_same_product_where_one_rank_reads_them(tmp_path):
    a, b = A.with_suffix(".txt"), B.with_suffix(".txt")
    for stage, ranks in ((1, 4), (2, 9)):
        cannon.run(stage, ranks, a, b, tmp_path / "c")
        assert (tmp_path / "c").read_bytes() == C.read_bytes()
    files.write(tmp_path / "a", elements(0, 15, 1).reshape(3, 5), text=True)
    files.write(tmp_path / "b", elements(0, 15, 1).reshape(3, 5))
    assert files.is_text(tmp_path / "a") and not files.is_text(tmp_path / "b")
    column = elements(0, 5, 2).reshape(5, 1)
    files.write(tmp_path / "column", column, text=True)
    cannon.run(1, 4, tmp_path / "a", tmp_path / "column", tmp_path / "from text")
    files.write(tmp_path / "column", column)
    cannon.run(3, 4, tmp_path / "b", tmp_path / "column", tmp_path / "from binary")
    assert (tmp_path / "from text").read_bytes() == (tmp_path / "from binary").read_bytes()


@pytest.mark.parametrize(
    "kind, stage", [(kind, stage) for kind in WRONG for stage in STAGES_OF.get(kind, [1, 3])]
)
def test_a_wrong_file_ends_all_ranks_with_one_message(tmp_path, kind, stage):
    content, words = WRONG[kind]
    wrong, out = tmp_path / "wrong", tmp_path / "c"
    wrong.write_bytes(content)
    out.write_bytes(b"as it was")
    given = (wrong, B) if stage == 1 else (A, wrong)
    with pytest.raises(InputError, match=words) as caught:
        cannon.run(stage, 4, *given, out, limit=30)
    assert str(wrong) in str(caught.value)
    assert out.read_bytes() == b"as it was"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["c", "wrong"]


def test_files_that_are_not_there_and_places_that_cannot_be_written_are_refused(tmp_path):
    for stage, given, out, words in (
        (2, (A, tmp_path / "nix"), None, "nix: cannot be opened: No such file"),
        (3, (tmp_path, B), None, "is a directory, not a file"),
        (1, (A, B), tmp_path / "nix" / "c", "nix/c: cannot be written: No such file"),
        (3, (A, B), tmp_path, "is a directory; give the name of a file for C"),
    ):
        with pytest.raises(InputError, match=words):
            cannon.run(stage, 4, *given, out, limit=30)
    assert list(tmp_path.iterdir()) == []


def per_rank(stage, files_of_ranks, out):
    """mpirun with separate files for each rank: what the program Said."""
    words = []
    for a, b in files_of_ranks:
        words += [":", "-n", "1", str(build.CANNON_PROGRAM), str(stage), str(a), str(b), str(out)]
    return subprocess.run(
        [openmpi.tool("mpirun"), "--timeout", "25", *words[1:]],  # it ends the ranks, too
        env=openmpi.environment(len(files_of_ranks)),
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    "lonely, words",
    [
        (0, "nix: cannot be opened: No such file or directory; look at its name and folder"),
        (
            2,
            "rank 2: {}/nix: cannot be opened: No such file or directory; "
            "look at its name and folder",
        ),
        (
            3,
            "{}/stale: some ranks see 2048 bytes in it, others 2056; "
            "put one file on a disk that all",
        ),
    ],
)
def test_what_one_rank_alone_sees_ends_all_of_them(tmp_path, lonely, words):
    (tmp_path / "stale").write_bytes(WHOLE[:-8])
    own = tmp_path / ("stale" if lonely == 3 else "nix")
    given = [(A, own if rank == lonely else B) for rank in range(4)]
    said = per_rank(3, given, tmp_path / "c")
    assert said.returncode == 2
    told = [line for line in said.stderr.splitlines() if line.startswith("mpilab-cannon: ")]
    assert len(told) == 1
    if lonely == 3:  # rank 0, which reports it, has another name for it
        words = words.replace("{}/stale", str(B))
    assert words.format(tmp_path) in told[0]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["stale"]


def test_a_usage_error_says_how_it_is_called():
    said = per_rank(7, [(A, B)] * 4, "c")
    assert said.returncode == 2
    assert said.stderr.count("usage: mpirun -n P mpilab-cannon STAGE A B C") == 1
