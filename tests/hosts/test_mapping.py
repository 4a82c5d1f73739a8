"""mpirun as in a terminal, and our rank orders compared with those of Open MPI itself."""

import os
import random
import re
import subprocess

import pytest
from living import is_alive

from mpilab.errors import ClusterError, InputError
from mpilab.hosts import mapping
from mpilab.hosts.hostfile import read


def hostfile(folder, slots):
    path = folder / "hosts.txt"
    path.write_text("".join(f"n{i} slots={number}\n" for i, number in enumerate(slots, 1)))
    return path


def cases(seed=7, number=8):
    """Slots of hosts that differ by at most one: Open MPI refuses some others by node."""
    chosen = random.Random(seed)
    for _ in range(number):
        least = chosen.randint(1, 4)
        slots = [chosen.randint(least, least + 1) for _ in range(chosen.randint(1, 5))]
        yield slots, chosen.randint(1, sum(slots))


@pytest.mark.parametrize("policy", ["slot", "node"])
@pytest.mark.parametrize("slots, ranks", [([4, 2], 6), *cases()])
def test_open_mpi_puts_ranks_where_we_say(tmp_path, slots, ranks, policy):
    path = hostfile(tmp_path, slots)
    assert mapping.mapped(path, ranks, policy) == read(path).names(ranks, policy)


@pytest.mark.parametrize("name", ["two-groups.txt", "uneven.txt", "shuffled.txt"])
@pytest.mark.parametrize("policy", ["slot", "node"])
def test_open_mpi_reads_the_kit_s_hostfiles_as_we_do(name, policy):
    found = read(name)
    ranks = sum(found.slots)
    assert mapping.mapped(name, ranks, policy) == found.names(ranks, policy)


def test_line_by_line_is_open_mpi_s_seq():
    found = read("shuffled.txt")
    assert mapping.mapped("shuffled.txt", 8, "seq") == found.names(policy="seq")


def test_limits_comments_and_blanks_mean_the_same_to_open_mpi(tmp_path):
    path = tmp_path / "hosts.txt"
    path.write_text("# two\n\n  n1   slots = 2  # x\nme@n2 slots=1 max-slots=2\n")
    assert mapping.mapped(path, 3) == read(path).names(3) == ["n1", "n1", "n2"]


def test_what_open_mpi_refuses_is_told_in_its_own_words(tmp_path):
    with pytest.raises(InputError, match="rejects 7 ranks with --map-by slot(.|\n)*enough slots"):
        mapping.mapped(hostfile(tmp_path, [4, 2]), 7)


def test_a_missing_hostfile_and_an_unknown_policy_are_refused_at_once(tmp_path):
    with pytest.raises(InputError, match="nowhere.txt: no such hostfile"):
        mapping.mapped(tmp_path / "nowhere.txt", 1)
    with pytest.raises(InputError, match="policy='core'"):
        mapping.mapped("localhost.txt", 1, "core")


def test_ranks_say_where_they_are():
    said = mapping.mpirun(
        "-n 3 --hostfile localhost.txt --bind-to none python -m mpilab.hosts.mapping"
    )
    lines = sorted(said.splitlines())
    assert len(lines) == 3
    for rank, line in enumerate(lines):
        assert re.match(rf"rank {rank} of 3: host \S+, may use cores? [\d,-]+", line)


def test_bound_ranks_may_use_one_core_each():
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core only: two ranks cannot be bound to two")
    said = mapping.mpirun(
        "-n 2 --map-by pe-list=1,0:ordered --bind-to core python -m mpilab.hosts.mapping"
    )
    cores = re.findall(r"may use core (\d+)", said)
    assert len(set(cores)) == 2


def test_more_ranks_than_slots_are_refused_as_in_a_terminal(monkeypatch):
    # Inside a cluster or the sandbox, the kit has allowed more ranks.
    monkeypatch.setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")
    said = mapping.mpirun("-n 5 --hostfile localhost.txt --bind-to none hostname")
    assert "not enough slots" in said
    assert said.endswith("(exit status 1)")


def test_an_mpirun_without_end_is_ended_with_its_ranks(tmp_path, monkeypatch):
    note, never = tmp_path / "pid", tmp_path / "never"
    os.mkfifo(note)
    os.mkfifo(never)
    communicate, ranks = subprocess.Popen.communicate, []

    def patient(process, stdin=None, timeout=None):
        if not ranks:  # on a busy machine, the limit begins when the rank waits
            ranks.append(int(note.read_text()))
        return communicate(process, stdin, timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", patient)
    rank = f"echo waiting forever; echo $$ > {note}; read word < {never}"
    with pytest.raises(ClusterError, match="not finished after 5 s(.|\n)*waiting forever"):
        mapping.mpirun(f"-n 1 sh -c '{rank}'", timeout=5)
    assert not is_alive(ranks[0])


def test_open_quotation_marks_are_told_before_anything_starts():
    with pytest.raises(InputError, match="close the quotation marks"):
        mapping.mpirun("-n 1 echo 'x")


def test_outside_of_mpirun_a_process_is_no_rank(monkeypatch):
    monkeypatch.delenv("OMPI_COMM_WORLD_RANK", raising=False)
    monkeypatch.delenv("OMPI_COMM_WORLD_SIZE", raising=False)
    found = mapping.here()
    assert found.rank is None
    assert str(found).startswith("no rank: host ")
    assert found.core in found.cores


def test_cores_are_listed_in_ranges():
    here = mapping.Here(1, 4, "n1", (0, 1, 2, 5), None)
    assert str(here) == "rank 1 of 4: host n1, may use cores 0-2,5"
