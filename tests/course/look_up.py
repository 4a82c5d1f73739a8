"""Look for the values of exercises in a handout, in which this program runs; used by
test_handout_answers.py, in a sandbox in which nothing can be written.

On standard input: {"exercises": {exercise: {item: [[arguments, value, complaint], ...]}},
"adapters": {exercise: [expression, ...]}}. On standard output: how many functions and classes there
are, how many ways were tried, [exercise, item, way] for each item whose values all come out, and
the adapters that are right for no call at all: they are mistaken.

The ways are: each public function and class of the package with the arguments of the exercise; a
method or attribute of what it returns for the first few of them, with the others; and the adapters.
A function and a class that know the values of one exercise are planted.
"""

import fcntl
import importlib
import inspect
import io
import json
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import mpilab
from mpilab.judging.judge import same
from mpilab.judging.rubric import trusted
from mpilab.kernels import openmpi

PLANTED = "02-allgather/cost_model"
MOST_BYTES = 4 << 30
SECONDS, SECONDS_OF_AN_ADAPTER = 1.0, 10.0
OUT_OF_REACH = 500


class Late(BaseException):
    """A call took too long, or wanted to start or end a process."""


def refuse(*_, **__):
    raise Late


def disable_processes():
    """Neither start nor end processes or threads, and interrupt calls that take too long."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    signal.signal(signal.SIGALRM, refuse)
    subprocess.Popen.__init__ = refuse
    threading.Thread.start = refuse
    sys.modules["mpi4py"] = None  # outside of mpirun, MPI aborts
    for name in "kill killpg fork _exit execv execve setsid posix_spawn dup2 close".split():
        setattr(os, name, refuse)


def is_ours(made):
    return str(getattr(made, "__module__", "")).startswith(("mpilab", "__main__"))


def public(made):
    return [name for name in dir(made) if not name.startswith("_")]


def offered():
    """{name: each public function, class, and static or class method of the package}."""
    modules = [mpilab]
    for module in pkgutil.walk_packages(mpilab.__path__, "mpilab."):
        if not module.name.endswith("__main__"):
            try:
                modules.append(importlib.import_module(module.name))
            except Exception as error:  # a program, or a package that is not installed
                print(f"{module.name}: {error}", file=sys.stderr)
    found = {
        f"{made.__module__}.{made.__qualname__}": made
        for module in modules
        for name, made in vars(module).items()
        if (inspect.isroutine(made) or inspect.isclass(made))
        and not name.startswith("_")
        and is_ours(made)
    }
    for name, made in list(found.items()):
        for each in public(made) if inspect.isclass(made) else ():
            if isinstance(inspect.getattr_static(made, each), staticmethod | classmethod):
                found[f"{name}.{each}"] = getattr(made, each)
    return found


def planted(exercises):
    """A function, and a class with a method, that know the values of the exercise PLANTED."""
    known = {
        json.dumps(arguments): value
        for calls in exercises[PLANTED].values()
        for arguments, value, _ in calls
    }

    def look_up(*arguments):
        return known[json.dumps(arguments)]

    class Book:
        def __init__(self, name):
            self.name = name

        def look_up(self, *rest):
            return known[json.dumps([self.name, *rest])]

    return {"planted": look_up, "Planted": Book}


def came(function, *arguments, seconds=SECONDS):
    """What a call returns; Late if it fails or takes too long."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            return function(*arguments)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the signal may come just before
    except BaseException:  # whatever the package raises for arguments that it does not expect
        return Late


def as_json(value):
    """What JSON makes of a value; numpy's arrays and numbers become lists and numbers."""
    return json.loads(json.dumps(value, default=lambda one: one.tolist()))


def is_right(function, calls, seconds):
    for arguments, value, complaint in calls:
        got = came(function, *arguments, seconds=seconds)
        got = got if got is Late else came(as_json, got)
        if got is Late:
            return False
        if complaint and came(trusted(complaint), got, *arguments, seconds=seconds) != "":
            return False
        if not complaint and not same(got, value):
            return False
    return True


def varies(calls):
    """Whether the right values differ: a default, such as 1, answers calls of which all want 1."""
    complains = any(complaint for *_, complaint in calls)
    return complains or len({json.dumps(value) for _, value, _ in calls}) > 1


def fits(function, arguments):
    """Whether the function can be called with so many arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def ways(name, function, arguments):
    """(name, function of all arguments) of each way to use a function of the package."""
    if fits(function, arguments):
        yield name, function
    for first in range(1, len(arguments) + 1):
        given, rest = arguments[:first], arguments[first:]
        made = came(function, *given) if fits(function, given) else Late
        if made is Late or isinstance(made, type) or not is_ours(type(made)):
            continue
        for each in public(type(made)):
            attribute = came(getattr, made, each)
            if not rest or (callable(attribute) and fits(attribute, rest)):
                yield f"{name}(…).{each}", chained(function, first, each)


def chained(function, first, each):
    def call(*arguments):
        found = getattr(function(*arguments[:first]), each)
        return found(*arguments[first:]) if callable(found) else found

    return call


def main():
    task = json.load(sys.stdin)
    exercises = task["exercises"]
    # The answer goes to a number that no function closes by chance.
    said = os.fdopen(fcntl.fcntl(sys.stdout, fcntl.F_DUPFD, OUT_OF_REACH), "w")
    sys.stdin, sys.stdout = io.StringIO(), io.StringIO()
    functions = offered() | planted(exercises)
    openmpi.algorithms()  # remembered: it asks Open MPI by a process
    disable_processes()
    tried, right, mistaken = 0, [], []

    def attempt(exercise, way, function, items, seconds):
        nonlocal tried
        tried += 1
        for item, calls in items.items():
            begin = time.monotonic()
            if is_right(function, calls, seconds):
                right.append((exercise, item, way))
            elif time.monotonic() - begin > seconds:
                return  # what counts too long for one item does so for the others, too

    # First, because what is called with odd arguments may leave a changed package behind.
    names = {"mpilab": mpilab, "np": np}
    for exercise, expressions in task["adapters"].items():
        for number, expression in enumerate(expressions, 1):
            way = f"expression {number}"
            function = eval(expression, names)
            attempt(exercise, way, function, exercises[exercise], SECONDS_OF_AN_ADAPTER)
            calls = (call for item in exercises[exercise].values() for call in item)
            if not any(is_right(function, [call], SECONDS) for call in calls):
                mistaken.append(f"{exercise}: {way}")
    for name, function in functions.items():
        for exercise, items in exercises.items():
            arguments = next(iter(items.values()))[0][0]
            telling = {item: calls for item, calls in items.items() if varies(calls)}
            for way, found in ways(name, function, arguments):
                attempt(exercise, way, found, telling, SECONDS)
    print(json.dumps([len(functions), tried, right, mistaken]), file=said, flush=True)


if __name__ == "__main__":
    main()
