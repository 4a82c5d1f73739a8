"""Which program measures: OMB's own where it is on PATH, otherwise ours (src_c/osu)."""

import shutil
from dataclasses import dataclass

from mpilab import build


@dataclass(frozen=True)
class Program:
    """What mpirun starts: the words of `command`, then the options of the benchmark."""

    command: tuple
    is_own: bool


def program_of(name, own=False):
    """The Program for the benchmark `name`; with `own` the kit's, whatever is on PATH.

    Raises SetupError where the kit's is needed and has not been built.
    """
    found = None if own else shutil.which(name)
    if found is not None:
        return Program((found,), is_own=False)
    return Program((str(build.need(build.OSU_PROGRAM)), name), is_own=True)
