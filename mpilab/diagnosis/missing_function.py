"""A source that compiles, but does not define the kernel that is asked for."""

from difflib import get_close_matches

from mpilab.diagnosis import words
from mpilab.diagnosis.model import ERROR, Diagnosis

SHOWN = 3


def missing_function(function, defined, *, what="The cell"):
    """The Diagnosis of `what` ("The cell", "mine.c"), which defines the functions `defined`
    without `function` among them."""
    collective = function.partition("_")[0]
    others = sorted(name for name in defined if name.startswith(f"{collective}_"))
    near = get_close_matches(function, sorted(defined), n=1)
    named = near or others[:SHOWN]
    but = f": it defines {words.listing(named)}" if named else ""
    if near:
        hint = f"Is it the same name? Write {function} in both places, letter by letter, or run "
        hint += f"{near[0]}."
    else:
        hint = f"Give your function the name {function}, and no 'static' before it."
    return Diagnosis(ERROR, f"{what} compiles, but it does not define {function}{but}.", hint=hint)
