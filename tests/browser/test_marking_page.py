"""Free text is shown side by side and marked by keyboard, in a real browser, and only there."""

import http.client
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from accessibility import grave_findings
from browsing import ROOT, SCREENSHOTS
from marks_made_up import LAB, TEXTS, graded_class, hand_in, verdict

from mpilab.grading.gradebook import Gradebook, effective

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

# Waits in the page: its policy forbids page.wait_for_function, which evaluates text in the page.
COMMENTED = """async (text) => {
    while (![...known.values()].some((item) => item.comment === text))
        await new Promise(requestAnimationFrame);
}"""


@pytest.fixture
def served(tmp_path):
    """(folder of a made-up class, address of its page, the process that serves it)."""
    out = graded_class(tmp_path / "out")
    command = [sys.executable, "-m", "mpilab", "marks", "page", str(out), "--lab", LAB]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield out, server.stdout.readline().split()[1], server
    finally:
        if server.poll() is None:
            server.kill()
        server.communicate()


def press_with_alt(place, key, code):
    """Press the key at the place `code`, which types `key` together with Alt."""
    place.dispatch_event("keydown", {"key": key, "code": code, "altKey": True})


def why(out):
    """{student: (points, comment)} for the first text, as they count."""
    with Gradebook(out / "gradebook.sqlite") as book:
        items = {each.student: each.exercises[1].items[0] for each in effective(book, LAB)}
    return {student: (item.awarded, item.comment) for student, item in items.items()}


def test_points_and_comments_are_given_by_keyboard_and_saved_at_once(page, served):
    from playwright.sync_api import expect

    out, address, server = served
    trouble = []
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("console", lambda message: trouble.append(message.text))
    page.goto(address)
    cards = page.get_by_role("article")
    expect(cards).to_have_count(3)
    for student, text in TEXTS.items():
        expect(page.get_by_role("article", name=student).locator(".text")).to_have_text(text)
    assert page.locator("article script, article a").count() == 0
    criteria = page.get_by_role("list", name="Points are given for")
    expect(criteria.get_by_role("listitem")).to_have_text(
        ["the bytes of the busiest link: 5", "the number of rounds: 3"]
    )

    page.keyboard.type("6,5")
    page.keyboard.press("Enter")
    expect(page.locator("#said")).to_have_text("anna: 6.5 of 8 points saved.")
    expect(cards.nth(1).locator("input")).to_be_focused()
    assert why(out)["anna"] == (6.5, "")
    page.keyboard.type("9")
    page.keyboard.press("Enter")
    expect(cards.nth(1).locator(".state")).to_have_text("9: write a number from 0 to 8.")
    page.keyboard.press("Backspace")
    page.keyboard.type("0")
    page.keyboard.press("Tab")
    page.keyboard.type("See <slide> 12.")
    page.keyboard.press("Control+Enter")
    expect(cards.nth(2).locator("input")).to_be_focused()
    expect(cards.nth(1).locator(".state.saved")).to_have_text("Saved.")
    assert why(out) == {"anna": (6.5, ""), "ben": (0.0, "See <slide> 12."), "cleo": (None, "")}
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "marking.png")

    page.keyboard.type("4")
    page.keyboard.press("Alt+ArrowRight")
    table = page.get_by_role("button", name="What the table says (3)")
    expect(table).to_have_attribute("aria-current", "true")
    expect(criteria).to_have_count(0)
    expect(page.get_by_role("button", name="Why the ring wins (0)")).to_have_count(1)
    assert why(out)["cleo"] == (4.0, "")

    server.send_signal(signal.SIGINT)
    assert server.wait(120) == 0
    said = server.stdout.read()
    assert "\n3 marks saved\n" in said and "3 of 3 submissions still await manual grading" in said
    assert re.search(r"^anna,02-allgather,10,6.5,,16.5,", (out / "grades.csv").read_text(), re.M)
    page.goto((out / "feedback" / "ben.html").as_uri())
    assert grave_findings(page) == []
    row = page.get_by_role("row", name="Explanation").first
    expect(row).to_contain_text("✎ graded manually")
    expect(row).to_contain_text("See <slide> 12.")
    page.screenshot(path=SCREENSHOTS / "feedback-marked.png", full_page=True)
    assert trouble == []


def test_a_text_that_is_handed_in_meanwhile_gets_no_points_of_the_one_that_was_read(page, served):
    from playwright.sync_api import expect

    out, address, _ = served
    page.goto(address)
    expect(page.get_by_role("article")).to_have_count(3)
    hand_in(out, verdict("anna", "Another text."))
    page.keyboard.type("8")
    page.keyboard.press("Enter")
    state = page.get_by_role("article", name="anna").locator(".state")
    expect(state).to_have_text(re.compile("Not saved: .*text has changed.*reload it"))
    assert why(out)["anna"] == (None, "")


