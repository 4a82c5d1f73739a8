"""Rules in words: 'from 8 ranks on, from 64 KiB: binomial (6) in segments of 8 KiB'."""

from mpilab.openmpi_rules.vocabulary import ALL_BLOCKS, CHAINS, CUT, WITHOUT_SIZE

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def size_words(byte_count):
    """Bytes, exactly: '64 KiB', '1.5 MiB', '1001 bytes'."""
    for factor, unit in _UNITS:
        # No more digits than a person takes in: 1.5 MiB, but 1537 KiB.
        if byte_count >= factor and byte_count * 4 % factor == 0:
            return f"{byte_count / factor:g} {unit}"
    return "1 byte" if byte_count == 1 else f"{byte_count} bytes"


def choice_words(rule):
    """'binomial (6) in segments of 8 KiB': what a rule chooses, and how it is tuned."""
    if rule.is_left:
        return "left to Open MPI"
    name = rule.algorithm
    words = f"{name} ({rule.number})" if name else f"algorithm {rule.number}, which there is not"
    if name in CHAINS.get(rule.collective, ()):
        words += f" with {max(1, rule.fanout)} chain{'s' * (rule.fanout > 1)}"
    if rule.segment and name in CUT.get(rule.collective, ()):
        words += f" in segments of {size_words(rule.segment)}"
    return words


def reach_words(rules, rule):
    """'bcast, from 8 to 15 ranks, from 64 KiB': what a rule decides."""
    ranks, sizes = rules.reach(rule)
    return f"{rule.collective}, {_ranks(*ranks)}{_sizes(rule.collective, sizes)}"


def explain(rules):
    """What a file says, rule by rule, with the lines: text."""
    lines = []
    for collective, by_ranks in rules.collectives.items():
        about = " (bytes of all blocks together)" if collective in ALL_BLOCKS else ""
        lines.append(f"{collective}{about}")
        for each in by_ranks.values():
            ranks, _ = rules.reach(each[0])
            lines.append(f"  {_ranks(*ranks)}")
            for rule in each:
                sizes = _sizes(collective, rules.reach(rule)[1]).removeprefix(", ")
                lines.append(f"    {sizes or 'any size'}: {choice_words(rule)}")
    return "\n".join(lines) if lines else "no rules: Open MPI decides everything by itself"


def _ranks(least, most):
    if most is None:
        return f"from {least} ranks on" if least > 1 else "any number of ranks"
    if least == most:
        return f"{least} rank{'s' * (least != 1)}"
    return f"up to {most} ranks" if least <= 1 else f"from {least} to {most} ranks"


def _sizes(collective, sizes):
    least, most = sizes
    if collective in WITHOUT_SIZE or sizes == (0, None):
        return ""
    if most is None:
        return f", from {size_words(least)}"
    if least == 0:
        return f", below {size_words(most + 1)}"
    return f", from {size_words(least)} to below {size_words(most + 1)}"
