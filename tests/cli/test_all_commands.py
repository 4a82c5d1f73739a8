"""What all commands of `mpilab` have in common: names of options, JSON, suggestions, defaults."""

import argparse
import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sweeps_made_up
from marks_made_up import LAB, graded_class

from mpilab import cli
from mpilab.cli import common, main
from mpilab.errors import InputError
from mpilab.grading import submission
from mpilab.measure import sweep_table

CLI = Path(cli.__file__).parent


def parsers(parser=None, name="mpilab"):
    """Yield (command, parser) of every command and verb."""
    parser = parser or cli._parser()
    verbs = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    if not verbs:
        yield name, parser
    for one in verbs:
        for word, below in one.choices.items():
            yield from parsers(below, f"{name} {word}")


COMMANDS = dict(parsers())
OPTIONS = [
    (command, action)
    for command, parser in COMMANDS.items()
    for action in parser._actions
    if action.option_strings and action.help != argparse.SUPPRESS
]


def test_help_lists_every_command_in_one_group(capsys):
    top = {command.split()[1] for command in COMMANDS}
    listed = [name for names in cli.GROUPS.values() for name in names]
    assert sorted(listed) == sorted(top)
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert all(f"{group}:\n    " in said for group in cli.GROUPS)


def test_the_same_option_has_the_same_short_form_in_every_command():
    for command, action in OPTIONS:
        for short, long in (("-o", "--out"), ("-n", "--ranks")):
            if {short, long} & set(action.option_strings):
                assert action.option_strings == [short, long], command


@pytest.mark.parametrize("former", ["--output", "--csv", "--file", "--limit"])
def test_no_command_shows_a_former_name(former):
    assert not [command for command, action in OPTIONS if former in action.option_strings]


