"""What a cluster says of its ranks."""

import signal

from mpilab.errors import ClusterError


def names(ranks):
    """[1] -> 'rank 1 is', [0, 2, 3] -> 'ranks 0, 2 and 3 are'."""
    *first, last = map(str, ranks)
    return f"ranks {', '.join(first)} and {last} are" if first else f"rank {last} is"


def rank_error(rank, error, late):
    """ClusterError for what `rank` raised, while the ranks `late` have not returned."""
    name = getattr(error, "ename", type(error).__name__)
    value = getattr(error, "evalue", error)
    message = f"rank {rank} raised {name}: {value}"
    if late:
        message += f"\n{names(late)} still at work, perhaps waiting for it: see cluster.restart()"
    traceback = getattr(error, "traceback", None)
    if traceback:
        message += f"\nOn rank {rank}:\n{traceback}"
    failure = ClusterError(message)
    failure.__cause__ = error
    return failure


def fate(status):
    """What an exit code, or minus a signal's number, means: 'died of SIGKILL (Killed)'."""
    if status >= 0:
        return f"ended with exit code {status}"
    try:
        return f"died of {signal.Signals(-status).name} ({signal.strsignal(-status)})"
    except ValueError:  # a real-time signal has no name
        return f"died of signal {-status}"


def describe(deaths):
    """{1: -11} -> 'rank 1 died of SIGSEGV (Segmentation fault)'."""
    return "; ".join(f"rank {rank} {fate(deaths[rank])}" for rank in sorted(deaths))
