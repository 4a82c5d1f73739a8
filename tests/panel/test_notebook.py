"""A diagnosis in the notebook."""

import plotly.graph_objects as go
import pytest
from IPython.utils.capture import capture_output
from panel_samples import DEADLOCKED, NASTY

from mpilab.diagnosis.model import COMPILE_ERROR, Diagnosis
from mpilab.notebook import panel
from mpilab.plots import style


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return tmp_path


@pytest.fixture
def shown(monkeypatch):
    """The MIME bundles of what is displayed."""
    bundles = []
    monkeypatch.setattr("IPython.display.display", lambda what, **options: bundles.append(what))
    return bundles


def test_the_panel_is_one_output_with_html_and_text(shown):
    panel.show(DEADLOCKED, title="allgather_ring with 4 ranks")
    (bundle,) = shown
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/plain"].startswith("allgather_ring with 4 ranks\n✗ Deadlock: ")
    assert "allgather_ring with 4 ranks" in bundle["text/html"]


def test_figures_follow_the_panel(shown):
    figure = style.finish(go.Figure(), "A picture.")
    panel.show(DEADLOCKED, [figure])
    assert "text/html" in shown[0]
    assert "application/vnd.plotly.v1+json" in shown[1]


def test_what_does_not_fit_is_kept_whole_in_a_file_that_the_panel_links(shown, folder):
    panel.show(NASTY)
    assert 'href="mpilab-logs/0001-crash.txt"' in shown[0]["text/html"]
    assert shown[0]["text/plain"].endswith("The whole log: mpilab-logs/0001-crash.txt")
    kept = (folder / "mpilab-logs" / "0001-crash.txt").read_text()
    assert "line 0\n" in kept and kept.count("</pre>") == 5001


def test_a_failure_without_a_log_leaves_no_file(shown, folder):
    panel.show(DEADLOCKED)
    assert list(folder.iterdir()) == []


def test_what_the_compiler_said_is_shown_whole_and_needs_no_file(shown, folder):
    said = Diagnosis(COMPILE_ERROR, "line 3: 'x' is not declared", log="cell:3:1: error: 'x' ...")
    panel.show(said)
    assert "What the compiler said" in shown[0]["text/html"]
    assert list(folder.iterdir()) == []


def test_outside_of_a_notebook_the_text_is_printed(capsys):
    with capture_output() as captured:
        panel.show(DEADLOCKED)
    assert "✗ Deadlock" in captured.stdout
