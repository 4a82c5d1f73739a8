"""What a message costs between the nodes of a job, for a simulated platform; and rules learned
there."""

import sys

import numpy as np
import pytest

from mpilab.hosts.platforms import calibrated
from mpilab.measure import level_costs
from mpilab.tuning import decisions

pytestmark = [pytest.mark.slow, pytest.mark.privileged]


def test_a_platform_is_calibrated_from_the_nodes_of_a_job(slurm, tmp_path):
    command = f"{sys.executable} -m mpilab.measure.level_costs some.csv --cluster slurm"
    job = slurm.submit(
        "-N2",
        "--ntasks-per-node=2",
        "-o",
        "%j.out",
        "--wrap",
        f"{command} --repetitions 2",
        cwd=tmp_path,
    )
    states = slurm.wait(job)
    assert set(states.values()) == {"COMPLETED"}, (tmp_path / f"{job}.out").read_text()
    rows = level_costs.read(tmp_path / "some.csv")
    # The two nodes are at two switches.
    assert np.unique(rows["distance"]).tolist() == ["node", "world"]
    assert len(rows) == 2 * 4 * len(level_costs.SIZES) * 2
    costs, _ = level_costs.costs(rows)
    platform = calibrated("groups-2x1x2", {"node": costs["node"], "group": costs["world"]})
    assert platform.memory.rate == pytest.approx(8 / costs["node"][1])


def test_rules_are_learned_on_the_nodes_of_a_job(slurm, tmp_path):
    command = "mpilab learn slurm -o my.rules --no-progress"
    job = slurm.submit(
        "-N2",
        "--ntasks-per-node=2",
        "-o",
        "%j.out",
        "--wrap",
        f"{command} --collectives bcast --sizes 64 --orders rr --repetitions 2",
        cwd=tmp_path,
    )
    states = slurm.wait(job)
    said = (tmp_path / f"{job}.out").read_text()
    assert set(states.values()) == {"COMPLETED"}, said
    assert "rr, 2 nodes in 2 groups" in said
    assert {rule.collective for rule in decisions.read(tmp_path / "my.rules")} == {"bcast"}
