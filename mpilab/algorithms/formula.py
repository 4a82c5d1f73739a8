"""Formulas for rounds, messages and bytes, as written in the header of every kernel.

Three lines of a kernel's header state its cost in Python notation:

    Rounds:   ceil_log2(P)
    Messages: P * ceil_log2(P)
    Bytes:    P * (P - 1) * m

Rubrics use the same notation. The names are

    P     ranks                         m     bytes of a block (of the whole message in a bcast,
    n     elements of a block                 reduce or allreduce): m = n e
    e     bytes of an element           root  the root
    S     segments into which a message is cut
    K     fan-out or radix of the tree
    M     nodes                         G     groups of nodes
    Q     ranks of the fullest node     R     ranks on the root's node
    U     ranks in the root's group     L     ranks on the nodes of the groups' leaders
    node_ranks, group_ranks, group_nodes, ranks_by_group
          runs of ranks in topology-aware trees (mpilab.hosts.orders), for binomial_crossings and
          crossing_hops
    V     bytes of an alltoallv between different ranks; VM those between nodes, VG those between
          groups: with even counts P (P - 1) m, P (P - Q) m, ...
    B     bytes of other ranks' data that a rank may hold
    T     pieces in which a block is sent: the line "Pieces" of an algorithm with a budget

and in a read (mpilab.mpiio)

    N     bytes of all elements         F     bytes of a buffer: whole elements, at least one
    A     aggregators                   rows, columns, block_rows, block_columns, grid_rows,
                                              grid_columns of the distribution
    owners    ranks with any elements   part_rows, part_columns of rank 0, whose part is the
                                              largest
    spans, shares   for each rank, the bytes from the first to the last of its part, and for each
          aggregator, those of its domain: for pieces, most_pieces and total

If a case does not specify S, K, B or F, the line "Tunables" of the header gives the default, in the
wording that `cost_of` parses (for F: `read_cost_of`).
"""

import ast
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mpilab.algorithms import requests
from mpilab.cases.case import Case
from mpilab.cases.counts import volumes
from mpilab.cases.data import datatype
from mpilab.errors import InputError
from mpilab.hosts.orders import Runs, runs_by_name
from mpilab.util.kit import ROOT
from mpilab.util.text import syntax_tree

SOURCES = ROOT / "src_c"
MOST_BITS = 4096  # limits the work of a formula: 9**9**9 has 370 million digits

# What a name in a formula stands for.
Value = int | Runs | tuple[int, ...]

# The integer functions that a formula can call.


def _positive(number: int) -> int:
    if number < 1:
        raise ValueError(f"the logarithm of {number}")
    return number


def _base(number: int) -> int:
    if number < 2:
        raise ValueError(f"a logarithm to base {number}")
    return number


