"""Real runs in real sandboxes, including attempts of a submission to harm the grader."""

import os
import select
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from glob import glob
from pathlib import Path

import pytest

import mpilab
from mpilab.errors import InputError, SetupError, Ungradable
from mpilab.grading import run as run_module
from mpilab.grading import sandbox as sandbox_module
from mpilab.grading import supervisor as supervisor_module
from mpilab.grading.sandbox import (
    Bubblewrap,
    Canceled,
    Limits,
    Unsafe,
    open_sandbox,
    python_paths,
)
from mpilab.kernels import openmpi
from mpilab.util.system import namespace_remedy

MIB = 1 << 20
PYTHON = "/usr/bin/python3"
PACKAGE = Path(mpilab.__file__).parent


def needs_root(test):
    return pytest.mark.privileged(pytest.mark.skipif(os.geteuid() != 0, reason="needs root")(test))


@pytest.fixture(scope="module")
def sandbox():
    return open_sandbox()


@pytest.fixture
def shared_folder():
    """A folder that every user can read, unlike pytest's own temporary folders."""
    with tempfile.TemporaryDirectory(prefix="mpilab-test-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.fixture
def pipe(shared_folder):
    """A named pipe in a readable folder: as long as a process holds it open, it has no end."""
    path = shared_folder / "pipe"
    os.mkfifo(path)
    os.chmod(path, 0o666)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield path, reader
    os.close(reader)


def shell(sandbox, script, **options):
    return sandbox.run(["/bin/sh", "-c", script], **options)


def read_within(reader, seconds):
    """What comes through `reader` next, b'' at its end; fails if nothing does within `seconds`."""
    assert select.select([reader], [], [], seconds)[0], f"nothing within {seconds} s"
    return os.read(reader, 4096)


def control_groups(supervisor="*"):
    """The folders of control groups that belong to the runs of the process `supervisor`."""
    return glob(f"/sys/fs/cgroup/**/mpilab-{supervisor}-*", recursive=True)


def abandoned_groups():
    """The folders of control groups whose supervisor is gone."""
    supervisors = {group: Path(group).name.split("-")[1] for group in control_groups()}
    # In this order: a supervisor that ends just now has removed its groups before.
    return {
        group
        for group, supervisor in supervisors.items()
        if not os.path.exists(f"/proc/{supervisor}") and os.path.exists(group)
    }


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# What it does


def test_a_command_gets_its_files_and_gives_back_what_was_asked_for(sandbox):
    outcome = shell(
        sandbox,
        "cat in/a.txt; echo oops >&2; mkdir out; echo made > out/b.bin; echo no > c.txt; exit 3",
        files={"in/a.txt": b"hello"},
        collect=["*.bin", "in/*"],
    )
    assert (outcome.returncode, outcome.reason) == (3, "")
    assert (outcome.stdout, outcome.stderr) == (b"hello", b"oops\n")
    assert outcome.files == {"out/b.bin": b"made\n", "in/a.txt": b"hello"}
    assert 0 < outcome.wall_seconds < 60


def test_many_processes_together_reach_the_limit_on_all_processor_time(sandbox):
    loops = "for i in 1 2 3 4 5 6; do (while :; do :; done) & done; wait"
    limits = Limits(wall_seconds=60, cpu_seconds=60, total_cpu_seconds=1)
    outcome = shell(sandbox, loops, limits=limits)
    assert outcome.reason == "processor time" and outcome.wall_seconds < 40
    assert outcome.cpu_seconds > 1


def test_nothing_is_collected_unless_asked(sandbox):
    assert shell(sandbox, "echo made > b.bin").files == {}


def test_a_program_among_the_files_can_be_executed(sandbox):
    assert sandbox.run(["./go"], files={"go": b"#!/bin/sh\necho went\n"}).stdout == b"went\n"


def test_a_signal_shows_in_the_return_code(sandbox):
    outcome = shell(sandbox, "kill -SEGV $$")
    assert (outcome.returncode, outcome.reason) == (128 + signal.SIGSEGV, "")


def test_a_missing_command_is_the_commands_fault_not_the_sandboxes(sandbox):
    outcome = sandbox.run(["no-such-command"])
    assert outcome.returncode == 127
    assert b"no-such-command" in outcome.stderr


def test_the_environment_is_clean(sandbox, monkeypatch):
    monkeypatch.setenv("SECRET", "grading key")
    outcome = sandbox.run(["/usr/bin/env"], environment={"SEED": "7", "LANG": "C"})
    variables = dict(line.split("=", 1) for line in outcome.stdout.decode().splitlines())
    variables.pop("PWD", None)
    assert variables == {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/lab",
        "TMPDIR": "/tmp",
        "LANG": "C",
        "OMP_NUM_THREADS": "1",
        "SEED": "7",
    }


def test_runs_in_several_threads_do_not_mix(sandbox):
    answers = {}

    def ask(number):
        text = f"{number}\n".encode()
        files = {"n": text}
        outcome = shell(sandbox, "cat n; cp n back", files=files, collect=["back"])
        answers[number] = (outcome.stdout, outcome.files) == (text, {"back": text})

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == dict.fromkeys(range(6), True)


def test_cancel_ends_the_runs_of_all_threads_and_those_that_come_later(pipe):
    path, reader = pipe
    sandbox, ended = open_sandbox(unsafe=True), []

    def run():
        try:
            shell(sandbox, HOLD.format(path=path) + "sleep 1000")
        except Canceled:
            ended.append("canceled")

    threads = [threading.Thread(target=run) for _ in range(2)]
    said = b""
    for thread in threads:
        thread.start()
    while len(said) < len(b"up\nup\n"):
        said += read_within(reader, 120)
    sandbox.cancel()
    for thread in threads:
        thread.join(120)
    assert ended == ["canceled"] * 2
    with pytest.raises(Canceled):
        shell(sandbox, "echo too late")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"command": "ls -l"}, "command"),
        ({"command": []}, "command"),
        ({"command": ["ls", "a\0b"]}, "command"),
        ({"collect": "*.bin"}, "collect"),
        ({"environment": {"SEED": 7}}, "environment"),
        ({"environment": {"SEED": "7\0--bind\0/\0/"}}, "environment"),
        ({"files": {"../x": b""}}, "files"),
        ({"files": {"/etc/x": b""}}, "files"),
        ({"readable": ["/no/such/folder"]}, "readable"),
        ({"readable": ["/"]}, "readable"),
        ({"readable": ["/etc"]}, "readable"),
    ],
)
def test_an_argument_that_cannot_be_used_is_named(sandbox, arguments, name):
    with pytest.raises(InputError, match=f"^{name}:"):
        sandbox.run(**{"command": ["true"], **arguments})