@pytest.mark.parametrize(
    ("typed", "name", "value"),
    [
        ("report DIR --output x.html", "out", Path("x.html")),
        ("export DIR --to moodle --output x.csv", "out", Path("x.csv")),
        ("similar DIR --output x.html", "out", Path("x.html")),
        ("simulate bcast_chain --csv x.csv", "out", Path("x.csv")),
        ("simulate bcast_mine --file x.c", "source", Path("x.c")),
        ("cannon 1 a b --limit 5", "timeout", 5.0),
    ],
)
def test_a_former_name_still_works_with_a_note(typed, name, value, capsys):
    options = cli._parser().parse_args(typed.split())
    assert getattr(options, name) == value
    assert " is now called --" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("gard", "grade"),
        ("rules shwo x", "show"),
        ("simulate bcast_chain --platfrom x", "--platform"),
        ("run allgather_rign", "allgather_ring"),
        ("run bcats_chain", "bcast"),
        ("costs bcats", "bcast"),
        ("sweep alltogather", "allgather"),
        ("simulate bcast_chian", "bcast_chain"),
        ("simulate bcast_chain --platform fuor-groups", "four-groups"),
        ("simulate bcast_chain --order suffled", "shuffled"),
        ("hostfile four-group", "four-groups"),
        ("hosts up two-group", "two-groups"),
        ("learn two-group", "two-groups"),
        ("rubric show 02-algather", "02-allgather"),
        ("release 02-algather", "02-allgather"),
        ("bench osu_bcats", "osu_bcast"),
        ("reads --readers strded", "strided"),
        ("doctor --for grding", "grading"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(typed, meant, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    try:
        assert main(typed.split()) == 1
    except SystemExit as end:
        assert end.code == 2
    assert f"Did you mean {meant!r}?" in capsys.readouterr().err


def test_a_misspelt_exercise_gets_a_suggestion():
    rubric = importlib.import_module("mpilab.judging.rubric")
    lab = rubric.load(CLI.parents[1] / "grading" / "02-allgather" / "rubric.toml")
    with pytest.raises(InputError, match="Did you mean 'pairwise'"):
        lab.exercise("pariwise")


def test_help_starts_without_heavy_packages():
    heavy = ("numpy", "plotly", "ipyparallel", "papermill")
    script = (
        "import sys, mpilab.cli\n"
        "mpilab.cli._parser().format_help()\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert said.stdout == "[]\n", said.stderr


def late_names():
    """Dotted names of the package that the commands use, longest first."""
    found = set()
    for file in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute):
                text = ast.unparse(node)
                if text.startswith("mpilab.") and all(map(str.isidentifier, text.split("."))):
                    found.add(text)
    return sorted(found)


def test_every_name_that_is_imported_late_is_there():
    for name in late_names():
        value = common.mpilab
        for part in name.split(".")[1:]:
            value = getattr(value, part)


@pytest.mark.parametrize("file", sorted(CLI.glob("*.py")), ids=lambda file: file.name)
def test_commands_import_the_package_at_the_top_or_late(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            inside = [one for one in ast.walk(node) if isinstance(one, ast.Import | ast.ImportFrom)]
            assert not inside, f"{file.name}: {node.name} has an import of its own"


# JSON


def printed(capsys, *words, status=0):
    assert main([*map(str, words), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_json_knows_arrays_named_tuples_paths_and_no_nan():
    row = np.array([(1, 2.5)], [("ranks", int), ("seconds", float)])
    said = {"rows": row, "file": Path("a"), "value": float("nan"), "n": np.int64(3), 4: (True,)}
    assert common.plain_data(said) == {
        "rows": [{"ranks": 1, "seconds": 2.5}],
        "file": "a",
        "value": None,
        "n": 3,
        "4": [True],
    }


def test_a_run_as_json(capsys):
    said = printed(capsys, "run", "allgather_ring", "--ranks", 3)
    assert said["right"] and said["rounds"] == 2 and said["messages"] == 6
    assert said["case"]["ranks"] == 3 and said["seconds"] > 0 and said["diagnosis"] is None


def test_a_file_that_does_not_compile_as_json(capsys, tmp_path):
    (tmp_path / "mine.c").write_text("int x = ;\n")
    said = printed(capsys, "run", "bcast_x", "--source", tmp_path / "mine.c", status=1)
    assert not said["right"] and said["compiler"][0]["headline"]


def test_costs_as_json(capsys):
    said = printed(capsys, "costs", "barrier", "--ranks", "2")
    assert {row["kernel"] for row in said} >= {"barrier_tree", "barrier_dissemination"}
    assert all(row["agrees"] for row in said)


def test_a_summary_of_a_sweep_as_json(capsys, tmp_path):
    truth = sweeps_made_up.models("bcast", ["chain"])
    rows = sweeps_made_up.sweep("bcast", truth, ranks=(2,), sizes=(1, 4))
    path = tmp_path / "bcast.csv"
    path.write_text(sweep_table.HEADER + sweep_table.text_of(rows), encoding="utf-8")
    said = printed(capsys, "sweep", "--summary", path)
    assert [row["bytes"] for row in said] == [1, 4] and said[0]["algorithm"] == "chain"


def test_hosts_that_are_up_as_json(capsys, monkeypatch):
    monkeypatch.setattr("mpilab.hosts.emulated.running", lambda: [])
    assert printed(capsys, "hosts", "list") == []


def test_marks_and_report_as_json(capsys, tmp_path):
    out = graded_class(tmp_path / "out")
    marks = printed(capsys, "marks", "show", out)
    report = printed(capsys, "report", out)
    assert len(marks) == report["students"] > 1
    assert {one["lab"] for one in marks} == {report["lab"]} == {LAB}
    assert not any(one["student"] in json.dumps(report) for one in marks)


# What a command does without options.


def test_a_sweep_without_a_file_goes_to_out_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    asked = {}

    def sweep(collective, **options):
        asked.update(options)
        return np.empty(0, sweep_table.ROW)

    monkeypatch.setattr("mpilab.measure.sweep.sweep", sweep)
    assert main(["sweep", "allgather"]) == 1  # no rows
    assert asked["out"] == Path("out/sweep-allgather.csv")
    assert "out/sweep-allgather.csv" in capsys.readouterr().err


def test_the_lab_of_a_class_is_that_of_its_notebooks(tmp_path):
    for student in ("anna", "ben"):
        (tmp_path / student).mkdir()
        (tmp_path / student / "02-allgather.ipynb").write_text("{}")
    (tmp_path / "ben" / "notes.ipynb").write_text("{}")
    assert submission.only_lab(tmp_path) == "02-allgather"
    (tmp_path / "anna" / "03-rank-mapping.ipynb").write_text("{}")
    with pytest.raises(InputError, match="several labs .*add --lab"):
        submission.only_lab(tmp_path)
    with pytest.raises(InputError, match="no notebook of a lab; add --lab, one of 00-first"):
        submission.only_lab(tmp_path / "ben" / "nothing")


def test_the_former_order_of_leaderboard_is_told(tmp_path, capsys):
    assert main(["leaderboard", "06-tune-and-scale", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert f"write: mpilab leaderboard {tmp_path} --lab 06-tune-and-scale" in said
    assert "gradebook.sqlite" in said