def ceil_div(number: int, divisor: int) -> int:
    """⌈number / divisor⌉ of two integers."""
    return -(-number // divisor)


def ceil_log2(number: int) -> int:
    """⌈log2 number⌉ of a positive integer."""
    return (_positive(number) - 1).bit_length()


def floor_log2(number: int) -> int:
    """⌊log2 number⌋ of a positive integer."""
    return _positive(number).bit_length() - 1


def ceil_log(number: int, base: int) -> int:
    """⌈log number⌉ of a positive integer to a base of 2 or more."""
    power, exponent = 1, 0
    while power < _positive(number):
        power, exponent = power * _base(base), exponent + 1
    return exponent


def kary_depth(ranks: int, fanout: int) -> int:
    """Depth of the K-ary tree in which rank v has the children K v + 1 … K v + K."""
    deepest, depth = _positive(ranks) - 1, 0
    while deepest > 0:
        deepest, depth = (deepest - 1) // max(1, fanout), depth + 1
    return depth


def knomial_depth(ranks: int, radix: int) -> int:
    """Depth of the k-nomial tree: the most nonzero digits, in this base, of any v < ranks."""
    limit, power, depth = _positive(ranks) - 1, 1, 0
    # 1, 11, 111, … are the smallest numbers with that many nonzero digits.
    while power <= limit:
        power, depth = power * _base(radix) + 1, depth + 1
    return depth


def binomial_hops(ranks: int, elements: int) -> int:
    """Elements that are sent when `elements` are scattered, in blocks, down a binomial tree.

    Block v is ⌊elements (v+1) / ranks⌋ - ⌊elements v / ranks⌋ elements long and is sent once for
    each 1 bit of v: their number is the depth of v.
    """
    return sum(
        v.bit_count() * (elements * (v + 1) // ranks - elements * v // ranks) for v in range(ranks)
    )


def binomial_crossings(runs: Runs) -> int:
    """Edges of binomial trees between different runs of members (mpilab.hosts.orders.Runs).

    The parent of member v is v with its lowest 1 bit cleared. At least one edge enters every run
    but the first, and at most ⌊log2 k⌋ + 1 enter a run of k: for each position of that bit, at most
    one v in a run has its parent before the run, and these v are at least 1, 2, 4, … apart. Runs of
    equal length, if it is a power of two, have one each.
    """
    crossings = 0
    for lengths in runs.trees:
        run_of = [run for run, length in enumerate(lengths) for _ in range(length)]
        crossings += sum(run_of[v] != run_of[v & (v - 1)] for v in range(1, len(run_of)))
    return crossings


def crossing_hops(runs: Runs) -> int:
    """Blocks sent between different runs of members when every block goes up a binomial tree.

    Each hop counts; member v sends up the blocks of its whole subtree. For the runs, see
    mpilab.hosts.orders.Runs.
    """
    hops = 0
    for lengths in runs.trees:
        run_of = [run for run, length in enumerate(lengths) for _ in range(length)]
        for v in range(1, len(run_of)):
            under = min(v & -v, len(run_of) - v)
            hops += under * (run_of[v] != run_of[v & (v - 1)])
    return hops


def doubling_rounds(ranks: int) -> int:
    """Rounds of recursive doubling with messages of equal length.

    These are log2 of the ranks that take part, plus two if surplus ranks send them their data
    before and get the result after.
    """
    steps = floor_log2(ranks)
    return steps + 2 * (ranks != 2**steps)


def doubling_messages(ranks: int) -> int:
    """Messages of recursive doubling: one per step from each rank that takes part, two per surplus
    rank."""
    steps = floor_log2(ranks)
    return 2**steps * steps + 2 * (ranks - 2**steps)


def circulant_rounds(ranks: int, pieces: int) -> int:
    """Fewest rounds in which `pieces` pieces reach all ranks.

    Each rank sends and receives one piece per round. Source: Bar-Noy, Kipnis (1994), "Broadcasting
    multiple messages in simultaneous send/receive systems". Circulant graphs reach this bound.
    """
    return ceil_log2(ranks) + pieces - 1 if ranks > 1 else 0


def segments(elements: int, element_bytes: int, segment_bytes: int) -> int:
    """Segments into which a message of `elements` elements is cut: S in the formulas.

    A segment has as many whole elements as fit into `segment_bytes`, but at least one; with
    segment_bytes 0, or without elements, there is one segment.
    """
    if segment_bytes <= 0 or elements == 0 or element_bytes == 0:
        return 1
    return ceil_div(elements, min(elements, max(1, segment_bytes // element_bytes)))


def pieces(lengths: Sequence[int], piece: int) -> int:
    """Requests for stretches of these lengths, each in pieces of at most `piece`."""
    return sum(ceil_div(length, piece) for length in lengths)


def most_pieces(lengths: Sequence[int], piece: int) -> int:
    """Requests for the longest stretch."""
    return max((ceil_div(length, piece) for length in lengths), default=0)


def total(lengths: Sequence[int]) -> int:
    """Sum of the lengths."""
    return sum(lengths)


FUNCTIONS: dict[str, Callable[..., int]] = {
    function.__name__: function
    for function in (
        ceil_div,
        ceil_log2,
        floor_log2,
        ceil_log,
        kary_depth,
        knomial_depth,
        binomial_hops,
        binomial_crossings,
        crossing_hops,
        circulant_rounds,
        doubling_rounds,
        doubling_messages,
        pieces,
        most_pieces,
        total,
        min,
        max,
    )
}


def _power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise ValueError(f"{base} ** {exponent} is not an integer")
    if base.bit_length() * exponent > MOST_BITS:
        raise ValueError(f"{base} ** {exponent} is too large")
    return base**exponent


_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


# A formula is evaluated for each message of each case.
@lru_cache(maxsize=1024)
def _parsed(formula: str) -> ast.expr:
    tree: ast.Expression = syntax_tree(formula, "eval")
    return tree.body


def evaluate(formula: str, **values: Value) -> int:
    """The integer value of `formula` with `values` for its names (P, m, …).

    Only integer arithmetic, comparisons, `a if c else b` and FUNCTIONS are allowed; anything else
    is an InputError that names the formula.
    """

    def value_of(node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=int()):
                return node.value
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value_of(left), value_of(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value_of(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value_of(left), value_of(right))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return value_of(body) if value_of(test) else value_of(orelse)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                return FUNCTIONS[name](*map(value_of, args))
        raise InputError(
            f"formula {formula!r}: {ast.unparse(node)!r} is not understood; "
            f"write integer arithmetic with {', '.join([*values, *FUNCTIONS])}"
        )

    if not isinstance(formula, str):
        raise InputError(f'formula {formula!r}: not a string; write it in quotes, e.g. "P - 1"')
    try:
        return int(value_of(_parsed(formula.strip())))
    except SyntaxError as error:
        raise InputError(f"formula {formula!r}: {error.msg}; write e.g. P * (P - 1)") from None
    except InputError:
        raise
    except (
        ValueError,
        TypeError,
        AttributeError,
        ArithmeticError,
        RecursionError,
        MemoryError,
    ) as error:
        given = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise InputError(f"formula {formula!r} has no value for {given}: {error}") from None


def names_of(case: Case) -> dict[str, Value]:
    """The values of the names in a formula for a Case; S counts segments of the whole message.

    K is included only if the case has a fan-out or radix, B if it has a budget, F if it has a
    buffer; V, VM and VG for an alltoallv, and the names about the file for a read.
    """
    return dict(_names_of(case))


# A rubric asks for those of each of its cases once for each formula that is counted in it.
@lru_cache(maxsize=4096)
def _names_of(case: Case) -> dict[str, Value]:
    element_bytes = datatype(case.datatype)[1].size
    tuned = case.fanout or case.radix
    levels = case.levels
    runs = runs_by_name(levels, case.root)
    return {
        "P": case.ranks,
        "m": case.block_bytes,
        "n": case.count,
        "e": element_bytes,
        "root": case.root,
        "S": segments(case.count, element_bytes, case.segment),
        "M": levels.nodes,
        "G": levels.groups,
        "Q": levels.most_on_a_node,
        "R": int((levels.node == levels.node[case.root]).sum()),
        "U": int((levels.group == levels.group[case.root]).sum()),
        "L": sum(nodes[0] for nodes in runs["ranks_by_group"].trees),
        **({"K": tuned} if tuned else {}),
        **({"B": case.budget} if case.budget else {}),
        **(volumes(case, levels) if case.collective == "alltoallv" else {}),
        **runs,
        **(requests.names(case.distribution, case.aggregators) if case.matrix else {}),
        **({"F": requests.whole_elements(case.buffer)} if case.buffer else {}),
    }


# Parts of a message, each of which is cut into segments.
_PARTS: dict[str, Callable[[Case], int]] = {
    "m": lambda case: 1,
    "m/2": lambda case: 2,
    "m/P": lambda case: case.ranks,
    "m/Q": lambda case: case.levels.most_on_a_node,
}
_SEGMENTS = re.compile(r"S = ⌈(m(?:/\w)?) / segment⌉[^;]*; default (one|\d+ KiB)")
_FANOUT = re.compile(r"(fanout|radix) \(K; default (\d+)\)")
_BUDGET = re.compile(r"budget_bytes \(B; default (\d+) MiB\)")


@dataclass(frozen=True)
class Cost:
    """The cost declared in a kernel's header, as formulas.

    cut          what is cut into S segments: "m", "m/2", "m/P" or "m/Q".
    segment      default bytes of a segment; 0 is one segment.
    tuned_by     "fanout" or "radix": the meaning of K; "" for algorithms without.
    default      default of K.
    between_nodes, between_groups   the bytes that leave a node, or a group; "" if the header does
                 not say.
    budget       default of B; 0 for algorithms without.
    pieces       T, as a formula; "" for algorithms without.
    """

    rounds: str
    messages: str
    bytes: str
    between_nodes: str = ""
    between_groups: str = ""
    cut: str = "m"
    segment: int = 0
    tuned_by: str = ""
    default: int = 0
    budget: int = 0
    pieces: str = ""

    def at(self, case: Case) -> tuple[int, int, int]:
        """(rounds, messages, bytes) of one call as in `case`."""
        names = self._names(case)
        return (
            evaluate(self.rounds, **names),
            evaluate(self.messages, **names),
            evaluate(self.bytes, **names),
        )

    def across(self, case: Case) -> tuple[int | None, int | None]:
        """(bytes between nodes, bytes between groups) of one call; None if not declared."""
        names = self._names(case)
        nodes, groups = self.between_nodes, self.between_groups
        return (
            evaluate(nodes, **names) if nodes else None,
            evaluate(groups, **names) if groups else None,
        )

    def _names(self, case: Case) -> dict[str, Value]:
        names = names_of(case)
        elements = ceil_div(case.count, _PARTS[self.cut](case))
        element_bytes = datatype(case.datatype)[1].size
        names["S"] = segments(elements, element_bytes, case.segment or self.segment)
        if self.tuned_by:
            names["K"] = getattr(case, self.tuned_by) or self.default
        if self.budget:
            names["B"] = case.budget or self.budget
        if self.pieces:
            names["T"] = evaluate(self.pieces, **names)
        return names


def header_of(kernel: str) -> tuple[Path, str]:
    """(path, header) of the source file of one of our kernels; InputError for an unknown one."""
    collective, _, algorithm = kernel.partition("_")
    path = SOURCES / collective / f"{algorithm}.c"
    if not path.is_file():
        raise InputError(f"kernel {kernel!r}: no file {path}; write COLLECTIVE_ALGORITHM")
    return path, path.read_text(encoding="utf-8").split("*/", 1)[0]


def cost_of(kernel: str) -> Cost:
    """The cost in the header of one of our kernels, e.g. cost_of("allgather_ring").

    Raises InputError for an unknown kernel, or a header without the three lines.
    """
    path, header = header_of(kernel)
    found = dict(re.findall(r"^ \* (Rounds|Messages|Bytes): +(.+)$", header, re.MULTILINE))
    missing = {"Rounds", "Messages", "Bytes"} - set(found)
    if missing:
        raise InputError(f"{path}: no line '{missing.pop()}:' in its header")
    tunables: dict[str, Any] = {}
    if cut := _SEGMENTS.search(header):
        kibibytes = 0 if cut[2] == "one" else int(cut[2].removesuffix(" KiB"))
        tunables |= {"cut": cut[1], "segment": 1024 * kibibytes}
    if tuned := _FANOUT.search(header):
        tunables |= {"tuned_by": tuned[1], "default": int(tuned[2])}
    if budget := _BUDGET.search(header):
        tunables["budget"] = int(budget[1]) << 20
    if pieces := re.search(r"^ \* Pieces: +(.+)$", header, re.MULTILINE):
        tunables["pieces"] = pieces[1]
    across = dict(re.findall(r"^ \* Between (nodes|groups): +(.+)$", header, re.MULTILINE))
    return Cost(
        found["Rounds"],
        found["Messages"],
        found["Bytes"],
        across.get("nodes", ""),
        across.get("groups", ""),
        **tunables,
    )


# The declared costs of read kernels: requests to the file, and bytes.
#
#     Requests: pieces(shares, F)        of all ranks
#     Busiest:  ceil_div(N, F)           of the rank with the most
#     Read:     N                        bytes of all ranks
#
# Requests for no bytes do not count. If a case does not specify F, the line "Tunables" of the
# header gives the default: "buffer_bytes (F; default 4 MiB)".

_READ_LINE = re.compile(r"^ \* (Requests|Busiest|Read): +(.+)$", re.MULTILINE)
_BUFFER = re.compile(r"buffer_bytes \(F; default (\d+) (KiB|MiB)\)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


@dataclass(frozen=True)
class ReadCost:
    """The cost declared in the header of a read kernel, as formulas.

    buffer   default bytes of F; 0 for readers without a buffer.
    """

    requests: str
    busiest: str
    read: str
    buffer: int = 0

    def at(self, case: Case) -> tuple[int, int, int]:
        """(requests, requests of the busiest rank, bytes) of one call as in `case`."""
        names = names_of(case)
        if self.buffer:
            names["F"] = requests.whole_elements(case.buffer or self.buffer)
        return (
            evaluate(self.requests, **names),
            evaluate(self.busiest, **names),
            evaluate(self.read, **names),
        )


def read_cost_of(kernel: str) -> ReadCost:
    """The ReadCost in the header of one of our read kernels, e.g. read_cost_of("read_sieving").

    Raises InputError for an unknown kernel, or a header without the three lines.
    """
    path, header = header_of(kernel)
    found = dict(_READ_LINE.findall(header))
    for name in ("Requests", "Busiest", "Read"):
        if name not in found:
            raise InputError(f"{path}: no line '{name}:' in its header")
    told = _BUFFER.search(header)
    buffer = int(told[1]) * _UNITS[told[2]] if told else 0
    return ReadCost(found["Requests"], found["Busiest"], found["Read"], buffer)
