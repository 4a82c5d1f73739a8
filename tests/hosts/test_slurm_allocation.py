"""The nodes of a Slurm job, as the kit finds them; Slurm's answers are fabricated here, and real in
tests/slurm."""

import pytest

from mpilab.cli import main
from mpilab.cluster.engines import Cluster
from mpilab.errors import ClusterError, InputError, SetupError
from mpilab.hosts import slurm
from mpilab.hosts.places import Levels, Place
from mpilab.hosts.slurm import Allocation, tasks_per_node
from mpilab.kernels import openmpi
from mpilab.measure.timing import Timed
from mpilab.tuning import decisions

SCONTROL = """#!/bin/sh
case $2 in
hostnames) printf '%s\\n' c1 c2 c3 ;;
node) echo "   NodeAddr=10.0.0.7 NodeHostName=$3 Version=22.05.8" ;;
esac
"""
# Slurm's name, the node's own, the switches above it, and whether it sees the folder.
SRUN = """#!/bin/sh
printf '%s\\n' 'c3 login3 s0.s2.c3 y' 'c1 c1 s0.s1.c1 y' 'c2 c2 s0.s1.c2 {}'
"""
ALL_SEE_IT = SRUN.format("y")


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job of three nodes with 2, 2 and 1 tasks; call it to set srun's answer."""
    programs = tmp_path / "bin"
    programs.mkdir()

    def answer(srun=ALL_SEE_IT):
        for name, text in (("scontrol", SCONTROL), ("srun", srun)):
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)

    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    for name, value in {
        "SLURM_JOB_ID": "17",
        "SLURM_JOB_NODELIST": "c[1-3]",
        "SLURM_TASKS_PER_NODE": "2(x2),1",
        "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_NTASKS_PER_NODE": "2",
        "SLURMD_NODENAME": "c1",
    }.items():
        monkeypatch.setenv(name, value)
    for name in (slurm.HOSTS, slurm.SHARED, slurm.LAUNCHER):
        monkeypatch.delenv(name, raising=False)
    answer()
    return answer


def test_nodes_tasks_and_switches_become_hosts_slots_and_groups(job, tmp_path):
    found = Allocation()
    told = [(host.name, host.slots, host.group) for host in found.description.hosts]
    assert told == [("c1", 2, "s0.s1"), ("c2", 2, "s0.s1"), ("c3", 1, "s0.s2")]
    assert found.order("seq") == ["c1", "c1", "c2", "c2", "c3"]
    assert found.order("rr", 4) == ["c1", "c2", "c3", "c1"]
    assert found.directory == tmp_path and found.address == "10.0.0.7"
    assert not list(tmp_path.glob(".mpilab*"))


def test_more_ranks_than_tasks_share_the_nodes(job):
    assert Allocation().order("seq", 7) == ["c1"] * 4 + ["c2"] * 3


def test_mpirun_and_srun_put_each_rank_where_it_is_ordered(job, monkeypatch):
    placed = ["c3", "c1", "c1"]
    assert Allocation().command(placed)[1:] == ["-n", "3", "--host", "c3,c1,c1", "--map-by", "seq"]
    monkeypatch.setenv("MPILAB_LAUNCHER", "srun")
    words = " ".join(Allocation().command(placed))
    assert words.startswith("srun --overlap --overcommit --mpi=pmix")
    assert "--nodes 2 --ntasks 3 --distribution=arbitrary --nodelist c3,c1,c1" in words
    monkeypatch.setenv("MPILAB_LAUNCHER", "ssh")
    with pytest.raises(InputError, match="MPILAB_LAUNCHER='ssh': take mpirun or srun"):
        Allocation()


def test_ranks_of_a_job_stay_on_its_node_unless_they_are_sent_out(job):
    """Under mpirun, no rank learns its switch from Slurm, so the list gives it by the node's
    name."""
    assert openmpi.environment(4)["PRTE_MCA_ras"] == "^slurm"
    sent = Allocation().environment(["c1", "c3"])
    assert (sent["PRTE_MCA_ras"], sent["PRTE_MCA_plm"], sent["SLURM_OVERLAP"]) == (
        "slurm",
        "slurm",
        "1",
    )
    assert sent["MPILAB_GROUPS"] == "c1=s0.s1,c2=s0.s1,login3=s0.s2"
    assert "SLURM_NTASKS_PER_NODE" not in sent


