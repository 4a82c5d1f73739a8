"""Roles of the forkserver's children: ipyparallel's controller, or the engine of one rank."""

import contextlib
import ctypes
import importlib
import json
import os
import socket
import sys
import time
from typing import Any

from mpilab.cluster import rank
from mpilab.util import namespaces

# Seconds between the end of an engine and the report to mpirun, which then ends all others: ranks
# with the same error can crash by themselves, and are reported too. There is no delay if all
# engines have ended. On a busy machine, 0.1 s was sometimes too short.
GRACE = 0.5

# In an engine: the C harness by its path, and a communicator for each number of ranks.
_harness: dict[str, ctypes.CDLL] = {}
_communicators: dict[int, Any] = {}  # mpi4py's, which is imported only where ranks are
FORK = sys.platform.startswith("linux") and os.environ.get("MPILAB_FORK") != "0"
# Names, not real ports: the sockets are files in the cluster's own directory.
PORTS = range(1, 41)
# A Jupyter kernel imports the last ones when it starts.
PRELOADED = (
    "numpy.random",
    "mpi4py.MPI",
    "ipyparallel.engine.app",
    "ipykernel.debugger",
    "tornado.platform.asyncio",
    "tornado.queues",
    "encodings.idna",
    "IPython.core.completerlib",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
)


def run_case(
    line: str, library: str, function: str, directory: str, harness: str, ranks: int
) -> None:
    """Run a case (its `line` for the harness) on the first `ranks` ranks of MPI_COMM_WORLD.

    Call it on exactly those ranks. Raises RuntimeError with the harness's message if the case
    cannot be run.
    """
    loaded = _load(harness)
    if loaded.mpilab_run_case(
        _communicator(ranks), line.encode(), library.encode(), function.encode(), directory.encode()
    ):
        raise RuntimeError(loaded.mpilab_harness_error().decode(errors="replace"))


def _load(path: str) -> ctypes.CDLL:
    if path not in _harness:
        harness = ctypes.CDLL(path)
        harness.mpilab_run_case.argtypes = [ctypes.c_void_p, *4 * [ctypes.c_char_p]]
        harness.mpilab_harness_error.restype = ctypes.c_char_p
        _harness[path] = harness
    return _harness[path]


def _communicator(ranks: int) -> ctypes.c_void_p:
    """The MPI handle of the first `ranks` ranks, for C."""
    from mpi4py import MPI

    if ranks not in _communicators:
        group = MPI.COMM_WORLD.group.Incl(range(ranks))
        _communicators[ranks] = MPI.COMM_WORLD.Create_group(group)
    # An Open MPI handle is a pointer; mpi4py gives the address where it is stored.
    return ctypes.c_void_p.from_address(MPI._addressof(_communicators[ranks]))


def report(channel: socket.socket, **event: Any) -> None:
    """Send one event to the cluster; if it has hung up, the end of file will end us too."""
    with contextlib.suppress(OSError):
        channel.sendall(json.dumps(event).encode() + b"\n")


def preload_engine() -> None:
    """Import what every engine needs, without starting MPI or a thread."""
    import mpi4py

    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = True
    # ipykernel works without debugpy, which is the slowest import of all, and no user attaches a
    # debugger to an engine: pretend that it is not installed.
    absent = "debugpy" not in sys.modules
    if absent:
        sys.modules["debugpy"] = None  # type: ignore[assignment]  # how to hide a module
    for module in PRELOADED:
        importlib.import_module(module)
    if absent:
        del sys.modules["debugpy"]


