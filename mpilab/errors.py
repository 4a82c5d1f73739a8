"""The errors that mpilab raises deliberately.

Every message has three parts: what was wrong (with the value), where, and what to do about it.
"""

from collections.abc import Iterable
from typing import Any


class MpilabError(Exception):
    """Base class of every error that mpilab raises deliberately."""


class SetupError(MpilabError):
    """Something that mpilab needs is missing on this machine; the message says how to get it."""


class InputError(MpilabError, ValueError):
    """A file, an argument or an option contains a value that cannot be used."""


class BuildError(MpilabError):
    """The C compiler rejected a kernel; `diagnostics` holds its messages, by source line."""

    def __init__(self, message: str, diagnostics: Iterable[Any] = ()) -> None:
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class NotOffered(BuildError):
    """A kernel uses a function that is not available to it; the message says which."""


class BuildTimeOut(BuildError):
    """The C compiler did not finish in time: an endless #include, or a very busy machine."""


class ClusterError(MpilabError):
    """The cluster could not be started, or does not respond."""


class EngineDied(ClusterError):
    """A rank of the cluster ended in the middle of a call; `ranks` lists the ranks that ended."""

    def __init__(self, message: str, ranks: Iterable[int] = ()) -> None:
        super().__init__(message)
        self.ranks = tuple(ranks)


class Ungradable(MpilabError):
    """An answer cannot be judged, and the student is not known to be at fault.

    `public` is shown to the student; `details` (the grader's paths, program output) are for the
    instructor. The message holds both.
    """

    def __init__(self, public: object, details: object = "") -> None:
        super().__init__(f"{public}: {details}" if details else public)
        self.public, self.details = str(public), str(details)
