"""A computing rank can be asked for its location."""

import os
import subprocess

import numpy as np
from c_kernels import build, line_of, run, source_of
from recordings_made_up import written

from mpilab.runners.hang import LOOKS, process_of, sample
from mpilab.runners.result import TIME_OUT
from mpilab.trace.callsites import lines_of
from mpilab.trace.recording import HEADER

BODIES = {
    "endless": """
    if (rank == 1)
        for (volatile int i = 0;;) i++; /* here */
    MPI_Recv(recvbuf, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);""",
    "nulls": """
    MPI_Request none = MPI_REQUEST_NULL;
    int flag;
    if (rank == 1)
        for (;;)
            MPI_Test(&none, &flag, MPI_STATUS_IGNORE); /* tests */
    MPI_Recv(recvbuf, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);""",
}


def test_a_rank_that_computes_is_met_in_its_loop_and_nobody_else_is_asked(tmp_path):
    source = source_of(BODIES)
    library = build(source, tmp_path).library
    result = run(library, "endless", work=0.5)
    assert result.outcome == TIME_OUT
    assert list(result.samples) == [1]
    assert 1 <= len(result.samples[1]) <= LOOKS
    met = {line for _, _, line in lines_of(str(library), tuple(result.samples[1]))}
    assert met == {line_of(source, "/* here */")}


def test_a_rank_inside_of_a_call_that_is_not_recorded_is_met_in_the_line_of_the_kernel(tmp_path):
    source = source_of(BODIES)
    library = build(source, tmp_path).library
    result = run(library, "nulls", work=0.5)
    assert list(result.samples) == [1]
    places = lines_of(str(library), tuple(result.samples[1]))
    assert {(function, file) for function, file, _ in places} == {("allgather_nulls", "cell")}
    assert {line for _, _, line in places} <= {line_of(source, "/* tests */") + n for n in (-1, 0)}


def test_a_process_that_is_gone_or_ours_or_a_group_is_left_alone(tmp_path):
    """The process number comes from a file to which a kernel could have written."""
    for number, process in enumerate((os.getpid(), 1, 0, -1, 2**22 + 1)):
        path = written(tmp_path / f"0.{number}.rec", number, pid=process)
        assert sample({number: path}) == {}
        header = np.frombuffer(path.read_bytes(), HEADER, 1)[0]
        assert header["samples"] == 0


def test_a_process_that_does_not_write_the_recording_is_not_sent_a_signal(tmp_path):
    """The signal would end it: a process without the recorder does not handle it."""
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with stranger:
        path = written(tmp_path / "0.0.rec", 0, pid=stranger.pid)
        assert process_of(path) is None
        assert sample({0: path}) == {}
        assert stranger.communicate(b"lives")[0] == b"lives"
        assert stranger.returncode == 0


def test_a_recording_that_is_not_there_gives_no_samples(tmp_path):
    assert sample({0: tmp_path / "0.0.rec"}) == {}
