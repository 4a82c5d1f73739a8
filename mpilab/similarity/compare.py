"""Pairs of answers of a class, by the share of the text that they have in common."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from mpilab.similarity.tokens import tokens_of
from mpilab.similarity.winnowing import GRAM, covered, grams, passages, winnow

# Fewer tokens of one's own than this say nothing: it is about five lines.
FEWEST = 40
# A hash that an answer has so often is of a text that repeats itself, and would match everywhere.
OFTEN = 16


@dataclass(frozen=True)
class Answer:
    """One student's answer, and which of its tokens everybody was given."""

    student: str
    source: str
    tokens: tuple
    given: tuple

    @cached_property
    def own(self):
        """How many tokens are the student's own."""
        return self.given.count(False)

    @cached_property
    def kinds(self):
        """Kinds of the tokens; None for what was given."""
        pairs = zip(self.tokens, self.given, strict=True)
        return [None if given else token.kind for token, given in pairs]

    @cached_property
    def fingerprints(self):
        """{hash: places where it was kept}, of grams that are all the student's own."""
        # What was given parts the answer: no gram reaches across it.
        hashes = grams(["" if kind is None else kind for kind in self.kinds])
        found = defaultdict(list)
        for first, last in _stretches(self.kinds):
            for place in winnow(hashes[first : last - GRAM + 1]):
                found[hashes[first + place]].append(first + place)
        return {value: places for value, places in found.items() if len(places) < OFTEN}


@dataclass(frozen=True)
class Pair:
    """Two answers, and the passages (place in one, place in other, tokens) that they share."""

    one: Answer
    other: Answer
    passages: tuple

    def matched(self, side):
        """For each token of answer 0 or 1, the passage (from 0) that it belongs to, or None."""
        marks = [None] * len((self.one, self.other)[side].tokens)
        for number, passage in enumerate(self.passages):
            for at in range(passage[side], passage[side] + passage[2]):
                marks[at] = number
        return marks

    @property
    def common(self):
        """How many tokens they share: passages do not overlap."""
        return sum(length for _, _, length in self.passages)

    @property
    def share(self):
        """Of the shorter one, the share of its own tokens that is in the other: 0 to 1."""
        return self.common / min(self.one.own, self.other.own)


def answers_of(sources, given=()):
    """A list of Answers from {student: source}, by student; `given` are texts that all have."""
    known = set()
    for text in given:
        known.update(grams([token.kind for token in tokens_of(text)]))
    answers = []
    for student, source in sorted(sources.items()):
        tokens = tuple(tokens_of(source))
        marks = covered([token.kind for token in tokens], known)
        answers.append(Answer(student, source, tokens, tuple(marks)))
    return answers


def pairs_of(answers, progress=False):
    """(pairs that share a passage, the largest share first; answers too short to be compared)."""
    from tqdm.auto import tqdm

    short = [answer for answer in answers if answer.own < FEWEST]
    compared = [answer for answer in answers if answer.own >= FEWEST]
    found = []
    count = len(compared) * (len(compared) - 1) // 2
    couples = combinations(compared, 2)
    for one, other in tqdm(couples, "comparing", count, unit="pair", disable=not progress):
        common = one.fingerprints.keys() & other.fingerprints.keys()
        seeds = [
            (a, b) for value in common for a in one.fingerprints[value]
            for b in other.fingerprints[value]
        ]  # fmt: skip
        if runs := passages(one.kinds, other.kinds, seeds):
            found.append(Pair(one, other, tuple(runs)))
    found.sort(key=lambda pair: (-pair.share, pair.one.student, pair.other.student))
    return found, short


def _stretches(kinds):
    """(first, behind the last) of every unbroken stretch of at least GRAM kinds that are known."""
    first = 0
    for at, kind in enumerate([*kinds, None]):
        if kind is None:
            if at - first >= GRAM:
                yield first, at
            first = at + 1
