"""Requests for memory that got none: which rank asked for how much, in which line, beyond which
limit."""

from dataclasses import replace

from mpilab.diagnosis import model
from mpilab.diagnosis.evidence import Evidence
from mpilab.diagnosis.model import (
    CRASH,
    DEADLOCK,
    MPI_ERROR,
    TIME_OUT,
    WRONG_RESULT,
    Diagnosis,
)
from mpilab.util.units import byte_size

OUT_OF_MEMORY = "out of memory"
# A rank without memory may end in any of these ways; a right result needed none.
_FOLLOWS = (CRASH, DEADLOCK, TIME_OUT, MPI_ERROR, WRONG_RESULT)
# A size_t as the recorder keeps it: what is negative here was meant to be a number of bytes.
NEGATIVE = "a negative size"
_NEGATIVE_HINT = (
    "malloc takes an unsigned number, so it was asked for far more than there is, and returned "
    "NULL. Find out why the number is negative: on which rank is it, and for which count?"
)
_HINT = (
    "malloc returns NULL if it cannot have the memory: test the pointer before you use it. To need "
    "less, let no rank hold the data of all others at once: send it in pieces, or from each rank "
    "straight to where it belongs."
)


def is_refused(evidence: Evidence) -> bool:
    """Whether a rank asked for memory and got none."""
    return any(one is not None and one.refused is not None for one in evidence.ranks)


def because_of_memory(found: Diagnosis, evidence: Evidence) -> Diagnosis:
    """The Diagnosis `found`, explained by the request for memory that got none, if there was one;
    else `found` unchanged."""
    refused = [
        (rank, *recorded.refused)
        for rank, recorded in enumerate(evidence.ranks)
        if recorded is not None and recorded.refused is not None
    ]
    if found.kind not in _FOLLOWS or not refused:
        return found
    rank, asked, held, site = refused[0]
    _, line = evidence.spot(site)
    limit = evidence.result.case.memory
    had = f" and had {_amount(held)} already" if held and asked >= 0 else ""
    if asked < 0:
        reason = ": a negative number"
    elif limit:
        reason = f", but may have {byte_size(limit)} beyond its buffers in this run"
    else:
        reason = ", which this machine does not have"
    size = _amount(asked) if asked < 0 else byte_size(asked)
    place = evidence.place(site, f"rank {rank} asks for {size} here")
    others = [one[0] for one in refused[1:]]
    shown = {(place.file, place.line)} if place is not None else set()
    more = tuple(each for each in found.places if (each.file, each.line) not in shown)
    return replace(
        found,
        headline=f"rank {rank} asked for {_amount(asked)}"
        + (f" in line {line}" if line else "")
        + f"{had}{reason}",
        pattern=NEGATIVE if asked < 0 else OUT_OF_MEMORY,
        hint=_NEGATIVE_HINT if asked < 0 else _HINT,
        ranks=tuple(dict.fromkeys((rank, *others, *found.ranks))),
        places=(*filter(None, (place,)), *more),
        notes=(
            f"Then {found.headline}.",
            *([f"{model.capital(model.ranks(others))} got no memory either."] if others else []),
            *found.notes,
        ),
    )


def _amount(count: int) -> str:
    """'33554432 bytes (32 MiB)'."""
    rounded = f" ({byte_size(count)})" if count >= 1024 else ""
    return f"{model.number(count, 'byte')}{rounded}"
