"""Where ranks stand in a drawing of who sends to whom: as a tree, or on a circle."""

from dataclasses import dataclass
from math import cos, pi, sin

# Deep trees without breadth lie on their side: a page is wider than high. So do broad ones in which
# messages go both ways: two labels at an edge want a line of their own.
_DEEP, _BROAD = 6, 8
_BOW = 0.36  # of a level
# These are two trees and an exchange: as a tree they are better seen than on a circle.
_NEARLY_TREES = (("bcast", "split_binary"),)
# All ranks are alike, even where two of them happen to make a tree.
_ALIKE = ("allgather", "allreduce")


@dataclass(frozen=True)
class Layout:
    """x[rank], y[rank], and how they are meant.

    kind     "tree" (the root on top), "sideways" (the root at the left) or "circle".
    parent   {rank: its parent in the tree}; empty on a circle.
    levels, breadth   of the tree: how many lines of ranks, and how many ranks side by side.
    """

    kind: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    parent: dict[int, int]
    levels: int
    breadth: int

    def along(self, source, dest, share):
        """The place on the way from one rank to another after a share (0 to 1) of it: (x, y).

        Ways are straight, but where two ranks of a level of a tree talk to each other: others may
        stand between them.
        """
        x = self.x[source] + share * (self.x[dest] - self.x[source])
        y = self.y[source] + share * (self.y[dest] - self.y[source])
        if self.is_bowed(source, dest):
            y -= 4 * share * (1 - share) * _BOW
        return x, y

    def is_bowed(self, source, dest):
        """Does the way between these ranks go round what stands between them?"""
        return self.kind == "tree" and self.y[source] == self.y[dest]


def place(schedule):
    """The Layout of a Schedule: a tree where its messages go along the edges of one."""
    parent = None if schedule.collective in _ALIKE else _parents(schedule)
    return _circle(schedule.ranks) if parent is None else _tree(schedule, parent)


def _parents(schedule):
    """{rank: parent} of all ranks but the root if the schedule is a tree, or nearly one."""
    ties = {}
    for transfer in schedule.transfers():
        ties.setdefault(transfer.source, {})[transfer.dest] = None
        ties.setdefault(transfer.dest, {})[transfer.source] = None
    edges = sum(map(len, ties.values())) // 2
    nearly = (schedule.collective, schedule.algorithm) in _NEARLY_TREES
    if edges != schedule.ranks - 1 and not nearly:
        return None
    if nearly:
        # Each rank under the one that it hears from first.
        parent = {}
        for transfer in schedule.transfers():
            if transfer.dest != schedule.root:
                parent.setdefault(transfer.dest, transfer.source)
        return parent
    parent, waiting = {}, [schedule.root]
    for rank in waiting:
        below = [other for other in ties.get(rank, ()) if parent.get(rank) != other]
        parent.update((other, rank) for other in below)
        waiting += below
    return parent


def _tree(schedule, parent):
    """Leaves side by side, every other rank in the middle above its children."""
    children = {rank: [] for rank in range(schedule.ranks)}
    # In the order of virtual ranks, so that a tree looks the same whatever its root.
    for rank in sorted(parent, key=lambda rank: (rank - schedule.root) % schedule.ranks):
        children[parent[rank]].append(rank)
    across, level, leaves = {}, {schedule.root: 0}, 0
    order = [schedule.root]
    for rank in order:
        for child in children[rank]:
            level[child] = level[rank] + 1
        order += children[rank]

    def visit(rank):
        nonlocal leaves
        for child in children[rank]:
            visit(child)
        if children[rank]:
            across[rank] = (across[children[rank][0]] + across[children[rank][-1]]) / 2
        else:
            across[rank] = leaves
            leaves += 1

    visit(schedule.root)
    levels = 1 + max(level.values())
    ranks = range(schedule.ranks)
    ends = {(transfer.source, transfer.dest) for transfer in schedule.transfers()}
    both_ways = any((dest, source) in ends for source, dest in ends)
    if levels > max(_DEEP, leaves) or (leaves > _BROAD and levels == 2 and both_ways):
        x, y = tuple(level[r] for r in ranks), tuple(-across[r] for r in ranks)
        return Layout("sideways", x, y, parent, levels, leaves)
    x, y = tuple(across[r] for r in ranks), tuple(-level[r] for r in ranks)
    return Layout("tree", x, y, parent, levels, leaves)


def _circle(ranks):
    """Rank 0 on top, then clockwise."""
    angles = [2 * pi * rank / ranks for rank in range(ranks)]
    x, y = tuple(sin(angle) for angle in angles), tuple(cos(angle) for angle in angles)
    return Layout("circle", x, y, {}, 1, ranks)
