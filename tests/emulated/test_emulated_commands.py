"""mpilab hosts up, run, list and down, as a user types them."""

import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from small_clusters import HEARER, Traces

from mpilab.cli import main
from mpilab.cli.cluster import overview
from mpilab.hosts.emulated import attach, hosts
from mpilab.hosts.emulated.hosts import Capabilities

DESCRIPTION = """
title = "One host here, two there"
[links.host]
rate = "1gbit"
[links.group]
rate = "200mbit"
latency = "500us"
[[group]]
name = "here"
hosts = ["h1"]
slots = 1
[[group]]
name = "there"
hosts = ["t1", "t2"]
slots = 2
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A description; clusters have their directories beside it. Its name is this test's own: who
    else brings hosts up on this machine meanwhile is not disturbed."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    path = tmp_path / f"commands-{os.getpid()}.toml"
    path.write_text(DESCRIPTION)
    return path


@pytest.fixture
def up(namespaces, file, capsys):
    """The name of a cluster that `mpilab hosts up` brought up, and what that said."""
    assert main(["hosts", "up", str(file)]) == 0
    hosts = attach(file.stem)
    yield file.stem, capsys.readouterr().out
    hosts.down()


def mpilab(*words):
    """`mpilab WORDS` in a separate process: `hosts run` becomes the command."""
    command = [sys.executable, "-m", "mpilab", *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": os.getcwd()},
    )


@pytest.mark.privileged
class TestUp:
    def test_it_says_what_was_built_and_what_to_type_next(self, up, namespaces):
        name, said = up
        by = namespaces.latency_by
        assert said.startswith(
            f"{name}: 3 hosts, 5 slots\n  here: h1:1\n  there: t1:2 t2:2\n"
            f"  host links: 1gbit (tbf)\n  group links: 200mbit (tbf), latency 500us ({by})\n"
        )
        assert "mpirun -n 5 PROGRAM   runs on them" in said
        assert f"mpilab hosts down {name}   takes them down" in said

    def test_a_second_one_of_the_same_name_needs_another(self, up, file, capsys):
        name, _ = up
        assert main(["hosts", "up", str(file)]) == 1
        said = capsys.readouterr().err
        assert "a cluster of this name is up" in said and f"--name {name}-2" in said
        assert main(["hosts", "up", str(file), "--name", f"{name}-2"]) == 0
        assert main(["hosts", "down", f"{name}-2"]) == 0
        assert attach(name).running


@pytest.mark.privileged
class TestRun:
    def test_a_plain_mpirun_runs_on_the_hosts_by_their_slots(self, up):
        script = "from mpi4py import MPI; print(MPI.Get_processor_name())"
        done = mpilab(
            "hosts", "run", "--name", up[0], "--", "mpirun", "-n", "5", sys.executable, "-c", script
        )
        assert done.returncode == 0, done.stderr
        assert sorted(done.stdout.split()) == ["h1", "t1", "t1", "t2", "t2"]

    def test_it_starts_on_the_host_of_your_choice_and_gives_back_the_status(self, up):
        done = mpilab(
            "hosts",
            "run",
            "--name",
            up[0],
            "--host",
            "t2",
            "sh",
            "-c",
            "hostname; echo $MPILAB_GROUPS; exit 5",
        )
        assert (done.returncode, done.stdout) == (5, "t2\nh1=here,t1=there,t2=there\n")

    def test_a_host_or_a_command_that_is_not_there_is_told(self, up):
        name = up[0]
        done = mpilab("hosts", "run", "--name", name, "--host", "x", "--", "true")
        assert done.returncode == 1
        assert done.stderr == f"mpilab: host 'x': not in {name}; it has h1, t1, t2\n"
        done = mpilab("hosts", "run", "--name", name)
        assert done.returncode == 1
        assert "hosts run: no command; write it after '--'" in done.stderr


@pytest.mark.privileged
class TestRunToItsEnd:
    """A command that does not end by itself is ended, with the reason."""

    @pytest.fixture
    def stand_in(self, tmp_path):
        """A program called mpirun that waits for nothing, as the real one sometimes does."""
        program = tmp_path / "mpirun"
        shutil.copy(shutil.which("sleep"), program)
        return str(program)

    def test_an_mpirun_that_waits_for_nothing_is_ended(self, up, stand_in):
        done = mpilab("hosts", "run", "--name", up[0], "--", stand_in, "1000")
        assert done.returncode == 124
        assert done.stderr.startswith("mpilab: mpirun was stopped: it was still waiting ")
        assert "Run it again" in done.stderr and "Traceback" not in done.stderr

    def test_an_mpirun_whose_program_sleeps_is_waited_for(self, up, stand_in, tmp_path):
        over = tmp_path / "over"
        os.mkfifo(over)
        sooner = (
            "import sys\nfrom mpilab import cli\nfrom mpilab.cluster import processes\n"
            "processes.QUIET_S, processes.LOOK_S, processes.TELL_S = 0.5, 0.2, 0.4\n"
            "sys.exit(cli.main(sys.argv[1:]))"
        )
        # Its program outlasts the stand-in, however late either starts.
        program = f"sh -c 'read word < {over}'"
        script = f"PMIX_RANK=0 {program} & {stand_in} 3; echo end > {over}; wait; echo over"
        done = subprocess.run(
            [sys.executable, "-c", sooner, "hosts", "run", "--name", up[0], "sh", "-c", script],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (done.returncode, done.stdout) == (0, "over\n")
        assert "s; 1 process of its program still running" in done.stderr

    @pytest.mark.slow
    def test_a_program_that_ends_at_once_never_hangs(self, up):
        for _ in range(4):  # of which about one would wait forever
            done = mpilab("hosts", "run", "--name", up[0], "--", "mpirun", "-n", "5", "hostname")
            assert done.returncode in (0, 124), done.stderr
            assert (done.returncode == 124) == ("after its program had ended" in done.stderr)
            assert sorted(done.stdout.split()) == ["h1", "t1", "t1", "t2", "t2"]

    def test_a_time_limit_ends_the_command_with_all_that_it_started(self, up, tmp_path):
        script = f"(setsid sleep 1000 & echo $! > {tmp_path}/number); trap '' TERM; sleep 1000"
        done = mpilab("hosts", "run", "--name", up[0], "--timeout", "10", "--", "sh", "-c", script)
        assert done.returncode == 124
        assert "the command was stopped: it had not finished after 10 s, the limit" in done.stderr
        inside = int((tmp_path / "number").read_text())
        assert attach(up[0]).host_pid(inside) is None

    @pytest.mark.parametrize("text", ["0", "-1", "soon", "inf", "nan"])
    def test_a_time_limit_that_is_none_is_refused(self, text, capsys):
        with pytest.raises(SystemExit):
            main(["hosts", "run", "--timeout", text, "--", "true"])
        assert f"'{text}': must be a number of seconds" in capsys.readouterr().err

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_reaches_the_command_once_also_where_sigint_was_ignored(self, up, number):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "mpilab",
                    "hosts",
                    "run",
                    "--name",
                    up[0],
                    "--",
                    sys.executable,
                    "-c",
                    HEARER,
                    str(int(number)),
                    "5",
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": os.getcwd()},
            )
        finally:
            signal.signal(signal.SIGINT, before)
        with process:
            assert process.stdout.readline().endswith(" listens\n")
            os.killpg(process.pid, number)
            assert process.stdout.readline() == "heard\n"
            assert process.communicate("\n", timeout=120)[0] == "0 more\n"
        assert process.returncode == 5


@pytest.mark.privileged
class TestListAndDown:
    def test_what_is_up_is_listed_with_its_directory(self, up, capsys):
        assert main(["hosts", "list"]) == 0
        hosts = attach(up[0])
        assert f"{overview(hosts)}\n  directory {hosts.directory}\n" in capsys.readouterr().out

    def test_down_leaves_nothing(self, file, namespaces, capsys):
        assert main(["hosts", "up", str(file)]) == 0
        traces = Traces(attach(file.stem))
        assert main(["hosts", "down", file.stem]) == 0
        assert capsys.readouterr().out.endswith(f"\n{file.stem} is down\n")
        assert traces.left() == []
        assert [path.name for path in file.parent.iterdir()] == [file.name]
        assert main(["hosts", "down", file.stem]) == 1
        assert f"hosts '{file.stem}': no such cluster of yours is up" in capsys.readouterr().err


class TestWithoutNamespaces:
    """Needs none."""

    @pytest.fixture
    def nothing(self, monkeypatch):
        none = Capabilities("none", "unshare: Operation not permitted")
        monkeypatch.setattr("mpilab.hosts.emulated.hosts.probe", lambda: none)
        monkeypatch.setattr("mpilab.hosts.emulated.hosts.running", lambda: [])
        monkeypatch.setattr("mpilab.emulated.running", lambda: [])

    def test_up_says_why_and_what_to_use_instead(self, nothing, file, capsys):
        assert main(["hosts", "up", str(file)]) == 1
        assert capsys.readouterr().err == (
            "mpilab: emulated hosts are not possible here: unshare: Operation not permitted. "
            f"{hosts.INSTEAD}\n"
        )

    def test_without_hosts_the_other_verbs_say_how_to_get_some(self, nothing, capsys):
        assert main(["hosts", "run", "--", "true"]) == 1
        assert main(["hosts", "down"]) == 1
        remedy = "no emulated hosts are up; start some, e.g. mpilab hosts up two-groups"
        assert capsys.readouterr().err == f"mpilab: {remedy}\n" * 2
        assert main(["hosts", "list"]) == 0
        assert "mpilab hosts up two-groups" in capsys.readouterr().out

    @pytest.fixture
    def a_notebooks(self, monkeypatch, file):
        """All that is up is a cluster of the file's name, of process 7."""
        monkeypatch.setattr(
            "mpilab.emulated.running", lambda: [SimpleNamespace(name=file.stem, owner=7)]
        )
        return file.stem

    def test_up_does_not_offer_to_take_down_what_a_notebook_uses(self, a_notebooks, file, capsys):
        assert main(["hosts", "up", str(file)]) == 1
        assert capsys.readouterr().err == (
            f"mpilab: hosts '{a_notebooks}': a cluster of this name is up, of process 7. Give this "
            f"one another name: --name {a_notebooks}-2\n"
        )

    def test_down_says_that_what_is_up_belongs_to_a_notebook(self, a_notebooks, capsys):
        assert main(["hosts", "down"]) == 1
        assert capsys.readouterr().err == (
            "mpilab: no emulated hosts are up that 'mpilab hosts up' brought up; others end with "
            f"the process that they belong to: {a_notebooks} with process 7\n"
        )

    def test_a_wrong_description_is_told_by_its_line(self, file, capsys):
        file.write_text(DESCRIPTION.replace("slots = 1", "slots = none"))
        assert main(["hosts", "up", str(file)]) == 1
        assert f"{file}:11:" in capsys.readouterr().err

    def test_an_unknown_verb_is_refused(self, capsys):
        with pytest.raises(SystemExit):
            main(["hosts", "start"])
        assert "up" in capsys.readouterr().err
