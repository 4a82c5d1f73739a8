"""What the nursery's children do: be ipyparallel's controller, or the engine of one rank."""

import contextlib
import importlib
import json
import os
import socket
import sys
import time

from mpilab.cluster import rank

FORK = sys.platform.startswith("linux") and os.environ.get("MPILAB_FORK") != "0"

# Names, not real ports: the sockets are files in the cluster's own directory.
PORTS = range(1, 41)

# The last ones are imported by a kernel when it starts.
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


def report(channel, **event):
    """Send one event to the cluster; where it has hung up, the end of file will end us too."""
    with contextlib.suppress(OSError):
        channel.sendall(json.dumps(event).encode() + b"\n")


def preload_engine():
    """Import what every engine needs, without starting MPI or a thread."""
    import mpi4py

    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = True
    # ipykernel does without debugpy where it isn't installed, and so do we: nobody attaches a
    # debugger to an engine, and it is the slowest of all imports.
    absent = "debugpy" not in sys.modules
    if absent:
        sys.modules["debugpy"] = None
    for module in PRELOADED:
        importlib.import_module(module)
    if absent:
        del sys.modules["debugpy"]


def whereabouts():
    """(rank, host) of this process; runs on the engines, where this module is loaded anyway."""
    from mpi4py import MPI

    return MPI.COMM_WORLD.Get_rank(), MPI.Get_processor_name()


def controller(order):
    """Be ipyparallel's controller, on socket files in `order["directory"]`; or, where the order has
    an address or name of this host, on ports, for those who know the connection files' keys."""
    from ipyparallel.controller.app import IPController
    from traitlets.config import Config

    if FORK:
        import multiprocessing

        # Since Python 3.14 the default would import everything anew in each scheduler.
        multiprocessing.set_start_method("fork", force=True)
    os.environ.update(order.get("environment", {}))
    settings = Config()
    if "address" in order:
        # ZeroMQ connects to a name, but it cannot listen to one.
        settings.IPController.ip = "*"
        settings.IPController.location = order["address"]
        settings.IPController.enable_curve = True  # other users share this network
    else:
        settings.IPController.ports = list(PORTS)
        settings.IPController.transport = "ipc"
        settings.IPController.ip = os.path.join(order["directory"], "z")
    settings.IPController.db_class = "nodb"
    settings.HeartMonitor.period = order["heartbeat"]
    # Who dies is reported by the nursery; who is only slow must not be given up.
    settings.HeartMonitor.max_heartmonitor_misses = 1_000_000
    application = IPController.instance(config=settings, log_level=30)
    application.initialize([])
    # The connection files are there and the hub is listening: tell the cluster and the engines.
    channel = socket.socket(fileno=order["reports"])
    report(channel, event="controller", launch=order["launch"])
    channel.close()
    os.close(order["gate"])
    application.start()


def engine(order):
    """Be the engine of one rank, on the host of the process that mpirun has started for it: that
    process itself (then the order has no gate, the controller is there), or one forked for it."""
    if order["on_hosts"]:
        from mpilab.emulated import namespaces

        process = order["process"]
        namespaces.enter(process, namespaces.begun_at(process))
    if "environment" in order:
        os.environ.clear()
        os.environ.update(order["environment"])
    os.chdir(order["directory"])
    preload_engine()
    import numpy
    from ipyparallel.engine.app import IPEngine
    from mpi4py import MPI
    from traitlets.config import Config

    numpy.random.seed()  # or all forks would draw the same numbers
    MPI.Init_thread(MPI.THREAD_MULTIPLE)
    # TMPDIR pointed mpirun to the cluster's directory; user code gets its own back.
    tmpdir = os.environ.pop("MPILAB_TMPDIR", "")
    os.environ.pop("TMPDIR", None)
    if tmpdir:
        os.environ["TMPDIR"] = tmpdir
    if "gate" in order:
        os.read(order["gate"], 1)  # ends when the controller has closed the other end
        os.close(order["gate"])
    settings = Config()
    settings.IPEngine.use_mpi = True
    settings.IPEngine.enable_nanny = False
    settings.IPEngine.max_heartbeat_misses = 0
    settings.IPEngine.timeout = 30.0
    application = IPEngine.instance(config=settings, log_level=30)
    application.initialize([])
    application.start()


def engine_elsewhere(order):
    """Be the parent of an engine on a node of a Slurm job, as the nursery is on this machine: leave
    word of how it ended in the directory `order["ends"]`, and end likewise."""
    from mpilab.cluster.nursery import GRACE

    if FORK and (child := os.fork()):
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        name = f"end.{os.environ['PMIX_RANK']}"
        partial = os.path.join(order["ends"], f".{name}")
        with open(partial, "w") as file:
            file.write(str(status))
        os.replace(partial, os.path.join(order["ends"], name))
        # mpirun ends all others: those that crash of the same mistake get the time to tell, too.
        time.sleep(GRACE)
        rank.end_as(status)
    if FORK:
        from mpilab.emulated import namespaces

        namespaces.end_with_parent()
    engine(order)


def ends(directory):
    """{rank: exit code, or minus a signal's number} of the engines that have left word there."""
    paths = [path for path in os.listdir(directory) if path.startswith("end.")]
    found = {}
    for name in paths:
        with open(os.path.join(directory, name)) as file:
            found[int(name.removeprefix("end."))] = int(file.read())
    return found


ROLES = {"controller": controller, "engine": engine, "engine elsewhere": engine_elsewhere}
