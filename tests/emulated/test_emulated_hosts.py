"""What programs on an emulated host, and programs outside, see of it."""

import os
import pty
import signal
import subprocess
import sys

import psutil
import pytest
from small_clusters import HEARER, await_end, described, said

from mpilab.errors import ClusterError, InputError
from mpilab.hosts.emulated import EmulatedHosts, attach, running

pytestmark = pytest.mark.privileged

PING = """
import socket, sys
server = len(sys.argv) == 1
if server:
    listener = socket.create_server(("", 5000))
    print("listens", flush=True)
    listener.settimeout(20)
    other, address = listener.accept()
    print(socket.getfqdn(address[0]), other.recv(100).decode(), flush=True)
    other.sendall(b"pong")
else:
    other = socket.create_connection((sys.argv[1], 5000), timeout=300)
    other.sendall(b"ping")
    print(other.recv(100).decode())
"""
# Sends BYTES from one host to another; the receiver reports the seconds from the first to the last
# byte.
STREAM = """
import socket, sys, time
size = int(sys.argv[1])
if len(sys.argv) == 2:
    listener = socket.create_server(("", 5001))
    print("listens", flush=True)
    listener.settimeout(20)
    other, _ = listener.accept()
    left, begin = size, None
    while left:
        got = len(other.recv(1 << 20))
        begin = begin or time.monotonic()
        assert got
        left -= got
    print(time.monotonic() - begin)
else:
    other = socket.create_connection((sys.argv[2], 5001), timeout=300)
    other.sendall(bytes(size))
"""
# The shortest of 5 round trips of one byte, in seconds.
ROUND_TRIP = """
import socket, sys, time
if len(sys.argv) == 1:
    listener = socket.create_server(("", 5002))
    print("listens", flush=True)
    listener.settimeout(20)
    other, _ = listener.accept()
    while byte := other.recv(1):
        other.sendall(byte)
else:
    other = socket.create_connection((sys.argv[1], 5002), timeout=300)
    times = []
    for _ in range(5):
        begin = time.monotonic()
        other.sendall(b"x")
        other.recv(1)
        times.append(time.monotonic() - begin)
    print(min(times))
"""


def between(hosts, script, one, other, *words):
    """Run a script as server on `other` and as client on `one`: (the outputs of both)."""
    python = [sys.executable, "-c", script, *words]
    server = subprocess.Popen(hosts.command(python, other), stdout=subprocess.PIPE, text=True)
    with server:
        assert server.stdout.readline() == "listens\n"
        client = said(hosts, [*python, other], one)
        return client, server.stdout.read()


class TestHosts:
    def test_each_has_its_name_and_can_be_the_one_that_a_command_runs_on(self, eight):
        assert eight.names == tuple(f"n{i}" for i in range(1, 9))
        assert [said(eight, ["hostname"], name).strip() for name in eight.names] == list(
            eight.names
        )
        assert said(eight, ["hostname"]) == "n1\n"

    def test_shared_memory_and_temporary_files_are_each_host_s_own(self, pair):
        temporary = str(pair.directory / "tmp")
        for folder in "/dev/shm", temporary:
            said(pair, ["sh", "-c", f"echo here > {folder}/mpilab-trace"], "n1")
            assert said(pair, ["ls", folder], "n1") == "mpilab-trace\n"
            assert said(pair, ["ls", folder], "n2") == ""
            assert not os.path.exists(f"{folder}/mpilab-trace")

    def test_all_other_files_are_shared(self, pair, tmp_path):
        said(pair, ["sh", "-c", "echo here > trace"], "n2", cwd=tmp_path)
        assert (tmp_path / "trace").read_text() == "here\n"
        assert said(pair, ["cat", str(tmp_path / "trace")], "n1") == "here\n"

    @pytest.mark.parametrize("other", ["n2", "n3", "n8"])
    def test_reaches_the_others_by_name(self, eight, other):
        assert between(eight, PING, "n1", other) == ("pong\n", "n1 ping\n")

    def test_has_no_way_out(self, pair):
        text = said(pair, ["cat", "/proc/net/route"])
        routes = [line.split()[:2] for line in text.splitlines()[1:]]
        assert routes == [["eth0", "00004D0A"]]  # 10.77.0.0 only

    def test_waits_and_measures_without_the_memory_of_former_connections(self, pair):
        settings = ("tcp_slow_start_after_idle", "tcp_no_metrics_save", "tcp_congestion_control")
        files = [f"/proc/sys/net/ipv4/{name}" for name in settings]
        assert said(pair, ["cat", *files]).split() == ["0", "1", "reno"]

    def test_knows_only_its_own_cluster_s_processes(self, pair):
        listed = said(pair, ["sh", "-c", "ls /proc | grep -c '^[0-9]'"])
        assert int(listed) < 12
        assert said(pair, ["cat", "/proc/1/comm"]).strip()


