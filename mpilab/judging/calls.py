"""Call a Python answer, and write what it returns as JSON.

This module uses only the standard library: the referee runs it as a program, in a sandbox that
hides the rest of mpilab because mpilab contains the answers.

    python calls.py     reads job.json: {"function", "source", "calls": [[argument, ...], ...]}
                        writes called.json: the result of each call, as `call` returns it
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Rational
from pathlib import Path
from typing import Any


def call(function: Callable[..., object], arguments: Iterable[Any]) -> dict[str, Any]:
    """The result of one call: {"value": …} in plain JSON types, or {"error": text}."""
    try:
        value = function(*arguments)
        return {"value": json.loads(json.dumps(value, default=_plain))}
    except KeyboardInterrupt:  # of whoever runs the notebook
        raise
    except BaseException as error:  # SystemExit too: the student is told whatever it raises
        return {"error": _told(error)}


ALLOWED = "a graded Python answer can use the standard library and numpy"
_MPILAB = re.compile(r"'(mpilab[\w.]*)'; 'mpilab' is not a package|import of (mpilab[\w.]*) halted")


def _told(error: BaseException) -> str:
    """What a student reads about an exception."""
    try:
        text = str(error)
    except BaseException as fault:  # the exception is of a class of the answer's own
        text = f"(no message: its __str__ raised {type(fault).__name__[:100]})"
    if isinstance(error, MemoryError) and not text:
        text = "out of memory; does it make a list as long as an argument is large?"
    name = (error.name or "") if isinstance(error, ImportError) else ""
    # The answer may have caught Python's own error, and raised another with its text.
    caught = _MPILAB.search(text)
    if name.partition(".")[0] == "mpilab" or caught:
        name = (caught[1] or caught[2]) if caught else name
        return f"ImportError: it imports {name[:100]}, but {ALLOWED}, not mpilab"
    if isinstance(error, ModuleNotFoundError) and name:
        return f"{type(error).__name__}: {text[:300]}; {ALLOWED}"
    return f"{type(error).__name__}: {text}"[:500]


def _plain(value: Any) -> Any:
    """Convert numbers of numpy and of Python's libraries, and arrays, to plain Python values."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Rational) and value.denominator == 1:
        return int(value.numerator)
    if isinstance(value, Rational | Decimal):
        return float(value)
    name = type(value).__name__
    if isinstance(value, Iterable):
        raise TypeError(f"a {name} is not a list; return a list of numbers, e.g. list(...)")
    raise TypeError(f"a {name} is not a number; return numbers")


def call_answer(source: str, name: str, calls: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """Define the answer in `source`, and call its function `name` with each list of arguments."""
    namespace: dict[str, Any] = {"__name__": "answer"}
    try:
        if re.search(r"\bnp\b", source):
            # The first cell of a lab imports it under this name, so an answer may rely on that.
            exec("import numpy as np", namespace)
        exec(compile(source, "cell", "exec"), namespace)
        function = namespace[name]
    except BaseException as error:  # SystemExit too: the student is told whatever the cell raises
        text = _told(error)
        if isinstance(error, KeyError) and name not in namespace:
            text = f"the cell does not define {name}"
        return [{"error": text}] * len(calls)
    return [call(function, arguments) for arguments in calls]


def main() -> None:
    """Run the job in the current directory."""
    job = json.loads(Path("job.json").read_text(encoding="utf-8"))
    # An answer must not use mpilab, which it could import if run without a sandbox.
    # None tells Python that a module cannot be imported.
    sys.modules["mpilab"] = None  # type: ignore[assignment]
    called = call_answer(job["source"], job["function"], job["calls"])
    Path("called.json").write_text(json.dumps(called), encoding="utf-8")


if __name__ == "__main__":
    main()
