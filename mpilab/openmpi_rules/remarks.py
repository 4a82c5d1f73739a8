"""What Open MPI makes of rules that it reads: where the program fails, and what is not heeded."""

from mpilab import openmpi
from mpilab.openmpi_rules.model import FAILS, MISREAD, NOTE, Remark
from mpilab.openmpi_rules.vocabulary import CHAINS, CUT, TWO_RANKS, WITHOUT_SIZE

_LARGEST_INT = (1 << 31) - 1


def remarks_on(rules):
    """Remarks on Rules, in their order."""
    found = []
    for collective, by_ranks in rules.collectives.items():
        first = next(iter(by_ranks.values()))[0]
        if collective not in openmpi.algorithms():
            found.append(Remark(first.line, f"Open MPI has one {collective} only: it reads these "
                                "rules and uses none of them"))  # fmt: skip
            continue
        found += _below_first(collective, by_ranks)
        for each in by_ranks.values():
            if collective in WITHOUT_SIZE and len(each) > 1:
                found.append(Remark(each[1].line, f"{collective} is looked up with 0 bytes, "
                                    "whatever it sends: only its first rule counts"))  # fmt: skip
            for rule in each:
                found += [Remark(rule.line, text, kind) for kind, text in _of(rules, rule)]
    return found


def _below_first(collective, by_ranks):
    """Numbers of ranks below the first one get its rules: a person expects no rules there."""
    least = min(by_ranks)
    if least <= 2 or all(rule.is_left for rule in by_ranks[least]):
        return []
    return [Remark(by_ranks[least][0].line, f"the rules of {collective} from {least} ranks on are "
                   f"used on less than {least} ranks, too; to leave those to Open MPI, put '1 1' "
                   "and '0 0 0 0' before them, and count one more")]  # fmt: skip


def _of(rules, rule):
    """(kind, text) of one rule."""
    if rule.is_left:
        return
    called = f"{rule.collective} algorithm {rule.number}"
    name = rule.algorithm
    if not name:
        known = openmpi.algorithms()[rule.collective]
        yield FAILS, (f"{called}: there is none, and every {rule.collective} that this rule "
                      f"decides fails with MPI_ERR_ARG; take {_listed(known)}")  # fmt: skip
        return
    ranks, _ = rules.reach(rule)
    if name == TWO_RANKS and ranks[1] != 2:
        yield FAILS, (f"{called} ({name}) aborts the program on any number of ranks but 2, and "
                      f"this rule holds {_of_ranks(ranks)}; write rules from 2 ranks on, and "
                      "others from 3 on")  # fmt: skip
    if rule.segment > _LARGEST_INT:
        yield MISREAD, (f"the segment size {rule.segment} is larger than an int holds: Open MPI "
                        f"uses {rule.segment & 0xFFFFFFFF}, or none")  # fmt: skip
    elif rule.segment and name not in CUT.get(rule.collective, ()):
        yield NOTE, f"{called} ({name}) does not cut messages: the segment size is not heeded"
    if name == "pipeline" and not rule.segment:
        yield NOTE, f"{called} (pipeline) without a segment size sends the message in one piece"
    if name in CHAINS.get(rule.collective, ()) and rule.fanout < 2:
        yield NOTE, (f"{called} (chain) with the fan-out {rule.fanout} is one chain: the pipeline. "
                     "Open MPI's own default is 4")  # fmt: skip
    elif rule.fanout and name not in CHAINS.get(rule.collective, ()):
        radix = "; the radix stays 4, coll_tuned_bcast_algorithm_knomial_radix sets it"
        yield NOTE, (f"{called} ({name}) does not heed the fan-out"
                     f"{radix if name == 'knomial' else ''}")  # fmt: skip
    if (rule.collective, name) == ("allgather", "recursive_doubling"):
        yield from _unless_all(ranks, lambda one: one & (one - 1) == 0, called, name, "bruck (2)",
                               "other than a power of two ranks")  # fmt: skip
    if (rule.collective, name) == ("allgather", "neighbor"):
        yield from _unless_all(ranks, lambda one: one % 2 == 0, called, name, "ring (4)",
                               "an odd number of ranks")  # fmt: skip


def _unless_all(ranks, holds, called, name, other, where):
    least, most = ranks
    if most is None or not all(map(holds, range(max(2, least), most + 1))):
        yield NOTE, f"{called} ({name}): on {where}, Open MPI runs {other} in its place"


def _of_ranks(ranks):
    least, most = ranks
    return f"from {least} ranks on" if most is None else f"from {least} to {most} ranks"


def _listed(known):
    return ", ".join(f"{number} {name}" for number, name in known.items() if number)
