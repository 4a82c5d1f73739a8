"""Run by mpirun: call kernels with mpi4py, and hold what they leave against numpy.

    mpirun -n P python collectives.py LIBRARY COLLECTIVE...

Rank 0 prints one line for each kernel: its name, how many calls were tried, and the first that went
wrong, if any.
"""

import ctypes
import sys
from itertools import product

import numpy as np
from mpi4py import MPI

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.rank, COMM.size
KERNELS = {
    "bcast": "linear chain pipeline binary split_binary binomial knomial scatter_allgather "
    "scatter_allgather_ring",
    "gather": "linear binomial linear_sync",
    "scatter": "linear binomial linear_nb",
    "reduce": "linear chain pipeline binary binomial in_order_binary rabenseifner",
    "allreduce": "recursive_doubling ring segmented_ring rabenseifner",
    "barrier": "linear double_ring recursive_doubling dissemination tree",
}
COUNTS = (0, 1, 7, 300)
# (bytes a segment, fan-out, radix); 0 is the algorithm's own default.
TUNINGS = ((0, 0, 0), (16, 1, 2), (64, 3, 3))
# Two ints with a hole between them and one behind.
HOLED = MPI.INT.Create_vector(2, 1, 2).Create_resized(0, 16).Commit()
INTS, SLOTS = 2, np.array([0, 2])


class Tuning(ctypes.Structure):
    _fields_ = [("segment_bytes", ctypes.c_long), ("fanout", ctypes.c_int),
                ("radix", ctypes.c_int)]  # fmt: skip


def compose(first, second, datatype):
    """The affine maps x -> a*x + b as pairs: associative, and not commutative."""
    a, b = (np.frombuffer(buffer, np.uint32).reshape(-1, 2) for buffer in (first, second))
    b[:] = np.stack([a[:, 0] * b[:, 0], a[:, 0] * b[:, 1] + a[:, 1]], axis=1)


PAIR = MPI.UINT32_T.Create_contiguous(2).Commit()
AFFINE = MPI.Op.Create(compose, commute=False)
IN_PLACE = ctypes.c_void_p(1)  # Open MPI: (void *) 1


def handle(thing):
    return ctypes.c_void_p.from_address(MPI._addressof(thing))


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def data(rank, ints):
    """What `rank` contributes: known to all ranks."""
    return np.random.default_rng([rank, ints]).integers(0, 2**31, ints, dtype=np.uint32)


def spread(values):
    """Pairs of ints in the layout of HOLED; the holes hold 7."""
    memory = np.full(values.size // INTS * 4, 7, np.uint32)
    memory.reshape(-1, 4)[:, SLOTS] = values.reshape(-1, INTS)
    return memory


def bcast(kernel, root, count, _):
    right = spread(data(root, INTS * count))
    memory = right.copy() if RANK == root else spread(data(99, INTS * count))
    kernel(pointer(memory), count, handle(HOLED), root, handle(COMM))
    return (memory == right).all()


def gather(kernel, root, count, in_place):
    blocks = np.concatenate([spread(data(rank, INTS * count)) for rank in range(SIZE)])
    sent = spread(data(RANK, INTS * count))
    received = np.full_like(blocks, 7)
    own = slice(RANK * sent.size, (RANK + 1) * sent.size)
    first = pointer(sent)
    if in_place and RANK == root:
        received[own], first = sent, IN_PLACE
    kernel(first, count, handle(HOLED), pointer(received), count, handle(HOLED), root,
           handle(COMM))  # fmt: skip
    return RANK != root or (received == blocks).all()


def scatter(kernel, root, count, in_place):
    blocks = np.concatenate([spread(data(rank, INTS * count)) for rank in range(SIZE)])
    received = np.full(4 * count, 7, np.uint32)
    last = IN_PLACE if in_place and RANK == root else pointer(received)
    kernel(pointer(blocks), count, handle(HOLED), last, count, handle(HOLED), root, handle(COMM))
    return last is IN_PLACE or (received == spread(data(RANK, INTS * count))).all()


def folded(count):
    """All ranks' affine maps, in the order of ranks."""
    total = data(0, INTS * count).reshape(-1, 2)
    for rank in range(1, SIZE):
        after = data(rank, INTS * count).reshape(-1, 2).copy()
        compose(total, after, None)
        total = after
    return total.reshape(-1)


def reduce(kernel, root, count, in_place):
    return _reduced(lambda *a: kernel(*a, root, handle(COMM)), count, in_place and RANK == root,
                    RANK == root)  # fmt: skip


def allreduce(kernel, root, count, in_place):
    return _reduced(lambda *a: kernel(*a, handle(COMM)), count, in_place, True)


def _reduced(call, count, in_place, has_result):
    sent = data(RANK, INTS * count)
    received = sent.copy() if in_place else np.zeros_like(sent)
    call(IN_PLACE if in_place else pointer(sent), pointer(received), count, handle(PAIR),
         handle(AFFINE))  # fmt: skip
    return not has_result or (received == folded(count)).all()


def barrier(kernel, root, count, in_place):
    """Nobody leaves before the last has come: a flag that all set before is seen by all after."""
    window = MPI.Win.Allocate(4 * SIZE, 4, comm=COMM)
    seen = np.frombuffer(window, np.uint32)
    seen[:] = 0
    COMM.Barrier()
    window.Lock_all()
    for rank in range(SIZE):
        window.Put(np.ones(1, np.uint32), rank, RANK)
    window.Flush_all()
    kernel(handle(COMM))
    window.Sync()
    right = bool(seen.all())
    window.Unlock_all()
    COMM.Barrier()
    window.Free()
    return right


def main(library, *collectives):
    loaded = ctypes.CDLL(library)
    tuning = Tuning.in_dll(loaded, "mpilab_tuning")
    for collective in collectives:
        for algorithm in KERNELS[collective].split():
            kernel = getattr(loaded, f"{collective}_{algorithm}")
            tried, wrong = 0, []
            roots = range(SIZE) if collective not in ("allreduce", "barrier") else (0,)
            for tuned, root, count, in_place in product(TUNINGS, roots, COUNTS, (False, True)):
                tuning.segment_bytes, tuning.fanout, tuning.radix = tuned
                right = globals()[collective](kernel, root, count, in_place)
                tried += 1
                if not COMM.allreduce(bool(right), MPI.LAND):
                    wrong.append((tuned, root, count, in_place))
            if RANK == 0:
                print(f"{collective}_{algorithm} {tried} {wrong[:1] or 'right'}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
