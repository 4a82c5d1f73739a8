"""Read a rules file as Open MPI reads it, and tell what Open MPI keeps to itself.

    2              # collectives
    7              # the number of one: bcast
    1              # numbers of ranks that there are rules for
    8              # from 8 ranks on
    2              # sizes that there are rules for
    0     6 0 0    # from 0 bytes on algorithm 6, fan-out 0, no segments
    65536 3 0 8192 # from 64 KiB on algorithm 3, fan-out 0, segments of 8 KiB
    ...

A file that breaks this order is ignored as a whole, without a word, unless coll_base_verbose is 1
or more. A first line `rule-file-version-2` (since Open MPI 5.0.7) allows a fifth number for each
size, the most requests of an alltoall or a reduce; it is read here, and not kept.

Source: Open MPI's ompi/mca/coll/tuned/coll_tuned_dynamic_file.c; each case was tried with 5.0.11
(tests/openmpi_rules).
"""

from pathlib import Path

from mpilab.errors import InputError
from mpilab.openmpi_rules.model import MISREAD, Remark, Rule, Rules
from mpilab.openmpi_rules.remarks import remarks_on
from mpilab.openmpi_rules.tokens import LARGEST, numbers_of, version_of
from mpilab.openmpi_rules.vocabulary import COLLECTIVES, LEFT

MALFORMED = "Open MPI ignores a file like this as a whole, without a word, and decides by itself"


def read(path):
    """The Rules of a file; InputError 'FILE:LINE: ...' for one that Open MPI would ignore."""
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read: {error.strerror}. Open MPI would go on without a word, and "
            "decide by itself; give the file's whole path"
        ) from None
    return parse(text, str(path))


def parse(text, name="rules"):
    """The Rules of a text, with what there is to remark on them.

    Raises InputError, 'NAME:LINE: ...', where Open MPI would ignore the file.
    """
    if text.lstrip().startswith("{"):
        raise InputError(
            f"{name}:1: this is JSON, which Open MPI reads since 6.0 only. {MALFORMED}; write the "
            "classic format, e.g. with mpilab rules write"
        )
    version, rest = version_of(text)
    return _Reader(name, version, numbers_of(rest, text.count("\n") - rest.count("\n") + 1)).read()


class _Reader:
    def __init__(self, name, version, numbers):
        self.name, self.version, self.numbers = name, version, numbers
        self.at = 0
        self.remarks = []

    def read(self):
        blocks = {}  # {collective: (line, [(ranks, line, [Rule])])}
        collectives = self._next("the number of collectives", len(COLLECTIVES))
        for _ in range(collectives.value):
            number = self._next("the number of a collective", len(COLLECTIVES) - 1)
            collective = COLLECTIVES[number.value]
            if collective in blocks:
                self._remark(number, f"{collective} has rules in line {blocks[collective][0]} "
                             "already: Open MPI forgets those")  # fmt: skip
            blocks[collective] = (number.line, self._collective(collective))
        self._look_at_rest()
        rules = [
            rule for name, (_, block) in blocks.items() for rule in self._in_order(name, block)
        ]
        remarks = self._misread() + self.remarks + remarks_on(Rules(tuple(rules)))
        remarks.sort(key=lambda remark: remark.line)
        return Rules(tuple(rules), tuple(remarks), self.name)

    def _collective(self, collective):
        """[(ranks, line, [Rule])] as they stand in the file."""
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

    def _rule(self, collective, ranks, place):
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
                size, f"the first size {where} is {size.value}, not 0",
                "write a rule for 0 bytes first ('0 0 0 0' leaves small messages to Open MPI)"
            )  # fmt: skip
        # Only where they stand tells a person's mistake in counting.
        last = self.numbers[self.at - 1]
        shares = self.at < len(self.numbers) and self.numbers[self.at].line == last.line
        lines = {one.line for one in (size, number, fanout, segment)}
        if 1 < len(lines) < 4 or (len(lines) == 1 and shares and before != size.line):
            words = " ".join(str(one.value) for one in (size, number, fanout, segment))
            self._remark(size, f"Open MPI reads '{words}' as one rule (bytes, algorithm, fan-out, "
                         "segment), but there are more or less numbers in the line: is a count "
                         "above it wrong?")  # fmt: skip
        return Rule(collective, ranks, size.value, number.value, fanout.value, segment.value,
                    size.line)  # fmt: skip

    def _peek_follows(self):
        return self.at < len(self.numbers) and self.numbers[self.at].follows

    def _next(self, what, most=None):
        if self.at == len(self.numbers):
            line = self.numbers[-1].line if self.numbers else 1
            raise InputError(f"{self.name}:{line}: the file ends where {what} should be. "
                             f"{MALFORMED}; is a count above it too large?")  # fmt: skip
        number = self.numbers[self.at]
        self.at += 1
        if number.value < 0:
            remedy = "write it without '-'"
            if "rule-file-version" in number.word:
                remedy = "'rule-file-version-2' has to be the very first thing in the file"
            raise self._malformed(number, f"{what} is {number.value}", remedy)
        if most is not None and number.value > most:
            raise self._malformed(
                number, f"{what} is {number.value}, and there are {len(COLLECTIVES)}",
                f"write 0 to {most}; is a count above it wrong?",
            )  # fmt: skip
        return number

    def _malformed(self, number, what, remedy):
        return InputError(f"{self.name}:{number.line}: {what}. {MALFORMED}; {remedy}")

    def _remark(self, number, text):
        self.remarks.append(Remark(number.line, text, MISREAD))

    def _look_at_rest(self):
        rest = self.numbers[self.at :]
        if rest:
            self._remark(rest[0], f"what follows from {rest[0].word!r} on is not read: {len(rest)} "
                         "numbers more than the counts above tell; is one too small?")  # fmt: skip

    def _misread(self):
        """A remark for each word in which a person would read another number."""
        words = {}
        for number in self.numbers[: self.at]:
            words.setdefault((number.line, number.word), []).append(number)
        return [
            Remark(line, f"{word!r} is read as {_as_read(found)}", MISREAD)
            for (line, word), found in words.items()
            if not all(number.is_as_written for number in found)
        ]

    def _in_order(self, collective, block):
        """The rules of a collective, rising, as Open MPI's search finds them: it goes on while
        the next entry is not above what it looks for."""
        found = []
        for ranks, line, rules in self._rising(block, f"numbers of ranks of {collective}", True):
            sizes = [(rule.bytes, rule.line, rule) for rule in rules]
            what = f"sizes of {collective} from {ranks} ranks on"
            found += [
                Rule(collective, ranks, size, rule.number, rule.fanout, rule.segment, rule.line)
                for size, line, rule in self._rising(sizes, what, False)
            ]
        return found

    def _rising(self, entries, what, first_holds_below):
        found = []
        for key, line, held in entries:
            before = found[-1][0] if found else -1
            if key <= before:
                self.remarks.append(Remark(line, f"the {what} do not rise: {key} after {before}. "
                                           "Open MPI stops at the first one that is too large; "
                                           "sort them", MISREAD))  # fmt: skip
                if len(found) == 1 and first_holds_below and found[0][0] > 0:
                    found = [(0, *found[0][1:])]  # below it, the first entry still decides
                else:
                    found.pop()
                key = before
            found.append((key, line, held))
        return found


def _as_read(found):
    if any(number.value == LARGEST for number in found):
        return f"{LARGEST}, the largest number that there is"
    return " and ".join(str(number.value) for number in found)
