"""Tables of OMB 5 to 7 are read; anything else is rejected with its line.

The texts are shortened from published outputs: mailing lists, issues and READMEs of public
repositories. They keep OMB's widths, comment lines and order.
"""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.osu import parse

# Open MPI users' list, May 2016.
BARRIER_5_3 = """# OSU MPI Barrier Latency Test v5.3
# Avg Latency(us)
           165.70
"""
# A README of AMPI results.
ALLTOALLV_5_6 = """/global/scratch/ws/install/ompi/bin/mpirun

# OSU MPI All-to-Allv Personalized Exchange Latency Test v5.6.3
# Size       Avg Latency(us)
1                     159.35
2                     118.59
4                     137.19
"""
# A collection of results of OMB 5.6.3 with Open MPI 1.10.7.
NON_BLOCKING_5_6 = """# OSU MPI Non-blocking All-to-Allv Personalized Exchange Latency Test v5.6.3
# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait

# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
1                      10.54              5.85              4.89              4.31
"""
# Pasted into a README: the comment signs are missing.
BCAST_5_9 = """OSU MPI Broadcast Latency Test v5.9
  Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1                       7.61              6.38              8.84        1000
1048576               179.68            175.04            184.31        1000
"""
BCAST_7_0 = """# OSU MPI Broadcast Latency Test v7.0
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1                      86.56             21.32            126.27        1000
2                      87.98             21.39            128.87        1000
"""
# In 7.1 to 7.3, the datatype of two ranks' tables is below the column names.
LATENCY_7_2 = """[node1:22411] Rank 0 bound to package[0][core:0]
2024-06-07 12:00:00 a line of the batch system

# OSU MPI Latency Test v7.2
# Size          Latency (us)
# Datatype: MPI_CHAR.
1                       2.46
2                       3.31
"""
LATENCY_7_5 = """
    # OSU MPI Latency Test v7.5
    # Datatype: MPI_CHAR.
    # Size       Avg Latency(us)        Validation
    1                       3.00              Pass
    2                       2.99              Fail
"""
BANDWIDTH_7_4 = """# OSU MPI Bandwidth Test v7.4
# Datatype: MPI_CHAR.
# Size      Bandwidth (MB/s)
1                      10.25
2                      20.01
"""
MESSAGE_RATE_7_4 = """# OSU MPI Multiple Bandwidth / Message Rate Test v7.4
# [ pairs: 1 ] [ window size: 64 ]
# Datatype: MPI_CHAR.
# Size                  MB/s        Messages/s
1                       2.36        2356892.44
4194304             26903.29           6414.24
"""
CUDA_7_5 = """# OSU MPI-CUDA Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)
1                       2.48
"""
TAIL = """# OSU MPI Latency Test v7.5
# Datatype: MPI_CHAR.
# Size       Avg Latency(us)  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)
1                       1.10              1.00              1.20              1.90
"""


