"""Read, explain and write rules files of Open MPI, and find the rule that decides a call.

    2              # collectives
    7              # the number of one: bcast
    1              # numbers of ranks that there are rules for
    8              # from 8 ranks up
    2              # sizes that there are rules for
    0     6 0 0    # from 0 bytes up: algorithm 6, fan-out 0, no segments
    65536 3 0 8192 # from 64 KiB up: algorithm 3, fan-out 0, segments of 8 KiB
    ...

Open MPI ignores a whole file that breaks this order; it says so only if coll_base_verbose is 1 or
more. A first line `rule-file-version-2` (since Open MPI 5.0.7) allows a fifth number for each size,
the maximum number of requests of an alltoall or a reduce; it is read here, but not kept.

Source: Open MPI's ompi/mca/coll/tuned/coll_tuned_dynamic_file.c; each case was tried with 5.0.11
(tests/tuning).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from mpilab.algorithms.trees import largest_power_of_two
from mpilab.cases.case import collective_of
from mpilab.errors import InputError
from mpilab.kernels import openmpi
from mpilab.measure.openmpi_traffic import Shape

Point = tuple[str, int, int]  # collective, ranks, bytes of a block or of the whole message
Choice = tuple[int, int, int]  # number of the algorithm, fan-out, bytes of a segment
Range = tuple[int, int | None]  # least and most; None is unlimited
# Index in this list = number of the collective in a file (COLLTYPE in Open MPI's
# ompi/mca/coll/base/coll_base_functions.h). A file with another number is ignored as a whole.
COLLECTIVES = (
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "gatherv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
    "scatterv",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw",
)

# Collectives whose rules are looked up by the size of all blocks together, ...
ALL_BLOCKS = ("allgather", "gather", "scatter", "alltoall")
# ... or by 0, whatever is sent: only the first rule for a number of ranks counts.
WITHOUT_SIZE = ("barrier", "alltoallv")

# Algorithms that use the segment size, and those that use the number of chains (fan-out).
CUT: dict[str, tuple[str, ...]] = {
    "bcast": ("chain", "pipeline", "split_binary_tree", "binary_tree", "binomial", "knomial"),
    "reduce": ("chain", "pipeline", "binary", "binomial", "in-order_binary"),
    "allreduce": ("segmented_ring",),
    "gather": ("linear_sync",),
}
CHAINS: dict[str, tuple[str, ...]] = {"bcast": ("chain",), "reduce": ("chain",)}
TWO_RANKS = "two_proc"  # any other number of ranks aborts the program
LEFT = 0  # no algorithm: Open MPI decides by itself
_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
# Kinds of remarks: the program fails, the file is not read as intended, or neither.
FAILS, MISREAD, NOTE = "fails", "misread", "note"
_LARGEST_INT = (1 << 31) - 1
# Numbers as scanf's %li reads them, and the first line of version 2.
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_VERSION = re.compile(r"rule-file-version-\s*([0-9]+)")
_WORD = re.compile(r"\S+")
_SEPARATORS = ",;:()[]{}\"'\ufeff"
LARGEST = (1 << 63) - 1  # larger numbers are read as this one
_MOST_DIGITS = len(str(LARGEST))
MALFORMED = "Open MPI silently ignores the whole file and uses its own decisions"

# The meaning of numbers and sizes in a rules file, as observed with Open MPI 5.0.11.
# tests/tuning checks every statement here on a real Open MPI.


@dataclass(frozen=True)
class Substitute:
    """What Open MPI silently runs instead of an algorithm, and where."""

    name: str
    where: str


def number_of(collective: str) -> int:
    """The number of a collective in a file; InputError for an unknown name."""
    if collective not in COLLECTIVES:
        raise InputError(f"collective {collective!r}: rules files support {', '.join(COLLECTIVES)}")
    return COLLECTIVES.index(collective)


def algorithm_name(collective: str, number: int) -> str:
    """'binomial' for bcast 6; "" if Open MPI has no algorithm with that number."""
    return openmpi.algorithms().get(collective, {}).get(number, "")


def looked_up_bytes(collective: str, ranks: int, size: int) -> int:
    """Bytes by which rules are looked up, for `size` bytes of a block (allgather, gather, scatter,
    alltoall) or of the whole message (all others)."""
    if collective in WITHOUT_SIZE:
        return 0
    return size * ranks if collective in ALL_BLOCKS else size


def shape_of(collective: str, ranks: int, size: int, segment: int, fanout: int) -> Shape:
    """The Shape of a call of `size` bytes that a rule with this segment and fan-out decides.

    A rule's fan-out 0 is one chain; the default of Open MPI's setting is 4 chains.
    """
    element = collective_of(collective).timed_element[1]
    return Shape(ranks, size // element, element, segment=segment, fanout=max(1, fanout))


def substitute(collective: str, name: str, shape: Shape) -> Substitute | None:
    """The Substitute for an algorithm at a Shape; None if the algorithm itself runs."""
    ranks, count = shape.ranks, shape.count
    core = largest_power_of_two(ranks)
    if (collective, name) == ("allgather", "recursive_doubling") and ranks != core:
        return Substitute("bruck", "unless the number of ranks is a power of two")
    if (collective, name) == ("allgather", "neighbor") and ranks % 2:
        return Substitute("ring", "on an odd number of ranks")
    if collective == "bcast" and name.startswith("scatter_allgather") and count < ranks:
        return Substitute("basic_linear", "with fewer elements than ranks")
    if (collective, name) == ("bcast", "split_binary_tree") and _is_not_split(shape):
        return Substitute("pipeline", "if half of the message is empty or smaller than a segment")
    if (collective, name) == ("reduce", "rabenseifner") and count < core:
        return Substitute("linear", "with fewer elements than the largest power of two of ranks")
    if (collective, name) == ("allreduce", "rabenseifner") and count < core:
        return Substitute(
            "basic_linear", "with fewer elements than the largest power of two of ranks"
        )
    if collective == "allreduce" and name in ("ring", "segmented_ring") and count < ranks:
        return Substitute("recursive_doubling", "with fewer elements than ranks")
    if (collective, name) == ("allreduce", "segmented_ring") and count < ranks * shape.piece():
        return Substitute("ring", "if a rank's share is smaller than a segment")
    return None


def _is_not_split(shape: Shape) -> bool:
    half = shape.count // 2
    return half == 0 or shape.segment > half * shape.element_bytes


# The rules of a file.


@dataclass(frozen=True)
class Rule:
    """The algorithm of a collective for at least `ranks` ranks and `bytes` bytes.

    ranks     of the communicator
    bytes     as Open MPI looks them up: of all blocks together in an allgather, gather, scatter or
              alltoall, 0 in a barrier (see `looked_up_bytes`)
    number    of the algorithm, as in `mpilab.kernels.openmpi.algorithms`; 0: Open MPI decides by
              itself
    fanout    number of chains, used by chain only, where 0 means 1
    segment   bytes; 0: the message is not segmented
    line      in the file, if there is one
    """

    collective: str
    ranks: int
    bytes: int
    number: int
    fanout: int = 0
    segment: int = 0
    line: int = 0

    @property
    def is_left(self) -> bool:
        """Is the decision left to Open MPI?"""
        return self.number == LEFT

    @property
    def algorithm(self) -> str:
        """'binomial'; "" for a number that Open MPI does not have."""
        return algorithm_name(self.collective, self.number)

    def is_fatal(self, ranks: int) -> bool:
        """Does a call on `ranks` ranks fail if this rule decides it?"""
        return not self.is_left and (
            not self.algorithm or (self.algorithm == TWO_RANKS and ranks != 2)
        )

    @property
    def choice(self) -> Choice:
        """What is chosen: (number, fanout, segment)."""
        return self.number, self.fanout, self.segment


@dataclass(frozen=True)
class Remark:
    """A remark on one line of a file, of `kind` FAILS, MISREAD or NOTE."""

    line: int
    text: str
    kind: str = NOTE


@dataclass(frozen=True)
class Rules:
    """The rules of a file, in the order in which Open MPI finds them: for each collective by
    ascending ranks, then ascending bytes. `remarks` holds what a reader should know."""

    rules: tuple[Rule, ...]
    remarks: tuple[Remark, ...] = ()
    name: str = "rules"

    @cached_property
    def collectives(self) -> dict[str, dict[int, list[Rule]]]:
        """{collective: {ranks: its Rules}}."""
        found: dict[str, dict[int, list[Rule]]] = {}
        for rule in self.rules:
            found.setdefault(rule.collective, {}).setdefault(rule.ranks, []).append(rule)
        return found

    def deciding(self, collective: str, ranks: int, size: int) -> Rule | None:
        """The Rule that decides a call of `size` bytes (of a block, or of the whole message); None
        if there is none, so that Open MPI decides by itself.

        The first number of ranks in the file also covers all smaller ones.
        """
        by_ranks = self.collectives.get(collective)
        if not by_ranks:
            return None
        first = min(by_ranks)
        nearest = max((one for one in by_ranks if one <= ranks), default=first)
        total = looked_up_bytes(collective, ranks, size)
        return [rule for rule in by_ranks[nearest] if rule.bytes <= total][-1]

    def reach(self, rule: Rule) -> tuple[Range, Range]:
        """((least, most) ranks, (least, most) bytes) that a rule decides; most None is unlimited.

        Bytes are as Open MPI looks them up.
        """
        by_ranks = self.collectives[rule.collective]
        following = min((one for one in by_ranks if one > rule.ranks), default=None)
        larger = min(
            (one.bytes for one in by_ranks[rule.ranks] if one.bytes > rule.bytes), default=None
        )
        least = 1 if rule.ranks == min(by_ranks) else rule.ranks
        return (least, _below(following)), (rule.bytes, _below(larger))


def _below(number: int | None) -> int | None:
    return None if number is None else number - 1


# Rules in words, as in 'bcast, from 8 to 15 ranks, from 64 KiB: binomial (6) in segments of 8 KiB'.


def size_words(byte_count: int) -> str:
    """Bytes, exactly: '64 KiB', '1.5 MiB', '1001 bytes'."""
    for factor, unit in _UNITS:
        # Few digits for readability: 1.5 MiB, but 1537 KiB.
        if byte_count >= factor and byte_count * 4 % factor == 0:
            return f"{byte_count / factor:g} {unit}"
    return "1 byte" if byte_count == 1 else f"{byte_count} bytes"


def choice_words(rule: Rule) -> str:
    """'binomial (6) in segments of 8 KiB': what a rule chooses, and how it is tuned."""
    if rule.is_left:
        return "left to Open MPI"
    name = rule.algorithm
    words = f"{name} ({rule.number})" if name else f"algorithm {rule.number}, which does not exist"
    if name in CHAINS.get(rule.collective, ()):
        words += f" with {max(1, rule.fanout)} chain{'s' * (rule.fanout > 1)}"
    if rule.segment and name in CUT.get(rule.collective, ()):
        words += f" in segments of {size_words(rule.segment)}"
    return words


def reach_words(rules: Rules, rule: Rule) -> str:
    """'bcast, from 8 to 15 ranks, from 64 KiB': what a rule decides."""
    ranks, sizes = rules.reach(rule)
    return f"{rule.collective}, {_ranks(*ranks)}{_sizes(rule.collective, sizes)}"


def explain(rules: Rules) -> str:
    """Explain a file rule by rule, as text."""
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
    return "\n".join(lines) if lines else "no rules: Open MPI makes all decisions itself"


def _ranks(least: int, most: int | None) -> str:
    if most is None:
        return f"from {least} ranks on" if least > 1 else "any number of ranks"
    if least == most:
        return f"{least} rank{'s' * (least != 1)}"
    return f"up to {most} ranks" if least <= 1 else f"from {least} to {most} ranks"


def _sizes(collective: str, sizes: Range) -> str:
    least, most = sizes
    if collective in WITHOUT_SIZE or sizes == (0, None):
        return ""
    if most is None:
        return f", from {size_words(least)}"
    if least == 0:
        return f", below {size_words(most + 1)}"
    return f", from {size_words(least)} to below {size_words(most + 1)}"


# Remarks on rules that Open MPI reads: where the program fails, and what has no effect.


def remarks_on(rules: Rules) -> list[Remark]:
    """Remarks on Rules, in order."""
    found = []
    for collective, by_ranks in rules.collectives.items():
        first = next(iter(by_ranks.values()))[0]
        if collective not in openmpi.algorithms():
            found.append(
                Remark(
                    first.line,
                    f"Open MPI has only one {collective}: it reads these rules but does not use "
                    "them",
                )
            )
            continue
        found += _below_first(collective, by_ranks)
        for each in by_ranks.values():
            if collective in WITHOUT_SIZE and len(each) > 1:
                found.append(
                    Remark(
                        each[1].line,
                        f"Open MPI looks up {collective} with 0 bytes, whatever it sends: only "
                        "its first rule applies",
                    )
                )
            for rule in each:
                found += [Remark(rule.line, text, kind) for kind, text in _of(rules, rule)]
    return found


def _below_first(collective: str, by_ranks: Mapping[int, Sequence[Rule]]) -> list[Remark]:
    """A remark if the first number of ranks also covers smaller ones, which users do not expect."""
    least = min(by_ranks)
    if least <= 2 or all(rule.is_left for rule in by_ranks[least]):
        return []
    return [
        Remark(
            by_ranks[least][0].line,
            f"the rules of {collective} from {least} ranks also apply to fewer ranks; to leave "
            "those to Open MPI, put '1 1' and '0 0 0 0' before them, and increase the count by "
            "one",
        )
    ]


def _of(rules: Rules, rule: Rule) -> Iterator[tuple[str, str]]:
    """(kind, text) of one rule."""
    if rule.is_left:
        return
    called = f"{rule.collective} algorithm {rule.number}"
    name = rule.algorithm
    if not name:
        known = openmpi.algorithms()[rule.collective]
        yield (
            FAILS,
            (
                f"{called}: there is none, and every {rule.collective} that this rule decides "
                f"fails with MPI_ERR_ARG; use {_listed(known)}"
            ),
        )
        return
    ranks, _ = rules.reach(rule)
    if name == TWO_RANKS and ranks[1] != 2:
        yield (
            FAILS,
            (
                f"{called} ({name}) aborts the program on any number of ranks but 2, and this rule "
                f"applies {_of_ranks(ranks)}; write one set of rules from 2 ranks and another from "
                "3"
            ),
        )
    if rule.fanout > _LARGEST_INT:
        yield (
            MISREAD,
            (
                f"the fan-out {rule.fanout} is larger than an int holds: Open MPI uses another "
                "number; write the number of chains, e.g. 4, or 0"
            ),
        )
    if rule.segment > _LARGEST_INT:
        yield (
            MISREAD,
            (
                f"the segment size {rule.segment} is larger than an int holds: Open MPI "
                f"uses {rule.segment & 0xFFFFFFFF}, or none"
            ),
        )
    elif rule.segment and name not in CUT.get(rule.collective, ()):
        yield NOTE, f"{called} ({name}) does not segment messages: the segment size is ignored"
    if name == "pipeline" and not rule.segment:
        yield NOTE, f"{called} (pipeline) without a segment size sends the message in one piece"
    if name in CHAINS.get(rule.collective, ()) and rule.fanout < 2:
        yield (
            NOTE,
            (
                f"{called} (chain) with the fan-out {rule.fanout} is one chain: the pipeline. "
                "Open MPI's own default is 4"
            ),
        )
    elif rule.fanout and name not in CHAINS.get(rule.collective, ()):
        radix = "; the radix stays 4, coll_tuned_bcast_algorithm_knomial_radix sets it"
        yield (
            NOTE,
            (f"{called} ({name}) ignores the fan-out{radix if name == 'knomial' else ''}"),
        )
    if (rule.collective, name) == ("allgather", "recursive_doubling"):
        yield from _unless_all(
            ranks,
            lambda one: one & (one - 1) == 0,
            called,
            name,
            "bruck (2)",
            "numbers of ranks that are not powers of two",
        )
    if (rule.collective, name) == ("allgather", "neighbor"):
        yield from _unless_all(
            ranks, lambda one: one % 2 == 0, called, name, "ring (4)", "an odd number of ranks"
        )


def _unless_all(
    ranks: Range, holds: Callable[[int], bool], called: str, name: str, other: str, where: str
) -> Iterator[tuple[str, str]]:
    least, most = ranks
    if most is None or not all(map(holds, range(max(2, least), most + 1))):
        yield NOTE, f"{called} ({name}): on {where}, Open MPI runs {other} instead"


def _of_ranks(ranks: Range) -> str:
    least, most = ranks
    return f"from {least} ranks on" if most is None else f"from {least} to {most} ranks"


def _listed(known: Mapping[int, str]) -> str:
    return ", ".join(f"{number} {name}" for number, name in known.items() if number)


# The numbers in a rules file, as Open MPI finds them (ompi_coll_base_file_getnext_long): with
# scanf's %li, skipping other characters one by one, and after #, the rest of the line. So words are
# harmless, line breaks mean nothing, '64K' is 64, '010' is 8, and '1.5' is 1 and 5.


@dataclass(frozen=True)
class Number:
    """A number, its line, and the word that contains it.

    follows   it comes after another number on its line, with only blanks between them
    """

    value: int
    line: int
    word: str
    follows: bool = False

    @property
    def is_as_written(self) -> bool:
        """Would a reader see the same number?"""
        word = self.word.strip(_SEPARATORS)
        digits = word.lstrip("0") or "0"
        return (
            word.isascii()
            and word.isdigit()
            and len(digits) <= _MOST_DIGITS
            and int(digits) == self.value
        )


def version_of(text: str) -> tuple[int, str]:
    """(version, the rest of the text); (1, text) if the text does not begin with a version."""
    match = _VERSION.match(text)
    return (_decimal(match[1]), text[match.end() :]) if match else (1, text)


def numbers_of(text: str, first_line: int = 1) -> list[Number]:
    """All numbers in a text: list of Number."""
    found = []
    for line, content in enumerate(text.split("\n"), start=first_line):
        # A comment ends with its line, and no number continues past it.
        content = content.partition("#")[0]
        before = None
        for word in _WORD.finditer(content):
            for match in _NUMBER.finditer(content, *word.span()):
                between = "?" if before is None else content[before : match.start()]
                follows = not between.strip(" \t") and match[0][0].isdigit()
                found.append(Number(_value(match[0]), line, word[0], follows))
                before = match.end()
    return found


def _value(digits: str) -> int:
    sign, digits = (digits[0], digits[1:]) if digits[0] in "+-" else ("", digits)
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
    value = _decimal(digits) if base == 10 else min(int(digits, base), LARGEST)
    return -value if sign == "-" else value


def _decimal(digits: str) -> int:
    """The number, but at most LARGEST; int() refuses thousands of digits."""
    digits = digits.lstrip("0") or "0"
    return min(int(digits), LARGEST) if len(digits) <= _MOST_DIGITS else LARGEST


# Writing a file that Open MPI reads, with comments for human readers.


def as_text(rules: Iterable[Rule], remark: str = "") -> str:
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


def ordered(rules: Iterable[Rule]) -> list[Rule]:
    """Rules in the order of a file: by number of the collective, ranks and bytes.

    Raises InputError for two rules for the same case, for negative numbers, for a number of ranks
    without a rule for 0 bytes, and for an algorithm that Open MPI does not have.
    """
    rising = sorted(rules, key=lambda one: (number_of(one.collective), one.ranks, one.bytes))
    for rule in rising:
        _check(rule)
    for (collective, ranks), each in groupby(rising, key=lambda one: (one.collective, one.ranks)):
        sizes = [rule.bytes for rule in each]
        if sizes[0] != 0:
            raise InputError(
                f"{collective} from {ranks} ranks on has no rule for 0 bytes, without "
                "which Open MPI ignores the file; add one"
            )
        twice = [
            size for size, following in zip(sizes, sizes[1:], strict=False) if size == following
        ]
        if twice:
            raise InputError(
                f"{collective} from {ranks} ranks on has two rules for {twice[0]} "
                "bytes; remove one of them"
            )
    return rising


def _check(rule: Rule) -> None:
    for name in ("ranks", "bytes", "number", "fanout", "segment"):
        if getattr(rule, name) < 0:
            raise InputError(f"{rule.collective}: {name}={getattr(rule, name)}: must be 0 or more")
    if not rule.is_left and not algorithm_name(rule.collective, rule.number):
        known = openmpi.algorithms().get(rule.collective, {})
        raise InputError(
            f"{rule.collective} algorithm {rule.number}: Open MPI has "
            f"{', '.join(map(str, known)) or 'none to choose from'}"
        )


def read(path: str | Path) -> Rules:
    """The Rules of a file; InputError 'FILE:LINE: ...' for one that Open MPI would ignore."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}. Open MPI would silently ignore it; give "
            "the file's full path"
        ) from None
    return parse(text, str(path))


