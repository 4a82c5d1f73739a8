"""The program that measures the recorder."""

import subprocess

import numpy as np
import pytest

from mpilab.bench import FIGURES
from mpilab.bench.figures import recorder_overhead_ns
from mpilab.kernels import openmpi
from mpilab.kernels.build import ping_pong
from mpilab.trace.recording import RankRecording, operations


def call(ranks, *arguments):
    return subprocess.run(
        [openmpi.tool("mpirun"), "-n", str(ranks), str(ping_pong()), *map(str, arguments)],
        env=openmpi.environment(ranks),
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_each_pair_of_blocks_is_timed_and_only_one_of_them_recorded(tmp_path):
    said = call(2, tmp_path, 3, 50)
    times = np.loadtxt(said.stdout.splitlines())
    assert times.shape == (3, 2)
    assert (times > 0).all()
    for rank in (0, 1):
        recording = RankRecording(tmp_path / f"{rank}.rec")
        # The warm-up of 100 round trips, and the block; nothing is lost.
        calls = [operations()[int(number)] for number in recording.records["operation"]]
        assert calls == ["MPI_Send", "MPI_Recv"][:: 1 - 2 * rank] * 150
        assert recording.header["dropped"] == 0


def test_another_number_of_ranks_is_refused(tmp_path):
    said = call(1, tmp_path, 1, 1)
    assert said.returncode != 0
    assert "usage: mpirun -n 2 ping-pong" in said.stderr


def test_the_figure_is_a_time_for_each_pair_of_blocks():
    assert FIGURES["recorder_overhead_ns"][1:3] == ("ns", "< 100")
    values = recorder_overhead_ns(blocks=5, trips=200)
    assert values.shape == (4,)
    assert np.isfinite(values).all()


def test_without_a_compiler_it_is_said_what_to_do(monkeypatch, tmp_path):
    from mpilab.errors import SetupError
    from mpilab.kernels import build

    monkeypatch.setattr(build, "BUILD", tmp_path)
    monkeypatch.setattr(openmpi, "tool", lambda name: str(tmp_path / name))
    with pytest.raises(SetupError, match=r"ping-pong: cannot be built; run 'make build'"):
        build.ping_pong()
    with pytest.raises(SetupError, match=r"sudo apt-get install gcc"):
        build.sanitized_harness()
