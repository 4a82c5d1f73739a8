"""Where the boxes of a drawn network stand: a core, the switches of the groups, nodes, ranks.

    ┌───────────  core  ──────────┐
    └─────↑↓────────────────↑↓────┘      Every box is as wide as all that hangs from it, so all
    ┌─ switch a ─┐    ┌─ switch b ─┐     links are upright: a lane up at the left and a lane down
    └──↑↓────↑↓──┘    └──↑↓────↑↓──┘     at the right.
     ┌ n1 ┐┌ n2 ┐      ┌ n3 ┐┌ n4 ┐
     │0  1││2  3│      │4  5││6  7│
     └────┘└────┘      └────┘└────┘

Across, the unit is the room of one node; up and down it is a pixel of the figure.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

from mpilab.links import GROUP, node_names, switch_names
from mpilab.places import Levels

COLUMN = 676  # pixels across: of a notebook's column of 700, between the margins
RANK, LINE = 22, 15  # pixels: the square of a rank, and a line of text
LETTER = 7.0  # pixels across, of a text as it is written here, at most
_BETWEEN_GROUPS = 0.22
_BOX = 0.92  # of its room, that a node's box is wide
_RANK_PITCH = RANK + 3
_MOST_ROWS = 3  # of ranks on a node; more are told as a number
_NUMBER = len("↑ 1.023 MiB") * LETTER * 0.9  # the widest number of bytes; most are narrower
_LINK, _MEMORY, _EDGE = 58, 9, 5  # pixels
_WIDEST, _NARROWEST = 16, 1.5  # pixels, of a lane
_HEAD = 1.5  # times as wide as the widest lane is the arrow head of that one


@dataclass(frozen=True)
class Box:
    """A box from (left, bottom) to (right, top)."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def middle(self):
        """Of its width."""
        return (self.left + self.right) / 2


