"""Mutants: references with one small mistake, to test whether a rubric detects it.

`mutants_of` makes them: each has one change at one place of one function, such as a `<` that became
`<=`, or a missing call. mpilab.grading.proving judges them and reports the outcome of each;
`Score` counts, and `score_table` shows it. A mutant that loses an item is *killed*; one that gets
every point *survives*: either the rubric misses something, or the change makes no difference.
Mutants of the latter kind are listed manually, with the reason, in grading/LAB/equivalent.toml:

    [[equivalent]]
    exercise = "pairwise"
    operator = "bound"
    line = "const int length = distance < size - distance ? distance : size - distance;"
    change = "distance < size - distance → distance <= size - distance"    # optional
    reason = "Where both are equal, either is the length."

An entry matches all mutants of its exercise with this operator and this line (without indentation),
or, with `change`, only those with this change. So it survives edits elsewhere. An entry that
matches no mutant is an error.

Error handling is not mutated, because no case makes MPI or malloc fail: comparisons with
MPI_SUCCESS and NULL, and statements that run only after such a failure.
"""

import difflib
import random
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

try:
    import tree_sitter
    import tree_sitter_c
except ImportError:  # a tool for authors; not every installation has it
    tree_sitter = None  # type: ignore[assignment]

from mpilab.errors import InputError, SetupError
from mpilab.judging.verdict import FAIL, UNGRADABLE, ExerciseVerdict
from mpilab.kernels import build
from mpilab.util.text import aligned

Node = Any  # tree_sitter.Node
# (operator, the node that changes, what it becomes)
Change = tuple[str, Node, str]

# Pairs of names that are easily confused.
TWINS = tuple(
    tuple(pair.split("/"))
    for pair in (
        "send/recv source/dest left/right previous/next from/to incoming/outgoing in/out "
        "sent/received sdispls/rdispls row/column rows/columns begin/end node/group"
    ).split()
)
_PEERS = {"source", "dest", "left", "right", "previous", "next", "from", "to"}
# The roles of the arguments of MPI calls. "room" is a receive count, which may be too large.
ROLES = {
    f"MPI_{name}": tuple(roles.split())
    for names, roles in (
        ("Send Ssend Bsend Rsend", "buffer count type rank tag comm"),
        ("Isend Issend Ibsend Irsend", "buffer count type rank tag comm request"),
        ("Recv Irecv", "buffer room type rank tag comm -"),
        ("Sendrecv", "buffer count type rank tag buffer room type rank tag comm status"),
        ("Pack", "buffer count type buffer - - -"),
        ("Unpack", "buffer - - buffer count type -"),
        ("Alltoallv", "buffer - - type buffer - - type comm"),
        ("File_read_at", "- - buffer count type status"),
        ("File_read_all", "- buffer count type status"),
        ("File_set_view", "- - type type - -"),
        ("Comm_rank Comm_size Comm_group", "comm -"),
        ("Comm_split", "comm - - -"),
        ("Comm_split_type", "comm - - - -"),
    )
    for name in names.split()
}
_OTHER_TYPE = {"MPI_BYTE": "MPI_INT", "MPI_INT": "MPI_BYTE", "MPI_DOUBLE": "MPI_FLOAT"}
_FREES = re.compile(r"free|MPI_\w+_free")
_WAITS = re.compile(r"MPI_(Wait|Test)(all|any|some)?")
_BOUNDS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_COMPARISONS = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "!=", "!=": "=="}
_ARITHMETIC = {
    **{"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "&": "|", "|": "&", "<<": ">>"},
    **{"+=": "-=", "-=": "+=", "*=": "+=", "/=": "-=", "&&": "||", "||": "&&"},
}
# A larger constant is a default that a student may choose, such as the size of a segment.
MOST_CONSTANT = 256
_SHOWN = 60  # characters of a change in a table
# Mutants with a wrong type do not compile everywhere, and those that read uninitialized memory
# behave differently each time.
_REFUSED = (
    "int-conversion",
    "incompatible-pointer-types",
    "implicit-function-declaration",
    "uninitialized",
    "maybe-uninitialized",
)


@dataclass(frozen=True)
class Mutant:
    """One mutant of a reference.

    function   the kernel that the reference defines.
    operator   the name of the kind of change.
    line       number of the line of the answer cell, from 1, and `text` that line.
    before, after   the changed expression or statement; after is "" if it was deleted.
    source     the whole answer cell.
    """

    exercise: str
    function: str
    operator: str
    line: int
    text: str
    before: str
    after: str
    source: str

    @property
    def change(self) -> str:
        """The change as `before → after`."""
        return f"{self.before} → {self.after or '(deleted)'}"

    def diff(self, reference: str) -> str:
        """The change of the text of `reference` as a small unified diff."""
        lines = difflib.unified_diff(
            reference.splitlines(),
            self.source.splitlines(),
            f"{self.function}, the reference",
            f"{self.operator}, line {self.line}",
            lineterm="",
            n=1,
        )
        return "\n".join(lines)


def mutants_of(exercise: str, source: str) -> list[Mutant]:
    """All mutants of the answer cell `source`, each once, in the order of the text.

    Raises SetupError if tree-sitter is not installed.
    """
    if tree_sitter is None:
        raise SetupError(
            "tree-sitter, which parses C for 'mpilab rubric mutate', is not installed; "
            "python -m pip install -c constraints.txt tree-sitter tree-sitter-c"
        )
    code = build.split(source)[1].encode()
    tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c.language())).parse(code)
    if tree.root_node.has_error:
        raise InputError(f"{exercise}: tree-sitter cannot parse the reference; is it C?")
    # The %%kernel line, which `split` leaves empty.
    head = source.encode()[: -len(code.lstrip(b"\n"))]
    lines = source.split("\n")
    known = {_text(node) for node in _below(tree.root_node) if node.type in _NAMES}
    found: dict[str, Mutant] = {}
    for function in tree.root_node.children:
        if function.type != "function_definition":
            continue
        for operator, node, by in _changes(function.child_by_field_name("body"), known):
            mutated = code[: node.start_byte] + by.encode() + code[node.end_byte :]
            text = (head + mutated.lstrip(b"\n")).decode()
            shown = _context(node)
            before = _text(shown)
            after = (
                code[shown.start_byte : node.start_byte]
                + by.encode()
                + code[node.end_byte : shown.end_byte]
            ).decode()
            row = node.start_point[0]
            mutant = Mutant(
                exercise,
                build.function_of(source),
                operator,
                row + 1,
                lines[row].strip(),
                _one_line(before),
                "" if by == ";" else _one_line(after),
                text,
            )
            found.setdefault(text, mutant)
    return list(found.values())


