"""Where ranks stand on a platform, in a few words: "PLATFORM [ORDER [SEED]]".

groups-4x4x8 rr             every slot of the platform, in RR order
fat-tree-16x8 shuffled 7    with seed 7; without a number, seed 1
four-groups                 in SEQ order
"""

from functools import cache

from mpilab import orders
from mpilab.errors import InputError
from mpilab.simulated.platforms import platform


def words(text):
    """(Platform, order, seed) of the words; InputError for others."""
    name, *rest = text.split() or [""]
    order, seed = (*rest, *("seq", "1")[len(rest) :])[:2]
    if len(rest) > 2 or not seed.isdecimal():
        raise InputError(
            f"platform {text!r}: write PLATFORM [ORDER [SEED]], e.g. 'groups-4x4x8 shuffled 7'"
        )
    return platform(name), order, int(seed)


@cache
def standing(text):
    """(Platform, name of each rank's host as a tuple) of the words; InputError for others."""
    found, order, seed = words(text)
    return found, tuple(orders.order(found.description, order, seed=seed))


@cache
def places(text):
    """The mpilab.places.Place of each rank that stands as the words say."""
    found, names = standing(text)
    return tuple(found.description.places(names))
