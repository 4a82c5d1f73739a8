"""What an engine does for us: run one case with the C harness that is loaded into it."""

import ctypes

_harness = {}
_communicators = {}


def run_case(line, library, function, directory, harness, ranks):
    """Run a case (its `line` for the harness) on the first `ranks` ranks of MPI_COMM_WORLD.

    Called on exactly those ranks. Raises RuntimeError with the harness's own words when it cannot
    be run.
    """
    loaded = _load(harness)
    if loaded.mpilab_run_case(_communicator(ranks), line.encode(), library.encode(),
                              function.encode(), directory.encode()):  # fmt: skip
        raise RuntimeError(loaded.mpilab_harness_error().decode(errors="replace"))


def _load(path):
    if path not in _harness:
        harness = ctypes.CDLL(path)
        harness.mpilab_run_case.argtypes = [ctypes.c_void_p] + 4 * [ctypes.c_char_p]
        harness.mpilab_harness_error.restype = ctypes.c_char_p
        _harness[path] = harness
    return _harness[path]


def _communicator(ranks):
    """The MPI handle of the first `ranks` ranks, as C wants it."""
    from mpi4py import MPI

    if ranks not in _communicators:
        group = MPI.COMM_WORLD.group.Incl(range(ranks))
        _communicators[ranks] = MPI.COMM_WORLD.Create_group(group)
    # An Open MPI handle is a pointer; mpi4py tells where it keeps it.
    return ctypes.c_void_p.from_address(MPI._addressof(_communicators[ranks]))
