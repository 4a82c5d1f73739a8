"""A report shows what the class has not understood, without naming any student."""

import json
import re
import shutil
from dataclasses import replace

import pytest
from accessibility import grave_findings
from class_made_up import LAB, class_in, verdict

from mpilab.cli import main
from mpilab.course.marks import kind_of
from mpilab.judging.verdict import NOT_HANDED_IN
from mpilab.util.kit import ROOT

# A promise: kept once nothing is wider than the window.
FITS = """() => new Promise((done) => {
    const look = () => document.documentElement.scrollWidth <= innerWidth
        ? done() : requestAnimationFrame(look);
    look();
})"""
SCREENSHOTS = ROOT / "out" / "screenshots"
EVIL = "<script>alert('x')</script>"


def deadlock(ranks, chain):
    waits = " waits for ".join(map(str, chain))
    return (
        f"With {ranks} ranks, count {ranks * 7}, datatype int: deadlock: {ranks} ranks wait in a "
        f"cycle, {waits}."
    )


def blamed(student, line):
    """A verdict that blames a line of the student's answer."""
    source = "int f(void)\n{\n    // by ben\n    int x = 1;\n    return recv(x); /* ben */\n}\n"
    whole = verdict(student, ["fail", "pass", "pass"])
    ring, essay = whole.exercises
    failed = replace(
        ring.items[0],
        reason=f"With {line} ranks: {student} waits in line {line}.",
        evidence={"source": {"line": line, "text": ""}},
    )
    ring = replace(ring, items=(failed, ring.items[1]), answer=source)
    return replace(whole, exercises=(ring, essay))


@pytest.fixture
def out(tmp_path):
    return class_in(
        tmp_path / "out",
        verdict("anna", ["pass"] * 3),
        verdict("ben", ["fail", "pass", "pass"], {"any-size": deadlock(3, [0, 2, 1, 0])}),
        verdict(
            "cleo",
            ["fail", "fail", "pass"],
            {"any-size": deadlock(5, [0, 4, 3, 2, 1, 0]), "any-type": f"cleo printed {EVIL}"},
        ),
        verdict("dan", ["pass", "pass", "manual"]),
        verdict("eva", ["ungradable"] * 3, {}, "eva/lab.ipynb: not valid JSON (line 7)"),
        verdict("finn", ["ungradable"] * 3, {}, "finn/lab.ipynb: not valid JSON (line 12)"),
    )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (deadlock(3, [0, 2, 1, 0]), deadlock(5, [0, 4, 3, 2, 1, 0]), True),
        (
            "It does not compile: line 14: unknown 'foo'",
            "It does not compile: line 3: unknown 'b'",
            True,
        ),
        ("ranks 1, 2 and 3 got 0x1f", "ranks 1 and 2 got 7.5e-3", True),
        (
            "Traceback (most recent call last):\n  a\nKeyError: 'x'",
            "Traceback (most recent call last):\n  b\nKeyError: 'yy'",
            True,
        ),
        ("it calls MPI_Allgather", "it calls MPI_Gather", False),
        ("With 3 ranks: deadlock", "With 3 ranks: wrong result", False),
    ],
)
def test_reasons_are_of_one_kind_if_they_differ_in_numbers_and_names_only(one, other, same):
    assert (kind_of(one) == kind_of(other)) is same


def test_the_terminal_lists_the_ungradable_first_and_groups_failures(out, capsys):
    assert main(["report", str(out), "--lab", LAB]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"final: 3\n  awaiting manual grading: 1\n  ungradable: 2\n  mean: 10.0 of 15\n"
        r"  median: 10\n  range: 5 to 15",
        said,
    )
    assert "     2  STUDENT/lab.ipynb: not valid JSON (line 7)" in said
    assert "     2  ring (any-size): With 3 ranks, count 21" in said
    assert f"     1  ring (any-type): STUDENT printed {EVIL}" in said
    assert "ring: any-size  ████████████████████████████████████████ 2" in said
    assert "  ring   1 no points, 1 half or more, 2 all points, 2 open\n" in said
    assert "12 s for all 6" in said
    headings = (
        "could not be judged",
        "\nawaiting manual grading:",
        "totals:",
        "items by",
        "common failures",
    )
    order = [said.index(words) for words in headings]
    assert order == sorted(order)


