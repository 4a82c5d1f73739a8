"""Formulas in P and m, as they stand in the header of every kernel.

A kernel's file says what it costs in three lines, in Python's notation:

    Rounds:   ceil_log2(P)
    Messages: P * ceil_log2(P)
    Bytes:    P * (P - 1) * m

with P ranks and blocks of m bytes. Rubrics use the same notation.
"""

import ast
import operator
import re
from dataclasses import dataclass
from pathlib import Path

from mpilab.errors import InputError

SOURCES = Path(__file__).resolve().parent.parent / "src_c"


# A formula may not be used to keep the machine busy: 9**9**9 has 370 million digits.
MOST_BITS = 4096


def ceil_log2(number):
    """⌈log2 number⌉ of a positive integer."""
    return (_positive(number) - 1).bit_length()


def floor_log2(number):
    """⌊log2 number⌋ of a positive integer."""
    return _positive(number).bit_length() - 1


def _positive(number):
    if number < 1:
        raise ValueError(f"the logarithm of {number}")
    return number


def _power(base, exponent):
    if exponent < 0:
        raise ValueError(f"{base} ** {exponent} is no integer")
    if base.bit_length() * exponent > MOST_BITS:
        raise ValueError(f"{base} ** {exponent} is too large")
    return base**exponent


_FUNCTIONS = {"ceil_log2": ceil_log2, "floor_log2": floor_log2, "min": min, "max": max}
_OPERATORS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def evaluate(formula, **values):
    """The integer value of `formula` with `values` for its names (P, m, …).

    Only integer arithmetic, comparisons, `a if c else b`, ceil_log2, floor_log2, min and max are
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
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in _FUNCTIONS:
                return _FUNCTIONS[name](*map(value_of, args))
        raise InputError(
            f"formula {formula!r}: {ast.unparse(node)!r} is not understood; "
            f"write integer arithmetic with {', '.join([*values, *_FUNCTIONS])}"
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


@dataclass(frozen=True)
class Cost:
    """What a kernel's header promises, as formulas in P and m."""

    rounds: str
    messages: str
    bytes: str

    def at(self, ranks, block_bytes):
        """(rounds, messages, bytes) for `ranks` ranks and blocks of `block_bytes` bytes."""
        return tuple(
            evaluate(formula, P=ranks, m=block_bytes)
            for formula in (self.rounds, self.messages, self.bytes)
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
    return Cost(found["Rounds"], found["Messages"], found["Bytes"])
