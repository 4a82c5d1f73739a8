"""Where times come from, and which ranks shared cores."""

import numpy as np

from mpilab.measure import origin
from mpilab.measure.dataset import processor
from mpilab.mpiio.cannon import TABLE

STAMP = "AMD EPYC, 2 cores, 4 GiB, Linux 6.1, Python 3.12.1"


def cannons(machine, *ranks, date="2026-11-27"):
    return TABLE.array(
        (date, machine, 1, "text", number, 256, 1, "read", 0.1, 0.2) for number in ranks
    )


def test_the_stamp_of_a_table_names_the_processor_and_its_cores():
    rows = cannons(STAMP, 4, 1)
    assert origin.where_of(rows) == "measured on AMD EPYC, 2 cores, 1 and 4 ranks, 2026-11-27"
    assert origin.shared_ranks(rows) == [4]
    assert origin.sentences(rows)[-1] == "4 ranks: oversubscribed, more ranks than cores."
    assert origin.ranks_label(rows, 4) == "4 ranks, oversubscribed"
    assert origin.ranks_label(rows, 1) == "1 rank"


def test_a_table_without_ranks_is_told_them():
    rows = np.array([("2026-11-27", STAMP)], [("date", "U10"), ("machine", "U80")])
    assert origin.where_of(rows) == ""
    assert origin.where_of(rows, [8]) == "measured on AMD EPYC, 2 cores, 8 ranks, 2026-11-27"
    assert origin.below("Title", rows, [8]) == (
        "Title<br><sub>Measured on AMD EPYC, 2 cores, 8 ranks, 2026-11-27 (8 oversubscribed)</sub>"
    )
    assert origin.shared_ranks(rows, [2]) == []


def test_of_a_simulated_cluster_no_ranks_share_cores():
    row = [("machine", "U20"), ("cores", "i4"), ("ranks", "i4")]
    rows = np.array([("flat-64x1", 0, 64)], row)
    assert origin.where_of(rows) == "simulated on flat-64x1, 64 ranks"
    assert origin.shared_ranks(rows) == []
    assert origin.below("Title", None) == "Title"


def test_an_unknown_machine_is_not_made_up():
    assert origin.sentences(cannons("a machine", 4)) == []


def test_what_is_measured_now_is_labeled_with_more_ranks_than_cores():
    assert origin.here(4, 2) == f"{processor()}, 2 cores, 4 ranks, oversubscribed"
    assert origin.here(1, 1) == f"{processor()}, 1 core, 1 rank"


def test_each_machine_has_its_own_ranks_and_date():
    theirs = cannons(STAMP.replace("AMD EPYC, 2", "Intel Xeon, 8"), 4, 16, date="2026-11-21")
    both = np.concatenate([cannons(STAMP, 4), theirs])
    assert origin.where_of(both) == (
        "measured on AMD EPYC, 2 cores, 4 ranks, 2026-11-27; "
        "measured on Intel Xeon, 8 cores, 4 and 16 ranks, 2026-11-21"
    )
    assert origin.shared_ranks(both) == [4, 16]
