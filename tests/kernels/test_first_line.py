"""The first line of an answer in C names its function."""

import pytest

from mpilab.errors import InputError
from mpilab.kernels.build import function_of, parse, split


def test_the_magic_becomes_an_empty_line_so_that_lines_keep_their_numbers():
    assert split("%%kernel bcast_x\nint x;\n") == ("%%kernel bcast_x", "\nint x;\n")
    assert split("\n  \n%%kernel bcast_x\nint x;") == ("%%kernel bcast_x", "\n\n\nint x;")
    assert split("%%kernel x") == ("%%kernel x", "")


def test_c_without_the_magic_stays_as_it_is():
    for source in ("int x;\n%%not magic", "", "\n\n"):
        assert split(source) == ("", source)


@pytest.mark.parametrize(
    ("source", "function"),
    [
        ("%%kernel bcast_chain\nint bcast_binary;", "bcast_chain"),
        ("\n%%kernel --sanitize bcast_chain\n", "bcast_chain"),
        ("%%kernel bcast_chain --sanitize", "bcast_chain"),
        ("%%kernel\nint x;", ""),
        ("%%kernel two names\n", ""),
        ("%%kernel bcast-chain\n", ""),
        ("%%time bcast_chain", ""),
        ("int bcast_chain;", ""),
    ],
)
def test_the_function_is_the_one_that_the_line_names(source, function):
    assert function_of(source) == function


def test_a_line_without_a_function_says_what_to_write():
    assert parse(" --sanitize bcast_x ") == ("bcast_x", True)
    with pytest.raises(InputError, match="name the function, e.g. %%kernel allgather_ring"):
        parse("--sanitize")
