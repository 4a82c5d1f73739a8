"""Which cases a rules file is tried at: every rule, near its lower end and well inside."""

from mpilab.openmpi_rules.vocabulary import WITHOUT_SIZE, element_bytes, looked_up_bytes
from mpilab.sweeps.openmpi_traffic import PATTERNS

MOST_RANKS = 16  # by default; more would crowd a laptop
MOST_BYTES = 1 << 22  # of a block, or of the whole message


def ranks_to_try(rules, most=MOST_RANKS):
    """A number of ranks for each that the file has rules for, up to `most`: tuple, rising."""
    found = {
        max(2, ranks)
        for collective, by_ranks in rules.collectives.items()
        for ranks in by_ranks
        if collective in PATTERNS and max(2, ranks) <= most
    }
    return tuple(sorted(found)) or (4,)


def points_of(rules, ranks, sizes=None):
    """(collective, ranks, bytes) to try a file at: list.

    ranks   numbers of ranks
    sizes   bytes of a block, or of the whole message; default: for every rule the least size that
            it decides, and one at which algorithms differ more (some bytes for every rank, several
            segments)
    """
    found = {}
    for collective in rules.collectives:
        if collective not in PATTERNS:
            continue
        for number in ranks:
            if collective in WITHOUT_SIZE:
                found[collective, number, 0] = None
                continue
            tried = _default_sizes(rules, collective, number) if sizes is None else sizes
            element = element_bytes(collective)
            for size in tried:
                found[collective, number, size // element * element] = None
    return list(found)


def _default_sizes(rules, collective, ranks):
    nearest = max((one for one in rules.collectives[collective] if one <= ranks),
                  default=min(rules.collectives[collective]))  # fmt: skip
    element = element_bytes(collective)
    unit = looked_up_bytes(collective, ranks, element)  # what one element more adds
    sizes = []
    for rule in rules.collectives[collective][nearest]:
        least, most = rules.reach(rule)[1]
        first = max(1, -(-least // unit)) * element
        last = MOST_BYTES if most is None else min(MOST_BYTES, most // unit * element)
        if first <= last:
            telling = max(4 * first, 16 * ranks * element, 4 * rule.segment)
            sizes.append(first)
            if not rule.is_fatal(ranks):  # which ends the program, at any size
                sizes.append(min(last, telling))
    return sizes


def not_tried(rules, proofs):
    """The rules of a file that no Proof is about."""
    tried = {proof.rule for proof in proofs}
    return [rule for rule in rules.rules if rule not in tried]
