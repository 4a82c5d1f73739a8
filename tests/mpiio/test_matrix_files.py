"""Matrix files: both formats, what is wrong with them, and making them of any size."""

import tracemalloc

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.dataset import DATA
from mpilab.mpiio import files
from mpilab.mpiio.files import check, convert, elements, make, table

AWKWARD = np.array(
    [
        [0.1, -0.0, 5e-324, 1.7976931348623157e308],
        [1 / 3, np.inf, -np.inf, -2.2250738585072014e-308],
    ]
)


def binary(rows, columns, elements):
    return np.array([rows, columns], np.int32).tobytes() + np.array(elements, float).tobytes()


WRONG = {
    "nothing": (b"", "is empty; create the file again"),
    "half a header": (b"\1\0\0\0\2", r"has 5 bytes, too few for the header of a matrix \(8\)"),
    "truncated": (
        binary(2, 3, range(5)),
        "truncated: its header says 2 x 3, that is 56 bytes, but it has 48. Create it",
    ),
    "too long": (binary(2, 3, range(7)), "too long: .* 56 bytes, but it has 64"),
    "one byte more": (binary(1, 1, [1]) + b"\0", "too long: .* 16 bytes, but it has 17"),
    "negative": (binary(-2, 3, range(6)), "-2 rows and 3 columns; both must be from 1 to 2147"),
    "zero": (binary(0, 3, []), "0 rows and 3 columns; both must be from 1"),
    "absurd": (binary(2**31 - 1, 2**31 - 1, range(6)), "truncated: .* 2147483647 x 2147483647"),
    "other byte order": (
        np.array([2, 3], np.int32).byteswap().tobytes() + bytes(48),
        r"with the other byte order \(2 x 3 there\)",
    ),
    "words": (b"hello world\n", ":1: 'hello world' does not give the numbers of rows and columns"),
    "three sizes": (b"2 2 2\n1 2\n3 4\n", ":1: '2 2 2' does not give the numbers"),
    "a size with a comma": (b"2,0 2\n1 2\n3 4\n", ":1: '2,0 2' does not give the numbers"),
    "an endless header": (b"1" * 5000, ":1: '1111"),
    "negative, text": (b"-1 2\n1 2\n", ":1: -1 rows and 2 columns; both must be from 1"),
    "zero, text": (b"1 0\n\n", ":1: 1 rows and 0 columns"),
    "huge, text": (b"1 99999999999\n1\n", ":1: 1 rows and 99999999999 columns"),
    "no rows": (b"2 2", ":2: the file ends after 0 of 2 rows; it is truncated, or"),
    "truncated, text": (b"2 2\n1 2\n", ":3: the file ends after 1 of 2 rows"),
    "a blank line at its end": (b"2 2\n1 2\n\n", ":3: the file ends after 1 of 2 rows"),
    "a short row": (b"2 2\n1 2\n3\n", ":3: a row of 1 numbers, in a matrix of 2 columns; correct"),
    "a long row": (b"2 2\n1 2 3\n4 5\n", ":2: a row of 3 numbers"),
    "a row more": (b"2 2\n1 2\n3 4\n\n5 6\n", ":5: '5 6' follows the last of 2 rows"),
    "not a number": (b"2 2\n1 2\n3 x4\n", ":3: 'x4' in column 2 is not a number; write e.g. 1.5"),
    "a decimal comma": (b"1 2\n1,5 2\n", ":2: '1,5' in column 1 is not a number"),
    "Python's own": (b"1 2\n1_0 2\n", ":2: '1_0' in column 1 is not a number"),
    "hexadecimal": (b"1 2\n1 0x10\n", ":2: '0x10' in column 2 is not a number"),
    "C's own": (b"1 2\n1 nan(123)\n", r":2: 'nan\(123\)' in column 2 is not a number"),
}


@pytest.mark.parametrize("text", [False, True], ids=["binary", "text"])
def test_what_is_written_is_read_to_the_last_bit(tmp_path, text):
    path = tmp_path / "m"
    files.write(path, AWKWARD, text=text)
    assert files.is_text(path) == text
    assert files.size(path) == (2, 4)
    assert files.read(path).tobytes() == AWKWARD.tobytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["m"]


def test_the_formats_are_those_that_are_promised(tmp_path):
    files.write(tmp_path / "b", [[1, 2.5]])
    files.write(tmp_path / "t", [[1, 2.5]], text=True)
    assert (tmp_path / "b").read_bytes() == binary(1, 2, [1, 2.5])
    assert (tmp_path / "t").read_text() == "1 2\n1.0 2.5\n"


def test_a_text_file_takes_numbers_as_people_write_them(tmp_path):
    path = tmp_path / "t"
    path.write_bytes(b" 2\t3 \r\n1   1.0  1e3\r\n -.5 +inf NaN\n\n \n")
    np.testing.assert_array_equal(files.read(path), [[1, 1, 1000], [-0.5, np.inf, np.nan]])


