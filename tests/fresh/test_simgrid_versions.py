"""The same program costs the same in every version of SimGrid that a supported Debian ships."""

import re
import shlex
from pathlib import Path

import pytest
from fresh_system import SUITES, fresh, readme_packages

from mpilab.hosts import platforms

pytestmark = [pytest.mark.privileged, pytest.mark.timeout(900)]
ROOT = Path(__file__).resolve().parents[2]
# A ring allgather, whose ranks are delayed one after another by the cost of the messages.
PROGRAM = """
#include <mpi.h>
#include <stdio.h>

static char blocks[16][4096];

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    blocks[rank][0] = (char)('a' + rank);
    const double start = MPI_Wtime();
    for (int round = 0; round < size - 1; round++)
        MPI_Sendrecv(blocks[(rank - round + size) % size], 4096, MPI_CHAR, (rank + 1) % size, 0,
                     blocks[(rank - round - 1 + size) % size], 4096, MPI_CHAR,
                     (rank - 1 + size) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double own = MPI_Wtime() - start;
    double longest;
    MPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        for (int block = 0; block < size; block++)
            putchar(blocks[block][0]);
        printf(" %.9f\\n", longest);
    }
    MPI_Finalize();
    return 0;
}
"""


def simulate(suite, platform):
    """The SimGrid of `suite`, as a version, and what PROGRAM prints there on `platform`."""
    found = platforms.platform(platform)
    hosts = [host.name for host in found.description.hosts]
    with fresh(suite, readme_packages(ROOT)) as system:
        home = system.upper / "root"
        home.mkdir(parents=True, exist_ok=True)
        (home / "ring.c").write_text(PROGRAM)
        (home / "platform.xml").write_text(platforms.xml(found))
        (home / "hosts").write_text("\n".join(hosts) + "\n")
        version = re.search(r"[0-9]+\.[0-9]+", system.run("smpirun -version", "root").stdout)[0]
        smpirun = ["smpirun", "-np", str(len(hosts)), "-platform", "platform.xml"]
        options = platforms.options(found, version).items()
        smpirun += [f"--cfg={name}:{value}" for name, value in options]
        smpirun += ["-hostfile", "hosts", "--log=root.threshold:error", "./ring"]
        done = system.run(f"smpicc -O2 -o ring ring.c && {shlex.join(smpirun)}", "root")
    assert done.returncode == 0, f"{suite}, SimGrid {version}:\n{done.stdout}"
    return version, done.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "platform", ["flat-8x1", "groups-2x4x1", "fat-tree-8x1", "torus-2x4x1", "dragonfly-2x2x2x1"]
)
def test_a_ring_takes_the_same_simulated_time_in_every_version(platform):
    printed = dict(simulate(suite, platform) for suite in SUITES)
    assert len(printed) == len(SUITES), f"these are to be different versions: {printed}"
    assert len(set(printed.values())) == 1, printed
    blocks, seconds = next(iter(printed.values())).split()
    assert blocks == "abcdefgh"
    # Seven rounds of a message that has to get through at least one link.
    link = platforms.platform(platform).host_link
    assert float(seconds) > 7 * (link.latency + 4096 / link.rate)