def test_files_that_do_not_fit_make_the_answer_ungradable(sandbox):
    with pytest.raises(Ungradable, match="did not start: tar: big"):
        sandbox.run(["true"], files={"big": bytes(2 * MIB)}, limits=Limits(disk_bytes=MIB))


# What it keeps away


def test_only_the_loopback_is_reachable(sandbox):
    probe = """
import errno, socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
print([name for _, name in socket.if_nameindex()])
try:
    socket.create_connection(("192.0.2.1", 80), timeout=5)
except OSError as error:
    print(errno.errorcode[error.errno])
"""
    assert sandbox.run([PYTHON, "-c", probe]).stdout == b"['lo']\nENETUNREACH\n"


def test_a_server_on_the_hosts_loopback_is_out_of_reach(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        probe = f"import socket; socket.create_connection({server.getsockname()!r})"
        outcome = sandbox.run([PYTHON, "-c", probe])
    assert b"ConnectionRefusedError" in outcome.stderr


def test_the_hosts_files_are_out_of_sight(sandbox, tmp_path):
    secret = tmp_path / "rubric.toml"
    secret.write_text("the answer")
    hidden = [secret, PACKAGE.parent / "grading", "/root", "/home", "/var", "/etc/shadow", "/sys"]
    script = "".join(f"test -e {path} && echo {path}\n" for path in hidden) + "ls /"
    places = {"bin", "dev", "etc", "lab", "lib", "lib64", "proc", "sbin", "tmp", "usr"}
    assert set(shell(sandbox, script).stdout.decode().split()) <= places


def test_the_first_process_tells_nothing_of_the_host(sandbox, shared_folder):
    script = "cat /proc/1/cmdline /proc/1/environ; ls -l /proc/1/fd /proc/self/fd"
    outcome = shell(sandbox, script, readable=[shared_folder])
    assert b"bwrap" in outcome.stdout
    for path in (shared_folder, PACKAGE.parent, "/dev/shm/0"):
        assert os.fsencode(path) not in outcome.stdout


def test_what_is_readable_is_not_writable(sandbox, shared_folder):
    (shared_folder / "header.h").write_text("int x;")
    os.chmod(shared_folder, 0o777)
    os.chmod(shared_folder / "header.h", 0o666)
    outcome = shell(
        sandbox,
        f"cat {shared_folder}/header.h; echo y > {shared_folder}/header.h; "
        f"echo z > {shared_folder}/new; touch /usr/new /etc/new /new /dev/new; ls -d /*new /*/new",
        readable=[shared_folder],
    )
    assert outcome.stdout == b"int x;"
    assert [path.name for path in shared_folder.iterdir()] == ["header.h"]
    assert (shared_folder / "header.h").read_text() == "int x;"


def test_a_file_and_a_link_can_be_readable_too(sandbox, shared_folder):
    (shared_folder / "real").mkdir()
    (shared_folder / "real" / "a").write_text("A")
    (shared_folder / "real" / "b").write_text("B")
    (shared_folder / "link").symlink_to("real")
    (shared_folder / "second").symlink_to(shared_folder / "link" / "a")
    outcome = shell(
        sandbox,
        f"cat {shared_folder}/second; readlink {shared_folder}/link; ls {shared_folder}/real",
        readable=[shared_folder / "second"],
    )
    assert outcome.stdout == b"Areal\na\n"


def test_a_readable_link_into_the_system_needs_no_folder_of_its_own(sandbox, shared_folder):
    (shared_folder / "bin").mkdir()
    (shared_folder / "bin" / "tool").symlink_to("/bin/echo")
    tool = shared_folder / "bin" / "tool"
    assert sandbox.run([str(tool), "hi"], readable=[tool]).stdout == b"hi\n"


def test_it_is_nobody_inside_and_cannot_become_somebody(sandbox):
    script = (
        "id -u; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status; "
        "unshare --user true || echo no namespaces; mount -t tmpfs none /tmp || echo no mount"
    )
    words = shell(sandbox, script).stdout.decode().split()
    assert words[:5] == ["1000", "CapEff:", "0" * 16, "NoNewPrivs:", "1"]
    assert " ".join(words[5:]) == "no namespaces no mount"


@needs_root
def test_it_is_a_user_of_its_own_outside_when_started_by_root(shared_folder):
    address = str(shared_folder / "socket")
    probe = f"import socket; socket.socket(socket.AF_UNIX).connect({address!r})"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        os.chmod(address, 0o777)
        server.listen()
        outcome = open_sandbox(slot=3).run([PYTHON, "-c", probe], readable=[shared_folder])
        assert outcome.returncode == 0, outcome.stderr
        connection, _ = server.accept()
        with connection:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    _, user, _ = struct.unpack("3i", credentials)
    assert user == 60003


# What it bounds


def test_a_fork_bomb_is_contained(sandbox):
    bomb = "import os\nwhile True:\n    os.fork()"
    limits = Limits(processes=64, wall_seconds=5)
    outcome = sandbox.run([PYTHON, "-c", bomb], limits=limits)
    assert outcome.reason in ("processes", "wall time")
    assert outcome.wall_seconds < 60


@pytest.mark.parametrize("guarded", [True, False], ids=["best guard", "watchdog"])
def test_no_more_processes_run_at_once_than_allowed(sandbox, guarded):
    box = sandbox if guarded else Bubblewrap(None)
    script = """
import os, signal
count = 0
try:
    while count < 500:
        if os.fork() == 0:
            signal.pause()
        count += 1
except OSError:
    print(count)
    raise
"""
    outcome = box.run([PYTHON, "-c", script], limits=Limits(processes=50))
    assert 30 < int(outcome.stdout) < 50
    assert outcome.returncode == 1
    if box.guard in ("v1", "v2"):
        assert outcome.reason == "processes"


@pytest.mark.parametrize("guarded", [True, False], ids=["best guard", "watchdog"])
def test_a_memory_bomb_is_contained(sandbox, guarded):
    bomb = "import time\nx = []\nwhile True:\n    x.append(bytearray(1 << 23)); time.sleep(0.01)"
    outcome = (sandbox if guarded else Bubblewrap(None)).run(
        [PYTHON, "-c", bomb], limits=Limits(memory=150 * MIB, wall_seconds=20)
    )
    assert outcome.returncode == 128 + signal.SIGKILL
    assert outcome.reason == "memory"


@needs_root
@pytest.mark.skipif(supervisor_module.control_groups() is None, reason="no control groups here")
def test_files_in_memory_count_as_memory_where_there_are_control_groups(sandbox):
    script = "head -c 40M /dev/zero > /dev/shm/a; head -c 40M /dev/zero > /tmp/b; echo alive"
    outcome = shell(sandbox, script, limits=Limits(memory=50 * MIB))
    assert outcome.reason == "memory"


@pytest.mark.parametrize("place", ["/lab", "/tmp", "/dev/shm"])
def test_a_disk_bomb_is_contained(sandbox, place):
    limits = Limits(disk_bytes=4 * MIB, shm_bytes=4 * MIB)
    outcome = shell(
        sandbox, f"head -c 50M /dev/zero > {place}/big; stat -c %s {place}/big", limits=limits
    )
    assert 3 * MIB < int(outcome.stdout) <= 4 * MIB
    assert b"No space left" in outcome.stderr


def test_processes_that_change_their_number_all_the_time_are_caught():
    relay = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        while True:
            if os.fork():
                os._exit(0)
time.sleep(1000)
"""
    outcome = Unsafe().run([PYTHON, "-c", relay], limits=Limits(wall_seconds=0.5))
    assert outcome.reason == "wall time"
    assert outcome.wall_seconds < 60


def test_a_file_too_large_ends_the_command(sandbox):
    outcome = sandbox.run(
        ["dd", "if=/dev/zero", "of=big", "bs=1M", "count=8"], limits=Limits(file_bytes=4 * MIB)
    )
    assert (outcome.returncode, outcome.reason) == (128 + signal.SIGXFSZ, "file size")


def test_processor_time_is_bounded(sandbox):
    outcome = sandbox.run([PYTHON, "-c", "while True: pass"], limits=Limits(cpu_seconds=1))
    assert (outcome.returncode, outcome.reason) == (128 + signal.SIGXCPU, "processor time")


def test_output_beyond_the_limit_is_dropped_not_buffered(sandbox):
    Path("/proc/self/clear_refs").write_text("5")  # restart the count of the peak
    before = peak_memory()
    outcome = shell(sandbox, "head -c 300M /dev/zero | tee /dev/stderr; echo done >&2; exit 4")
    assert (outcome.returncode, outcome.reason) == (4, "")
    assert (len(outcome.stdout), len(outcome.stderr)) == (MIB, MIB)
    assert peak_memory() - before < 30 * MIB


def test_endless_output_meets_the_wall_time(sandbox):
    limits = Limits(wall_seconds=1, stream_bytes=1000)
    outcome = sandbox.run(["yes"], limits=limits)
    assert outcome.reason == "wall time"
    assert outcome.stdout == b"y\n" * 500


def test_too_much_to_bring_back_ends_the_run(sandbox):
    outcome = shell(
        sandbox,
        "head -c 20M /dev/zero > a.bin; echo kept",
        limits=Limits(output_bytes=MIB),
        collect=["*"],
    )
    assert outcome.reason == "output too large"
    assert (outcome.files, outcome.stdout) == ({}, b"kept\n")


def test_the_files_come_back_when_time_is_up(sandbox):
    outcome = shell(
        sandbox,
        "echo here > recording; setsid sleep 1000 & trap '' TERM INT; sleep 1000",
        limits=Limits(wall_seconds=1),
        collect=["recording"],
    )
    assert (outcome.returncode, outcome.reason) == (128 + signal.SIGKILL, "wall time")
    assert outcome.files == {"recording": b"here\n"}
    assert 1 <= outcome.wall_seconds < 60


def test_nobody_is_left_who_could_change_what_is_collected(sandbox):
    # A daemon waits for the command's end, then writes to many files, again and again.
    daemon = (
        "while kill -0 $PPID 2>/dev/null; do :; done; "
        "while :; do for file in file*; do echo late > $file; done; done"
    )
    outcome = shell(
        sandbox,
        "for i in $(seq 500); do echo own > file$i; done\n"
        f"setsid sh -c {shlex.quote(daemon)} </dev/null >/dev/null 2>&1 &",
        collect=["file*"],
    )
    assert outcome.returncode == 0
    assert outcome.files == {f"file{i + 1}": b"own\n" for i in range(500)}


def test_who_kills_the_clock_inside_meets_the_one_outside(sandbox, monkeypatch):
    monkeypatch.setattr(sandbox_module, "GRACE_SECONDS", 0.5)
    # The command's parent is the `timeout` that would end it; once stopped, it never does.
    outcome = shell(sandbox, "kill -STOP $PPID; sleep 1000", limits=Limits(wall_seconds=1))
    assert outcome.reason == "wall time"
    assert outcome.wall_seconds < 60


# What it leaves behind: nothing

HOLD = "exec 9>{path}; echo up >&9; setsid sleep 1000 </dev/null >/dev/null 2>&1 & "


@pytest.mark.parametrize("kind", ["bubblewrap", "watchdog", "unsafe"])
def test_daemons_are_gone_when_the_run_returns(sandbox, pipe, kind, monkeypatch, tmp_path):
    path, reader = pipe
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    box = {"bubblewrap": sandbox, "watchdog": Bubblewrap(None), "unsafe": Unsafe()}[kind]
    groups = abandoned_groups()
    # Orphaned twice, in a separate session, ignoring everything but SIGKILL.
    deaf = "(setsid sh -c 'trap \"\" HUP TERM INT; while :; do sleep 1000; done' &) & "
    script = HOLD.format(path=path) + deaf + "exit 0"
    outcome = shell(box, script, readable=[path.parent])
    assert (outcome.returncode, outcome.reason) == (0, ""), outcome.stderr
    assert os.read(reader, 100) == b"up\n"
    assert os.read(reader, 100) == b""  # BlockingIOError as long as a daemon holds it open
    assert abandoned_groups() <= groups
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["bubblewrap", "unsafe"])
def test_all_is_gone_when_the_grader_is_killed(sandbox, pipe, kind, tmp_path):
    path, reader = pipe
    script = HOLD.format(path=path) + "sleep 1000"
    code = (
        "from mpilab.grading.sandbox import open_sandbox\n"
        f"box = open_sandbox(unsafe={kind == 'unsafe'})\n"
        f"box.run(['/bin/sh', '-c', {script!r}], readable=[{str(path.parent)!r}])"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    grader = subprocess.Popen([sys.executable, "-c", code], cwd=PACKAGE.parent, env=environment)
    try:
        assert read_within(reader, 120) == b"up\n"
        (supervisor,) = children(grader.pid)
        supervisor_end = os.pidfd_open(supervisor)
        groups = control_groups(supervisor)
        assert bool(groups) == (kind == "bubblewrap" and sandbox.guard in ("v1", "v2"))
        assert bool(list(tmp_path.iterdir())) == (kind == "unsafe")
    finally:
        grader.kill()
        grader.wait()
    assert read_within(reader, 120) == b""
    assert select.select([supervisor_end], [], [], 120)[0]
    os.close(supervisor_end)
    assert not control_groups(supervisor)
    assert list(tmp_path.iterdir()) == []


def test_all_is_gone_when_the_supervisor_is_killed(sandbox, pipe):
    path, reader = pipe
    failure = []

    def run():
        try:
            shell(sandbox, HOLD.format(path=path) + "sleep 1000", readable=[path.parent])
        except Ungradable as error:
            failure.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    assert read_within(reader, 120) == b"up\n"
    (supervisor,) = children(thread.native_id)
    os.kill(supervisor, signal.SIGKILL)
    assert read_within(reader, 120) == b""
    thread.join(120)
    assert failure == ["the sandbox's supervisor ended without a report: it was killed"]
    for group in control_groups(supervisor):  # the supervisor alone would have removed them
        supervisor_module.ControlGroup(dict.fromkeys(("memory", "pids"), group), "").remove()


def test_an_interrupt_ends_the_run(sandbox, pipe, monkeypatch):
    path, reader = pipe

    def interrupted(outputs):
        assert read_within(reader, 120) == b"up\n"
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "drain", interrupted)
    with pytest.raises(KeyboardInterrupt):
        shell(sandbox, HOLD.format(path=path) + "sleep 1000", readable=[path.parent])
    assert os.read(reader, 100) == b""


def test_links_do_not_lead_out_of_the_work_directory(sandbox):
    script = (
        "ln -s /etc/passwd symbolic; ln -s ../etc parent; mkfifo fifo; echo plain > plain; "
        "ln plain hard; mkdir -p sub/folder"
    )
    outcome = shell(sandbox, script, collect=["*"])
    assert outcome.files == {"plain": b"plain\n", "hard": b"plain\n"}


# What runs in it


def test_python_with_numpy_and_mpi4py_runs_inside(sandbox):
    code = "import numpy, mpi4py, sys; print(sys.prefix, sys.executable, sep='\\n')"
    outcome = sandbox.run([sys.executable, "-c", code], readable=python_paths())
    assert outcome.stdout.decode().splitlines() == [sys.prefix, sys.executable], outcome.stderr


RING = rb"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, token = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &token, 1, MPI_INT,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%d of %d got %d\n", rank, size, token);
    MPI_Finalize();
    return 0;
}
"""


def test_an_mpi_program_is_compiled_and_runs_inside(sandbox):
    settings = {**openmpi.settings(4), "OMPI_MCA_btl_tcp_if_include": "lo"}
    compiled = sandbox.run(
        [openmpi.tool("mpicc"), "ring.c", "-o", "ring"],
        files={"ring.c": RING},
        readable=python_paths(),
        collect=["ring"],
    )
    assert compiled.returncode == 0, compiled.stderr
    outcome = sandbox.run(
        [openmpi.tool("mpirun"), "-n", "4", "./ring"],
        files=compiled.files,
        readable=python_paths(),
        environment=settings,
        limits=Limits(wall_seconds=30),
    )
    assert outcome.returncode == 0, outcome.stderr
    lines = sorted(outcome.stdout.decode().splitlines())
    assert lines == [f"{rank} of 4 got {(rank - 1) % 4}" for rank in range(4)]


# Which one is opened

JUST_RUN = 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"'


def test_a_missing_bubblewrap_names_the_remedies(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="bwrap: not found") as error:
        open_sandbox()
    assert "apt-get install bubblewrap" in str(error.value)
    assert "--unsafe-no-sandbox" in str(error.value)


@pytest.mark.parametrize(
    ("program", "complaint"),
    [
        ("echo 'bwrap: No permissions to create new namespace' >&2; exit 1", "No permissions"),
        (JUST_RUN, "a probe saw"),
    ],
    ids=["refuses", "isolates nothing"],
)
def test_a_bubblewrap_that_does_not_work_is_not_used(
    monkeypatch, shared_folder, program, complaint
):
    fake(shared_folder / "bwrap", program)
    monkeypatch.setenv("PATH", f"{shared_folder}:{os.environ['PATH']}")
    with pytest.raises(SetupError, match=complaint) as error:
        open_sandbox()
    assert "apt-get install bubblewrap" in str(error.value)
    assert namespace_remedy(program=str(shared_folder / "bwrap")) in str(error.value)


def test_a_bubblewrap_that_isolates_nothing_ends_nobody_elses_processes(shared_folder):
    fake(shared_folder / "bwrap", JUST_RUN)
    box = Bubblewrap(None, program=str(shared_folder / "bwrap"))
    user = sandbox_module.FIRST_USER_ID if os.geteuid() == 0 else os.geteuid()
    with subprocess.Popen(["sleep", "1000"], user=user) as bystander:
        try:
            box.run(["true"])
            with pytest.raises(subprocess.TimeoutExpired):
                bystander.wait(0.5)
        finally:
            bystander.kill()


def test_a_sandbox_that_is_killed_before_it_has_started_is_started_again(shared_folder):
    shared_folder.chmod(0o777)
    kill = f"mkdir {shared_folder}/killed 2>/dev/null && kill -KILL $$"
    fake(shared_folder / "bwrap", f'{kill}; exec {shutil.which("bwrap")} "$@"')
    box = Bubblewrap(None, program=str(shared_folder / "bwrap"))
    assert shell(box, "echo once > file", collect=["file"]).files == {"file": b"once\n"}
    assert (shared_folder / "killed").is_dir()


def test_a_guard_whose_first_probe_fails_is_tried_again_before_a_weaker_one(monkeypatch):
    troubles = ["a probe saw nothing", ""]
    monkeypatch.setattr(sandbox_module, "_trouble", lambda _: troubles.pop(0))
    strongest = supervisor_module.control_groups() if os.geteuid() == 0 else "systemd"
    assert open_sandbox().guard == strongest and not troubles


def test_the_gradebook_is_told_what_kept_the_submissions_apart(sandbox):
    assert sandbox.description.startswith("bubblewrap, memory ")
    assert "accidents only" in Bubblewrap(None).description
    unsafe = open_sandbox(unsafe=True)
    assert unsafe.description == "none: ran with the rights of the grader"


def test_a_users_scope_gets_the_limits_and_leaves_the_environment_clean(monkeypatch, shared_folder):
    log = shared_folder / "log"
    log.touch()
    log.chmod(0o666)
    fake(shared_folder / "systemd-run", f'echo "$XDG_RUNTIME_DIR $*" > {log}; {JUST_RUN}')
    monkeypatch.setenv("PATH", f"{shared_folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/4711")
    limits = Limits(memory=300 * MIB, processes=70)
    outcome = shell(Bubblewrap("systemd"), "id -u; cat /proc/1/environ", limits=limits)
    assert outcome.stdout == b"1000\n", outcome.stderr
    told = log.read_text().split()
    assert told[:3] == ["/run/user/4711", "--user", "--scope"]
    assert f"--property=MemoryMax={300 * MIB}" in told
    assert "--property=TasksMax=70" in told


def test_without_a_sandbox_the_same_interface_works(monkeypatch):
    monkeypatch.setenv("SECRET", "grading key")
    box = open_sandbox(unsafe=True)
    outcome = shell(
        box,
        'cat in.txt; echo "$SECRET" >&2; pwd > where; test "$HOME" = "$PWD" || exit 9; '
        "mkdir locked; touch locked/x; chmod 0 locked; exit 5",
        files={"in.txt": b"hello"},
        collect=["where"],
    )
    assert (outcome.returncode, outcome.reason, outcome.stdout) == (5, "", b"hello")
    assert outcome.stderr == b"\n"
    assert not Path(outcome.files["where"].decode().strip()).exists()
    late = box.run(["sleep", "1000"], limits=Limits(wall_seconds=0.5))
    assert (late.returncode, late.reason) == (128 + signal.SIGKILL, "wall time")


@needs_root
def test_it_works_for_a_plain_user_too(shared_folder):
    package = shared_folder / "mpilab"
    for name in ("__init__.py", "grading/__init__.py", "util/__init__.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    grading = "sandbox run supervisor".split()
    own = ("errors", "util/system", *(f"grading/{name}" for name in grading))
    for name in own:
        shutil.copyfile(PACKAGE / f"{name}.py", package / f"{name}.py")
    code = f"""
from mpilab.grading.sandbox import *
box = open_sandbox()
script = "id -u; cat a > b; ls /root"
outcome = box.run(["/bin/sh", "-c", script], files={{"a": b"A"}}, collect=["b"])
assert (outcome.stdout, outcome.files) == (b"1000\\n", {{"b": b"A"}}), outcome
bomb = "import time\\nx = []\\nwhile True:\\n    x.append(bytearray(1 << 23)); time.sleep(0.01)"
outcome = box.run(["{PYTHON}", "-c", bomb], limits=Limits(memory=150 << 20, wall_seconds=20))
assert outcome.reason == "memory", outcome
script = "(setsid sleep 1000 &) & sleep 1000"
outcome = box.run(["/bin/sh", "-c", script], limits=Limits(wall_seconds=1))
assert outcome.reason == "wall time", outcome
outcome = open_sandbox(unsafe=True).run(["/bin/sh", "-c", "(setsid sleep 1000 &) &"])
assert outcome.returncode == 0, outcome
print(box.description)
"""
    # None of those under which sandboxes run: other tests may be using some.
    user = ["setpriv", "--reuid=64321", "--regid=64321", "--clear-groups", "--inh-caps=-all"]
    ended = subprocess.run(
        [*user, PYTHON, "-c", code],
        cwd=shared_folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("bubblewrap, memory ")
    assert processes_of(64321) == []


def fake(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def peak_memory():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) << 10


def processes_of(user):
    listed = subprocess.run(["ps", "-u", str(user), "-o", "args="], capture_output=True, text=True)
    return listed.stdout.split("\n")[:-1]
