"""The sample class is generated, never edited: the committed notebooks equal the tool's output."""

from pathlib import Path

from sample_class import sample_class

CLASS = Path(__file__).resolve().parents[2] / "grading" / "sample-class"


def test_the_committed_sample_class_is_what_the_tool_makes():
    lab, notebooks = sample_class()
    committed = {
        path.parent.name: path.read_text(encoding="utf-8") for path in CLASS.glob(f"*/{lab}.ipynb")
    }
    assert committed == notebooks, "run 'make refresh'"
