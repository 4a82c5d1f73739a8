"""What the points of a free text are given for goes from the rubric to the feedback page and to the
page on which it is graded."""

from html import unescape

import pytest
from marks_made_up import LAB, hand_in

from mpilab.course.manual import MarkingServer
from mpilab.grading.gradebook import Gradebook
from mpilab.grading.referee import Referee
from mpilab.judging import rubric
from mpilab.judging.verdict import SubmissionVerdict
from mpilab.util.kit import ROOT


@pytest.fixture
def texts():
    """The exercises of the lab that people grade."""
    read = rubric.load(ROOT / "grading" / LAB / "rubric.toml")
    return [exercise for exercise in read.exercises if exercise.kind == rubric.TEXT]


def test_the_criteria_of_a_text_are_on_its_pages(texts, tmp_path):
    verdicts = [Referee(None).judge(text, "Because it is.", blank=False) for text in texts]
    hand_in(tmp_path, SubmissionVerdict("anna", LAB, tuple(verdicts), "", "none"))
    page = unescape((tmp_path / "feedback" / "anna.html").read_text(encoding="utf-8"))
    with Gradebook(tmp_path / "gradebook.sqlite") as book:
        server = MarkingServer(book, LAB)
        shown = server.answers()["exercises"]
        server.server_close()
    assert [each["id"] for each in shown] == [text.id for text in texts]
    for text, each in zip(texts, shown, strict=True):
        criteria = [vars(one) for one in text.items[0].criteria]
        assert len(criteria) > 1
        assert each["answers"][0]["items"][0]["criteria"] == criteria
        for one in criteria:
            assert one["text"] in page
