"""Right values for the Python exercise of lab 02, by counting. Handouts leave this file out."""

from mpilab.algorithms.algorithm import counts
from mpilab.algorithms.allgather import schedule


def costs(name: str, ranks: int, block_bytes: int) -> tuple[int, int, int]:
    """(rounds, messages, bytes sent by the busiest rank) of an allgather algorithm."""
    counted = counts(schedule(name, ranks), block_bytes)
    return counted.rounds, counted.messages, counted.max_bytes_sent