def test_only_this_page_may_read_and_give_points(served):
    out, address, _ = served
    where = urlsplit(address)
    about = json.loads(asked(where, "GET", "answers")[1])["exercises"][0]["answers"][0]["about"]
    body = json.dumps(
        {
            "student": "anna",
            "exercise": "why",
            "item": "text",
            "points": 8,
            "comment": "",
            "about": about,
        }
    )
    own = {"Origin": f"http://{where.netloc}", "Content-Type": "application/json"}

    assert asked(where, "GET", "../wrong-token/answers")[0] == 404
    assert asked(where, "GET", "answers", Host="evil.example")[0] == 404
    for header in ({"Origin": "http://evil.example"}, {"Content-Type": "text/plain"}):
        assert asked(where, "POST", "points", body, **{**own, **header})[0] == 403
    assert asked(where, "POST", "points", "{", **own)[0] == 409
    assert asked(where, "POST", "points", body.replace("8", "true", 1), **own)[0] == 409
    assert asked(where, "POST", "points", " " * 200_000, **own)[0] == 413
    assert why(out)["anna"] == (None, "")
    status, _, headers = asked(where, "POST", "points", body, **own)
    assert (status, why(out)["anna"]) == (200, (8.0, ""))
    assert "default-src 'none'" in headers["Content-Security-Policy"]


def asked(where, method, path, body=None, **headers):
    """(status, body, headers) of a request to the page's server."""
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=300)
    target = where.path + path if not path.startswith("../") else f"/{path[3:]}"
    connection.request(method, target, body, {"Host": where.netloc, **headers})
    response = connection.getresponse()
    try:
        return response.status, response.read(), response.headers
    finally:
        connection.close()


QUESTION = "crossover"  # a text of lab 02


@pytest.fixture
def of_the_lab(tmp_path):
    """(folder, function that serves it to one more grader): a text of the lab, by two students."""
    out, servers = tmp_path / "out", []
    texts = {
        "anna": "It needs $\\lceil \\log_2 P \\rceil$ rounds, *not* <b>P</b>.\n\n"
        + "And so on.\n\n" * 20,
        "ben": "It is faster.",
    }
    for student, text in texts.items():
        made = verdict(student, text)
        why = replace(made.exercises[1], exercise=QUESTION)
        hand_in(out, replace(made, exercises=(made.exercises[0], why)))

    def serve():
        command = [sys.executable, "-m", "mpilab", "marks", "page", str(out), "--lab", LAB]
        server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        servers.append(server)
        return server.stdout.readline().split()[1]

    try:
        yield out, serve
    finally:
        for server in servers:
            server.kill()
            server.communicate()


def marks(out):
    """{student: (points, comment)} as they count."""
    return why(out)


def test_a_grader_sees_question_model_answer_and_code_and_clicks_criteria(page, of_the_lab):
    from playwright.sync_api import expect

    out, serve = of_the_lab
    trouble = []
    page.on("console", lambda message: trouble.append(message.text))
    page.goto(serve())
    anna, ben = (page.get_by_role("article", name=name) for name in ("anna", "ben"))
    expect(anna.locator(".text math msub")).to_have_count(1)
    expect(anna.locator(".text em")).to_have_text("not")
    expect(anna.locator(".text")).to_contain_text("<b>P</b>")
    # A text that is too long for its box can be focused: the arrow keys scroll it.
    expect(anna.locator(".text")).to_have_attribute("tabindex", "0")
    expect(ben.locator(".text")).to_have_attribute("tabindex", "-1")
    page.keyboard.press("Alt+m")
    expect(page.locator("#question .prose")).to_contain_text("How do the differences")
    expect(page.locator("#model .prose")).to_contain_text("nearly all start-ups")
    expect(page.locator("#question summary")).to_be_in_viewport(ratio=1)

    page.keyboard.press("a")
    expect(anna.locator("input")).to_have_value("5")
    page.keyboard.press("b")
    expect(anna.locator(".state")).to_have_text("Not saved yet.")
    page.keyboard.press("a")
    expect(anna.locator("input")).to_have_value("3")
    page.keyboard.press("Tab")
    page.keyboard.type("rounds only")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#said")).to_have_text("anna: 3 of 8 points saved.")
    expect(page.locator("#bar")).to_have_js_property("value", 1)

    ben.get_by_role("button", name="the bytes of the busiest link: 5").click()
    ben.get_by_label("Points for ben").focus()
    expect(ben.locator(".used button")).to_have_text(["Alt 1 rounds only"])
    page.keyboard.press("Alt+1")
    page.keyboard.press("Control+Enter")
    expect(ben.locator(".state")).to_have_text("Saved.")
    assert marks(out) == {"anna": (3.0, "rounds only"), "ben": (5.0, "rounds only")}

    page.keyboard.press("Alt+z")
    expect(page.locator("#said")).to_have_text("ben: undone, no points.")
    expect(ben.locator("input")).to_have_value("")
    expect(ben.locator("[aria-pressed=true]")).to_have_count(0)
    assert marks(out)["ben"] == (None, "")
    page.keyboard.press("Alt+z")
    expect(page.locator("#undo")).to_be_disabled()
    assert marks(out)["anna"] == (None, "")

    page.keyboard.press("Alt+c")
    code = page.frame_locator("#beside iframe")
    expect(code.get_by_text("int ring; // anna")).to_have_count(1)
    ben.locator("input").focus()
    expect(code.get_by_text("int ring; // ben")).to_have_count(1)
    assert grave_findings(page) == []
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / "marking-code.png")
    page.get_by_label("hide names").check()
    ben_is_second = page.get_by_role("article", name="Answer 2")
    ben_is_second.locator("input").focus()
    expect(page.locator("#beside")).to_be_hidden()
    page.get_by_label("texts as written").check()
    expect(page.get_by_role("article", name="Answer 1").locator(".text")).to_contain_text("\\log_2")
    assert trouble == []