class TestLinks:
    """Only lower bounds: the machine may be arbitrarily busy."""

    def test_two_megabytes_over_200_megabit_take_their_time(self, eight):
        _, seconds = between(eight, STREAM, "n1", "n3", "2000000")
        # 80 ms, except for the bucket, the queues and what arrived before a busy receiver read its
        # clock; within a group, 16 ms.
        assert float(seconds) > 0.04

    def test_within_a_group_the_same_is_faster(self, eight):
        # 16 ms at 1 Gbit/s; over the link between the groups it would be 80. A busy machine delays
        # some streams: one that it does not delay is enough.
        streams = (between(eight, STREAM, "n1", "n2", "2000000")[1] for _ in range(100))
        assert next(seconds for seconds in map(float, streams) if seconds < 0.07) > 0.012

    def test_latency_is_that_of_all_links_on_the_way(self, namespaces):
        if not namespaces.latency_by:
            pytest.skip("NOT TESTED: neither netem nor the relay is there: make build")
        late = described({"a": 2, "b": 1}, latency=1e-3, uplink_latency=4e-3)
        with EmulatedHosts(late) as hosts:
            near, _ = between(hosts, ROUND_TRIP, "n1", "n2")
            far, _ = between(hosts, ROUND_TRIP, "n1", "n3")
        assert float(near) >= 2 * 2e-3 - 2e-4
        assert float(far) >= 2 * (2e-3 + 8e-3) - 2e-4

    def test_much_data_comes_whole_through_links_with_latency_and_rate(self, namespaces):
        if not namespaces.latency_by:
            pytest.skip("NOT TESTED: neither netem nor the relay is there: make build")
        late = described({"a": 2}, latency=1e-3, rate=1e9)
        with EmulatedHosts(late) as hosts:
            _, seconds = between(hosts, STREAM, "n1", "n2", "8000000")
        assert float(seconds) > 0.05


