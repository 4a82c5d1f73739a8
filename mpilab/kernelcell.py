"""The first line of an answer in C: `%%kernel [--sanitize] FUNCTION`."""

from mpilab.errors import InputError

MAGIC, SANITIZE = "%%kernel", "--sanitize"


def split(source):
    """(the magic's line or "", the C text) of an answer cell.

    The line is replaced by an empty one, so that lines keep their numbers. As in a notebook, empty
    lines may stand above it.
    """
    lines = source.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not lines[first].lstrip().startswith("%%"):
        return "", source
    return lines[first].strip(), "\n".join(["" for _ in lines[: first + 1]] + lines[first + 1 :])


def parse(options):
    """(function, sanitize?) from what stands behind %%kernel; InputError without a function."""
    words = options.split()
    names = [word for word in words if word != SANITIZE]
    if len(names) != 1 or not names[0].isidentifier():
        raise InputError(f"%%kernel {options!r}: name the function, e.g. %%kernel allgather_ring")
    return names[0], SANITIZE in words


def function_of(source):
    """The function that the %%kernel line of an answer cell names; "" where there is none."""
    line, _ = split(source)
    if not line.startswith(MAGIC):
        return ""
    try:
        return parse(line.removeprefix(MAGIC))[0]
    except InputError:
        return ""
