"""What a user of a command sees of faults, interrupts and closed pipes, in the real programs."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from living import is_alive

from mpilab.measure.dataset import DATA

ROOT = Path(__file__).resolve().parents[2]
MATRIX = str(DATA / "matrices" / "a-16x16.bin")


@pytest.fixture
def logs(tmp_path):
    """The folder in which this test's commands log unexpected errors."""
    return tmp_path / "state" / "mpilab" / "logs"


@pytest.fixture
def mpilab(tmp_path):
    """A function: `python -m mpilab WORDS` with logs and temporary files in tmp_path."""

    def run(*words, module="mpilab", **options):
        return subprocess.run(
            **command(tmp_path, *words, module=module),
            **{"stdout": subprocess.PIPE, "timeout": 300, **options},
        )

    return run


def command(tmp_path, *words, module="mpilab", path=()):
    """The arguments of subprocess.Popen for a program of the kit."""
    here = os.environ | {
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PYTHONPATH": os.pathsep.join([*map(str, path), str(ROOT)]),
    }
    here.pop("PYTHONUNBUFFERED", None)
    return {
        "args": [sys.executable, "-m", module, *map(str, words)],
        "env": here,
        "cwd": ROOT,
        "stderr": subprocess.PIPE,
        "text": True,
    }


def in_three_parts(said, logs, *names):
    """Check a message on an unexpected exception: three parts, and a log with the traceback."""
    assert "Traceback" not in said, said
    assert re.search(r"\n  where:  \S.*\n  remedy: \S", said), said
    named = re.findall(r"(/\S+\.log)\b", said)
    assert [Path(name).parent for name in named] == [logs], said
    text = Path(named[0]).read_text()
    assert "Traceback (most recent call last)" in text
    for name in names:
        assert name in said and name in text
    return text


def broken(folder, module):
    """A folder for PYTHONPATH where `module` raises on import."""
    (folder / f"{module}.py").write_text("raise RuntimeError('this package is broken')\n")
    return folder


@pytest.mark.parametrize(
    ("words", "module"),
    [
        (("grade", "grading/sample-class", "--lab", "02-allgather", "--out", "OUT"), "nbformat"),
        (("matrix", "show", MATRIX), "numpy"),
    ],
)
def test_a_fault_in_a_command_is_told_in_three_parts_with_a_log(tmp_path, logs, words, module):
    words = [str(tmp_path / "out") if word == "OUT" else word for word in words]
    packages = broken(tmp_path, module)
    done = subprocess.run(
        **command(tmp_path, *words, path=[packages]), stdout=subprocess.PIPE, timeout=300
    )
    assert done.returncode == 1
    said = done.stderr
    assert said.startswith("mpilab: unexpected RuntimeError: this package is broken\n")
    assert f"mpilab {words[0]}" in said
    in_three_parts(said, logs, "this package is broken")


def test_a_package_that_is_missing_is_told_with_what_installs_it(tmp_path, logs):
    (tmp_path / "numpy.py").write_text("raise ModuleNotFoundError(\"No module named 'numpy'\")\n")
    done = subprocess.run(
        **command(tmp_path, "matrix", "show", MATRIX, path=[tmp_path]),
        stdout=subprocess.PIPE,
        timeout=300,
    )
    assert done.returncode == 1
    in_three_parts(done.stderr, logs, "No module named 'numpy'")
    assert "make setup" in done.stderr


def test_a_folder_that_may_not_be_written_is_named(mpilab, tmp_path, logs):
    (tmp_path / "file").touch()
    done = mpilab("matrix", "make", "2x2", tmp_path / "file" / "m.bin")
    assert done.returncode == 1
    assert f"{tmp_path}/file" in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_folder_for_logs_a_private_one_is_taken(tmp_path, monkeypatch):
    (tmp_path / "state").touch()  # not a folder
    options = command(tmp_path, "matrix", "show", MATRIX, path=[broken(tmp_path, "numpy")])
    (tmp_path / "tmp").mkdir()
    options["env"]["TMPDIR"] = str(tmp_path / "tmp")
    done = subprocess.run(**options, stdout=subprocess.PIPE, timeout=300)
    folder = tmp_path / "tmp" / f"mpilab-logs-{os.geteuid()}"
    in_three_parts(done.stderr, folder)
    assert folder.stat().st_mode & 0o077 == 0


def test_programs_beside_the_command_have_a_door_too(mpilab, tmp_path, logs):
    (tmp_path / "page.md").write_bytes(b"\xff")  # no UTF-8
    done = mpilab("--page", tmp_path / "page.md", module="mpilab.measure.scale")
    assert done.returncode == 1
    assert done.stderr.startswith("mpilab.measure.scale: unexpected UnicodeDecodeError: ")
    in_three_parts(done.stderr, logs)


