"""`make class`: the class that it makes, and what it says of a step."""

import class_run

from mpilab.cli import main


def test_the_class_is_a_download_of_moodle_with_the_sample_classs_answers(tmp_path, capsys):
    class_run.moodle_download(tmp_path, 30)
    made, sheet = tmp_path / "class", tmp_path / "worksheet.csv"
    words = ["collect", tmp_path / "download.zip", made, "--lab", class_run.LAB, "--roster", sheet]
    assert main(list(map(str, words))) == 0
    said = capsys.readouterr()
    assert "29 submissions of 02-allgather from moodle" in said.out and said.err == ""
    assert "1 handed in nothing: " in said.out
    sample = {path.read_bytes() for path in class_run.SAMPLE_CLASS.glob("*/*.ipynb")}
    assert {path.read_bytes() for path in made.glob("*/*.ipynb")} == sample


def test_a_step_tells_what_the_command_took(tmp_path):
    step = class_run.run("rubric show 02-allgather", tmp_path)
    assert "pairwise" in (tmp_path / "log.txt").read_text()
    # An interpreter with numpy, and never all the memory of the machine.
    assert 20 * class_run.MIB < step.largest < 1000 * class_run.MIB
    assert step.processor > 0 and step.wall > 0
    table = class_run.table(4, [step, step]).splitlines()
    assert table[2].startswith("| `mpilab rubric show 02-allgather` |")
    assert table[4].startswith("| all, for 4 students |")
