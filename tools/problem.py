"""Messages of the programs in this folder when they cannot continue: what was wrong, where, and
what to do.

Like setup.py, this file must be readable by old Pythons (3.6 and later), and needs no package.
`run` does here what mpilab.util.faults does for the kit itself.
"""

import os
import sys
import tempfile
import time
import traceback


class Problem(Exception):
    """Setup cannot continue, or continues without something; three sentences for the reader."""

    def __init__(self, what, where, remedy):
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self):
        return f"{self.what}\n  where:  {self.where}\n  remedy: {self.remedy}"


def run(name, call):
    """Call `call` as the program `name`; return the exit status, 130 if it was interrupted.

    Only SystemExit propagates. A Problem is reported on standard error, and so is an unexpected
    exception, whose traceback goes to a log file.
    """
    try:
        return call() or 0
    except Problem as problem:
        said = f"{name}: {problem}"
    except KeyboardInterrupt:
        print(f"\n{name}: interrupted; the same command starts it again", file=sys.stderr)
        return 130
    except Exception as error:
        said = f"{name}: {_unexpected(error)}"
    print(said, file=sys.stderr)
    return 1


def _unexpected(error):
    """The three parts of a message about an exception."""
    log = _logged(error)
    details = f"the log file {log}" if log else "this message; the log could not be written"
    if isinstance(error, OSError) and error.strerror:
        what = f"{error.filename or 'a file'}: {error.strerror}"
        remedy = "fix that, and run the same command again. Details are in"
    else:
        what = f"unexpected {type(error).__name__}: {error}".rstrip(": ")
        remedy = "this is a bug in mpilab, not in what you typed. Please report it, with"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return Problem(what, f"{frame[0]}:{frame[1]}", f"{remedy} {details}")


def _logged(error):
    """The log file with the traceback of an exception; None if there is no room for one."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = state if os.path.isabs(state) else os.path.expanduser("~/.local/state")
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    for folder in (os.path.join(base, "mpilab", "logs"), tempfile.gettempdir()):
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor, path = tempfile.mkstemp(
                ".log", time.strftime("%Y%m%d-%H%M%S-tools-"), folder
            )
            with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
                file.write(f"command: {sys.argv}\nPython {sys.version}\n\n{text}")
        except OSError:
            continue
        return path
    return None
