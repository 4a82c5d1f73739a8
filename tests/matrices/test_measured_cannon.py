"""How the file of lab 05 with Cannon's timings is measured again."""

import pytest

from mpilab import measured_cannon
from mpilab.matrices import cannon


@pytest.mark.parametrize("words", [[], ["mine.csv"], ["mine.csv", "2"]])
def test_the_file_and_the_repetitions_may_be_left_out(words, monkeypatch, tmp_path):
    monkeypatch.setattr(measured_cannon, "MEASURED_CSV", "usual.csv")
    monkeypatch.setattr(measured_cannon, "REPETITIONS", 1)
    measure = measured_cannon.measure
    monkeypatch.setattr(
        measured_cannon, "measure", lambda **more: measure((8,), (1,), ((3, "binary"),), **more)
    )
    monkeypatch.chdir(tmp_path)
    measured_cannon.main(words)
    (written,) = tmp_path.iterdir()
    assert written.name == (words[0] if words else "usual.csv")
    rows = measured_cannon.read(written)
    assert len(rows) == (2 if len(words) == 2 else 1) * len(cannon.PHASES)
