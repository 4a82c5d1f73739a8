"""Write rules as a file that Open MPI reads, with comments for people."""

from itertools import groupby

from mpilab import openmpi
from mpilab.errors import InputError
from mpilab.openmpi_rules.model import Rules
from mpilab.openmpi_rules.vocabulary import algorithm_name, number_of
from mpilab.openmpi_rules.words import choice_words, reach_words


def as_text(rules, remark=""):
    """The text of a file in the classic format (version 1): Open MPI 4, 5 and 6 read it.

    rules    Rule objects in any order, no two for the same collective, ranks and bytes
    remark   lines that come first, as comments

    Raises InputError for rules that cannot be written: see `ordered`.
    """
    whole = Rules(tuple(ordered(rules)))
    lines = [f"# {line}".rstrip() for line in remark.splitlines()]
    lines.append(f"{len(whole.collectives):<21} # collectives")
    for collective, by_ranks in whole.collectives.items():
        lines.append(f"{number_of(collective):<21} # {collective}")
        lines.append(f"{len(by_ranks):<21} # numbers of ranks with rules")
        for ranks, each in by_ranks.items():
            counts = f"{ranks} {len(each)}"
            lines.append(f"  {counts:<19} # from so many ranks on, sizes with rules")
            for rule in each:
                numbers = f"{rule.bytes} {rule.number} {rule.fanout} {rule.segment}"
                words = f"{reach_words(whole, rule)}: {choice_words(rule)}"
                lines.append(f"    {numbers:<17} # {words}")
    return "\n".join(lines) + "\n"


def ordered(rules):
    """Rules as a file has them: by the number of the collective, ranks and bytes.

    Raises InputError for two rules for the same, for numbers below 0, for a number of ranks
    without a rule for 0 bytes, and for an algorithm that Open MPI does not have.
    """
    rising = sorted(rules, key=lambda one: (number_of(one.collective), one.ranks, one.bytes))
    for rule in rising:
        _check(rule)
    for (collective, ranks), each in groupby(rising, key=lambda one: (one.collective, one.ranks)):
        sizes = [rule.bytes for rule in each]
        if sizes[0] != 0:
            raise InputError(f"{collective} from {ranks} ranks on has no rule for 0 bytes, without "
                             "which Open MPI ignores the file; add one")  # fmt: skip
        twice = [size for size, following in zip(sizes, sizes[1:], strict=False)
                 if size == following]  # fmt: skip
        if twice:
            raise InputError(f"{collective} from {ranks} ranks on has two rules for {twice[0]} "
                             "bytes; leave one of them out")  # fmt: skip
    return rising


def _check(rule):
    for name in ("ranks", "bytes", "number", "fanout", "segment"):
        if getattr(rule, name) < 0:
            raise InputError(
                f"{rule.collective}: {name}={getattr(rule, name)}: has to be 0 or more"
            )
    if not rule.is_left and not algorithm_name(rule.collective, rule.number):
        known = openmpi.algorithms().get(rule.collective, {})
        raise InputError(f"{rule.collective} algorithm {rule.number}: Open MPI has "
                         f"{', '.join(map(str, known)) or 'none to choose from'}")  # fmt: skip
