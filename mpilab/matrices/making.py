"""Make matrices of any size, and convert files, a piece at a time."""

import numpy as np
from tqdm import tqdm

from mpilab.matrices import files
from mpilab.matrices.writing import Writer

INTEGERS = 9  # matrices of integers have them from -9 to 9


def elements(first, count, seed, *, integers=False):
    """Elements number `first` to `first + count - 1` of the matrix of a seed: float64 [count].

    Multiples of 2^-52 from -1 up to 1, or integers from -9 to 9. An element depends on its number
    and the seed only: SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number
    generators", OOPSLA), whose n-th value needs no other one.
    """
    numbers = np.arange(first + 1, first + 1 + count, dtype=np.uint64)
    golden = 0x9E3779B97F4A7C15
    start = np.uint64((seed * 0xD1342543DE82EF95 + 1) % 2**64)  # neighbouring seeds far apart
    bits = numbers * np.uint64(golden) + start
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    top = (bits >> np.uint64(11)).astype(np.float64)  # 53 bits, exact
    if integers:
        return np.floor(top * 2.0**-53 * (2 * INTEGERS + 1)) - INTEGERS
    return top * 2.0**-52 - 1.0


def make(path, rows, columns, *, seed=1, text=False, integers=False, progress=False):
    """Write a matrix of any size, the same for the same seed on every machine.

    integers   of -9 to 9: their products and sums are exact. Else from -1 to 1.
    progress   show a bar on stderr.

    Raises InputError for a size that can't be, or where the file cannot be written.
    """
    done = 0
    with (
        Writer(path, rows, columns, text=text) as file,
        _bar(f"make {path}", rows, progress) as bar,
    ):
        for some in files.rows_at_a_time(rows, columns):
            file.append(
                elements(done * columns, some * columns, seed, integers=integers).reshape(
                    some, columns
                )
            )
            done += some
            bar.update(some)


def convert(source, target, *, text, progress=False):
    """Write the matrix of the file `source`, in either format, to `target` as text or binary.

    No bit of an element changes, but that NaN is the usual one after it was text. Raises
    InputError for a file that isn't whole; then `target` is as it was.
    """
    rows, columns = files.size(source)
    with (
        Writer(target, rows, columns, text=text) as file,
        _bar(f"convert {source}", rows, progress) as bar,
    ):
        for piece in files.pieces(source):
            file.append(piece)
            bar.update(len(piece))


def _bar(words, rows, progress):
    """A bar for long work: it comes after a second."""
    return tqdm(total=rows, desc=words, unit="row", delay=1, leave=False, disable=not progress)
