"""What a user of the package sees of it: `mpilab.` and Tab, misspelled names."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

import mpilab
from mpilab.errors import InputError
from mpilab.notebook import session
from mpilab.runners.result import DONE, Result
from mpilab.trace.recording import Recording
from mpilab.util.text import did_you_mean


def test_tab_offers_the_public_names_and_nothing_else():
    assert {"Cluster", "Lab", "run", "sweep", "models", "links"} <= set(dir(mpilab))
    assert not {"importlib", "sys"} & set(dir(mpilab))


@pytest.mark.parametrize("name", dir(mpilab))
def test_what_tab_offers_is_there(name):
    assert getattr(mpilab, name) is not None


def test_tab_in_ipython_offers_the_same():
    shell = InteractiveShell()
    shell.user_ns["mpilab"] = mpilab
    with provisionalcompleter():
        offered = {one.text for one in shell.Completer.completions("mpilab.", 7)}
    assert offered == {name for name in dir(mpilab) if not name.startswith("_")}


def named_in_readme():
    """Dotted names such as mpilab.sweeps.sweep in the README's code."""
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```|`([^`\n]+)`", text, re.DOTALL)
    words = "\n".join(block or word for block, word in code)
    return sorted(set(re.findall(r"\bmpilab(?:\.[A-Za-z_]\w*)+", words)))


def test_the_readme_names_the_main_entrances():
    assert {"mpilab.Cluster", "mpilab.run", "mpilab.sweeps.sweep"} <= set(named_in_readme())


@pytest.mark.parametrize("name", named_in_readme())
def test_what_the_readme_names_is_there(name):
    value = mpilab
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    assert value is not None


def test_a_misspelt_lab_is_answered_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean '02-allgather'"):
        mpilab.Lab("02-algather")


def test_what_students_hold_is_shown_in_a_line():
    case = mpilab.Case("bcast", 4, 7)
    result = Result(case, DONE, function="bcast_chain")
    assert repr(result) == f"Result of bcast_chain with {case.describe()}: done"
    assert repr(Recording([])).startswith("Recording of 0 ranks: 0 MPI calls")
    assert "4" in repr(mpilab.Cluster(4))


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'importlibs'"):
        _ = mpilab.importlibs


@pytest.mark.parametrize(
    "typed, meant",
    [("allgather_rign", "allgather_ring"), ("bcast_openmp", "bcast_openmpi")],
)
def test_a_misspelt_kernel_is_answered_with_the_nearest(typed, meant):
    with pytest.raises(InputError, match=f"Did you mean '{meant}'\\?"):
        session.library_of(typed)


def test_a_kernel_cell_of_the_notebook_is_among_the_nearest(monkeypatch):
    monkeypatch.setitem(session.kernels, "bcast_of_mine", None)
    with pytest.raises(InputError, match="Did you mean 'bcast_of_mine'"):
        session.library_of("bcast_of_min")


def test_where_nothing_is_near_the_remedy_is_to_run_the_cell():
    with pytest.raises(InputError, match="Run the cell that defines it"):
        session.library_of("xyz")
    assert did_you_mean("xyz", ["ring"]) == ""


def test_a_lab_shows_its_checks():
    shown = repr(mpilab.Lab("02-allgather"))
    assert 'lab.check("pairwise")  Pairwise exchange' in shown
    assert 'lab.check("cost_model", cost)' in shown


def test_a_lab_s_notebook_starts_without_what_only_graders_need():
    slow = ["jsonschema", "jupytext", "nbformat", "papermill"]
    code = f"import mpilab.notebook.jupyter, sys; print(sys.modules.keys() & {slow})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