# The operators. Each takes a node and yields changes.

_NAMES = ("identifier", "field_identifier")


def _text(node: Node) -> str:
    return node.text.decode()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _below(child)


def _context(node: Node) -> Node:
    """The largest expression around `node` that is short enough to be shown with it."""
    while (
        node.parent is not None
        and node.parent.type.endswith("_expression")
        and len(_one_line(_text(node.parent))) <= _SHOWN
    ):
        node = node.parent
    return node


def _changes(node: Node, known: set[str]) -> Iterator[Change]:
    """The changes of a node and of all below it, in the order of the text."""
    if node.type in _LEFT_ALONE or _handles_error(node):
        return
    for operator in _OPERATORS.get(node.type, ()):
        yield from operator(node)
    if node.type in _NAMES:
        yield from _names(node, known)
    for number, child in enumerate(node.children):
        if _is_after_error(node, child) or _is_error_check(child):
            continue
        if node.field_name_for_child(number) == "size" and node.type == "array_declarator":
            continue
        yield from _changes(child, known)


# Types, and other text that is not executed.
_LEFT_ALONE = {
    "enum_specifier",
    "struct_specifier",
    "type_descriptor",
    "sizeof_expression",
    "comment",
    "string_literal",
}


def _is_error_check(node: Node) -> bool:
    """Whether a node compares with MPI_SUCCESS or NULL."""
    if node.type == "parenthesized_expression":
        return _is_error_check(node.named_children[0])
    if node.type != "binary_expression":
        return False
    sides = [node.child_by_field_name(side) for side in ("left", "right")]
    if _operator(node) in ("&&", "||"):
        return all(map(_is_error_check, sides))
    return any(_text(side) in ("MPI_SUCCESS", "NULL") for side in sides)


def _handles_error(node: Node) -> bool:
    """Whether a node only decides what to do after a failure."""
    if node.type == "if_statement":
        condition, body = (node.child_by_field_name(each) for each in ("condition", "consequence"))
        leaves = body.type in ("return_statement", "break_statement")
        return _is_error_check(condition) and leaves and not _is_of_success(condition)
    return node.type == "conditional_expression" and "MPI_ERR_" in _text(node)


