"""Judge a rules file by what its choices cost by the α-β model: the same on every machine."""

import numpy as np

from mpilab.errors import InputError
from mpilab.models.hockney import Hockney
from mpilab.openmpi_rules.model import FAILS, MISREAD
from mpilab.openmpi_rules.predicting import choices, seconds
from mpilab.openmpi_rules.reading import parse
from mpilab.openmpi_rules.vocabulary import WITHOUT_SIZE
from mpilab.openmpi_rules.words import choice_words
from mpilab.sweeps.openmpi_traffic import PATTERNS
from mpilab.sweeps.sizes import bytes_of

# chosen, best: in words. Seconds are predicted; chosen_s is nan where nothing is chosen that the
# model knows. ratio = chosen_s / best_s, 1 where nothing better is known.
PREDICTED = np.dtype(
    [
        ("collective", "U24"), ("ranks", "i4"), ("bytes", "i8"), ("line", "i4"),
        ("chosen", "U80"), ("chosen_s", "f8"), ("best_s", "f8"), ("ratio", "f8"),
    ]
)  # fmt: skip
MOST_TEXT = 1 << 14  # bytes of a file that is judged


def predicted(rules, points, alpha, beta, gamma=None):
    """What the rules' choices cost by the model, beside the cheapest choice: table of PREDICTED.

    points   [(collective, ranks, bytes of a block or of the whole message)], or such in words:
             'bcast 64 8K, allgather 16 1024, barrier 64'
    alpha, beta   seconds of a message, and of a byte; gamma: see mpilab.models.costs

    The cheapest of all algorithms with a cost, without segments and with segments of 512 bytes to
    1 MiB, and of 2, 4 and 8 chains. Where Open MPI runs another algorithm in the place of the one
    chosen, that one's cost counts. Raises InputError for points that make no sense.
    """
    model = Hockney(alpha, beta)
    rows = []
    for collective, ranks, size in points_of(points):
        costs = [seconds(collective, ranks, size, choice, model, gamma)
                 for choice in choices(collective)]  # fmt: skip
        rule = rules.deciding(collective, ranks, size)
        own = None
        if rule is not None and not rule.is_fatal(ranks):
            own = seconds(collective, ranks, size, rule.choice, model, gamma)
        best = min(cost for cost in (*costs, own) if cost is not None)
        rows.append(row(collective, ranks, size, rule, np.nan if own is None else own, best))
    return np.array(rows, PREDICTED)


def row(collective, ranks, size, rule, chosen_s, best_s):
    """A row of PREDICTED; `rule` is None where the file has none that decides."""
    return (collective, ranks, size, 0 if rule is None else rule.line,
            "no rule" if rule is None else choice_words(rule), chosen_s, best_s,
            chosen_s / best_s if best_s else 1.0)  # fmt: skip


def complaint(text, points, alpha, beta, most=1.1):
    """What is wrong with a rules file (its text); "" if nothing is. To be used by rubrics.

    It must be read by Open MPI as it stands, make no program fail, and choose, at each of `points`,
    an algorithm that costs no more than `most` times what the cheapest one does; see `predicted`.
    What is left to Open MPI chooses nothing.
    """
    rules, wrong = readable(text)
    if wrong:
        return wrong
    return verdict(predicted(rules, points, alpha, beta), most, "by the model", "the model knows")


def readable(text):
    """(Rules, "") of a text that is judged; (None, what is wrong with it) where Open MPI would not
    read it as it stands, or a program would fail. InputError for what is no text of a file."""
    if not isinstance(text, str):
        raise InputError(f"a rules file is text, this is {type(text).__name__}")
    if len(text) > MOST_TEXT:
        raise InputError(f"{len(text)} characters are too many for a rules file; write less rules")
    try:
        rules = parse(text, "your rules file")
    except InputError as error:
        return None, str(error)
    for remark in rules.remarks:
        if remark.kind in (FAILS, MISREAD):
            return None, f"{rules.name}:{remark.line}: {remark.text}"
    return rules, ""


def verdict(rows, most, how, known):
    """What is wrong with choices that cost as a table of PREDICTED says; "" if nothing is.

    how, known   in words: "by the model"; whose cost "the model knows"
    """
    unknown = rows[np.isnan(rows["chosen_s"])]
    if len(unknown):
        row = unknown[0]
        return (f"{_where(row)} it says '{row['chosen']}': no algorithm is chosen whose cost "
                f"{known}")  # fmt: skip
    worst = rows[np.argmax(rows["ratio"])]
    if worst["ratio"] <= most * (1 + 1e-9):
        return ""
    return (f"{_where(worst)} it chooses {worst['chosen']} (line {worst['line']}), which takes "
            f"{worst['ratio']:.2f} times as long as the best choice {how}; at most {most:g} times "
            "is asked for")  # fmt: skip


def _where(row):
    size = "" if row["collective"] in WITHOUT_SIZE else f", {row['bytes']} bytes"
    return f"for {row['collective']} on {row['ranks']} ranks{size}"


def points_of(given):
    """[(collective, ranks, bytes)] of points in words, or of a list of such.

    Raises InputError for what is none.
    """
    words = given.split(",") if isinstance(given, str) else given
    return [_point(one.split() if isinstance(one, str) else list(one)) for one in words]


def _point(words):
    shown = " ".join(map(str, words))
    if not words or words[0] not in PATTERNS or len(words) > 3:
        raise InputError(f"point {shown!r}: write a collective ({', '.join(PATTERNS)}), ranks and "
                         "bytes, e.g. 'bcast 64 8K'")  # fmt: skip
    collective, ranks, size = (*words, 0)[:3] if words[0] in WITHOUT_SIZE else (*words, "", "")[:3]
    if not str(ranks).isdigit() or int(ranks) < 2:
        raise InputError(f"point {shown!r}: {str(ranks)!r} is no number of ranks from 2 on")
    return collective, int(ranks), bytes_of(size)
