"""What a module of this room states about an algorithm: its schedule, its cost, tunables and look.

    def ring(call: Call) -> Plan: ...                    who sends what, in which step
    def ring_cost(call: ModelCall) -> Coefficients: ...  a and b of T = a α + b β

    ALGORITHMS = table(Algorithm(ring, ring_cost, GREEN, openmpi="ring"), ...)

`in_rounds` turns the steps of a plan into the rounds of a schedule.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms.schedule import Transfer


class Look(NamedTuple):
    """Color and marker of an algorithm in figures."""

    color: str
    marker: str


# A look stands for a message pattern, so that an algorithm looks the same in every figure of every
# lab, whatever the collective and the author. Two algorithms of one collective share neither color
# nor marker. Each color has a contrast of 3:1 on white and on JupyterLab's dark background; markers
# are for readers who can't tell the colors apart.
RED = Look("#d4553e", "triangle-up")
AMBER = Look("#b8740c", "square")
OLIVE = Look("#8a8412", "hexagon")
GREEN = Look("#2f9150", "diamond")
TEAL = Look("#0c8f9e", "x")
BLUE = Look("#3b7dd8", "circle")
PURPLE = Look("#9b5fd0", "cross")
PINK = Look("#c9498f", "triangle-down")
BROWN = Look("#8c7464", "pentagon")
GRAY = Look("#7a7e85", "octagon")


@dataclass(frozen=True)
class Call:
    """The call of a collective for which a schedule is made.

    count           elements, of a block or of the whole message (see
                    mpilab.algorithms.schedule_of).
    element_bytes   bytes of one element.
    segment, fanout, radix   as in mpilab_tuning of src_c/include/mpilab.h; 0 is the default.
    """

    ranks: int
    root: int = 0
    count: int = 1
    element_bytes: int = 1
    segment: int = 0
    fanout: int = 0
    radix: int = 0

    def real(self, virtual: int) -> int:
        """The rank whose virtual rank, counted from the root, is `virtual`."""
        return (virtual + self.root) % self.ranks

    def sizes(self, elements: Sequence[int]) -> tuple[int, ...]:
        """Bytes of the parts of a message, from the elements of each."""
        return tuple(number * self.element_bytes for number in elements)


# The messages of a step start together; a rank that takes part in a step finishes it before its
# next one, other ranks go ahead. So a blocking send is a step of its own, an exchange
# (MPI_Sendrecv) of all ranks is one step, and so are sends that a rank starts together before it
# waits for them.
Step = list[Transfer]


@dataclass(frozen=True)
class Plan:
    """What an algorithm sends: steps, and the blocks in them.

    steps    in an order that every rank follows.
    sizes    bytes of each block.
    owners   the rank that has each block at the start; () if all have a part of it (reduce,
             allreduce) or there are no blocks (barrier).
    names    labels of the blocks in figures; () for their numbers.
    """

    steps: list[Step]
    sizes: tuple[int, ...] = ()
    owners: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


def in_rounds(ranks: int, steps: Sequence[Step]) -> tuple[tuple[Transfer, ...], ...]:
    """The Transfers of `steps` in rounds, each sorted by sender.

    The round of a message is 1 + the latest round among the messages that its sender had finished
    sending or receiving before: its depth in Lamport's happens-before order, exactly as in a
    recording (mpilab.trace.recording.Recording).
    """
    rounds: list[Step] = []
    depth = [0] * ranks
    for step in steps:
        begun = [(depth[transfer.source] + 1, transfer) for transfer in step]
        for number, transfer in begun:
            if number > len(rounds):
                rounds.append([])
            rounds[number - 1].append(transfer)
            for rank in (transfer.source, transfer.dest):
                depth[rank] = max(depth[rank], number)
    # The sort is stable: messages of a rank stay in the order in which it starts them.
    return tuple(tuple(sorted(one, key=lambda transfer: transfer.source)) for one in rounds)


# a number, or an array with one entry for each number of bytes
Quantity = float | NDArray[np.float64]
# (a, b) of T = a α + b β: a in messages, b in bytes
Coefficients = tuple[Quantity, Quantity]
GammaFunction = Callable[[int], float]


@dataclass(frozen=True)
class ModelCall:
    """One call, as the cost formulas see it.

    ranks     P, 2 or more.
    bytes     m, an array of floats: of a block, or of the whole message (see mpilab.models.costs).
    segment, fanout, radix   0: the algorithm's default.
    gamma     γ(P), or None: messages leave a rank one by one.
    own_defaults   segment 0 means our kernel's default; otherwise it means no segments, as in Open
                   MPI.
    """

    ranks: int
    bytes: NDArray[np.float64]
    segment: float = 0
    fanout: int = 0
    radix: int = 0
    gamma: GammaFunction | None = None
    own_defaults: bool = True

    def at_once(self, receivers: int) -> float:
        """Cost of serving `receivers` receivers at the same time, in units of serving one.

        It is γ(receivers + 1), or their number if messages leave one by one.
        """
        return float(receivers) if self.gamma is None else float(self.gamma(receivers + 1))

    def cut(
        self, length: NDArray[np.float64], default: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(S, bytes of a full segment) if `length` bytes are cut into segments."""
        segment = self.segment or (default if self.own_defaults else 0)
        if not segment:
            return np.ones_like(length), length
        return np.maximum(1, np.ceil(length / segment)), np.minimum(length, segment)


PlanFunction = Callable[[Call], Plan]
CostFunction = Callable[[ModelCall], Coefficients]

# Parts of a message, each of which is cut into segments, from the number of ranks; the notation is
# that of the kernels' headers (mpilab.algorithms.formula). FIRST: only the first part of each block
# has a size of its own.
FIRST = "first"
PARTS: dict[str, Callable[[int], int]] = {
    "m": lambda ranks: 1,
    "m/2": lambda ranks: 2,
    "m/P": lambda ranks: ranks,
    FIRST: lambda ranks: 1,
}


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of a collective; its name is that of the kernel and of the function `plan`.

    plan       what it sends.
    cost       what that takes, in closed form.
    look       color and marker in figures.
    cut        what is cut into segments, a key of PARTS; "" for algorithms without the tunable.
    fanout, radix   defaults of these tunables; 0 for algorithms without them.
    openmpi    its name in Open MPI 5 (`ompi_info --param coll tuned -l 9`); "" if it is not there.
    """

    plan: PlanFunction
    cost: CostFunction
    look: Look
    cut: str = ""
    fanout: int = 0
    radix: int = 0
    openmpi: str = ""

    @property
    def name(self) -> str:
        """The kernel's name, without the collective."""
        return self.plan.__name__

    @property
    def tunables(self) -> tuple[str, ...]:
        """Which of 'segment', 'fanout', 'radix' the algorithm uses."""
        used = {"segment": self.cut, "fanout": self.fanout, "radix": self.radix}
        return tuple(name for name, value in used.items() if value)


def table(*algorithms: Algorithm) -> dict[str, Algorithm]:
    """The algorithms by name, in this order."""
    return {algorithm.name: algorithm for algorithm in algorithms}
