"""Rules about calls: arguments of the wrong type, in the wrong order, missing or too many."""

import re
from itertools import combinations

from mpilab.diagnosis import prototypes
from mpilab.diagnosis.slips.rules import GRAVE, Slip, a, rule
from mpilab.diagnosis.slips.source import INTEGERS, pointer_to

HANDLES = ("MPI_Comm", "MPI_Datatype", "MPI_Request", "MPI_Op", "MPI_Group", "MPI_Win",
           "MPI_File", "MPI_Info", "MPI_Errhandler", "MPI_Message")  # fmt: skip
DATATYPES = {
    "char": "MPI_CHAR", "short": "MPI_SHORT", "int": "MPI_INT", "long": "MPI_LONG",
    "unsigned": "MPI_UNSIGNED", "float": "MPI_FLOAT", "double": "MPI_DOUBLE",
    "size_t": "MPI_UNSIGNED_LONG", "bool": "MPI_C_BOOL", "_Bool": "MPI_C_BOOL",
    "int8_t": "MPI_INT8_T", "int16_t": "MPI_INT16_T", "int32_t": "MPI_INT32_T",
    "int64_t": "MPI_INT64_T", "uint8_t": "MPI_UINT8_T", "uint16_t": "MPI_UINT16_T",
    "uint32_t": "MPI_UINT32_T", "uint64_t": "MPI_UINT64_T"}  # fmt: skip
_ADVICE = {
    "MPI_Comm": "A communicator is no number: give the kernel's comm.",
    "MPI_Datatype": "A datatype says what the elements are: give e.g. the kernel's recvtype, or "
                    "MPI_INT for int.",
    "MPI_Op": "An operation has a name of MPI's: MPI_SUM, MPI_MAX, ...",
    "MPI_Status *": "Give the address of an MPI_Status, or MPI_STATUS_IGNORE where you do not "
                    "need it.",
}  # fmt: skip


@rule(
    r"passing argument (?P<number>\d+) of '(?P<function>\w+)' "
    r"(?:makes|from incompatible|with different)",
    r"incompatible type for argument (?P<number>\d+) of '(?P<function>\w+)'",
    r"passing '(?P<given>[^']*)'(?: \(aka '[^']*'\))? to parameter of (?:incompatible )?type"
    r"(?!.* discards )",
)
def wrong_argument(spot, match):
    """An argument of another type than the prototype's."""
    call, number = _locate(spot, match)
    if call is None:
        return None
    prototype = prototypes.functions().get(call.function)
    if prototype is None or number >= min(len(prototype.parameters), len(call.arguments)):
        return None
    parameter, argument = prototype.parameters[number], call.arguments[number]
    given = spot.source.type_of(argument.text, argument.begin) or _given(match)
    wanted = a(parameter.type)
    if parameter.is_array:
        wanted = f"an array of {parameter.type.removesuffix('*').rstrip()}"
    label = (
        f"argument {number + 1} of {call.function} is the {parameter.name} ({wanted}), "
        f"but {_quote(argument.text)} is {a(given) if given else 'not'}"
    )
    pattern, advice = _advice(spot.source, call, prototype, number, given)
    # What is passed without its & is also called uninitialised: that has the same cause.
    follows = (f"value {argument.text}",) if pattern == "missing &" else ()
    return Slip(label, f"{advice} The prototype: {prototype}.".strip(), pattern,
                f"call {call.begin}", GRAVE, argument.begin, follows)  # fmt: skip


@rule(
    r"passing argument (?P<number>\d+) of '(?P<function>\w+)' discards 'const'",
    r"passing '(?P<given>[^']*)'(?: \(aka '[^']*'\))? to parameter of type .* discards qualifiers",
)
def read_only_argument(spot, match):
    """Something const where the function writes."""
    call, number = _locate(spot, match)
    if call is None or number >= len(call.arguments):
        return None
    argument = call.arguments[number]
    hint = "What is const may only be read."
    if argument.text == "sendbuf":
        hint = "The send buffer may only be read; what is received belongs into recvbuf."
    return Slip(f"{call.function} would write into {_quote(argument.text)}, which is const", hint,
                "writing what is const", f"call {call.begin}.{number}", GRAVE,
                argument.begin)  # fmt: skip


@rule(r"too (?P<amount>few|many) arguments to function(?: call|)(?: '(?P<function>\w+)')?")
def number_of_arguments(spot, match):
    """A call with too few or too many arguments."""
    call = _call_of(spot, match["function"] or "")
    if call is None:
        return None
    prototype = prototypes.functions().get(call.function)
    pattern = f"too {match['amount']} arguments"
    if prototype is None:
        return Slip(f"{call.function} is called with too {match['amount']} arguments", "",
                    pattern, f"call {call.begin}", GRAVE, call.begin)  # fmt: skip
    wanted, got = len(prototype.parameters), len(call.arguments)
    label = f"{call.function} takes {_arguments(wanted)}, but got {got}"
    if match["amount"] == "few":
        missing = [parameter.name for parameter in missing_parameters(spot.source, call, prototype)]
        label += f": the {' and the '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    else:
        surplus = surplus_argument(spot.source, call, prototype)
        label += f": {_quote(surplus.text)} is too much"
    hint = f"The prototype: {prototype}."
    if call.arguments and call.arguments[-1].text in ("ierr", "ierror", "err"):
        hint = f"In C the error code is what the function returns: int err = ... {hint}"
    return Slip(label, hint, pattern, f"call {call.begin}", GRAVE, call.begin)