def test_ranks_of_srun_meet_in_a_ring_unless_the_user_wants_another_fence(job, monkeypatch):
    """Fences along a tree sometimes release a rank too early, which ends another with SIGSEGV."""
    assert Allocation().environment(["c1", "c3"])["SLURM_PMIX_FENCE"] == "ring"
    monkeypatch.setenv("SLURM_PMIX_FENCE", "tree")
    assert Allocation().environment(["c1", "c3"])["SLURM_PMIX_FENCE"] == "tree"


def test_a_rank_is_found_by_either_name_of_its_node_and_never_on_another_one(job):
    found = Allocation()
    assert found.place("login3.cluster.edu") == found.place("c3") == Place("c3", "s0.s2")
    with pytest.raises(
        ClusterError, match=("a rank ran on laptop, which is not one of its nodes: c1")
    ):
        found.place("laptop")


def test_a_node_that_does_not_see_our_files_is_named(job, tmp_path):
    job(SRUN.format(""))
    with pytest.raises(SetupError, match=f"{tmp_path}: not visible on c2. .*MPILAB_SHARED"):
        Allocation()


def test_an_srun_that_fails_is_quoted(job):
    job("#!/bin/sh\necho 'srun: error: Unable to create step' >&2\nexit 1\n")
    with pytest.raises(ClusterError, match="srun --overlap.*Unable to create step"):
        Allocation()


def test_a_cluster_finds_the_job_s_nodes_where_it_is_told_to(job, monkeypatch):
    assert Cluster(4).hosts is None
    asked = Cluster(4, hosts="slurm", order="rr")
    assert asked.names == ("c1", "c2", "c3", "c1") and asked.levels.groups == 2
    monkeypatch.setenv("MPILAB_HOSTS", "slurm")
    assert Cluster().names == ("c1", "c1", "c2", "c2", "c3")
    monkeypatch.setenv("MPILAB_HOSTS", "all")
    with pytest.raises(InputError, match="MPILAB_HOSTS='all': only 'slurm' is known"):
        Cluster(4)


def test_rules_are_learned_on_the_job_s_nodes_and_their_switches(job, monkeypatch, tmp_path):
    measured = []

    def timed(hosts, collective, *, sizes, orders, **_):
        assert isinstance(hosts, Allocation)
        measured.extend(orders.items())
        return [
            Timed(
                collective,
                f"{collective}_{kernel}",
                name,
                Levels(hosts.description.places(names)),
                size,
                (seconds,) * 2,
            )
            for name, names in orders.items()
            for size in sizes
            for kernel, seconds in (("node_group", 1e-3), ("binomial", 2e-3))
        ]

    monkeypatch.setattr(decisions, "time_on", timed)
    out = tmp_path / "my.rules"
    assert (
        main(
            [
                "learn",
                "slurm",
                "--collectives",
                "bcast",
                "--sizes",
                "64",
                "--orders",
                "seq,rr",
                "--ppn",
                "1,2",
                "--no-progress",
                "-o",
                str(out),
            ]
        )
        == 0
    )
    assert measured == [
        ("seq", ["c1", "c2", "c3"]),
        ("rr", ["c1", "c2", "c3"]),
        ("seq", ["c1", "c1", "c2", "c2", "c3"]),
        ("rr", ["c1", "c2", "c3", "c1", "c2"]),
    ]
    assert {rule.kernel for rule in decisions.read(out)} == {"bcast_node_group"}
    assert "the nodes of a Slurm job" in out.read_text()
    with pytest.raises(InputError, match="ppn=3: slurm job 17 has 2"):
        decisions.measure("slurm", collectives=["bcast"], sizes=[64], ppn=[3])


def test_outside_of_a_job_it_says_how_to_get_one(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(SetupError, match="not a Slurm job.*sbatch slurm/kernel.sbatch.*salloc"):
        Cluster(4, hosts="slurm")
    assert slurm.shared_folder() is None
    assert "PRTE_MCA_ras" not in openmpi.settings(2)


@pytest.mark.parametrize(
    ("text", "nodes", "tasks"),
    [
        ("2(x3),1", 4, [2, 2, 2, 1]),
        ("4", 3, [4, 4, 4]),
        ("1,3", 2, [1, 3]),
        ("16(x2)", 2, [16] * 2),
    ],
)
def test_slurm_s_list_of_tasks_is_read(text, nodes, tasks):
    assert tasks_per_node(text, nodes) == tasks


@pytest.mark.parametrize(
    ("text", "words"), [("2,x", "not understood at 'x'"), ("2,2", "2 numbers for 3 nodes")]
)
def test_a_list_of_tasks_that_is_none_is_quoted(text, words):
    with pytest.raises(InputError, match=words):
        tasks_per_node(text, 3)