def test_converting_there_and_back_gives_the_same_file(tmp_path):
    make(tmp_path / "a", 37, 23, seed=5)
    convert(tmp_path / "a", tmp_path / "t", text=True)
    convert(tmp_path / "t", tmp_path / "b", text=False)
    assert files.is_text(tmp_path / "t")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    convert(tmp_path / "b", tmp_path / "b", text=True)
    assert (tmp_path / "b").read_bytes() == (tmp_path / "t").read_bytes()


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_file_is_refused_with_its_name_and_what_is_wrong(tmp_path, kind):
    content, words = WRONG[kind]
    path = tmp_path / "wrong"
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        files.read(path)
    assert str(caught.value).startswith(str(path))
    with pytest.raises(InputError, match=words):
        check(path)


def test_what_is_no_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="nix: cannot be opened: No such file.*; check its name"):
        files.read(tmp_path / "nix")
    with pytest.raises(InputError, match="is a directory, not a file"):
        files.read(tmp_path)
    with pytest.raises(InputError, match="/dev/zero: is something else, not a file"):
        files.read("/dev/zero")
    with pytest.raises(InputError, match="nix/m: cannot be written: No such file"):
        files.write(tmp_path / "nix" / "m", [[1.0]])
    with pytest.raises(InputError, match="is not a file"):
        files.write(tmp_path, [[1.0]])


@pytest.mark.parametrize("matrix", [[1.0], [[]], [["a"]], [[1j]], np.zeros((0, 3))])
def test_what_is_no_matrix_is_not_written(tmp_path, matrix):
    with pytest.raises(InputError):
        files.write(tmp_path / "m", matrix)
    assert list(tmp_path.iterdir()) == []


def test_a_conversion_that_fails_leaves_the_target_as_it_was(tmp_path):
    (tmp_path / "wrong").write_bytes(WRONG["truncated, text"][0])
    files.write(tmp_path / "good", [[7.0]])
    with pytest.raises(InputError):
        convert(tmp_path / "wrong", tmp_path / "good", text=False)
    assert files.read(tmp_path / "good") == [[7.0]]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["good", "wrong"]


def test_an_element_depends_on_its_number_and_the_seed_only():
    whole = elements(0, 1000, 3)
    parts = [elements(first, 7, 3) for first in range(0, 1000, 7)]
    np.testing.assert_array_equal(np.concatenate(parts)[:1000], whole)
    # SplitMix64 of a state that is not 0, cut to 53 bits: the same on every machine, forever.
    np.testing.assert_array_equal(whole[:3] * 2**52 % 1, 0)
    assert -1 <= whole.min() < -0.98 and 0.98 < whole.max() < 1 and abs(whole.mean()) < 0.05
    assert not np.array_equal(whole, elements(0, 1000, 4))
    integers = elements(0, 1000, 3, integers=True)
    assert set(integers) == set(range(-9, 10))


def test_splitmix64_is_the_published_one():
    """The first outputs for the state 1234567, as in the reference implementation's tests."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    inverse = pow(0xD1342543DE82EF95, -1, 2**64)
    seed = (1234567 - 1) * inverse % 2**64  # begins at that state
    top = np.array([value >> 11 for value in expected], float)
    np.testing.assert_array_equal(elements(0, 3, seed), top * 2.0**-52 - 1)


def test_a_large_matrix_is_made_and_checked_in_little_memory(tmp_path):
    tracemalloc.start()
    try:
        make(tmp_path / "m", 1024, 2048)
        account = check(tmp_path / "m")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert account.bytes == 8 + 1024 * 2048 * 8
    assert peak < account.bytes / 1.5
    whole = elements(0, 1024 * 2048, 1).reshape(1024, 2048)
    np.testing.assert_array_equal(files.read(tmp_path / "m"), whole)


def test_an_account_says_what_is_in_a_file(tmp_path):
    files.write(tmp_path / "m", [[1.5, np.nan, -np.inf], [-2, 0, 4]], text=True)
    account = check(tmp_path / "m")
    assert str(account) == (
        f"{tmp_path}/m: text, 2 x 3, {account.bytes} bytes, elements from -2 to 4, "
        "2 infinite or NaN"
    )
    files.write(tmp_path / "i", [[1.0, -3.0]])
    assert str(check(tmp_path / "i")).endswith("binary, 1 x 2, 24 bytes, integers from -3 to 1")


def test_a_large_matrix_is_shown_by_its_corners(tmp_path):
    files.write(tmp_path / "m", np.arange(30.0)[:, None] * 100 + np.arange(40)[None, :])
    lines = table(tmp_path / "m").splitlines()
    assert lines[0] == "30 x 40"
    assert lines[1].split() == ["0", "1", "2", "3", "…", "36", "37", "38", "39"]
    assert lines[5].split() == ["…"] * 9
    assert lines[-1].split()[-1] == "2939"
    files.write(tmp_path / "small", [[1, 22], [333, 4]])
    assert table(tmp_path / "small") == "2 x 2\n  1  22\n333   4"


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_the_samples_are_the_same_in_both_formats(name):
    read = [files.read(DATA / "matrices" / f"{name}-16x16{end}") for end in (".txt", ".bin")]
    assert read[0].tobytes() == read[1].tobytes()
    rows, columns = np.indices((16, 16))
    a, b = (rows + 2 * columns) % 7 - 3.0, (3 * rows + columns) % 5 / 2
    np.testing.assert_array_equal(read[0], {"a": a, "b": b, "c": a @ b}[name])