@pytest.mark.parametrize(
    "text, benchmark, version, datatype, fields, last",
    [
        (BARRIER_5_3, "osu_barrier", "5.3", "", ("avg_us",), (165.70,)),
        (ALLTOALLV_5_6, "osu_alltoallv", "5.6.3", "", ("size", "avg_us"), (4, 137.19)),
        (
            NON_BLOCKING_5_6,
            "Non-blocking All-to-Allv Personalized Exchange Latency",
            "5.6.3",
            "",
            ("size", "overall_us", "compute_us", "pure_comm_us", "overlap"),
            (1, 10.54, 5.85, 4.89, 4.31),
        ),
        (
            BCAST_5_9,
            "osu_bcast",
            "5.9",
            "",
            ("size", "avg_us", "min_us", "max_us", "iterations"),
            (1048576, 179.68, 175.04, 184.31, 1000),
        ),
        (
            BCAST_7_0,
            "osu_bcast",
            "7.0",
            "",
            ("size", "avg_us", "min_us", "max_us", "iterations"),
            (2, 87.98, 21.39, 128.87, 1000),
        ),
        (LATENCY_7_2, "osu_latency", "7.2", "MPI_CHAR", ("size", "avg_us"), (2, 3.31)),
        (
            LATENCY_7_5,
            "osu_latency",
            "7.5",
            "MPI_CHAR",
            ("size", "avg_us", "valid"),
            (2, 2.99, False),
        ),
        (BANDWIDTH_7_4, "osu_bw", "7.4", "MPI_CHAR", ("size", "mb_per_s"), (2, 20.01)),
        (
            MESSAGE_RATE_7_4,
            "Multiple Bandwidth / Message Rate",
            "7.4",
            "MPI_CHAR",
            ("size", "mb_per_s", "messages_per_s"),
            (4194304, 26903.29, 6414.24),
        ),
        (CUDA_7_5, "osu_latency", "7.5", "MPI_CHAR", ("size", "avg_us"), (1, 2.48)),
        (
            TAIL,
            "osu_latency",
            "7.5",
            "MPI_CHAR",
            ("size", "avg_us", "p50_us", "p90_us", "p99_us"),
            (1, 1.1, 1.0, 1.2, 1.9),
        ),
    ],
)
def test_tables_of_all_versions_are_read(text, benchmark, version, datatype, fields, last):
    table = parse(text)
    assert (table.benchmark, table.version, table.datatype) == (benchmark, version, datatype)
    assert table.rows.dtype.names == fields
    assert table.rows[-1].item() == last


def test_columns_are_known_by_osus_names_too():
    assert parse(BCAST_7_0).columns == (
        "Size",
        "Avg Latency(us)",
        "Min Latency(us)",
        "Max Latency(us)",
        "Iterations",
    )
    assert parse("# Size Latency (us)\n1 0.5\n").columns == ("Size", "Latency (us)")


def test_sizes_and_iterations_are_whole_numbers():
    rows = parse(BCAST_7_0).rows
    assert rows["size"].dtype == np.int64 and rows["iterations"].dtype == np.int64


def test_whether_all_was_valid_is_told_where_it_was_checked():
    assert parse(LATENCY_7_5).all_valid is False
    assert parse(LATENCY_7_5.replace("Fail", "Pass")).all_valid is True
    assert parse(BCAST_7_0).all_valid is None


def test_the_line_that_says_which_program_ran_is_kept():
    assert parse(BCAST_7_0).program == ""
    assert parse("# program: /opt/omb/osu_bcast\n" + BCAST_7_0).program == "/opt/omb/osu_bcast"


def test_a_table_shows_itself_as_it_was_printed():
    assert repr(parse(BCAST_7_0)) == BCAST_7_0.strip()


def test_words_between_and_after_the_rows_are_passed_over():
    text = BCAST_7_0 + "DATA VALIDATION ERROR: osu_bcast exited with status 1\n\nreal 0m1s\n"
    assert len(parse(text).rows) == 2


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "no line names the columns"),
        ("mpirun: not found\n", "the text begins with 'mpirun: not found'"),
        ("Size of the stack: 8192\n1 2\n", "no line names the columns"),
        (
            BCAST_7_0 + "4                      86.72\n",
            r"line 5: '4 +86\.72' is not a row of the columns Size, .*Iterations \(line 2\)",
        ),
        (
            ALLTOALLV_5_6.replace("118.59", "fast"),
            r"line 6: 'fast' in the column Avg Latency\(us\) is not a number",
        ),
        (
            LATENCY_7_5.replace("Fail", "Maybe"),
            "line 6: 'Maybe' in the column Validation is not Pass, Fail or a number",
        ),
        (BCAST_7_0.replace("1000\n2", "1e3\n2"), "line 3: '1e3' .* is not a whole number"),
        ("\n".join(BCAST_7_0.splitlines()[:2]), "line 2: no row follows the columns"),
        (BCAST_7_0 + BCAST_7_0, "line 5: '# OSU MPI Broadcast .*' starts a second table"),
        (BANDWIDTH_7_4 + "# Datatype: MPI_INT.\n", "line 6: .* starts a second table"),
    ],
)
def test_what_is_no_table_is_refused_by_its_line(text, message):
    with pytest.raises(InputError, match=message):
        parse(text)
