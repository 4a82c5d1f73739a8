"""Ask ranks that compute where they are.

The recorder answers a real-time signal by noting the place in the kernel's shared object at which
the rank was met (src_c/recorder/failures.c).
"""

import contextlib
import os
import signal
import time

from mpilab.recording import HEADER, peek

SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else None  # MPILAB_SAMPLE_SIGNAL
LOOKS = 8
KEPT = HEADER["sample_sites"].shape[0]
ANSWER_S = 0.25  # a rank on a busy machine may have to wait for its time slice
TICK_S = 0.005


def sample(paths, looks=LOOKS):
    """Look `looks` times at the ranks whose recordings are `paths` ({rank: path}).

    Returns {rank: [call sites]}, offsets into the kernel's library as in a record, 0 for a look
    that met the rank outside of it. A rank that has ended or does not answer is left out.
    """
    found = {}
    if SIGNAL is None:  # macOS
        return found
    for rank, path in paths.items():
        sites = []
        for _ in range(min(looks, KEPT)):
            header = peek(path)
            if header is None or not _ask(int(header["pid"])):
                break
            answered = _answer(path, int(header["samples"]))
            if answered is None:
                break
            last = (int(answered["samples"]) - 1) % KEPT
            sites.append(int(answered["sample_sites"][last]))
        if sites:
            found[rank] = sites
    return found


def _ask(pid):
    """Send the signal to `pid`, but never to a group, to init or to ourselves."""
    if pid <= 1 or pid == os.getpid():
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, SIGNAL)
        return True
    return False


def _answer(path, before):
    """The header once it holds more samples than `before`; None where the rank stays silent."""
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline:
        header = peek(path)
        if header is not None and int(header["samples"]) > before:
            return header
        time.sleep(TICK_S)  # the answer is a word in shared memory: there is nothing to wait on
    return None