def _is_of_success(condition: Node) -> bool:
    return "== MPI_SUCCESS" in _text(condition) or "!= NULL" in _text(condition)


def _is_after_error(node: Node, child: Node) -> bool:
    """Whether `child` is the branch of `node` that is taken after a failure."""
    if node.type != "conditional_expression":
        return False
    return _is_error_check(
        node.child_by_field_name("condition")
    ) and child == node.child_by_field_name("alternative")


def _operator(node: Node) -> str:
    return _text(node.child_by_field_name("operator"))


def _plus(node: Node, number: int) -> str:
    """The expression `node` plus `number`."""
    text = _text(node)
    simple = node.type in _NAMES or node.type in ("call_expression", "subscript_expression")
    return f"{text if simple else f'({text})'} {'+' if number > 0 else '-'} {abs(number)}"


def _constant(node: Node) -> Iterator[Change]:
    text = _text(node)
    if text.isdigit() and int(text) <= MOST_CONSTANT:
        if _role(node) != "room":
            yield "constant", node, str(int(text) + 1)
        yield "constant", node, str(int(text) - 1) if int(text) else "(-1)"


def _binary(node: Node) -> Iterator[Change]:
    sign, operator = node.child_by_field_name("operator"), _operator(node)
    left, right = (node.child_by_field_name(side) for side in ("left", "right"))
    if "MPI_IN_PLACE" in (_text(left), _text(right)):
        yield "in-place", node, "0" if operator == "==" else "1"
        return
    if operator in _BOUNDS:
        yield "bound", sign, _BOUNDS[operator]
    if operator in _COMPARISONS:
        yield "comparison", sign, _COMPARISONS[operator]
    checked = _is_error_check(left) or _is_error_check(right)
    if operator in _ARITHMETIC and not checked:
        yield "operator", sign, _ARITHMETIC[operator]
    if operator in ("&&", "||"):
        for dropped, kept in ((left, right), (right, left)):
            if not _is_error_check(dropped):
                yield "condition", node, f"({_text(kept)})"


def _unary(node: Node) -> Iterator[Change]:
    if _operator(node) == "!":
        yield "condition", node, _text(node.child_by_field_name("argument"))


def _update(node: Node) -> Iterator[Change]:
    yield (
        "operator",
        node.child_by_field_name("operator"),
        {"++": "--", "--": "++"}[_operator(node)],
    )


def _assignment(node: Node) -> Iterator[Change]:
    if _operator(node) in _ARITHMETIC:
        yield "operator", node.child_by_field_name("operator"), _ARITHMETIC[_operator(node)]


def _role(node: Node) -> str:
    """The role of an argument of MPI; "" if `node` is none."""
    if node.parent.type != "argument_list":
        return ""
    roles = ROLES.get(_text(node.parent.parent.child_by_field_name("function")), ())
    number = node.parent.named_children.index(node)
    return roles[number] if number < len(roles) else ""


def _index(node: Node) -> Iterator[Change]:
    index = node.child_by_field_name("index")
    if index.type not in ("number_literal", "update_expression"):
        yield "index", index, _plus(index, 1)
        yield "index", index, _plus(index, -1)


def _negation(node: Node) -> Iterator[Change]:
    condition = node.child_by_field_name("condition")
    if condition is None or (node.type == "conditional_expression" and _is_error_check(condition)):
        return
    inner = condition.named_children[0] if condition.type.startswith("parenthes") else condition
    yield "negation", inner, f"!({_text(inner)})"


def _branch(node: Node) -> Iterator[Change]:
    if not _is_error_check(node.child_by_field_name("condition")):
        for branch in ("consequence", "alternative"):
            yield "branch", node, f"({_text(node.child_by_field_name(branch))})"


def _call(node: Node) -> Iterator[Change]:
    name = _text(node.child_by_field_name("function"))
    arguments = node.child_by_field_name("arguments").named_children
    for one, other in zip(arguments, arguments[1:], strict=False):
        if _text(one) != _text(other):
            yield from _swapped(node, one, other)
    roles = ROLES.get(name, ())
    for number, (argument, role) in enumerate(zip(arguments, roles, strict=False)):
        later = roles.index(role, number + 1) if role in roles[number + 1 :] else None
        is_pair = later is not None and role in ("buffer", "rank", "type") and later > number + 1
        if is_pair and _text(argument) != _text(arguments[later]):
            yield from _swapped(node, argument, arguments[later])
        yield from _argument(argument, role, empty=_text(arguments[number - 1]) == "0")
    if not name.startswith("MPI_"):
        for argument in arguments:
            if _text(argument) == "comm":
                yield "communicator", argument, "MPI_COMM_WORLD"


