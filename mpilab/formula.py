"""Formulas for rounds, messages and bytes, as they stand in the header of every kernel.

A kernel's file says what it costs in three lines, in Python's notation:

    Rounds:   ceil_log2(P)
    Messages: P * ceil_log2(P)
    Bytes:    P * (P - 1) * m

Rubrics use the same notation. The names are

    P     ranks                         m     bytes of a block (of the whole message in a bcast,
    n     elements of a block                 reduce or allreduce): m = n e
    e     bytes of an element           root  the root
    S     segments that a message is cut into
    K     fan-out or radix of the tree
    M     nodes                         G     groups of nodes
    Q     ranks of the fullest node     R     ranks on the root's node
    U     ranks in the root's group     L     ranks on the nodes of the groups' leaders
    node_ranks, group_ranks, group_nodes, ranks_by_group
          in which runs the ranks of topology-aware trees stand (mpilab.layout), for
          binomial_crossings and crossing_hops
    V     bytes of an alltoallv, from all ranks to all others; VM of these, between nodes, and VG
          between groups: with even counts P (P - 1) m, P (P - Q) m, ...
    B     bytes that a rank may hold of other ranks' data
    T     pieces that a block travels in, by the line "Pieces" of an algorithm that knows a budget

and in a read (mpilab.matrices)

    N     bytes of all elements         F     bytes of a buffer: whole elements, at least one
    A     aggregators                   rows, columns, block_rows, block_columns, grid_rows,
                                              grid_columns of the distribution
    owners    ranks that have anything  part_rows, part_columns of rank 0, whose part is the
                                              largest
    spans, shares   for each rank the bytes from the first to the last of its part, and for each
          aggregator those of its domain: for pieces, most_pieces and total

What S, K, B and F are where a case leaves them open, an algorithm's line "Tunables" says, in the
words that `cost_of` reads, and for F mpilab.matrices.costs.
"""

import ast
import operator
import re
from dataclasses import dataclass
from pathlib import Path

from mpilab.counting import FUNCTIONS, segments
from mpilab.datatypes import datatype
from mpilab.errors import InputError
from mpilab.exchange import volumes
from mpilab.layout import runs_by_name
from mpilab.matrices import requests

SOURCES = Path(__file__).resolve().parent.parent / "src_c"


# A formula may not be used to keep the machine busy: 9**9**9 has 370 million digits.
MOST_BITS = 4096


def _power(base, exponent):
    if exponent < 0:
        raise ValueError(f"{base} ** {exponent} is no integer")
    if base.bit_length() * exponent > MOST_BITS:
        raise ValueError(f"{base} ** {exponent} is too large")
    return base**exponent


_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def evaluate(formula, **values):
    """The integer value of `formula` with `values` for its names (P, m, …).

    Only integer arithmetic, comparisons, `a if c else b` and the functions of mpilab.counting are
    understood; anything else is an InputError that names the formula.
    """

    def value_of(node):
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
        raise InputError(f'formula {formula!r}: not a text; write it in quotes, e.g. "P - 1"')
    try:
        return int(value_of(ast.parse(formula.strip(), mode="eval").body))
    except SyntaxError as error:
        raise InputError(f"formula {formula!r}: {error.msg}; write e.g. P * (P - 1)") from None
    except InputError:
        raise
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError,
            MemoryError) as error:  # fmt: skip
        given = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise InputError(f"formula {formula!r} has no value for {given}: {error}") from None


