"""The errors that mpilab raises on purpose.

Every message has three parts: what was wrong (with the value), where, and what to do about it.
"""


class MpilabError(Exception):
    """Base of every error that mpilab raises on purpose."""


class SetupError(MpilabError):
    """Something that mpilab needs is missing on this machine; the message says how to get it."""


class InputError(MpilabError, ValueError):
    """A file, an argument or an option holds a value that cannot be used."""


class BuildError(MpilabError):
    """The C compiler refused a kernel; `diagnostics` holds what it said, by line of the source."""

    def __init__(self, message, diagnostics=()):
        super().__init__(message)
        self.diagnostics = tuple(diagnostics)


class BuildTimeOut(BuildError):
    """The C compiler did not come to its end in time: of an #include without end, or on a machine
    that is very busy."""


class ClusterError(MpilabError):
    """The cluster could not be started, or does not answer."""


class EngineDied(ClusterError):
    """A rank of the cluster ended in the middle of a call; `ranks` names which."""

    def __init__(self, message, ranks=()):
        super().__init__(message)
        self.ranks = tuple(ranks)


class Ungradable(MpilabError):
    """An answer cannot be judged, through no fault that is known to be the student's."""
