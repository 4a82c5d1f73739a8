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

What S and K are where a case leaves them open, an algorithm's line "Tunables" says, in the words
that `cost_of` reads.
"""

import ast
import operator
import re
from dataclasses import dataclass
from pathlib import Path

from mpilab.counting import FUNCTIONS, segments
from mpilab.datatypes import datatype
from mpilab.errors import InputError

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
    except (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        given = ", ".join(f"{name} = {value}" for name, value in values.items())
        raise InputError(f"formula {formula!r} has no value for {given}: {error}") from None


def names_of(case):
    """The values of a Case for the names in a formula; S counts segments of the whole message.

    K is there only where the case has a fan-out or radix.
    """
    element_bytes = datatype(case.datatype)[1].size
    tuned = case.fanout or case.radix
    return {
        "P": case.ranks, "m": case.block_bytes, "n": case.count, "e": element_bytes,
        "root": case.root, "S": segments(case.count, element_bytes, case.segment),
        **({"K": tuned} if tuned else {}),
    }  # fmt: skip


# What is cut into segments: number of elements from those of the message and the ranks.
_CUT = {
    "m": lambda elements, ranks: elements,
    "m/2": lambda elements, ranks: -(-elements // 2),
    "m/P": lambda elements, ranks: -(-elements // ranks),
}
_SEGMENTS = re.compile(r"S = ⌈(m(?:/\w)?) / segment⌉[^;]*; default (one|\d+ KiB)")
_FANOUT = re.compile(r"(fanout|radix) \(K; default (\d+)\)")


@dataclass(frozen=True)
class Cost:
    """What a kernel's header promises, as formulas.

    cut          what is cut into S segments: "m", "m/2" or "m/P".
    segment      bytes of a segment where the case says nothing; 0 is one segment.
    tuned_by     "fanout" or "radix": what K is; "" for algorithms without.
    default      K where the case says nothing.
    """

    rounds: str
    messages: str
    bytes: str
    cut: str = "m"
    segment: int = 0
    tuned_by: str = ""
    default: int = 0

    def at(self, case):
        """(rounds, messages, bytes) of one call as in `case`."""
        names = names_of(case)
        elements = _CUT[self.cut](case.count, case.ranks)
        names["S"] = segments(elements, names["e"], case.segment or self.segment)
        if self.tuned_by:
            names["K"] = getattr(case, self.tuned_by) or self.default
        return tuple(
            evaluate(formula, **names) for formula in (self.rounds, self.messages, self.bytes)
        )


def cost_of(kernel):
    """The cost in the header of a kernel of ours, e.g. cost_of("allgather_ring").

    Raises InputError for a kernel that we do not have, or a header without the three lines.
    """
    collective, _, algorithm = kernel.partition("_")
    path = SOURCES / collective / f"{algorithm}.c"
    if not path.is_file():
        raise InputError(f"kernel {kernel!r}: no file {path}; write COLLECTIVE_ALGORITHM")
    header = path.read_text(encoding="utf-8").split("*/", 1)[0]
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
    return Cost(found["Rounds"], found["Messages"], found["Bytes"], **tunables)