def names_of(case):
    """The values of a Case for the names in a formula; S counts segments of the whole message.

    K is there only where the case has a fan-out or radix, B where it has a budget, F where it has a
    buffer; V, VM and VG for an alltoallv, and what a file is about for a read.
    """
    element_bytes = datatype(case.datatype)[1].size
    tuned = case.fanout or case.radix
    levels = case.levels
    runs = runs_by_name(levels, case.root)
    return {
        "P": case.ranks, "m": case.block_bytes, "n": case.count, "e": element_bytes,
        "root": case.root, "S": segments(case.count, element_bytes, case.segment),
        "M": levels.nodes, "G": levels.groups, "Q": levels.most_on_a_node,
        "R": int((levels.node == levels.node[case.root]).sum()),
        "U": int((levels.group == levels.group[case.root]).sum()),
        "L": sum(nodes[0] for nodes in runs["ranks_by_group"].trees),
        **({"K": tuned} if tuned else {}), **({"B": case.budget} if case.budget else {}),
        **(volumes(case, levels) if case.collective == "alltoallv" else {}), **runs,
        **(requests.names(case.distribution, case.aggregators) if case.matrix else {}),
        **({"F": requests.whole_elements(case.buffer)} if case.buffer else {}),
    }  # fmt: skip


# What is cut into segments: number of elements from those of the message and the names.
_CUT = {
    "m": lambda elements, names: elements,
    "m/2": lambda elements, names: -(-elements // 2),
    "m/P": lambda elements, names: -(-elements // names["P"]),
    "m/Q": lambda elements, names: -(-elements // names["Q"]),
}
_SEGMENTS = re.compile(r"S = ⌈(m(?:/\w)?) / segment⌉[^;]*; default (one|\d+ KiB)")
_FANOUT = re.compile(r"(fanout|radix) \(K; default (\d+)\)")
_BUDGET = re.compile(r"budget_bytes \(B; default (\d+) MiB\)")


@dataclass(frozen=True)
class Cost:
    """What a kernel's header promises, as formulas.

    cut          what is cut into S segments: "m", "m/2", "m/P" or "m/Q".
    segment      bytes of a segment where the case says nothing; 0 is one segment.
    tuned_by     "fanout" or "radix": what K is; "" for algorithms without.
    default      K where the case says nothing.
    between_nodes, between_groups   of the bytes, those that leave a node, or a group; "" where the
                 header does not say.
    budget       B where the case says nothing; 0 for algorithms without.
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

    def at(self, case):
        """(rounds, messages, bytes) of one call as in `case`."""
        names = self._names(case)
        return tuple(
            evaluate(formula, **names) for formula in (self.rounds, self.messages, self.bytes)
        )

    def across(self, case):
        """(bytes between nodes, bytes between groups) of one call; None what nothing is said of."""
        names = self._names(case)
        return tuple(
            evaluate(formula, **names) if formula else None
            for formula in (self.between_nodes, self.between_groups)
        )

    def _names(self, case):
        names = names_of(case)
        elements = _CUT[self.cut](case.count, names)
        names["S"] = segments(elements, names["e"], case.segment or self.segment)
        if self.tuned_by:
            names["K"] = getattr(case, self.tuned_by) or self.default
        if self.budget:
            names["B"] = case.budget or self.budget
        if self.pieces:
            names["T"] = evaluate(self.pieces, **names)
        return names


def header_of(kernel):
    """(path, header) of the file of a kernel of ours; InputError for one that we do not have."""
    collective, _, algorithm = kernel.partition("_")
    path = SOURCES / collective / f"{algorithm}.c"
    if not path.is_file():
        raise InputError(f"kernel {kernel!r}: no file {path}; write COLLECTIVE_ALGORITHM")
    return path, path.read_text(encoding="utf-8").split("*/", 1)[0]


def cost_of(kernel):
    """The cost in the header of a kernel of ours, e.g. cost_of("allgather_ring").

    Raises InputError for a kernel that we do not have, or a header without the three lines.
    """
    path, header = header_of(kernel)
    found = dict(re.findall(r"^ \* (Rounds|Messages|Bytes): +(.+)$", header, re.MULTILINE))
    missing = {"Rounds", "Messages", "Bytes"} - set(found)
    if missing:
        raise InputError(f"{path}: no line '{missing.pop()}:' in its header")
    tunables = {}
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
        found["Rounds"], found["Messages"], found["Bytes"],
        across.get("nodes", ""), across.get("groups", ""), **tunables)  # fmt: skip
