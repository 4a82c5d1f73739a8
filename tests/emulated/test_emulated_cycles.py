"""Clusters are started and ended, with runs that succeed and runs that fail: no leftovers
accumulate.

MPILAB_CYCLES=200 makes 200 of them, instead of 20.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_emulated_ranks import built

from mpilab.util.kit import ROOT

CYCLES = int(os.environ.get("MPILAB_CYCLES", "20"))
SECONDS = 30  # that a cycle may take on a busy machine; normally about one


@pytest.mark.slow
@pytest.mark.privileged
@pytest.mark.timeout(SECONDS * (CYCLES + 1))
def test_cycles_of_up_run_crash_and_down_leave_nothing(namespaces, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    library = built(tmp_path)
    here = Path(__file__).parent
    environment = os.environ | {"TMPDIR": str(folder), "PYTHONPATH": f"{here}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, here / "cycles.py", str(CYCLES), library],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    print(found)
    assert found["left"] == []
    assert sum(found["outcomes"].values()) == CYCLES
    # Each kind of run ended as expected, every time.
    assert set(found["outcomes"]) <= {
        "place: done",
        "crashes: crash",
        "crossed: deadlock",
        "leaves: crash",
    }
    assert found["after"] == found["before"]
    assert not any(
        found["after"][what] for what in ("mounts", "shared memory", "files", "processes")
    )
