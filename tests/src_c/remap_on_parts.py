"""Run by mpirun on 8 ranks: the remapped kernels on communicators with some of them, and with one
map and root after another on the same communicator. Ends with an error if a result is wrong; leaves
recordings.

    python -m mpi4py remap_on_parts.py LIBRARY DIRECTORY
"""

import ctypes
import sys

PLACES = [
    ("n1", "a"),
    ("n2", "a"),
    ("n1", "a"),
    ("n3", "b"),
    ("n2", "a"),
    ("n1", "a"),
    ("n3", "b"),
    ("n4", "b"),
]
# As new communicators have them. Three of the first one's members are on n1, the others on one node
# each.
PARTS = [(0, 2, 3, 5, 7), (7, 6, 5, 4, 3, 2, 1, 0), (4, 1, 6, 3), (1, 0, 2), (6,)]
ELEMENTS, BLOCK_BYTES = 5, 20
ALLGATHERS = ("recursive_doubling", "ring", "neighbor_exchange")


class Place(ctypes.Structure):
    _fields_ = [("node", ctypes.c_char * 256), ("group", ctypes.c_char * 256)]


class Tuning(ctypes.Structure):
    _fields_ = [
        ("segment_bytes", ctypes.c_long),
        ("fanout", ctypes.c_int),
        ("radix", ctypes.c_int),
        ("remap", ctypes.c_int),
    ]


def main(library, directory):
    import numpy as np
    from mpi4py import MPI

    kernels = ctypes.CDLL(library)
    tuning = Tuning.in_dll(kernels, "mpilab_tuning")
    world = MPI.COMM_WORLD
    node, group = (name.encode() for name in PLACES[world.rank])
    kernels.mpilab_pretend_place(ctypes.byref(Place(node, group)))

    def handle(what):
        return ctypes.c_void_p(MPI._handleof(what))

    def address(array):
        return array.ctypes.data_as(ctypes.c_void_p)

    def allgather(name, comm):
        own = np.arange(ELEMENTS, dtype=np.int32) + 100 * comm.rank
        came = np.full((comm.size, ELEMENTS), -1, np.int32)
        side = ELEMENTS, handle(MPI.INT)
        error = getattr(kernels, f"allgather_{name}_remapped")(
            address(own), *side, address(came), *side, handle(comm)
        )
        wanted = np.arange(ELEMENTS) + 100 * np.arange(comm.size)[:, None]
        assert error == 0 and (came == wanted).all(), (name, comm.rank, error, came)

    def bcast(comm, root):
        data = np.arange(3, dtype=np.int32) + 7 * root if comm.rank == root else np.zeros(3, "i4")
        error = kernels.bcast_binomial_remapped(
            address(data), 3, handle(MPI.INT), root, handle(comm)
        )
        assert error == 0 and (data == np.arange(3) + 7 * root).all(), (root, comm.rank, data)

    def allreduce(comm):
        own = np.arange(11, dtype=np.int32) + comm.rank
        came = np.zeros(11, np.int32)
        error = kernels.allreduce_ring_remapped(
            address(own), address(came), 11, handle(MPI.INT), handle(MPI.SUM), handle(comm)
        )
        wanted = comm.size * np.arange(11) + comm.size * (comm.size - 1) // 2
        assert error == 0 and (came == wanted).all(), (comm.rank, came)

    def everything(comm, maps):
        for remap in maps:
            tuning.remap = remap
            for name in ALLGATHERS:
                allgather(name, comm)
            for root in range(comm.size):
                bcast(comm, root)
            allreduce(comm)
        tuning.remap = 0

    everything(world, (0, 1, 2, 0))  # 8 ranks on 4 nodes: the formulas apply
    for number, part in enumerate(PARTS):
        color = 0 if world.rank in part else MPI.UNDEFINED
        comm = world.Split(color, part.index(world.rank) if world.rank in part else 0)
        if comm == MPI.COMM_NULL:
            continue
        for place, name in enumerate(ALLGATHERS):
            path = f"{directory}/{10 * number + place}.{comm.rank}.rec"
            assert kernels.mpilab_recorder_open(path.encode(), handle(comm), 1000, 0) == 0
            allgather(name, comm)
            kernels.mpilab_recorder_finish()
            kernels.mpilab_recorder_close()
        everything(comm, (0, 0))
        copy = comm.Dup()
        comm.Free()
        everything(copy, (0,))
        copy.Free()
    everything(world, (2, 0, 1))
    print("all right", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