def test_shortcuts_are_those_of_the_keyboard_at_hand(page, of_the_lab):
    """With Option, a Mac types other signs; on a French keyboard, a digit needs Shift."""
    from playwright.sync_api import expect

    _, serve = of_the_lab
    page.goto(serve())
    anna, ben = (page.get_by_role("article", name=name) for name in ("anna", "ben"))
    anna.locator("input").fill("3")
    anna.get_by_label("Comment").fill("rounds only")
    anna.locator("input").press("Enter")
    # The points are saved first, then the comment: the page says the same of both.
    page.evaluate(COMMENTED, "rounds only")
    for key in ("¡", "&"):
        ben.locator("input").focus()
        ben.get_by_label("Comment").fill("")
        press_with_alt(ben.locator("input"), key, "Digit1")
        expect(ben.get_by_label("Comment")).to_have_value("rounds only")
    ben.get_by_label("Comment").fill("")
    opened = page.locator("#question")
    expect(opened).not_to_have_attribute("open", "")
    press_with_alt(ben.locator("input"), "µ", "KeyM")
    expect(opened).to_have_attribute("open", "")
    press_with_alt(ben.locator("input"), "y", "KeyZ")  # of a German keyboard: not Alt+Z
    expect(page.locator("#said")).to_have_text("anna: 3 of 8 points saved.")
    press_with_alt(ben.locator("input"), "z", "KeyY")
    expect(page.locator("#said")).to_have_text("anna: undone, 3 points.")  # and no comment


def test_two_graders_at_once_lose_nothing(browser, of_the_lab):
    from playwright.sync_api import expect

    out, serve = of_the_lab
    first, second = (browser.new_page() for _ in range(2))
    for page in (first, second):
        page.goto(serve())  # each of them has a server of its own
        expect(page.get_by_role("article")).to_have_count(2)
    first.keyboard.type("7")
    first.keyboard.press("Enter")
    expect(first.locator("#said")).to_have_text("anna: 7 of 8 points saved.")
    # The second has read the same text, and does not know.
    anna = second.get_by_role("article", name="anna")
    second.keyboard.type("2")
    second.keyboard.press("Enter")
    expect(anna.locator(".state")).to_contain_text("gave 7 meanwhile; save again to replace that")
    second.keyboard.press("ArrowDown")  # to move on is not to save
    second.keyboard.type("4")
    second.keyboard.press("Enter")
    expect(second.get_by_role("article", name="ben").locator(".state")).to_have_text("Saved.")
    assert marks(out) == {"anna": (7.0, ""), "ben": (4.0, "")}
    # The first gets to know of ben's points by looking at his answer.
    first.evaluate("looked = 0")  # it looks once a second at most
    first.get_by_role("article", name="anna").locator("input").focus()
    ben = first.get_by_role("article", name="ben")
    ben.locator("input").focus()
    expect(ben.locator("input")).to_have_value("4")
    expect(ben.locator(".state")).to_have_text("Given by somebody else meanwhile.")
    # Saved again, the second's points count, and the first's are in the history.
    anna.locator("input").focus()
    second.keyboard.press("Enter")
    expect(second.locator("#said")).to_contain_text("anna: 2 of 8 points saved.")
    assert marks(out) == {"anna": (2.0, ""), "ben": (4.0, "")}
    with Gradebook(out / "gradebook.sqlite") as book:
        assert [each.points for each in book.decisions(LAB)] == [7.0, 4.0, 2.0]