def _swapped(call: Node, one: Node, other: Node) -> Iterator[Change]:
    text, start = call.text, call.start_byte
    swapped = (
        text[: one.start_byte - start]
        + other.text
        + text[one.end_byte - start : other.start_byte - start]
        + one.text
        + text[other.end_byte - start :]
    )
    yield "swapped-arguments", call, swapped.decode()


def _argument(node: Node, role: str, *, empty: bool) -> Iterator[Change]:
    """The changes of an argument of MPI; `empty` if the one before it, a count, is 0."""
    text = _text(node)
    if role in ("count", "room", "rank") and node.type != "number_literal":
        yield ("rank" if role == "rank" else "count"), node, _plus(node, -1)
        if role != "room":
            yield ("rank" if role == "rank" else "count"), node, _plus(node, 1)
    elif role == "tag":
        yield "tag", node, _plus(node, 1)
    elif role == "comm" and text not in ("MPI_COMM_WORLD", "MPI_COMM_SELF"):
        yield "communicator", node, "MPI_COMM_WORLD"
    elif role == "type" and not empty and node.type == "identifier":
        other = _OTHER_TYPE.get(text, "" if text.startswith("MPI_") else "MPI_BYTE")
        if other:
            yield "type", node, other


def _names(node: Node, known: set[str]) -> Iterator[Change]:
    """Confuse a name with its twin, and the root with rank 0."""
    name, parent = _text(node), node.parent
    is_declared = "declarator" in parent.type and node == parent.child_by_field_name("declarator")
    is_called = parent.type == "call_expression"
    if is_declared or is_called or parent.type in ("declaration", "parameter_declaration"):
        return
    if name == "root":
        yield "rank", node, "0"
    for pair in TWINS:
        for one, other in (pair, pair[::-1]):
            twin = _twin(name, one, other)
            if twin and twin in known:
                yield _named(name), node, twin


def _twin(name: str, one: str, other: str) -> str:
    """`name` with the word `other` for `one`: recvcount for sendcount; "" without that word."""
    if one in ("send", "recv") and name.startswith(one):
        return other + name.removeprefix(one)
    words = name.split("_")
    return "_".join(other if word == one else word for word in words) if one in words else ""


def _named(name: str) -> str:
    """The operator for a confused name."""
    if set(name.split("_")) & _PEERS:
        return "rank"
    if name.endswith(("count", "counts")):
        return "count"
    return "type" if name.endswith("type") else "name"


def _root_for_0(node: Node) -> Iterator[Change]:
    """`rank == 0` in a function that has a root."""
    sides = [node.child_by_field_name(side) for side in ("left", "right")]
    if _text(sides[1]) != "0" or _text(sides[0]) not in ("rank", "place", "me", "self"):
        return
    function = node
    while function.type != "function_definition":
        function = function.parent
    if re.search(r"\bint root\b", _text(function.child_by_field_name("declarator"))):
        yield "rank", sides[1], "root"


def _dropped(node: Node, by: str) -> Iterator[Change]:
    """Delete a call that is a whole statement or expression."""
    call = _the_call(node)
    if call is not None:
        name = _text(call.child_by_field_name("function"))
        if _FREES.fullmatch(name):
            yield "missing-free", node, by
        elif _WAITS.fullmatch(name):
            yield "dropped-wait", node, by
        else:
            yield "dropped-call", node, by


def _the_call(node: Node) -> Node | None:
    """The call that an expression is, or whose result it stores."""
    if node.type == "assignment_expression":
        node = node.child_by_field_name("right")
    return node if node.type == "call_expression" else None


def _statement(node: Node) -> Iterator[Change]:
    inner = node.named_children[0] if node.named_children else None
    if inner is None:
        return
    if inner.type == "comma_expression":
        for each in _of_comma(inner):
            yield from _dropped(each, "(void)0")
    elif _the_call(inner) is None:
        yield "deleted-statement", node, ";"
    elif inner.type == "call_expression":
        for operator, _, _ in _dropped(inner, ""):
            yield operator, node, ";"
        yield from _other_extent(inner)
    else:
        for operator, call, by in _dropped(inner.child_by_field_name("right"), "MPI_SUCCESS"):
            if "MPI_SUCCESS" in _text(_outermost(node)):
                yield operator, call, by
        if "err" not in _text(inner.child_by_field_name("left")):
            yield "deleted-statement", node, ";"


