"""Find similar C answers in a class, regardless of names, layout and comments.

C text is split into tokens, and fingerprints of the tokens reveal passages that two answers share.
`search` returns the pairs of answers with their shares.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from tqdm.auto import tqdm

from mpilab.course.report import render
from mpilab.errors import InputError, Ungradable
from mpilab.grading.answers import answer_cells, is_blank, lift
from mpilab.grading.grade import Assignment
from mpilab.grading.release import solutions
from mpilab.grading.submission import Submission, find_submissions, parse
from mpilab.judging.rubric import KERNEL
from mpilab.util.kit import ROOT
from mpilab.util.text import aligned, plain
from mpilab.util.units import plural

NAME = "$"  # no C text begins with it

# Tried in this order. What matches none is skipped; an unterminated literal ends with its line, so
# that no part of the source is read twice.
_LEXEMES = re.compile(
    r"""
    (?P<nothing> \s+ | //[^\n]* | /\*.*?(?:\*/|\Z) | \\\n | ^[ \t]*\#[ \t]*include[^\n]*
               | ^%%[^\n]* )
  | (?P<text>    (?:u8|[uUL])?"(?:\\.|[^"\\\n])*"? | [uUL]?'(?:\\.|[^'\\\n])*'? )
  | (?P<number>  \.?[0-9](?:[eEpP][+-]|[\w.])* )
  | (?P<name>    [A-Za-z_]\w* )
  | (?P<sign>    ->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\.\.\.|[-+*/%&|^]=|\#\#
               | [-+*/%&|^~!=<>?:;,.()\[\]{}\#] )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_KEYWORDS = set(
    "auto break case char continue default define do double elif else endif enum extern float for "
    "goto if ifdef ifndef int long return short signed sizeof struct switch typedef undef union "
    "unsigned void while".split()
)
_DROPPED = set("const volatile restrict static inline register { }".split())

GRAM, WINDOW = 12, 4

# The kinds of an answer's tokens; None marks those that must not match.
Kinds = Sequence[str | None]
# (position in one, position in the other, tokens)
Passage = tuple[int, int, int]

# Answers with fewer original tokens than this (about five lines) are not compared.
FEWEST = 40

# A hash that occurs this often in an answer belongs to repetitive text and would match everywhere.
OFTEN = 16

SHOWN = 50  # pairs side by side; more would make the page too long to read

# Renamed and rearranged copies are above it, independent kernels below; see docs/reporting.md.
THRESHOLD = 0.7
LONGEST = 100_000  # characters; no honest answer is longer


# C as a list of tokens that renaming, reformatting and commenting do not change.
#
# All numbers count as the same token, and so do all string and character literals. Names chosen by
# the student are kept, marked with NAME, because matching must know which are equal. Braces,
# qualifiers and `#include` lines are dropped: they can change without changing the meaning.


@dataclass(frozen=True)
class Token:
    """The kind of a piece of source text, and its position: source[begin:end]."""

    kind: str
    begin: int
    end: int


def tokens_of(source: str) -> list[Token]:
    """The tokens of a C text, in order; in invalid C, those that can be found."""
    found = []
    for lexeme in _LEXEMES.finditer(source):
        kind = _kind(lexeme.lastgroup, lexeme[0])
        if kind not in _DROPPED and kind:
            found.append(Token(kind, *lexeme.span()))
    return found


def _kind(group: str | None, text: str) -> str:
    """The token kind of a lexeme; '' if it is not a token."""
    if group == "nothing":
        return ""
    if group == "sign" or text in _KEYWORDS or text in _DROPPED or text.startswith("MPI_"):
        return text
    return NAME + text if group == "name" else f"a {group}"


# Fingerprints of token lists by winnowing, and the passages that two lists share.
#
# Winnowing (Schleimer, Wilkerson, Aiken, SIGMOD 2003, section 3) keeps the smallest of every WINDOW
# successive hashes of GRAM tokens; on a tie, the last. Two lists that share GRAM + WINDOW - 1
# successive tokens share a fingerprint, and nothing shorter than GRAM tokens matches.
#
# Names match as in Baker's parameterized matching (J. Computer and System Sciences 52, 1996): names
# of one passage correspond one-to-one to names of the other. Renaming changes nothing, but
# `a = b + b` does not match `a = b + c`.
#
# Passages are extended from fingerprints in both directions, then tiled, longest first, as in
# Wise's greedy string tiling (1993): no token counts twice, and reordered passages count, too.


def grams(kinds: Sequence[str], size: int = GRAM) -> list[int]:
    """A hash of every `size` successive kinds; renaming does not change it."""
    return [_digest(kinds[at : at + size]) for at in range(len(kinds) - size + 1)]


def _digest(kinds: Sequence[str]) -> int:
    # Python's own hash() differs between processes, so winnowing would keep different hashes each
    # time.
    numbers: dict[str, int] = {}
    text = "\0".join(
        f"{NAME}{numbers.setdefault(kind, len(numbers))}" if kind.startswith(NAME) else kind
        for kind in kinds
    )
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def winnow(hashes: Sequence[int], window: int = WINDOW) -> list[int]:
    """The positions of the hashes to keep, in order; of less than a window, the smallest."""
    kept: list[int] = []
    for first in range(max(1, len(hashes) - window + 1)):
        frame = range(first, min(first + window, len(hashes)))
        if frame:
            # On a tie, the last one: it stays in the next windows longest.
            place = min(frame, key=lambda at: (hashes[at], -at))
            if not kept or kept[-1] != place:
                kept.append(place)
    return kept


def covered(kinds: Sequence[str], known: set[int], size: int = GRAM) -> list[bool]:
    """Whether each kind is part of a gram whose hash is in the set `known`, as a list."""
    marks = [False] * len(kinds)
    for place, value in enumerate(grams(kinds, size)):
        if value in known:
            marks[place : place + size] = [True] * size
    return marks


def passages(
    one: Kinds, other: Kinds, seeds: Iterable[tuple[int, int]], size: int = GRAM
) -> list[Passage]:
    """The passages that two lists share, as (position in one, in other, length), longest first.

    one, other   lists of kinds; None marks tokens that must not match (the template).
    seeds        pairs of positions where both have a gram with the same hash.
    """
    found: set[Passage] = set()
    inside: set[tuple[int, int]] = set()
    for a, b in sorted(seeds):
        if (a, b) in inside:
            continue
        there: dict[str, str] = {}
        back: dict[str, str] = {}
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


def _agree(
    one: Kinds, other: Kinds, a: int, b: int, there: dict[str, str], back: dict[str, str]
) -> bool:
    """Whether token a of one matches token b of other; records which names correspond."""
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


def _tiled(found: Iterable[Passage], size: int) -> list[Passage]:
    """The passages without the parts that longer ones cover; drops pieces shorter than `size`."""
    tiles: list[Passage] = []
    taken: tuple[set[int], set[int]] = (set(), set())
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


# Pairs of answers, by the share of text that they have in common.


@dataclass(frozen=True)
class Answer:
    """One student's answer; `given` marks the tokens that were given to everyone."""

    student: str
    source: str
    tokens: tuple[Token, ...]
    given: tuple[bool, ...]

    @cached_property
    def own(self) -> int:
        """The number of the student's own tokens."""
        return self.given.count(False)

    @cached_property
    def kinds(self) -> list[str | None]:
        """The kinds of the tokens; None for given ones."""
        pairs = zip(self.tokens, self.given, strict=True)
        return [None if given else token.kind for token, given in pairs]

    @cached_property
    def fingerprints(self) -> dict[int, list[int]]:
        """{hash: positions where it was kept}, of grams with only the student's own tokens."""
        # Given tokens divide the answer: no gram spans them.
        hashes = grams(["" if kind is None else kind for kind in self.kinds])
        found = defaultdict(list)
        for first, last in _stretches(self.kinds):
            for place in winnow(hashes[first : last - GRAM + 1]):
                found[hashes[first + place]].append(first + place)
        return {value: places for value, places in found.items() if len(places) < OFTEN}


@dataclass(frozen=True)
class Pair:
    """Two answers and the passages (position in one, position in other, tokens) they share."""

    one: Answer
    other: Answer
    passages: tuple[Passage, ...]

    def matched(self, side: int) -> list[int | None]:
        """The index of the passage that each token of answer 0 or 1 belongs to, or None."""
        marks: list[int | None] = [None] * len((self.one, self.other)[side].tokens)
        for number, passage in enumerate(self.passages):
            for at in range(passage[side], passage[side] + passage[2]):
                marks[at] = number
        return marks

    @property
    def common(self) -> int:
        """The number of tokens they share; passages do not overlap."""
        return sum(length for _, _, length in self.passages)

    @property
    def share(self) -> float:
        """The share (0 to 1) of the shorter answer's own tokens that the other has as well."""
        return self.common / min(self.one.own, self.other.own)


def answers_of(sources: Mapping[str, str], given: Iterable[str] = ()) -> list[Answer]:
    """A list of Answers from {student: source}, by student; `given` are texts everyone has."""
    known = set()
    for text in given:
        known.update(grams([token.kind for token in tokens_of(text)]))
    answers = []
    for student, source in sorted(sources.items()):
        tokens = tuple(tokens_of(source))
        marks = covered([token.kind for token in tokens], known)
        answers.append(Answer(student, source, tokens, tuple(marks)))
    return answers


def pairs_of(answers: Sequence[Answer], progress: bool = False) -> tuple[list[Pair], list[Answer]]:
    """(Pairs that share a passage, largest share first; answers too short to compare)."""
    short = [answer for answer in answers if answer.own < FEWEST]
    compared = [answer for answer in answers if answer.own >= FEWEST]
    found = []
    count = len(compared) * (len(compared) - 1) // 2
    couples = combinations(compared, 2)
    for one, other in tqdm(couples, "comparing", count, unit="pair", disable=not progress):
        common = one.fingerprints.keys() & other.fingerprints.keys()
        seeds = [
            (a, b)
            for value in common
            for a in one.fingerprints[value]
            for b in other.fingerprints[value]
        ]
        if runs := passages(one.kinds, other.kinds, seeds):
            found.append(Pair(one, other, tuple(runs)))
    found.sort(key=lambda pair: (-pair.share, pair.one.student, pair.other.student))
    return found, short


def _stretches(kinds: Kinds) -> Iterator[tuple[int, int]]:
    """Yield (first, last + 1) of every run of at least GRAM kinds without None."""
    first = 0
    for at, kind in enumerate([*kinds, None]):
        if kind is None:
            if at - first >= GRAM:
                yield first, at
            first = at + 1


@dataclass(frozen=True)
class Similar:
    """The result of `search`.

    pairs      every pair that shares a passage, largest share first
    compared   number of answers compared
    notes      which answers were not compared, and why
    """

    lab: str
    title: str
    threshold: float
    pairs: list[Pair]
    compared: int
    notes: list[str]

    @property
    def chosen(self) -> list[Pair]:
        """The pairs whose share is at least the threshold."""
        return [pair for pair in self.pairs if pair.share >= self.threshold]


# The pairs as a table for the terminal, and as a page with both answers side by side.


def table(similar: Similar) -> str:
    """The pairs above the threshold as lines of text."""
    rows = [("share", "common", "own", "answers")]
    for pair in similar.chosen:
        names = f"{plain(pair.one.student)}  {plain(pair.other.student)}"
        rows.append((percent(pair.share), str(pair.common), _own(pair), names))
    return aligned(rows, left=(3,))


def page(similar: Similar) -> str:
    """The HTML page of a Similar."""
    return render(
        "course/similarity.html.j2",
        title=plain(similar.title),
        lab=similar.lab,
        count=similar.compared,
        threshold=percent(similar.threshold),
        highest=percent(similar.pairs[0].share) if similar.pairs else "",
        notes=similar.notes,
        shown=SHOWN,
        gram=GRAM,
        pairs=[_view(pair, number < SHOWN) for number, pair in enumerate(similar.chosen)],
    )


def percent(share: float) -> str:
    """0.5 -> '50 %'."""
    return f"{100 * share:.0f} %"


def _own(pair: Pair) -> str:
    return f"{pair.one.own} / {pair.other.own}"


def _view(pair: Pair, whole: bool) -> dict[str, Any]:
    view = {
        "share": percent(pair.share),
        "one": pair.one.student,
        "other": pair.other.student,
        "common": pair.common,
        "own": _own(pair),
        "passages": plural(len(pair.passages), "passage"),
    }
    if whole:
        view["sides"] = [
            {"student": answer.student, "pieces": _pieces(answer, pair.matched(side))}
            for side, answer in enumerate((pair.one, pair.other))
        ]
    return view


def _pieces(answer: Answer, marks: Sequence[int | None]) -> list[dict[str, Any]]:
    """The source, split where marked passages begin and end."""
    spots = zip(answer.tokens, marks, answer.given, strict=True)
    pieces, at, seen = [], 0, set()
    for (passage, given), spots_of in groupby(spots, key=lambda spot: (spot[1], spot[2])):
        run = list(spots_of)
        begin, end = run[0][0].begin, run[-1][0].end
        if begin > at:
            pieces.append(_piece(answer.source[at:begin]))
        first = passage not in seen
        pieces.append(_piece(answer.source[begin:end], passage, given, first))
        seen.add(passage)
        at = end
    return [*pieces, _piece(answer.source[at:])]


def _piece(
    text: str, passage: int | None = None, given: bool = False, first: bool = False
) -> dict[str, Any]:
    return {"text": text, "passage": passage, "given": given, "first": first}


# From the submissions of a class to similar pairs of answers.


def only_exercise(lab: str, root: Path = ROOT) -> str:
    """The only exercise in C of a lab; InputError, with all of them, if there are several."""
    exercises = Assignment.load(lab, root).rubric.exercises
    kernels = [each.id for each in exercises if each.kind == KERNEL]
    if len(kernels) != 1:
        listed = ", ".join(kernels) or "this lab has none"
        raise InputError(f"similar: no C exercise given; add --exercise, one of {listed}")
    return kernels[0]


def search(
    submissions: str | Path,
    lab: str,
    exercise: str,
    *,
    threshold: float = THRESHOLD,
    keep_reference: bool = False,
    progress: bool = False,
    root: Path = ROOT,
) -> Similar:
    """Compare the answers to a kernel exercise of a lab pair by pair; Similar.

    Text given by the lab does not count; nor does text from our own answers, unless
    `keep_reference`. Raises InputError for an exercise whose answer is not C.
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold {threshold:g}: not a share; write a number from 0 to 1")
    assignment = Assignment.load(lab, root)
    asked = assignment.rubric.exercise(exercise)
    if asked.kind != KERNEL:
        kernels = [each.id for each in assignment.rubric.exercises if each.kind == KERNEL]
        raise InputError(
            f"exercise {exercise!r} of {lab} is of kind {asked.kind}; only answers in C are "
            f"compared: {', '.join(kernels) or 'this lab has none'}"
        )
    stub = answer_cells(assignment.notebook)[exercise]
    sources, notes = _sources(find_submissions(submissions, lab), assignment.notebook, exercise)
    blank = sorted(student for student, source in sources.items() if is_blank(source, stub))
    for student in blank:
        del sources[student]
        notes.append(f"{student}: blank")
    for student in [student for student, source in sources.items() if len(source) > LONGEST]:
        notes.append(
            f"{student}: {len(sources.pop(student))} characters, more than {LONGEST}; "
            "compare it manually"
        )
    given = [stub]
    if not keep_reference:
        given.append(solutions(root / "labs" / "source" / f"{lab}.py")[exercise])
        given += [(root / "src_c" / name).read_text(encoding="utf-8") for name in asked.references]
    pairs, short = pairs_of(answers_of(sources, given), progress=progress)
    notes += [
        f"{answer.student}: only {answer.own} tokens that neither are given nor match our own "
        f"answer; fewer than {FEWEST} are not meaningful"
        for answer in short
    ]
    return Similar(lab, asked.title, threshold, pairs, len(sources) - len(short), notes)


def _sources(
    submissions: Iterable[Submission], notebook: NotebookNode, exercise: str
) -> tuple[dict[str, str], list[str]]:
    """({student: source of the answer}, notes on submissions without one)."""
    sources, notes = {}, []
    for submission in submissions:
        try:
            answers, problems = lift(notebook, parse(submission))
        except Ungradable as error:
            notes.append(str(error))
            continue
        if exercise in answers:
            sources[submission.student] = answers[exercise]
        else:
            reasons = [each.reason for each in problems if each.grade_id == exercise]
            notes.append(f"{submission.student}: {'; '.join(reasons)}")
    return sources, notes
