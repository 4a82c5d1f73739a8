"""The broken kernels of this folder: read their headers, and run them.

Every NAME.c contains one kernel with one fault: allgather_NAME or, if its header names another
collective, the function NAME, which begins with that collective. The header is a comment of lines
"Key: value":

    Fault       what is wrong, in words.
    Collective  of the kernel; default: allgather.
    Case        the case in which it shows: keys of mpilab.cases.case.Case, 'strict' for
                strict=True. Values with spaces in quotes. Without it the kernel is only compiled.
    Diagnosis   the kind that the diagnosis must have (mpilab.diagnosis.model.KINDS).
    Pattern     its pattern; omitted if no pattern is expected.
    Ranks       the ranks that it must name, or 'any' if chance decides which rank is first.
    Limit       seconds that the case may take (if only the limit can end it).
    Build       'sanitize' for a build with sanitizers.
    Backends    where it is run, with the reason; default: both.

A line that the diagnosis must show ends with a comment like '<- rank 0'; one that it may show first
instead (a stack can overflow at the call or at the entry) ends with '<- or here'.

`python corpus.py NAME ...` runs kernels in both backends and prints the outcomes as JSON.
"""

import json
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mpilab import Cluster
from mpilab.cases.case import Case
from mpilab.kernels.build import build
from mpilab.runners import engines, mpirun
from mpilab.runners.result import ERROR

FOLDER = Path(__file__).resolve().parent
ENGINES, MPIRUN = "engines", "mpirun"
_HEADER = re.compile(r"^(?:/\*| \*) (\w+): +(.*?) *$", re.MULTILINE)
_MARKER = re.compile(r"/\* <-( ranks?[ 0-9]+)? \*/\s*$")
_OR_HERE = re.compile(r"/\* <- or here \*/\s*$")
# A deadlock is declared after a second, an endless loop after half a second of computing.
LIMITS = {"standstill": 1.0, "work": 0.5}
LIMIT_S = 60.0


@dataclass(frozen=True)
class Broken:
    """One file of the corpus."""

    name: str

    @cached_property
    def source(self):
        """The C text."""
        return (FOLDER / f"{self.name}.c").read_text(encoding="utf-8")

    @cached_property
    def header(self):
        """{key: value} of the opening comment."""
        return dict(_HEADER.findall(self.source.partition("*/")[0]))

    @property
    def kind(self):
        """The kind of diagnosis that is expected."""
        return self.header["Diagnosis"]

    @property
    def pattern(self):
        """The expected pattern, or None if any is acceptable."""
        return self.header.get("Pattern")

    @property
    def ranks(self):
        """The ranks that must be named; () if they are not determined."""
        said = self.header.get("Ranks", "any")
        return () if said == "any" else tuple(map(int, said.split()))

    @property
    def lines(self):
        """Numbers of the lines that must be shown."""
        return self._lines_with(_MARKER)

    @property
    def first_lines(self):
        """Numbers of the lines one of which must be shown first."""
        return self.lines + self._lines_with(_OR_HERE)

    def _lines_with(self, marker):
        lines = enumerate(self.source.split("\n"), 1)
        return tuple(number for number, text in lines if marker.search(text))

    @property
    def sanitize(self):
        """Is it built with sanitizers?"""
        return self.header.get("Build") == "sanitize"

    @property
    def backends(self):
        """Where it is run; () if it is only compiled."""
        if "Case" not in self.header:
            return ()
        said = self.header.get("Backends", f"{ENGINES} {MPIRUN}").partition("(")[0]
        return tuple(said.split())

    @property
    def collective(self):
        """The collective that the kernel should be."""
        return self.header.get("Collective", "allgather")

    @property
    def function(self):
        """The name of the kernel."""
        return self.name if "Collective" in self.header else f"allgather_{self.name}"

    @property
    def case(self):
        """The Case in which the fault shows."""
        words = (word.partition("=") for word in shlex.split(self.header["Case"]))
        return Case(self.collective, **{key: _value(value) for key, _, value in words})

    def build(self, directory):
        """Compile it unchanged; mpilab.kernels.build.Built, or BuildError."""
        return build(self.source, directory, sanitize=self.sanitize)

    def run(self, library, cluster=None):
        """The Result on the engines of `cluster`, or with mpirun if there is none."""
        limits = LIMITS | {"limit": float(self.header.get("Limit", LIMIT_S))}
        if cluster is not None:
            results = engines.run_cases(cluster, library, self.function, [self.case], **limits)
        else:
            results = mpirun.run_cases(
                library, self.function, [self.case], sanitize=self.sanitize, **limits
            )
        return results[0]


def _value(text):
    return True if not text else int(text) if text.isdigit() else text


def all_broken():
    """Every file of the corpus, by name."""
    return [Broken(path.stem) for path in sorted(FOLDER.glob("*.c"))]


def main(names):
    """Run these kernels in both backends; print {backend: [outcome, ...]}, with the reason where a
    kernel could not be run."""
    chosen = [Broken(name) for name in names]
    outcomes = {ENGINES: [], MPIRUN: []}
    with tempfile.TemporaryDirectory() as directory, Cluster(4, progress=False) as cluster:
        for broken in chosen:
            own = Path(directory, broken.name)  # ranks load a path only once
            own.mkdir()
            library = broken.build(own).library
            for backend, on in ((ENGINES, cluster), (MPIRUN, None)):
                result = broken.run(library, on)
                why = f": {result.detail}" if result.outcome == ERROR else ""
                outcomes[backend].append(result.outcome + why)
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1:])