def _outermost(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def _of_comma(node: Node) -> Iterator[Node]:
    for side in ("left", "right"):
        child = node.child_by_field_name(side)
        yield from _of_comma(child) if child.type == "comma_expression" else [child]


def _initial(node: Node) -> Iterator[Change]:
    """`int err = CALL(...)` without the call."""
    if _text(node.child_by_field_name("declarator")) == "err":
        yield from _dropped(node.child_by_field_name("value"), "MPI_SUCCESS")


def _returned(node: Node) -> Iterator[Change]:
    if node.named_children:
        yield from _dropped(node.named_children[0], "MPI_SUCCESS")


def _deleted(node: Node) -> Iterator[Change]:
    yield "deleted-statement", node, ";"


def _other_extent(call: Node) -> Iterator[Change]:
    """Confuse the extent of a type with its size, and its true extent with its extent."""
    name = _text(call.child_by_field_name("function"))
    arguments = [_text(each) for each in call.child_by_field_name("arguments").named_children]
    if name == "MPI_Type_get_true_extent":
        yield "extent", call.child_by_field_name("function"), "MPI_Type_get_extent"
    elif name == "MPI_Type_get_extent":
        kind, lower, extent = arguments
        by = f"{{ int bytes; MPI_Type_size({kind}, &bytes); *({lower}) = 0; *({extent}) = bytes; }}"
        yield "extent", call.parent, by
    elif name == "MPI_Type_size":
        kind, size = arguments
        by = f"{{ MPI_Aint lb, ub; MPI_Type_get_extent({kind}, &lb, &ub); *({size}) = (int)ub; }}"
        yield "extent", call.parent, by


_OPERATORS: dict[str, tuple[Callable[[Node], Iterator[Change]], ...]] = {
    "number_literal": (_constant,),
    "binary_expression": (_binary, _root_for_0),
    "unary_expression": (_unary,),
    "update_expression": (_update,),
    "assignment_expression": (_assignment,),
    "subscript_expression": (_index,),
    "conditional_expression": (_negation, _branch),
    "call_expression": (_call,),
    "if_statement": (_negation, _deleted),
    "while_statement": (_negation, _deleted),
    "for_statement": (_negation, _deleted),
    "expression_statement": (_statement,),
    "init_declarator": (_initial,),
    "return_statement": (_returned,),
    "break_statement": (_deleted,),
    "continue_statement": (_deleted,),
}


# Mutants that behave like the reference.


@dataclass(frozen=True)
class Equivalent:
    """An entry of equivalent.toml: mutants that no test can distinguish from the reference."""

    exercise: str
    operator: str
    line: str
    reason: str
    change: str = ""

    def matches(self, mutant: Mutant) -> bool:
        """Whether the entry matches a mutant."""
        return (
            (self.exercise, self.operator, self.line)
            == (mutant.exercise, mutant.operator, mutant.text)
        ) and self.change in ("", mutant.change)


def read_equivalents(path: Path, mutants: Iterable[Mutant]) -> list[Equivalent]:
    """The entries of an equivalent.toml; none if there is no such file.

    mutants   of all exercises of the lab: an entry that matches none of them raises InputError.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None
    mutants, found = list(mutants), []
    for number, entry in enumerate(table.get("equivalent", []), 1):
        try:
            one = Equivalent(**entry)
        except TypeError:
            raise InputError(
                f"{path}: entry {number}: give it exercise, operator, line and reason; it may also "
                "have change, and nothing else"
            ) from None
        if not any(map(one.matches, mutants)):
            raise InputError(
                f"{path}: entry {number}: no mutant of {one.exercise!r} has the operator "
                f"{one.operator!r} in the line {one.line!r}"
                + (f" and the change {one.change!r}" if one.change else "")
                + "; the reference has changed, so correct or remove the entry"
            )
        found.append(one)
    return found


# Which mutants are worth judging.


def in_random_order(mutants: Sequence[Mutant], seed: int) -> list[Mutant]:
    """The mutants in an order that depends only on them and `seed`: one of each operator first."""
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_operator.setdefault(mutant.operator, []).append(mutant)
    chance = random.Random(f"{seed} {mutants[0].function}" if mutants else seed)
    for group in by_operator.values():
        chance.shuffle(group)
    groups = list(by_operator.values())
    chance.shuffle(groups)
    most = max(map(len, groups), default=0)
    return [group[turn] for turn in range(most) for group in groups if turn < len(group)]


def machine_code(source: str, folder: Path) -> str | None:
    """The assembler text of an answer cell, as kernels are compiled; None if it does not compile.

    Two answers with the same text behave identically.
    """
    target = folder / "mutant.c"
    target.write_text(build.split(source)[1], encoding="utf-8")
    said = build.run(
        [
            build.openmpi.tool("mpicc"),
            *build.FLAGS,
            "-g0",
            *(f"-Werror={warning}" for warning in _REFUSED),
            f"-I{build.INCLUDE}",
            *("-S", "-o", "-", str(target)),
        ],
        timeout=60,
    )
    return said.stdout if said.returncode == 0 else None


# The outcomes of the mutants.

KILLED, SURVIVED, UNDECIDED = "killed", "survived", "undecided"


@dataclass(frozen=True)
class Judged:
    """A mutant that was judged: the items that it lost, with the reason of each.

    undecided   why an item could not be judged; "" if all could.
    """

    mutant: Mutant
    lost: Mapping[str, str]
    undecided: str = ""

    @classmethod
    def of(cls, mutant: Mutant, verdict: ExerciseVerdict) -> "Judged":
        """The outcome of a mutant, from its verdict."""
        lost = {item.item: item.reason for item in verdict.items if item.outcome == FAIL}
        open_items = [f"{i.item}: {i.reason}" for i in verdict.items if i.outcome == UNGRADABLE]
        return cls(mutant, lost, open_items[0] if open_items else "")

    @property
    def outcome(self) -> str:
        """KILLED, SURVIVED or, if no item is lost but one could not be judged, UNDECIDED."""
        return KILLED if self.lost else UNDECIDED if self.undecided else SURVIVED


@dataclass(frozen=True)
class Score:
    """The outcomes of the mutants of one reference.

    items          ids of the items, in the rubric's order.
    made           mutants that were compiled, or listed as equivalent.
    not_compiled   of these, those that the compiler rejected.
    same           those whose machine code is that of the reference, or of another mutant.
    equivalent     those that equivalent.toml lists; they are not judged.
    judged         the others: a Judged for each.
    """

    exercise: str
    function: str
    reference: str
    items: tuple[str, ...]
    made: int
    not_compiled: int
    same: int
    equivalent: int
    judged: tuple[Judged, ...]

    def those(self, outcome: str) -> list[Judged]:
        """The mutants with this outcome."""
        return [each for each in self.judged if each.outcome == outcome]

    @property
    def percent(self) -> float:
        """The share of judged mutants that were killed, in percent."""
        return percent([self])

    @property
    def by_item(self) -> dict[str, tuple[int, int]]:
        """{item: (mutants that lost it, mutants that lost nothing else)}."""
        every = Counter(item for each in self.judged for item in each.lost)
        alone = Counter(next(iter(each.lost)) for each in self.judged if len(each.lost) == 1)
        return {item: (every[item], alone[item]) for item in self.items}


def percent(scores: Iterable[Score]) -> float:
    """The share of judged mutants that were killed, in percent; 100 if none was judged."""
    scores = list(scores)
    judged = sum(len(score.judged) for score in scores)
    killed = sum(len(score.those(KILLED)) for score in scores)
    return 100 * killed / judged if judged else 100.0


def score_table(scores: Sequence[Score]) -> str:
    """A line for each reference, and below, for each, how many mutants each item killed."""
    head = "exercise mutants uncompiled same equivalent judged killed survived undecided".split()
    rows: list[tuple[str, ...]] = [(*head, "score")]
    for each in scores:
        numbers = (
            each.made,
            each.not_compiled,
            each.same,
            each.equivalent,
            len(each.judged),
            *(len(each.those(outcome)) for outcome in (KILLED, SURVIVED, UNDECIDED)),
        )
        rows.append((each.function, *map(str, numbers), f"{each.percent:.1f} %"))
    by_item = [("exercise", "item", "lost by", "alone")]
    for each in scores:
        for number, (item, (every, alone)) in enumerate(each.by_item.items()):
            by_item.append(("" if number else each.function, item, str(every), str(alone)))
    return f"{aligned(rows)}\n\n{aligned(by_item, left=(0, 1))}"


class Kills(NamedTuple):
    """The mutants of one reference by one operator: how many were judged and killed, and
    {item: how many of them lost it}, in the rubric's order."""

    function: str
    operator: str
    judged: int
    killed: int
    items: dict[str, int]


def kills(score: Score) -> list[Kills]:
    """The Kills of each operator that has mutants of a reference, by name."""
    found = []
    for operator in sorted({each.mutant.operator for each in score.judged}):
        those = [each for each in score.judged if each.mutant.operator == operator]
        lost = Counter(item for each in those for item in each.lost)
        items = {item: lost[item] for item in score.items if lost[item]}
        killed = sum(each.outcome == KILLED for each in those)
        found.append(Kills(score.function, operator, len(those), killed, items))
    return found


def kills_table(scores: Sequence[Score]) -> str:
    """A line for each reference and operator: the items that its mutants lost, and how many."""
    rows = [("exercise", "operator", "judged", "killed", "items that they lost")]
    for score in scores:
        for number, one in enumerate(kills(score)):
            name = "" if number else one.function
            rows.append((name, one.operator, str(one.judged), str(one.killed), _listed(one.items)))
    return aligned(rows, left=(0, 1, 4))


def _listed(items: Mapping[str, int], mark: str = "") -> str:
    """E.g. 'plain 3, roots 1'."""
    return ", ".join(f"{mark}{item}{mark} {count}" for item, count in items.items())


def kills_in_markdown(exercises: Sequence[Mapping[str, Any]]) -> str:
    """The same from the `exercises` of `as_json`, as a table in Markdown."""
    rows = [
        "| exercise | operator | judged | killed | items that they lost |",
        "|---|---|---:|---:|---|",
    ]
    for exercise in exercises:
        for number, one in enumerate(exercise["kills"]):
            name = "" if number else f"`{exercise['function']}`"
            items = _listed(one["items"], "`")
            rows.append(
                f"| {name} | {one['operator']} | {one['judged']} | {one['killed']} | {items} |"
            )
    return "\n".join(rows)


def scores_in_markdown(exercises: Sequence[Mapping[str, Any]]) -> str:
    """The scores of the `exercises` of `as_json`, as a table in Markdown."""
    rows = [
        "| exercise | judged | killed | survived | undecided | equivalent | score |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for exercise in exercises:
        ends = Counter(each["outcome"] for each in exercise["judged"])
        numbers = [ends.total(), ends[KILLED], ends[SURVIVED], ends[UNDECIDED]]
        cells = " | ".join(map(str, [*numbers, exercise["equivalent"]]))
        rows.append(f"| `{exercise['function']}` | {cells} | {exercise['percent']:.0f} % |")
    return "\n".join(rows)


def survivors(scores: Sequence[Score]) -> str:
    """Each survivor and each undecided mutant: operator, change, and the diff."""
    lines = []
    for score in scores:
        for each in score.judged:
            if each.outcome != KILLED:
                one = each.mutant
                why = f" ({each.undecided})" if each.undecided else ""
                lines += [
                    f"{each.outcome.upper()}{why}: {one.exercise}, {one.operator}: {one.change}",
                    one.diff(score.reference),
                    "",
                ]
    return "\n".join(lines)


def as_json(lab: str, scores: Sequence[Score]) -> dict[str, Any]:
    """The scores of a lab as plain data."""
    return {
        "lab": lab,
        "percent": percent(scores),
        "exercises": [
            {
                "exercise": each.exercise,
                "function": each.function,
                "mutants": each.made,
                "not_compiled": each.not_compiled,
                "same": each.same,
                "equivalent": each.equivalent,
                "percent": each.percent,
                "lost_by": {item: every for item, (every, _) in each.by_item.items()},
                "kills": [one._asdict() for one in kills(each)],
                "lost_alone_by": {item: alone for item, (_, alone) in each.by_item.items()},
                "judged": [
                    {
                        **{key: getattr(one.mutant, key) for key in _IN_JSON},
                        "outcome": one.outcome,
                        "lost": dict(one.lost),
                        "undecided": one.undecided,
                        "diff": one.mutant.diff(each.reference),
                    }
                    for one in each.judged
                ],
            }
            for each in scores
        ],
    }


_IN_JSON = ("operator", "line", "text", "before", "after")
