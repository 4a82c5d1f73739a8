"""Send our own code into the sandbox with a job, and get back what it left there."""

import json
import sys

from mpilab import openmpi
from mpilab.build import ROOT
from mpilab.grading.sandbox import python_paths


def send(sandbox, command, job, *, readable, files=(), **options):
    """Run `command` with this Python and `job` in job.json; its Outcome.

    `readable` names what it may read beside Python itself; `files` and `options` are those of
    `Sandbox.run`.
    """
    return sandbox.run(
        [sys.executable, *command],
        files={"job.json": json.dumps(job).encode(), **dict(files)},
        readable=[*map(str, readable), *python_paths()],
        **options,
    )


def send_inside(sandbox, verb, job, *, ranks, **options):
    """Have mpilab.grading.inside do its `verb`, with Open MPI set up for `ranks` ranks."""
    environment = {
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMPI_MCA_btl_tcp_if_include": "lo",
        **openmpi.settings(ranks),
    }
    command = ["-m", "mpilab.grading.inside", verb]
    return send(sandbox, command, job, environment=environment, **options)
