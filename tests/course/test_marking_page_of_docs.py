"""docs/marking.md shows what the commands print: its examples are run in order."""

import csv
import re
import shlex
from pathlib import Path

from marks_made_up import graded_class

from mpilab.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "marking.md"


def examples():
    """(command, its output according to the page) of every console block, in order."""
    text = PAGE.read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, re.S):
        for example in block.split("$ ")[1:]:
            command, _, printed = example.partition("\n")
            yield command, printed


def pattern(printed):
    """A regular expression for it, where … stands for anything on the line."""
    return ".*".join(re.escape(part) for part in printed.split("…"))


def read_texts(path):
    """What the page tells the reader to do with the CSV: give points for one of the two texts."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["exercise"] == "why":
            row["points"], row["comment"] = "8", "clear"
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_every_example_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    graded_class(tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "mueller")
    Path("times.csv").write_text(
        "student,time\nanna,2026-11-20T23:00\nben,2026-11-22T10:00\ncleo,2026-11-23T12:00\n"
    )
    shown = list(examples())
    assert len(shown) >= 6
    for command, printed in shown:
        program, *arguments = shlex.split(command)
        assert program == "mpilab"
        assert main(arguments) == 0
        assert re.fullmatch(pattern(printed), capsys.readouterr().out), command
        if arguments[:2] == ["marks", "export"]:
            read_texts("manual.csv")