def fits(parameter, given):
    """May an expression of type `given` stand for a parameter of this type? Unknown ones may."""
    if not given or parameter in ("...", given):
        return True
    if parameter == "void *":
        return given.endswith(("*", "[]"))
    if parameter in INTEGERS:
        return given in INTEGERS or given in ("float", "double")
    return given == "void *" and parameter.endswith("*")


def missing_parameters(source, call, prototype):
    """The parameters that a call with too few arguments most likely leaves out."""
    kinds = [source.type_of(argument.text, argument.begin) for argument in call.arguments]
    parameters = prototype.parameters
    lacking = len(parameters) - len(kinds)

    def fitting(left_out):
        kept = [p for index, p in enumerate(parameters) if index not in left_out]
        known = [(p.type, kind) for p, kind in zip(kept, kinds, strict=True) if kind]
        # Later ones are forgotten more often.
        return sum(fits(*pair) for pair in known), left_out

    if lacking > 3:
        return parameters[len(kinds) :]
    best = max(combinations(range(len(parameters)), lacking), key=fitting)
    return [parameters[index] for index in best]


def surplus_argument(source, call, prototype):
    """The argument that a call with too many most likely has no place for."""
    kinds = [source.type_of(argument.text, argument.begin) for argument in call.arguments]

    def fitting(index):
        kept = kinds[:index] + kinds[index + 1 :]
        pairs = zip(prototype.parameters, kept, strict=False)
        return sum(fits(parameter.type, kind) for parameter, kind in pairs), index

    return call.arguments[max(range(len(kinds)), key=fitting)]


def _advice(source, call, prototype, number, given):
    """(pattern, advice) for an argument of the wrong type."""
    parameter, argument = prototype.parameters[number], call.arguments[number]
    wanted, text = parameter.type, argument.text
    if given == f"{wanted} (*)[]" or given == f"{wanted.removesuffix('*').rstrip()} (*)[]":
        return "an & too much", f"An array is an address already: write {text.lstrip('& ')}."
    if text.startswith("&") and given == pointer_to(wanted):
        return "an & too much", f"Leave the & away: write {text[1:].strip()}."
    if given and wanted == pointer_to(given):
        if re.fullmatch(r"[\w\[\]. ]+", text) and not text.isdigit():
            return "missing &", f"{call.function} wants the address: write &{text}."
        return "missing &", f"{call.function} wants the address of {a(given)}."
    if partner := _exchanged(source, call, prototype, number):
        first, second = sorted((number + 1, partner + 1))
        return "arguments in the wrong order", f"Arguments {first} and {second} look exchanged."
    if len(call.arguments) != len(prototype.parameters):
        return "wrong argument", ""
    if given.startswith("type ") and wanted == "MPI_Datatype":
        named = DATATYPES.get(given.removeprefix("type "))
        return "C type for a datatype", f"Write {named}." if named else _ADVICE[wanted]
    handle = wanted.rstrip(" *")
    if handle in (*HANDLES, "MPI_Status"):
        advice = _ADVICE.get(wanted, "")
        if text.startswith("&") and wanted.endswith("*") and re.fullmatch(r"&\s*\w+", text):
            advice = f"Declare it as {handle} {text[1:].strip()}; {advice}".strip()
        return "wrong handle type", advice
    if given.rstrip(" *") in HANDLES:
        return "wrong handle type", "" if wanted == "void *" else f"It has to be {a(wanted)}."
    return "wrong argument", ""


def _exchanged(source, call, prototype, number):
    """The index of the other argument with which this one would have to change places."""
    kinds = [source.type_of(argument.text, argument.begin) for argument in call.arguments]
    parameters = [parameter.type for parameter in prototype.parameters]
    mine = kinds[number] if number < len(kinds) else ""
    for other, (kind, wanted) in enumerate(zip(kinds, parameters, strict=False)):
        if other == number or not kind or not mine or fits(wanted, kind):
            continue
        if fits(parameters[number], kind) and fits(wanted, mine):
            return other
    return None


def _locate(spot, match):
    """(Call, index of the argument) that a message is about; (None, 0) where it cannot be told.

    gcc names function and number, and points into the argument; clang points to its beginning.
    """
    groups = match.groupdict()
    if groups.get("function"):
        call = _call_of(spot, groups["function"])
        return call, int(groups["number"]) - 1
    call = spot.source.call_at(spot.offset)
    while call is not None:
        index = call.index_at(spot.offset)
        if index is not None:
            return call, index
        outer = [c for c in spot.source.calls if c.begin < call.begin and spot.offset < c.end]
        call = max(outer, key=lambda c: c.begin, default=None)
    return None, 0


def _call_of(spot, function):
    call = spot.source.call_at(spot.offset, function)
    if call is None and function:
        line = spot.diagnostic.line
        same = [c for c in spot.source.calls if c.function == function]
        call = next((c for c in same if spot.source.place(c.begin)[0] == line), None)
    return call


def _given(match):
    given = match.groupdict().get("given")
    return prototypes.plain_type(given) if given and "(" not in given else ""


def _quote(text):
    """An expression in quotes, in one line, cut where it is long."""
    line = " ".join(text.split())
    return f"'{line if len(line) <= 40 else line[:37] + '...'}'"


def _arguments(count):
    return "1 argument" if count == 1 else f"{count} arguments"
