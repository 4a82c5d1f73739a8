"""Lab 00, where it differs from the others (test_every_lab.py)."""

import pytest
from lab_notebook import LabNotebook, shown

LAB = LabNotebook("00-first-contact")


@pytest.mark.slow
def test_the_lab_says_where_ranks_run(solved_run):
    cells = {cell.source: shown(cell) for cell in solved_run(LAB).cells if cell.cell_type == "code"}

    def of(words):
        return next(text for source, text in cells.items() if words in source)

    assert "rank 3 of 4: host " in of("-n 4 --hostfile localhost.txt")
    assert "not enough slots" in of("-n 5 --hostfile localhost.txt")
    assert "--map-by node: n1 n2 n3 n4 n1 n2 n3 n4" in of("mapped(")
    assert "my-hosts.txt:3: 'slots=four' is not a number" in of("hosts.parse(")
    assert "deadlock" in of('mpilab.run("barrier_head_to_head"').lower()
    assert "α = " in of("fit_hockney(")
