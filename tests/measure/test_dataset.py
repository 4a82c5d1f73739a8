"""Every dataset can be read as its columns say, and the example in its errors is a valid line."""

import csv

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure import against, by_level, crossover, dataset, level_costs, remapping, scale
from mpilab.mpiio import cannon, readers

MODULES = (against, by_level, cannon, crossover, level_costs, readers, scale)
DATASETS = [module.TABLE for module in MODULES] + [
    dataset.ALLGATHER,
    dataset.BCAST,
    dataset.LATENCY,
    cannon.PUBLISHED,
    remapping.MEASURED,
    remapping.PUBLISHED,
    remapping.SIMULATED,
]


@pytest.mark.parametrize("table", DATASETS, ids=lambda table: table.file)
def test_the_example_is_a_row_like_those_of_the_file(table, tmp_path):
    header = table.path.read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "example.csv").write_text(f"{header}\n{table.example}\n", encoding="utf-8")
    (row,) = table.read(tmp_path / "example.csv")
    printed = next(csv.reader([table.example]))
    assert len(row) == len(printed) and str(row[0]) == printed[0]
    assert table.read().dtype == table.row and len(table.read())


def test_what_is_written_is_what_is_read(tmp_path):
    rows = crossover.TABLE.array([("flat", 4, "binomial", 1024, 0, 1.5e-6)])
    crossover.write(rows, tmp_path / "some.csv")
    assert (tmp_path / "some.csv").read_text() == (
        "kind,ranks,algorithm,bytes,segment,seconds\nflat,4,binomial,1024,0,1.500e-06\n"
    )
    assert np.array_equal(crossover.read(tmp_path / "some.csv"), rows)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="none/some.csv: cannot be written: No such file"):
        readers.write(readers.TABLE.array([]), tmp_path / "none" / "some.csv")


@pytest.mark.parametrize("table", [one for one in DATASETS if one.program], ids=lambda t: t.file)
def test_the_program_writes_the_tables_file_unless_told_otherwise(table):
    parser = table.parser()
    assert parser.parse_args([]).file == table.path
    assert str(parser.parse_args(["mine.csv"]).file) == "mine.csv"
    assert parser.prog == f"python -m {table.program}"