def whereabouts() -> tuple[int, str]:
    """(rank, host) of this process; runs on the engines, where this module is always loaded."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.Get_rank(), MPI.Get_processor_name()


def controller(order: dict[str, Any]) -> None:
    """Run ipyparallel's controller on socket files in `order["directory"]`; if the order has an
    "address" (or name) of this host, on ports, for clients with the keys in the connection files.
    """
    from ipyparallel.controller.app import IPController
    from traitlets.config import Config

    if FORK:
        import multiprocessing

        # The default since Python 3.14 would import everything again in each scheduler.
        multiprocessing.set_start_method("fork", force=True)
    os.environ.update(order.get("environment", {}))
    settings = Config()
    if "address" in order:
        # ZeroMQ can connect to a name, but cannot listen on one.
        settings.IPController.ip = "*"
        settings.IPController.location = order["address"]
        settings.IPController.enable_curve = True  # other users share this network
    else:
        settings.IPController.ports = list(PORTS)
        settings.IPController.transport = "ipc"
        settings.IPController.ip = os.path.join(order["directory"], "z")
    settings.IPController.db_class = "nodb"
    settings.HeartMonitor.period = order["heartbeat"]
    # The forkserver reports ranks that die; a rank that is only slow must not be declared dead.
    settings.HeartMonitor.max_heartmonitor_misses = 1_000_000
    application = IPController.instance(config=settings, log_level=30)
    application.initialize([])
    # The connection files exist and the hub is listening: tell the cluster and the engines.
    channel = socket.socket(fileno=order["reports"])
    report(channel, event="controller", launch=order["launch"])
    channel.close()
    os.close(order["gate"])
    application.start()


def engine(order: dict[str, Any]) -> None:
    """Run the engine of one rank on the host of the process that mpirun started for it.

    That process itself can be the engine (its order has no gate, since the controller is up), or
    the engine is forked for it.
    """
    if order["on_hosts"]:
        process = order["process"]
        begun = namespaces.begun_at(process)
        if begun is None:
            raise ProcessLookupError(f"process {process}, which mpirun started, has ended")
        namespaces.enter(process, begun)
    if "environment" in order:
        os.environ.clear()
        os.environ.update(order["environment"])
    os.chdir(order["directory"])
    preload_engine()
    import numpy
    from ipyparallel.engine.app import IPEngine
    from mpi4py import MPI
    from traitlets.config import Config

    numpy.random.seed()  # otherwise all forks would draw the same numbers
    MPI.Init_thread(MPI.THREAD_MULTIPLE)
    # TMPDIR referred mpirun to the cluster's directory; restore the user's.
    tmpdir = os.environ.pop("MPILAB_TMPDIR", "")
    os.environ.pop("TMPDIR", None)
    if tmpdir:
        os.environ["TMPDIR"] = tmpdir
    if "gate" in order:
        os.read(order["gate"], 1)  # returns when the controller has closed the other end
        os.close(order["gate"])
    settings = Config()
    settings.IPEngine.use_mpi = True
    settings.IPEngine.enable_nanny = False
    settings.IPEngine.max_heartbeat_misses = 0
    settings.IPEngine.timeout = 30.0
    application = IPEngine.instance(config=settings, log_level=30)
    application.initialize([])
    application.start()


def engine_elsewhere(order: dict[str, Any]) -> None:
    """Be the parent of an engine on a node of a Slurm job, in place of the forkserver: record in
    the directory `order["ends"]` how it ended, and end likewise."""
    if FORK and (child := os.fork()):
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        name = f"end.{os.environ['PMIX_RANK']}"
        partial = os.path.join(order["ends"], f".{name}")
        with open(partial, "w") as file:
            file.write(str(status))
        os.replace(partial, os.path.join(order["ends"], name))
        # mpirun then ends all others: first give those with the same error time to crash, too.
        time.sleep(GRACE)
        rank.end_as(status)
    if FORK:
        namespaces.end_with_parent()
    engine(order)


def ends(directory: str | os.PathLike[str]) -> dict[int, int]:
    """{rank: exit code, or minus a signal's number} of the engines recorded in `directory`."""
    paths = [path for path in os.listdir(directory) if path.startswith("end.")]
    found = {}
    for name in paths:
        with open(os.path.join(directory, name)) as file:
            found[int(name.removeprefix("end."))] = int(file.read())
    return found


ROLES = {"controller": controller, "engine": engine, "engine elsewhere": engine_elsewhere}
