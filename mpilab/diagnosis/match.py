"""What a recogniser of a pattern has found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Match:
    """pattern, ranks, hint and places as in a Diagnosis; `headline` says what happened, where the
    pattern knows it better than 'these ranks wait'."""

    pattern: str
    ranks: tuple
    hint: str
    places: tuple = ()
    headline: str = ""  # without 'deadlock: '