class TestCommand:
    def test_standard_input_and_output_environment_and_directory_are_passed_on(
        self, pair, tmp_path
    ):
        script = 'read line; echo "$line $WORD $PWD"; echo wrong >&2; exit 7'
        done = subprocess.run(
            pair.command(["sh", "-c", script], "n2"),
            input="in\n",
            text=True,
            capture_output=True,
            cwd=tmp_path,
            timeout=300,
            env={"WORD": "given", "PATH": os.defpath},
        )
        assert (done.returncode, done.stdout, done.stderr) == (
            7,
            f"in given {tmp_path}\n",
            "wrong\n",
        )

    @pytest.mark.parametrize("ignores", [False, True])
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
    def test_signals_for_the_whole_group_reach_the_command_once(self, pair, number, ignores):
        # A script starts its background jobs in this way.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignores else signal.SIG_DFL)
        try:
            process = subprocess.Popen(
                pair.command([sys.executable, "-c", HEARER, str(int(number)), "0"]),
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        finally:
            signal.signal(signal.SIGINT, before)
        command = pair.host_pid(int(process.stdout.readline().split()[0]))
        # It is in a separate group, which signals from the kernel to ours do not reach.
        assert os.getpgid(command) == command != os.getpgid(process.pid)
        os.killpg(process.pid, number)
        assert process.stdout.readline() == "heard\n"
        assert process.communicate("\n", timeout=300)[0] == "0 more\n"
        assert process.returncode == 0

    def test_an_interrupt_at_a_terminal_reaches_the_command_once(self, pair):
        command = pair.command([sys.executable, "-c", HEARER, str(int(signal.SIGINT)), "0"])
        process, terminal = pty.fork()
        if process == 0:
            os.execv(command[0], command)

        def read_until(words):
            text = b""
            while words not in text:
                text += os.read(terminal, 1000)

        read_until(b"listens")
        os.write(terminal, b"\x03")
        read_until(b"heard")
        os.write(terminal, b"\n")
        read_until(b"0 more")
        assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
        os.close(terminal)

    def test_a_signal_that_ended_the_command_is_told_as_a_shell_does(self, pair):
        done = subprocess.run(pair.command(["sh", "-c", "kill -SEGV $$"]), timeout=300)
        assert done.returncode == 128 + signal.SIGSEGV

    def test_a_command_that_is_not_there_is_told(self, pair):
        done = subprocess.run(pair.command(["no-such-command"]), capture_output=True, text=True)
        assert done.returncode == 127
        assert done.stderr == "mpilab: no-such-command: No such file or directory\n"

    def test_it_ends_when_the_process_that_started_it_is_killed(self, pair):
        command = pair.command(["sh", "-c", "echo $$; exec sleep 1000"])
        script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
        parent = subprocess.Popen([sys.executable, "-c", script, *command], stdout=subprocess.PIPE)
        with parent.stdout as told:
            inside = int(told.readline())
        process = pair.host_pid(inside)
        assert process is not None
        parent.kill()
        parent.wait()
        assert await_end(process)

    def test_what_is_left_of_it_is_cleared_away_inside_whoever_is_killed(self, pair):
        """A process whose parent is outside could keep the cluster from ending."""

        def parent(process):
            return psutil.Process(process).ppid()

        command = pair.command(["sh", "-c", "echo $$; exec sleep 1000"])
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        with process:
            inside = pair.host_pid(int(process.stdout.readline()))
            attendant = parent(inside)
            assert attendant != process.pid
            # The process of a host is a child of the cluster's process 1, and so is this one.
            assert parent(attendant) == parent(pair.process("n1"))
            process.kill()
        assert await_end(inside) and await_end(attendant)

    def test_an_unknown_host_is_refused_with_those_that_there_are(self, pair):
        with pytest.raises(InputError, match="host 'n3': not in trial; it has n1, n2"):
            pair.command(["true"], "n3")

    def test_without_hosts_there_is_no_command(self):
        with pytest.raises(ClusterError, match="trial: the hosts are not up. Call up"):
            EmulatedHosts(described({"a": 1})).command(["true"])

    def test_a_host_that_is_gone_is_told(self, namespaces):
        with EmulatedHosts(described({"a": 1})) as hosts:
            command = hosts.command(["true"])
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 255
        assert "host n1: its cluster is down" in done.stderr


class TestNumbers:
    def test_a_process_of_the_hosts_has_another_number_here(self, pair):
        process = subprocess.Popen(
            pair.command(["sh", "-c", "echo $$; read line"], "n2"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with process:
            inside = int(process.stdout.readline())
            outside = pair.host_pid(inside)
            assert outside != inside
            with open(f"/proc/{outside}/status") as file:
                fields = dict(line.split(":", 1) for line in file)
            assert fields["NSpid"].split() == [str(outside), str(inside)]

    def test_a_number_that_nobody_has_there_is_nobody_here(self, pair):
        assert pair.host_pid(2**22 - 3) is None
        # Our number belongs to no process there, or to another one.
        assert pair.host_pid(os.getpid()) != os.getpid()


class TestClusters:
    def test_two_of_the_same_description_do_not_disturb_each_other(self, pair):
        with EmulatedHosts(pair.description) as other:
            assert other.directory != pair.directory
            said(other, ["sh", "-c", "echo other > /dev/shm/whose"], "n1")
            assert "whose" not in said(pair, ["ls", "/dev/shm"], "n1")
            assert between(other, PING, "n1", "n2") == ("pong\n", "n1 ping\n")
            assert between(pair, PING, "n2", "n1") == ("pong\n", "n2 ping\n")
        assert pair.running and not other.running
        assert said(pair, ["hostname"], "n2") == "n2\n"

    def test_one_that_is_up_can_be_found_and_used_by_others(self, pair):
        assert str(pair.directory) in [str(one.directory) for one in running()]
        found = attach(pair.directory)
        assert found.description == pair.description
        assert said(found, ["hostname"], "n2") == "n2\n"
        with found:
            pass
        assert pair.running

    def test_a_name_that_no_cluster_has_is_refused(self):
        with pytest.raises(InputError, match="hosts 'nobody-s': no such cluster of yours is up"):
            attach("nobody-s")

    def test_its_directory_is_private(self, pair):
        assert pair.directory.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("name", ["localhost", "n.1", "-n", "n" * 65, "netns-root", "a b"])
    def test_a_name_that_no_host_can_have_is_refused(self, name):
        description = described({"a": 1})
        host = description.hosts[0].__class__(name, 1)
        with pytest.raises(InputError, match="an emulated host cannot have the name"):
            EmulatedHosts(description.__class__("trial", "", (host,)))