class TestOutputThatIsClosed:
    """Any command's output may be closed by its reader."""

    @pytest.mark.parametrize(
        "words",
        [("matrix", "show", MATRIX), ("matrix", "check", MATRIX), ("matrix", "show", "/no")],
    )
    def test_a_command_whose_reader_has_gone_ends_without_a_word(self, tmp_path, words):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as output:
            done = subprocess.run(**command(tmp_path, *words), stdout=output, timeout=300)
        if words[-1] == "/no":  # it had nothing to write
            assert done.returncode == 1 and done.stderr.startswith("mpilab: /no: ")
        else:
            assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")

    def test_through_head_the_first_lines_come_and_nothing_else(self, tmp_path):
        line = f"{sys.executable} -m mpilab matrix show {MATRIX} | head -1"
        done = subprocess.run(
            **command(tmp_path) | {"args": ["bash", "-c", line]},
            stdout=subprocess.PIPE,
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith(": 16 x 16\n")

    def test_help_whose_reader_has_gone_ends_without_a_word(self, tmp_path):
        reader, writer = os.pipe()
        os.close(reader)
        with open(writer, "w") as output:
            done = subprocess.run(**command(tmp_path, "--help"), stdout=output, timeout=300)
        assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")

    def test_an_output_without_room_is_told(self, tmp_path):
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                **command(tmp_path, "matrix", "show", MATRIX), stdout=full, timeout=300
            )
        assert done.returncode == 1
        assert done.stderr == (
            "mpilab: standard output: no space left on device\n  where:  mpilab matrix show\n  "
            "remedy: free some space, or write elsewhere, and run the same command again: "
            "finished work is kept.\n"
        )

    def test_an_output_without_room_in_the_middle_is_told_as_well(self, tmp_path, logs):
        options = command(tmp_path, "matrix", "show", MATRIX)
        options["env"]["PYTHONUNBUFFERED"] = "1"
        with open("/dev/full", "w") as full:
            done = subprocess.run(**options, stdout=full, timeout=300)
        assert done.returncode == 1
        assert "standard output: no space left on device\n" in done.stderr
        in_three_parts(done.stderr, logs)

    def test_a_command_without_any_standard_stream_does_its_work(self, tmp_path):
        made = tmp_path / "m.bin"
        line = f"exec {sys.executable} -m mpilab matrix make 2x2 {made} <&- >&- 2>&-"
        done = subprocess.run(
            **command(tmp_path) | {"args": ["bash", "-c", line], "stderr": None}, timeout=300
        )
        assert done.returncode == 0
        assert made.stat().st_size == 8 + 4 * 8

    def test_a_terminal_that_cannot_show_a_letter_gets_another(self, tmp_path):
        options = command(tmp_path, "run", "allgather_ring", "--ranks", "2", "--count", "1")
        options["env"]["PYTHONIOENCODING"] = "ascii"
        done = subprocess.run(**options, stdout=subprocess.PIPE, timeout=300)
        assert (done.returncode, done.stderr) == (0, "")


class TestInterrupts:
    """Ctrl-C and SIGTERM, even if the parent ignores SIGINT, as for background jobs of a script."""

    @pytest.fixture
    def ignored(self):
        """A process started now ignores SIGINT from its beginning, but not SIGHUP, although these
        tests may run under nohup."""
        old = signal.signal(signal.SIGINT, signal.SIG_IGN)
        hung_up = signal.signal(signal.SIGHUP, signal.SIG_DFL)
        yield
        signal.signal(signal.SIGHUP, hung_up)
        signal.signal(signal.SIGINT, old)

    @pytest.mark.parametrize(
        ("number", "words"),
        [
            (signal.SIGINT, "interrupted; finished work is kept."),
            (signal.SIGTERM, "ended by SIGTERM; finished work is kept."),
            (signal.SIGHUP, "ended by SIGHUP; finished work is kept."),
        ],
    )
    def test_a_command_ends_in_good_order_with_all_that_it_has_started(
        self, tmp_path, ignored, number, words
    ):
        source = tmp_path / "mine.c"
        source.write_text(
            '#include "mpilab.h"\n#include <stdio.h>\n#include <unistd.h>\n'
            "int allgather_mine(const void *s, int n, MPI_Datatype t, void *r, int m,\n"
            "                   MPI_Datatype u, MPI_Comm c) {\n"
            "    (void)s, (void)n, (void)t, (void)r, (void)m, (void)u, (void)c;\n"
            f'    FILE *told = fopen("{tmp_path}/begun", "w");\n'
            '    fprintf(told, "%d\\n", (int)getpid()); fclose(told);\n'
            "    for (;;) pause();\n}\n"
        )
        os.mkfifo(tmp_path / "begun")
        options = command(tmp_path, "run", "allgather_mine", "--source", source, "--ranks", "1")
        with subprocess.Popen(**options, stdout=subprocess.DEVNULL) as process:
            rank = int(_first_line(tmp_path / "begun", process))
            process.send_signal(number)
            said = process.communicate(timeout=300)[1]
        assert process.returncode == 128 + number
        assert said == f"\nmpilab: {words}\n"
        assert not is_alive(rank)

    def test_an_interrupt_ignored_by_nohup_stays_ignored(self, tmp_path):
        script = (
            "import signal\nfrom mpilab.util import door\n"
            "with door.heeded():\n    print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)"
        )
        old = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            done = subprocess.run(
                [sys.executable, "-c", script],
                capture_output=True,
                text=True,
                cwd=ROOT,
                timeout=300,
            )
        finally:
            signal.signal(signal.SIGHUP, old)
        assert done.stdout == "True\n", done.stderr


def _first_line(fifo, process):
    """The first line that arrives through `fifo`; fails if the process ends before that."""
    ended = threading.Thread(target=_unblock, args=(fifo, process), daemon=True)
    ended.start()
    line = fifo.read_text()
    assert line, process.stderr.read()
    return line


def _unblock(fifo, process):
    process.wait()
    with open(os.open(fifo, os.O_RDWR | os.O_NONBLOCK), "w"):
        pass
