"""Broadcast, gather, scatter, reduce, allreduce and barrier leave what numpy says, on any P."""

import subprocess
import sys
from pathlib import Path

import pytest
from collectives import KERNELS

from mpilab import openmpi
from mpilab.build import KERNELS as LIBRARY

PROGRAM = Path(__file__).with_name("collectives.py")
SOURCES = PROGRAM.parents[2] / "src_c"


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("collective", KERNELS)
def test_every_kernel_is_right_for_any_root_count_and_tuning(collective, ranks, tmp_path):
    said = subprocess.run(
        [openmpi.tool("mpirun"), "-n", str(ranks), sys.executable, str(PROGRAM), str(LIBRARY),
         collective],
        capture_output=True, text=True, timeout=120,
        env={**openmpi.environment(ranks), "TMPDIR": str(tmp_path),
             "OMPI_MCA_btl_sm_backing_directory": str(tmp_path)},
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    lines = [line.split(maxsplit=2) for line in said.stdout.splitlines()]
    right = {name: verdict for name, _, verdict in lines}
    assert right == {f"{collective}_{name}": "right" for name in KERNELS[collective].split()}
    assert all(int(tried) >= 24 for _, tried, _ in lines)


@pytest.mark.parametrize("collective", KERNELS)
def test_every_file_is_a_kernel_that_is_tried(collective):
    files = {path.stem for path in (SOURCES / collective).glob("*.c")}
    assert files == set(KERNELS[collective].split())