def parse(text: str, name: str = "rules") -> Rules:
    """The Rules of a text, with remarks.

    Raises InputError, 'NAME:LINE: ...', if Open MPI would ignore the file.
    """
    if text.lstrip().startswith("{"):
        raise InputError(
            f"{name}:1: this is JSON, which Open MPI reads only since 6.0. {MALFORMED}; write the "
            "classic format, e.g. with mpilab rules write"
        )
    version, rest = version_of(text)
    return _Reader(name, version, numbers_of(rest, text.count("\n") - rest.count("\n") + 1)).read()


Block = tuple[int, int, list[Rule]]  # ranks, line, their rules


class _Reader:
    def __init__(self, name: str, version: int, numbers: Sequence[Number]) -> None:
        self.name, self.version, self.numbers = name, version, numbers
        self.at = 0
        self.remarks: list[Remark] = []

    def read(self) -> Rules:
        blocks: dict[str, tuple[int, list[Block]]] = {}  # with the line of the collective
        collectives = self._next("the number of collectives", len(COLLECTIVES))
        for _ in range(collectives.value):
            number = self._next("the number of a collective", len(COLLECTIVES) - 1)
            collective = COLLECTIVES[number.value]
            if collective in blocks:
                self._remark(
                    number,
                    f"{collective} has rules in line {blocks[collective][0]} "
                    "already: Open MPI discards those",
                )
            blocks[collective] = (number.line, self._collective(collective))
        self._look_at_rest()
        rules = [
            rule for name, (_, block) in blocks.items() for rule in self._in_order(name, block)
        ]
        remarks = self._misread() + self.remarks + remarks_on(Rules(tuple(rules)))
        remarks.sort(key=lambda remark: remark.line)
        return Rules(tuple(rules), tuple(remarks), self.name)

    def _collective(self, collective: str) -> list[Block]:
        """[(ranks, line, [Rule])] in the order of the file."""
        count = self._next(f"for how many numbers of ranks there are rules of {collective}")
        found = []
        for _ in range(count.value):
            ranks = self._next(f"a number of ranks of {collective}")
            sizes = self._next(f"how many sizes {collective} from {ranks.value} ranks on has")
            rules = []
            for place in range(sizes.value):
                rules.append(self._rule(collective, ranks.value, place))
            # Without any size, Open MPI decides.
            rules = rules or [Rule(collective, ranks.value, 0, LEFT, line=ranks.line)]
            found.append((ranks.value, ranks.line, rules))
        return found

    def _rule(self, collective: str, ranks: int, place: int) -> Rule:
        where = f"of {collective} from {ranks} ranks on"
        before = self.numbers[self.at - 1].line
        size = self._next(f"a number of bytes {where}")
        number, fanout, segment = (
            self._next(f"{what} {where} and {size.value} bytes")
            for what in ("the algorithm", "the fan-out", "the segment size")
        )
        if self.version > 1 and self._peek_follows():
            self._next("the most requests")
        if place == 0 and size.value:
            raise self._malformed(
                size,
                f"the first size {where} is {size.value}, not 0",
                "write a rule for 0 bytes first ('0 0 0 0' leaves small messages to Open MPI)",
            )
        # Only the line breaks reveal a counting mistake.
        last = self.numbers[self.at - 1]
        shares = self.at < len(self.numbers) and self.numbers[self.at].line == last.line
        lines = {one.line for one in (size, number, fanout, segment)}
        if 1 < len(lines) < 4 or (len(lines) == 1 and shares and before != size.line):
            words = " ".join(str(one.value) for one in (size, number, fanout, segment))
            self._remark(
                size,
                f"Open MPI reads '{words}' as one rule (bytes, algorithm, fan-out, segment), but "
                "the line has more or fewer numbers: is a count above it wrong?",
            )
        return Rule(
            collective, ranks, size.value, number.value, fanout.value, segment.value, size.line
        )

    def _peek_follows(self) -> bool:
        return self.at < len(self.numbers) and self.numbers[self.at].follows

    def _next(self, what: str, most: int | None = None) -> Number:
        if self.at == len(self.numbers):
            line = self.numbers[-1].line if self.numbers else 1
            raise InputError(
                f"{self.name}:{line}: the file ends where {what} should be. "
                f"{MALFORMED}; is a count above it too large?"
            )
        number = self.numbers[self.at]
        self.at += 1
        if number.value < 0:
            remedy = "write it without '-'"
            if "rule-file-version" in number.word:
                remedy = "'rule-file-version-2' must be the very first word in the file"
            raise self._malformed(number, f"{what} is {number.value}", remedy)
        if most is not None and number.value > most:
            raise self._malformed(
                number,
                f"{what} is {number.value}, and there are {len(COLLECTIVES)}",
                f"write 0 to {most}; is a count above it wrong?",
            )
        return number

    def _malformed(self, number: Number, what: str, remedy: str) -> InputError:
        return InputError(f"{self.name}:{number.line}: {what}. {MALFORMED}; {remedy}")

    def _remark(self, number: Number, text: str) -> None:
        self.remarks.append(Remark(number.line, text, MISREAD))

    def _look_at_rest(self) -> None:
        rest = self.numbers[self.at :]
        if rest:
            self._remark(
                rest[0],
                f"the text from {rest[0].word!r} is not read: {len(rest)} numbers more than the "
                "counts above announce; is one too small?",
            )

    def _misread(self) -> list[Remark]:
        """A remark for each word that a reader would take for a different number."""
        words: dict[tuple[int, str], list[Number]] = {}
        for number in self.numbers[: self.at]:
            words.setdefault((number.line, number.word), []).append(number)
        return [
            Remark(line, f"{word!r} is read as {_as_read(found)}", MISREAD)
            for (line, word), found in words.items()
            if not all(number.is_as_written for number in found)
        ]

    def _in_order(self, collective: str, block: Iterable[Block]) -> list[Rule]:
        """The rules of a collective, ascending, as Open MPI's search finds them: it continues while
        the next entry is not above the value sought."""
        found = []
        for ranks, line, rules in self._rising(block, f"numbers of ranks of {collective}", True):
            sizes = [(rule.bytes, rule.line, rule) for rule in rules]
            what = f"sizes of {collective} from {ranks} ranks on"
            found += [
                Rule(collective, ranks, size, rule.number, rule.fanout, rule.segment, rule.line)
                for size, line, rule in self._rising(sizes, what, False)
            ]
        return found

    def _rising(self, entries: Iterable[tuple], what: str, first_holds_below: bool) -> list[tuple]:
        found: list[tuple] = []
        for key, line, held in entries:
            before = found[-1][0] if found else -1
            if key <= before:
                self.remarks.append(
                    Remark(
                        line,
                        f"the {what} do not increase: {key} after {before}. "
                        "Open MPI stops at the first one that is too large; "
                        "sort them",
                        MISREAD,
                    )
                )
                if len(found) == 1 and first_holds_below and found[0][0] > 0:
                    found = [(0, *found[0][1:])]  # below it, the first entry still decides
                else:
                    found.pop()
                key = before
            found.append((key, line, held))
        return found


def _as_read(found: Sequence[Number]) -> str:
    if any(number.value == LARGEST for number in found):
        return f"{LARGEST}, the largest possible number"
    return " and ".join(str(number.value) for number in found)
