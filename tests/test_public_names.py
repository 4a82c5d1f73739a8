"""What a user of the package sees of it: `mpilab.` and Tab, names that are misspelt."""

import pytest

import mpilab
from mpilab.errors import InputError
from mpilab.notebook import session
from mpilab.util.text import did_you_mean


def test_tab_offers_the_public_names_and_nothing_else():
    assert {"Cluster", "Lab", "run", "sweep", "models", "links"} <= set(dir(mpilab))
    assert not {"importlib", "sys"} & set(dir(mpilab))


@pytest.mark.parametrize("name", dir(mpilab))
def test_what_tab_offers_is_there(name):
    assert getattr(mpilab, name) is not None


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
    with pytest.raises(InputError, match="Run the cell that does"):
        session.library_of("xyz")
    assert did_you_mean("xyz", ["ring"]) == ""


def test_a_lab_shows_its_checks():
    shown = repr(mpilab.Lab("02-allgather"))
    assert 'lab.check("pairwise")  Pairwise exchange' in shown
    assert 'lab.check("cost_model", cost)' in shown
