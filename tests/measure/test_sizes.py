"""Sizes and numbers of ranks, as a person writes them."""

import pytest

from mpilab.errors import InputError
from mpilab.util.units import bytes_of, ranks_of, sizes_of


def test_k_and_m_are_powers_of_1024():
    assert [bytes_of(word) for word in ("7", "8K", "1m", "2KiB", "3MB")] == [
        7,
        8192,
        1 << 20,
        2048,
        3 << 20,
    ]


def test_a_range_doubles_from_its_first_size_to_its_last():
    assert sizes_of("1:16") == ((1, 2, 4, 8, 16), True)
    assert sizes_of("3:20") == ((3, 6, 12), True)


def test_a_list_is_sorted_and_holds_each_size_once():
    assert sizes_of("1K,64,1024") == ((64, 1024), False)
    assert sizes_of([8, "1:2"]) == ((1, 2, 8), True)


@pytest.mark.parametrize("wrong", ["", "x", "0", "4:2", "1:", "-1", "1.5K", "²"])
def test_what_is_no_size_is_named(wrong):
    with pytest.raises(InputError, match="size"):
        sizes_of(wrong)


def test_ranks_are_whole_numbers_from_1_on():
    assert ranks_of("8,2,2") == (2, 8)
    assert ranks_of([4]) == (4,)
    assert ranks_of("1-3,8") == (1, 2, 3, 8)
    for wrong in ("0", "2,x", "", "-2", "3-", "4-2", "0-2", "1-999999999"):
        with pytest.raises(InputError, match="ranks .*write numbers"):
            ranks_of(wrong)
    assert ranks_of(1 << 20) == (1 << 20,)
