"""Fingerprints of token lists by winnowing, and the passages that two lists have in common.

Winnowing is by Schleimer, Wilkerson, Aiken (SIGMOD 2003), section 3: of every WINDOW successive
hashes of GRAM tokens the smallest is kept, the last one of equals. So two lists that share GRAM +
WINDOW - 1 tokens in a row share a fingerprint, and nothing shorter than GRAM tokens is a match.

Names match as in Baker's parameterized matching (J. Computer and System Sciences 52, 1996): each
name of one passage stands for one name of the other, and no two for the same. So renaming changes
nothing, and yet `a = b + b` is not `a = b + c`.

Passages are followed from fingerprints to both ends, then tiled, the longest first, as Wise's
greedy string tiling does (1993): no token counts twice, and what comes in another order counts too.
"""

import hashlib

from mpilab.similarity.tokens import NAME

GRAM, WINDOW = 12, 4


def grams(kinds, size=GRAM):
    """A hash for each `size` successive kinds, equal for equal texts up to their names."""
    return [_digest(kinds[at : at + size]) for at in range(len(kinds) - size + 1)]


def _digest(kinds):
    # Python's own hash() differs from process to process, and with it what winnowing keeps.
    numbers = {}
    text = "\0".join(
        f"{NAME}{numbers.setdefault(kind, len(numbers))}" if kind.startswith(NAME) else kind
        for kind in kinds
    )
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def winnow(hashes, window=WINDOW):
    """The places of the hashes that are kept, in order; of fewer than a window, the smallest."""
    kept = []
    for first in range(max(1, len(hashes) - window + 1)):
        frame = range(first, min(first + window, len(hashes)))
        if frame:
            # The last of equal ones: neighbouring windows agree on it most often.
            place = min(frame, key=lambda at: (hashes[at], -at))
            if not kept or kept[-1] != place:
                kept.append(place)
    return kept


def covered(kinds, known, size=GRAM):
    """For each kind, whether it is part of a gram whose hash is in the set `known`."""
    marks = [False] * len(kinds)
    for place, value in enumerate(grams(kinds, size)):
        if value in known:
            marks[place : place + size] = [True] * size
    return marks


def passages(one, other, seeds, size=GRAM):
    """What two lists share, as (place in one, place in the other, length), the longest first.

    one, other   lists of kinds; None stands for what must not match (the template).
    seeds        pairs of places at which a gram of both has the same hash.
    """
    found, inside = set(), set()
    for a, b in sorted(seeds):
        if (a, b) in inside:
            continue
        there, back = {}, {}
        if not all(_agree(one, other, a + step, b + step, there, back) for step in range(size)):
            continue
        before, after = 0, size
        while _agree(one, other, a + after, b + after, there, back):
            after += 1
        while _agree(one, other, a - before - 1, b - before - 1, there, back):
            before += 1
        inside.update((a + step, b + step) for step in range(-before, after))
        found.add((a - before, b - before, before + after))
    return _tiled(found, size)


def _agree(one, other, a, b, there, back):
    """May place a of one be place b of the other? Keeps which name stands for which."""
    if not (0 <= a < len(one) and 0 <= b < len(other)):
        return False
    left, right = one[a], other[b]
    if left is None or right is None:
        return False
    if not (left.startswith(NAME) and right.startswith(NAME)):
        return left == right
    if there.get(left, right) != right or back.get(right, left) != left:
        return False
    there[left], back[right] = right, left
    return True


def _tiled(found, size):
    """The passages without what longer ones have taken; pieces shorter than `size` are left."""
    tiles, taken = [], (set(), set())
    for a, b, length in sorted(found, key=lambda passage: (-passage[2], passage)):
        first = None
        for step in range(length + 1):
            free = step < length and a + step not in taken[0] and b + step not in taken[1]
            if free and first is None:
                first = step
            elif not free and first is not None:
                if step - first >= size:
                    tiles.append((a + first, b + first, step - first))
                first = None
        for start_a, start_b, run in tiles:
            if start_a - a == start_b - b and a <= start_a < a + length:
                taken[0].update(range(start_a, start_a + run))
                taken[1].update(range(start_b, start_b + run))
    return sorted(tiles, key=lambda tile: (-tile[2], tile))