def test_before_manual_grading_it_shows_subtotals_and_what_waits(tmp_path, capsys):
    out = class_in(
        tmp_path / "out",
        *(verdict(f"student{number}", ["pass", "pass", "manual"]) for number in range(6)),
        *(verdict(f"student{number}", ["pass", "fail", "manual"]) for number in range(6, 10)),
        verdict("blank1", ["fail"] * 3),
        verdict("blank2", ["fail"] * 3),
        verdict("doubt", ["ungradable", "pass", "manual"]),
        verdict("torn", ["ungradable"] * 3, {}, "not valid JSON"),
    )
    page = tmp_path / "report.html"
    assert main(["report", str(out), "--lab", LAB, "-o", str(page)]) == 0
    said = capsys.readouterr().out
    assert "final: 2\n  awaiting manual grading: 10\n  ungradable: 2\n" in said
    assert "  mean of subtotals: 6.7 of 10\n  median of subtotals: 7.5\n" in said
    assert "  range of subtotals: 0 to 10\n" in said
    waits = (
        "5 of 15 points await manual grading (mpilab marks page). Until then, subtotals of the "
        "other 10 are shown, of 12 students, before penalties."
    )
    assert f"    11  essay\n  {waits}\n" in said
    drawn = re.search(r"subtotals, of 10:\n(.*?)\n\n", said, re.DOTALL)[1]
    assert [int(line.split()[-1]) for line in drawn.split("\n")] == [2, *[0] * 4, 4, *[0] * 3, 6]
    assert "mean: 0.0" not in said
    text = page.read_text()
    assert waits in text and "Subtotals before manual grading, of 10 points" in text
    assert main(["report", str(out), "--lab", LAB, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["pending"], len(found["subtotals"]), found["totals"]) == (5, 12, [0, 0])


def test_a_late_text_does_not_hide_the_final_marks(out, capsys):
    main(["report", str(out), "--lab", LAB])
    said = capsys.readouterr().out
    assert (
        "5 of 15 points await manual grading (mpilab marks page). Totals are of the 3 final" in said
    )


def test_an_override_of_an_exercise_counts_in_the_subtotals(tmp_path, capsys):
    out = class_in(
        tmp_path / "out",
        verdict("anna", ["fail", "fail", "manual"]),
        verdict("ben", ["pass", "pass", "manual"]),
    )
    where = ["--lab", LAB, "--student", "anna", "--exercise"]
    points = ["--points", "4", "--reason", "agreed"]
    assert main(["marks", "override", str(out), *where, "ring", *points]) == 0
    assert main(["report", str(out), "--lab", LAB]) == 0
    said = capsys.readouterr().out
    assert "mean of subtotals: 7.0 of 10" in said and "range of subtotals: 4 to 10" in said


def test_each_item_has_its_reasons_and_each_mistake_an_example_without_a_name(tmp_path, capsys):
    made = [blamed("ben", 5), blamed("cleo", 4)]
    other = verdict("dan", ["fail", "fail", "pass"], {"any-size": "It is blank."})
    out = class_in(tmp_path / "out", *made, other, verdict("eva", ["pass"] * 3))
    page = tmp_path / "report.html"
    main(["report", str(out), "-o", str(page)])
    said = capsys.readouterr().out
    assert (
        "  ring: any-size works\n"
        "     2  With 5 ranks: STUDENT waits in line 5.\n"
        "     1  It is blank.\n" in said
    )
    text = re.search(r'(?s)<section class="card exercise".*?</section>', page.read_text())[0]
    assert "Ring: what went wrong" in text and "<td>3 of 4</td>" in text
    assert "<p>2 ×: With 5 ranks: STUDENT waits in line 5.</p>" in text
    shown = re.search(r"(?s)<pre>(.*?)</pre>", text)[1]
    excerpt = [line.rstrip() for line in shown.splitlines()]
    assert excerpt == [
        "   2  {",
        "   3",
        "   4      int x = 1;",
        "<mark>   5      return recv(x);</mark>",
        "   6  }",
        "   7",
    ]
    main(["report", str(out), "--json"])
    lost = json.loads(capsys.readouterr().out)["lost"]
    assert lost[0]["reasons"][0] == [2, "With 5 ranks: STUDENT waits in line 5."]
    assert lost[1]["reasons"] == []


def test_thousands_of_open_comments_in_an_answer_hold_nobody_up(tmp_path, capsys):
    """Each once had its end looked for up to the end of the answer, which took minutes."""
    whole = blamed("ben", 2)
    ring, essay = whole.exercises
    ring = replace(ring, answer=f'char *text =\n    unknown\n    "{"/* " * 100_000}";\n')
    out = class_in(tmp_path / "out", replace(whole, exercises=(ring, essay)))
    page = tmp_path / "report.html"
    assert main(["report", str(out), "-o", str(page)]) == 0
    assert "<mark>   2      unknown</mark>" in page.read_text()


def test_the_reasons_of_an_item_add_up_to_the_students_who_lost_it(tmp_path, capsys):
    kinds = ("It hangs.", "It crashes.", "It is blank.", "It leaks.", "It aborts.")
    out = class_in(
        tmp_path / "out",
        *(
            verdict(f"student{at}", ["fail", "pass", "manual"], {"any-size": reason})
            for at, reason in enumerate(kinds)
        ),
    )
    where = ["--lab", LAB, "--exercise", "essay", "--item", "text", "--reason", "short"]
    for at in range(5):
        student = ["--student", f"student{at}", "--points", "4" if at else "5"]
        assert main(["marks", "override", str(out), *where, *student]) == 0
    capsys.readouterr()
    page = tmp_path / "report.html"
    assert main(["report", str(out), "-o", str(page)]) == 0
    said, text = capsys.readouterr().out, page.read_text()
    assert "     1  It is blank.\n     2  Other reasons.\n" in said
    assert "  essay: text works\n     4  Points were taken off manually.\n" in said
    assert "<p>2 ×: Other reasons.</p>" in text and "<p>4 ×: Points were taken off" in text


def test_names_are_nowhere_unless_asked_for(out, tmp_path, capsys):
    page = tmp_path / "report.html"
    main(["report", str(out), "--lab", LAB, "-o", str(page)])
    both = capsys.readouterr().out.replace(str(tmp_path), "") + _words(page)
    assert not re.search("anna|ben|cleo|eva|finn|(?<!s)dan", both)
    main(["report", str(out), "--lab", LAB, "-o", str(page), "--names"])
    for text in (capsys.readouterr().out, _words(page)):
        assert "eva, finn" in text and "ben, cleo" in text


def test_a_page_stands_alone_and_runs_no_script_of_a_student(out, tmp_path):
    page = tmp_path / "report.html"
    main(["report", str(out), "--lab", LAB, "-o", str(page), "--names"])
    text = page.read_text()
    assert EVIL not in text and "&lt;script&gt;alert(&#39;x&#39;)" in text
    assert not re.findall(
        r'(?:src|href)="(?!#|data:)', re.sub(r"(?s)<script.*?</script>", "", text)
    )
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert "default-src &#39;none&#39;" in policy and "unsafe-inline" not in policy.split(";")[1]
    assert text.count("<summary>Figure as text</summary>") == 3
    assert "ring, any-size works: 2 of 4" in text


@pytest.mark.browser
def test_the_figures_are_drawn_under_the_pages_own_policy(out, tmp_path, require_tool):
    from playwright.sync_api import sync_playwright

    page = tmp_path / "report.html"
    class_in(out, blamed("gus", 5), verdict("zoe", ["ungradable"] * 3, {}, NOT_HANDED_IN))
    main(["report", str(out), "--lab", LAB, "-o", str(page), "--names"])
    said = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=require_tool("chromium", "chromium-browser", "google-chrome"),
            args=["--no-sandbox"],
        )
        tab = browser.new_page()
        tab.on("console", lambda message: said.append(message.text))
        tab.on("dialog", lambda dialog: said.append("a dialog"))
        tab.goto(page.as_uri())
        tab.locator("svg.main-svg .bars .point").first.wait_for(state="attached")
        bars = tab.locator(".js-plotly-plot").count()
        findings = grave_findings(tab)
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        tab.screenshot(path=SCREENSHOTS / "report.png", full_page=True)
        tab.set_viewport_size({"width": 390, "height": 844})
        # plotly draws anew when the window has changed.
        tab.evaluate(FITS)
        tab.screenshot(path=SCREENSHOTS / "report-phone.png", full_page=True)
        browser.close()
    assert (bars, said, findings) == (3, [], [])


def test_a_lab_that_nobody_was_graded_in_is_named(out, capsys):
    assert main(["report", str(out), "--lab", "99-none"]) == 1
    assert "no verdict on lab '99-none'" in capsys.readouterr().err
    shutil.rmtree(out)
    assert main(["report", str(out), "--lab", LAB]) == 1
    assert "holds no gradebook.sqlite" in capsys.readouterr().err


def _words(page):
    """The text of a page, without its scripts, their hashes (any letters), and its style."""
    rest = r"(?s)<script.*?</script>|<style.*?</style>|<meta[^>]*Policy[^>]*>"
    return re.sub(rest, "", page.read_text())