@dataclass(frozen=True)
class Layout:
    """The places of everything for ranks on `levels`."""

    levels: Levels

    # --- Across

    @cached_property
    def group_of(self):
        """The number of the group of each node: list."""
        return [int(self.levels.group[ranks[0]]) for ranks in self.ranks_of]

    @cached_property
    def ranks_of(self):
        """The ranks of each node: list of lists."""
        ranks = [[] for _ in range(self.levels.nodes)]
        for rank, node in enumerate(self.levels.node.tolist()):
            ranks[node].append(rank)
        return ranks

    @cached_property
    def order(self):
        """The nodes from left to right: by the names of groups and nodes, so that a node stands at
        the same place whichever ranks are on it."""
        names, switches = node_names(self.levels), switch_names(self.levels)

        def key(node):
            group = self.group_of[node]
            return _natural(switches[group]), group, _natural(names[node])

        return sorted(range(self.levels.nodes), key=key)

    @cached_property
    def group_order(self):
        """Which place each group has from left to right: {group: 0, 1, …}."""
        groups = dict.fromkeys(self.group_of[node] for node in self.order)
        return {group: place for place, group in enumerate(groups)}

    @cached_property
    def _rooms(self):
        """Where the room of each node begins: {node: left}."""
        rooms, before = {}, None
        for node in self.order:
            end = rooms[before] + 1 if rooms else 0.0
            apart = rooms and self.group_of[before] != self.group_of[node]
            rooms[node] = end + (_BETWEEN_GROUPS if apart else 0)
            before = node
        return rooms

    @property
    def width(self):
        """Of everything, in rooms of a node."""
        return max(self._rooms.values()) + 1

    def pixels(self, across):
        """How wide something is in a notebook's column."""
        return across * COLUMN / self.width

    # --- What there is room for

    @cached_property
    def has_node_numbers(self):
        """Is there room for numbers of bytes in the boxes of nodes?"""
        return self.pixels(_BOX) >= _NUMBER

    @cached_property
    def has_switch_numbers(self):
        """Is there room for them in the boxes of switches?"""
        narrowest = min(self.group_of.count(group) for group in set(self.group_of))
        return self.levels.groups > 1 and self.pixels(narrowest - 1 + _BOX) >= _NUMBER

    @cached_property
    def ranks_a_row(self):
        """How many squares of ranks stand side by side on a node."""
        return max(1, min(int(self.pixels(_BOX) // _RANK_PITCH), self.levels.most_on_a_node))

    @property
    def _rank_rows(self):
        return -(-self.levels.most_on_a_node // self.ranks_a_row)

    @cached_property
    def has_ranks(self):
        """Is there room for a square for each rank?"""
        return self._rank_rows <= _MOST_ROWS and self.pixels(_BOX) >= RANK

    def fits(self, text, box):
        """Is the box wide enough for this text?"""
        return len(text) * LETTER <= self.pixels(box.right - box.left)

    # --- Boxes, from the bottom to the top

    def node(self, node):
        """The Box of a node."""
        left = self._rooms[node] + (1 - _BOX) / 2
        ranks = self._rank_rows * _RANK_PITCH if self.has_ranks else LINE
        return Box(left, left + _BOX, 0, self._below_ranks + ranks + self._words_height)

    @property
    def _below_ranks(self):
        return _EDGE + _MEMORY + (LINE if self.has_node_numbers else 0) + 3

    @property
    def _words_height(self):
        """Of the name of a node, and the numbers of its link."""
        return 3 + LINE + (2 * LINE if self.has_node_numbers else 0) + 3

    def switch(self, group):
        """The Box of a group's switch."""
        rooms = [self._rooms[node] for node, of in enumerate(self.group_of) if of == group]
        bottom = self.node(0).top + _LINK
        height = 6 + LINE + (2 * LINE if self.has_switch_numbers else 0)
        inset = (1 - _BOX) / 2
        return Box(min(rooms) + inset, max(rooms) + 1 - inset, bottom, bottom + height)

    @property
    def core(self):
        """The Box of the core; None where one switch is all there is."""
        if self.levels.groups == 1:
            return None
        bottom = self.switch(0).top + _LINK
        inset = (1 - _BOX) / 2
        return Box(inset, self.width - inset, bottom, bottom + 6 + LINE)

    @property
    def height(self):
        """Of everything, in pixels."""
        return (self.core or self.switch(0)).top

    # --- What is in and between the boxes

    @property
    def rank_line(self):
        """The height of the line that says how many ranks there are."""
        return self._below_ranks + LINE / 2

    def rank(self, node, number):
        """The middle (x, y) of the square of a node's rank, the how manieth it is from 0."""
        box = self.node(node)
        row, column = divmod(number, self.ranks_a_row)
        in_row = min(self.ranks_a_row, len(self.ranks_of[node]) - row * self.ranks_a_row)
        across = (column - (in_row - 1) / 2) * _RANK_PITCH / self.pixels(1)
        down = self._words_height + (row + 0.5) * _RANK_PITCH
        return box.middle + across, box.top - down

    def memory(self, node, share):
        """The Box of a node's memory; `share` of the highest: 0 to 1."""
        box = self.node(node)
        height = _NARROWEST + share * (_MEMORY - _NARROWEST)
        return Box(box.left + 0.08, box.right - 0.08, _EDGE, _EDGE + height)

    @property
    def memory_line(self):
        """The height of the line that says what goes through the memory of a node."""
        return _EDGE + _MEMORY + LINE / 2

    @property
    def _widest(self):
        """Pixels of the widest lane."""
        return min(_WIDEST, self.pixels(_BOX) / 4)

    def lane(self, load, share):
        """The Box of a link's lane in one direction, from one box to the other.

        share   of the widest lane: 0 to 1.
        """
        below = self.below(load)
        wide = (_NARROWEST + share * (self._widest - _NARROWEST)) / self.pixels(1)
        middle = below.middle + self._aside(load, self._head_width(1) / 2 + 0.5)
        return Box(middle - wide / 2, middle + wide / 2, below.top, below.top + _LINK)

    def head(self, share):
        """The size of the arrow head of a lane; a triangle of plotly's of size 1 is 2/√3 wide."""
        return self._head_width(share) * sqrt(3) / 2

    def _head_width(self, share):
        return _HEAD * self._widest * (1 + share) / 2

    def star(self, load):
        """Where the star of a link stands: (x, y), on the outer side of its lane."""
        below = self.below(load)
        outside = self._head_width(1) / 2 + self._widest / 2 + 8
        # Not at one height: between two nodes there is room for one only.
        return (
            below.middle + self._aside(load, outside),
            below.top + _LINK * (0.35 if load.up else 0.65),
        )

    def _aside(self, load, pixels):
        """So far to the left of the middle of a link, for what goes up; else to the right."""
        return (-pixels if load.up else pixels) / self.pixels(1)

    def below(self, load):
        """The Box at the lower end of a link."""
        return self.switch(load.number) if load.level == GROUP else self.node(load.number)


def _natural(name):
    """n2 before n10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split("([0-9]+)", name)]
