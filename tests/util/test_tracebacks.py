"""Errors in a notebook: in a real IPython shell, and in a notebook that papermill runs."""

import re

import nbformat
import papermill
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from mpilab.util.faults import PACKAGE

SECRET = "something broke"


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "mpilab" / "logs"


@pytest.fixture
def bare_shell():
    """%load_ext mpilab has not been run."""
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(bare_shell):
    bare_shell.run_line_magic("load_ext", "mpilab")
    return bare_shell


def shown(shell, cell):
    """The output of a failing cell."""
    with capture_output() as captured:
        result = shell.run_cell(cell, store_history=True)
    assert not result.success or captured.stderr or "mpilab:" in captured.stdout
    return re.sub(r"\x1b\[[\d;]*m", "", captured.stdout + captured.stderr)


def in_three_parts(text, logs):
    assert "Traceback" not in text and "File " not in text, text
    assert f"mpilab: unexpected RuntimeError: {SECRET}\n  where:  " in text
    assert "\n  remedy: this is a bug in mpilab" in text
    log, *_ = sorted(logs.iterdir())  # each displayed form of a result may fail
    assert str(log) in text
    assert "Traceback (most recent call last)" in log.read_text() and SECRET in log.read_text()


DOORS = {
    "mpilab.notebook.jupyter.build.build": "%%kernel allgather_x\nint x;",
    "mpilab.notebook.session.library_of": "import mpilab\nmpilab.run('allgather_ring', ranks=1)",
    "mpilab.judging.rubric.load": "import mpilab\nmpilab.Lab('02-allgather')",
    "mpilab.cluster.engines.Cluster.start": "import mpilab\nmpilab.Cluster(2).start()",
    "mpilab.notebook.session.sweep": "import mpilab\nmpilab.sweep('allgather_ring')",
    # When it is shown:
    "mpilab.notebook.lab.Checked._list": "from mpilab.notebook.lab import Checked\nChecked(None)",
}


def failing():
    """A function that fails in one of the kit's files, as any fault of the kit does."""
    namespace = {"SECRET": SECRET}
    code = "def fails(*_, **__):\n    raise RuntimeError(SECRET)"
    exec(compile(code, str(PACKAGE / "session.py"), "exec"), namespace)
    return namespace["fails"]


@pytest.mark.parametrize("door", DOORS)
def test_a_fault_of_the_kit_is_told_in_three_parts(shell, logs, monkeypatch, door):
    monkeypatch.setattr(door, failing())
    in_three_parts(shown(shell, DOORS[door]), logs)


def test_so_it_is_where_nobody_has_loaded_the_extension(bare_shell, logs, monkeypatch):
    monkeypatch.setattr("mpilab.notebook.lab.progress", failing())
    in_three_parts(shown(bare_shell, "import mpilab\nmpilab.progress()"), logs)


def test_an_error_on_purpose_is_its_message_and_the_line_that_led_to_it(shell, logs):
    said = shown(shell, "import mpilab\n\nmpilab.run('allgather_rign', ranks=2)")
    assert said.startswith("InputError: kernel 'allgather_rign': neither a %%kernel cell")
    assert "raised by line 3 of the cell: mpilab.run('allgather_rign', ranks=2)" in said
    assert "session.py" not in said and "Traceback" not in said
    assert not logs.exists()


def test_an_error_of_a_magic_names_the_magic(shell):
    said = shown(shell, "%%kernel two names\nint x;")
    assert said.startswith("InputError: %%kernel 'two names': name the function")
    assert "raised by %%kernel two names" in said


@pytest.mark.parametrize(
    "cell", ["1 / 0", "import mpilab\nmpilab.nothing", "import mpilab\nmpilab.run(rank=3)"]
)
def test_an_error_of_the_students_own_keeps_its_traceback(shell, logs, cell):
    said = shown(shell, cell)
    assert "Traceback (most recent call last)" in said
    assert re.search("ZeroDivisionError|AttributeError|TypeError", said)
    assert not logs.exists()


def test_an_error_in_a_function_that_the_kit_calls_is_shown_without_the_kit(shell):
    cell = (
        "import queue\nfrom mpilab.grading.workers import Workers\n"
        "class Mine:\n    _free = queue.SimpleQueue()\n"
        "Mine._free.put(0)\n"
        "def mine(sandbox):\n    return 1 / sandbox\n"
        "Workers._in_a_sandbox(Mine, mine)"
    )
    said = shown(shell, cell)
    assert "Traceback (most recent call last)" in said and "ZeroDivisionError" in said
    assert "return 1 / sandbox" in said and "workers.py" not in said


def test_papermill_sees_that_the_cell_failed_and_shows_the_short_message(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell("%load_ext mpilab\nimport mpilab"),
            nbformat.v4.new_code_cell("mpilab.run('allgather_rign', ranks=2)"),
            nbformat.v4.new_code_cell("print('never')"),
        ]
    )
    path = tmp_path / "notebook.ipynb"
    nbformat.write(notebook, path)
    with pytest.raises(papermill.PapermillExecutionError) as error:
        papermill.execute_notebook(path, path, kernel_name="python3", progress_bar=False)
    assert error.value.ename == "InputError"
    text = "\n".join(error.value.traceback)
    assert text.startswith("InputError: kernel 'allgather_rign'") and "session.py" not in text
