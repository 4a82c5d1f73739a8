"""What the labs teach shows: on many simulated ranks more than on a laptop's, as the page says."""

import effects

from mpilab.util.text import filled


def test_each_effect_is_as_large_as_the_page_says_and_larger_on_more_ranks(require_tool):
    require_tool("smpirun")
    page = effects.PAGE.read_text(encoding="utf-8")
    assert filled(page, {"effects": effects.table()}) == page, "run tools/effects.py"
    rows = [line.split("|") for line in effects.table().splitlines()[2:]]
    assert {row[1].strip() for row in rows} == {path.stem for path in effects.SOURCES}
    for row in rows:
        few, many = float(row[4]), float(row[6])
        assert many > 1.2 * few and many > 2, row
