"""No cell of a CSV is run as a formula, in whatever locale a spreadsheet opens the file, and each
is read back as it was. The attacks are those of OWASP's page on CSV injection."""

import csv
import random
import re
from pathlib import Path

import pytest
from csv_attacks import ATTACKS, LOCALES, RUN, first_signs

from mpilab.util.files import bare_cell, csv_text, read_rows, safe_cell


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("separator, quoting", LOCALES)
def test_no_cell_is_run_in_any_locale_and_in_any_column(attack, separator, quoting):
    text = csv_text([["student", "total"], [attack, "12"], ["12", attack], ["a;b", attack]])
    if quoting == csv.QUOTE_NONE:
        text = text.replace("\x00", "")
    assert not {*first_signs(text, separator, quoting)} & {*RUN}


@pytest.mark.parametrize("attack", ATTACKS)
def test_each_cell_begins_safely_and_is_read_back(attack, tmp_path):
    assert safe_cell(attack)[0] not in f"{RUN}\t\r\n"
    assert bare_cell(safe_cell(attack)) == attack
    assert bare_cell(safe_cell(safe_cell(attack))) == safe_cell(attack)
    path = tmp_path / "marks.csv"
    path.write_text(csv_text([["student"], [attack]]), encoding="utf-8", newline="")
    cells = [cell for row in csv.reader(path.open(newline="", encoding="utf-8")) for cell in row]
    assert bare_cell(cells[1]) == attack


def test_any_text_is_read_back():
    choose = random.Random(1)
    signs = [*RUN, *"',;|\" \t\r\n", "a", "1", "é", "\ufeff", "\u3000"]
    for _ in range(20_000):
        text = "".join(choose.choices(signs, k=choose.randrange(8)))
        assert bare_cell(safe_cell(text)) == text, repr(text)


@pytest.mark.parametrize(
    "text", ["anna", "", "van der Berg", "O'Neil", "a - b", "x=1", "02-allgather", "a.b@c.org"]
)
def test_what_is_no_formula_is_left_alone(text):
    assert safe_cell(text) == bare_cell(text) == text


def test_numbers_and_a_platforms_own_cells_stay_as_they_are():
    assert csv_text([["-1.5", -2, "+3", 1e-9]]) == "-1.5,-2,+3,1e-09\n"
    assert csv_text([["=Name"]], guarded=False) == "=Name\n"


def test_a_hostile_text_takes_no_longer_than_another():
    text = "\"' ;" * 500_000
    assert safe_cell(text) == text


def test_a_file_that_a_spreadsheet_has_saved_with_semicolons_is_read(tmp_path):
    path = tmp_path / "marks.csv"
    path.write_bytes("\ufeffstudent;total\r\n'=x;1,5\r\n".encode())
    assert read_rows(path) == [["student", "total"], ["'=x", "1,5"]]


def test_no_other_module_writes_csv():
    package = Path(csv_text.__code__.co_filename).parents[1]
    writers = [
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(
            r"csv\.(writer|DictWriter)\b|import .*\b(writer|DictWriter)\b", path.read_text()
        )
    ]
    assert writers == ["util/files.py"]
