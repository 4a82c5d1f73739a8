"""A class of hostile submissions, and three honest ones, graded for real: none escapes, none gets
undeserved points, no other student is harmed, and nothing is left behind."""

import glob
import os
import re
import secrets
import shutil
import socket
import tempfile
import threading
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from attacks import COURSE, HERE, LAB, POINTS, WHOLE, attacks, hand_in, put, readme, text

from mpilab.grading import grade as execute
from mpilab.grading import referee, sandbox
from mpilab.grading.grade import grade
from mpilab.grading.gradebook import Gradebook
from mpilab.util.kit import ROOT

MIB = 1 << 20
ALL = sum(POINTS.values())
USERS = range(61500, 61510)
HONEST = ("ada", "zoe", "hugo")
CORPUS = attacks()
# Names that the hostile choose, as they are listed.
LISTED = {"takes_anothers_name": "ada…", "formula_as_a_name": "=cmd"}
# So that every bomb soon reaches a limit; each is far more than an honest answer needs.
SMALL = {
    (execute, "LIMITS"): {
        "wall_seconds": 90,
        "memory": 1024 * MIB,
        "disk_bytes": 64 * MIB,
        "shm_bytes": 32 * MIB,
    },
    (referee, "CALL_LIMITS"): {
        "wall_seconds": 20,
        "memory": 256 * MIB,
        "cpu_seconds": 30,
        "disk_bytes": 64 * MIB,
        "shm_bytes": 32 * MIB,
    },
    (referee, "COMPILE_LIMITS"): {"memory": 512 * MIB, "disk_bytes": 64 * MIB},
    (referee, "RUN_LIMITS"): {"memory": 1024 * MIB},
}

pytestmark = [
    *(pytest.mark.slow, pytest.mark.alone, pytest.mark.privileged, pytest.mark.timeout(1800)),
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]


class Graded:
    """The outcome of the class, and the traps that were set."""

    def __init__(self, report, secrets, mark, calls, before):
        self.report, self.secrets, self.mark = report, secrets, mark
        self.calls, self.before = calls, before
        self.verdicts = {verdict.student: verdict for verdict in report.verdicts}

    def of(self, attack):
        if attack.name not in LISTED:
            return self.verdicts[attack.name]
        (name,) = (name for name in self.verdicts if name.startswith(LISTED[attack.name]))
        return self.verdicts[name]

    def pages(self):
        return {
            path.name: path.read_text(encoding="utf-8")
            for path in (self.report.out / "feedback").iterdir()
        }


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    hidden = {
        name: f"canary-{secrets.token_hex(16)}"
        for name in ("RUBRIC", "HOME_SECRET", "BOOK", "OTHER", "VARIABLE")
    }
    mark = f"was-here-{secrets.token_hex(8)}"
    # A separate course: the contents of a rubric are secret.
    course = shutil.copytree(COURSE, folder / "course")
    rubric = course / "grading" / LAB / "rubric.toml"
    put(rubric, rubric.read_bytes().replace(b"@SECRET@", hidden["RUBRIC"].encode()))
    home = Path.home() / f".{mark}"
    put(home, hidden["HOME_SECRET"].encode())
    put(folder / "book.sqlite", hidden["BOOK"].encode())

    handed_in = folder / "class"
    for name in HONEST:
        put(handed_in / name / f"{LAB}.ipynb", text())
    other = handed_in / "hugo" / f"{LAB}.ipynb"
    put(other, text().replace(b"# A short lab", hidden["OTHER"].encode()))
    places = {"RUBRIC": rubric, "HOME_SECRET": home, "BOOK": folder / "book.sqlite", "OTHER": other}
    canaries = {str(path): hidden[name] for name, path in places.items()}

    with socket.create_server(("127.0.0.1", 0)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPILAB_SECRET", hidden["VARIABLE"])
        for (module, name), smaller in SMALL.items():
            patch.setattr(module, name, replace(getattr(module, name), **smaller))
        patch.setattr(execute, "CELL_SECONDS", 15)
        patch.setattr(execute, "NOTEBOOK_RESERVE_S", 4.0)
        patch.setattr(referee, "KERNEL_RESERVE_S", 4.0)
        # Separate users and a separate scratch folder: what is there afterwards comes from these
        # runs.
        patch.setattr(sandbox, "FIRST_USER_ID", USERS.start)
        (folder / "scratch").mkdir()
        patch.setattr(tempfile, "tempdir", str(folder / "scratch"))
        calls = []
        listener = threading.Thread(target=_listen, args=(server, calls))
        listener.start()
        context = {
            "ROOT": ROOT,
            "OUT": folder / "out",
            "MARK": mark,
            "RUBRIC": rubric,
            "OTHER": other,
            "HOME_SECRET": home,
            "HONEST": handed_in / "ada",
            "CANARIES": ":".join(canaries),
            "BOOK": places["BOOK"],
            "PORT": server.getsockname()[1],
        }
        for attack in CORPUS.values():
            hand_in(attack, handed_in, context)
        before = machine()
        try:
            report = grade(handed_in, LAB, folder / "out", root=course, jobs=4, progress=False)
            after = machine()
            kept = {path: Path(path).read_text(encoding="utf-8") for path in canaries}
        finally:
            home.unlink(missing_ok=True)
            server.shutdown(socket.SHUT_RDWR)
            listener.join()
    yield Graded(report, (hidden, canaries, kept), mark, calls, (before, after))


def _listen(server, calls):
    while True:
        try:
            connection, address = server.accept()
        except OSError:
            return
        with closing(connection):
            calls.append(address)


def machine():
    """What submissions may leave: shared files, processes, sockets, control groups, IPC."""
    found = set()
    for pattern in ("/tmp/*", "/dev/shm/*", "/var/tmp/*", "/dev/mqueue/*"):
        for path in glob.glob(pattern):
            with suppress(FileNotFoundError):  # it has just been removed
                found |= {path} if os.lstat(path).st_uid in USERS else set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.stat(f"/proc/{entry}").st_uid in USERS:
                    found.add(f"process {entry}")
            except FileNotFoundError:
                continue
    for family in ("tcp", "tcp6"):
        lines = Path(f"/proc/net/{family}").read_text().splitlines()[1:]
        found |= {
            f"listens: {line.split()[1]}"
            for line in lines
            if line.split()[3] == "0A" and int(line.split()[7]) in USERS
        }
    for kind in ("shm", "msg", "sem"):
        lines = Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]
        found |= {f"{kind} {line.split()[0]}" for line in lines}
    found |= {
        group
        for group in glob.glob("/sys/fs/cgroup/**/mpilab-*", recursive=True)
        if not os.path.exists(f"/proc/{Path(group).name.split('-')[1]}") and os.path.exists(group)
    }
    return found


def _reasons(verdict, exercise):
    if verdict.reason:
        return verdict.reason
    return "\n".join(
        item.reason
        for each in verdict.exercises
        for item in each.items
        if exercise in ("", each.exercise)
    )


def _awarded(verdict, exercise):
    if exercise == WHOLE:
        return verdict.total or 0
    (found,) = (each for each in verdict.exercises if each.exercise == exercise)
    return sum(item.awarded or 0 for item in found.items)


@pytest.mark.parametrize("name", CORPUS)
def test_it_is_contained_and_gets_what_it_deserves(graded, name):
    attack = CORPUS[name]
    verdict = graded.of(attack)
    reasons = _reasons(verdict, attack.exercise)
    assert verdict.status in attack.status, reasons
    assert _awarded(verdict, attack.exercise) == attack.points, reasons
    assert any(words in reasons for words in attack.reason.split(" | ")), reasons


@pytest.mark.parametrize("name", [name for name in CORPUS if CORPUS[name].exercise != WHOLE])
def test_the_right_answer_beside_it_keeps_its_points(graded, name):
    (other,) = {*POINTS} - {CORPUS[name].exercise}
    assert _awarded(graded.of(CORPUS[name]), other) == POINTS[other]


@pytest.mark.parametrize("student", HONEST)
def test_honest_students_get_all_their_points(graded, student):
    verdict = graded.verdicts[student]
    assert (verdict.status, verdict.total) == ("graded", ALL), _reasons(verdict, "")
    assert "checked: [0, 1, 0]" in graded.pages()[f"{student}.html"]


def test_the_table_in_the_readme_is_that_of_the_corpus():
    assert (HERE / "README.md").read_text(encoding="utf-8") == readme(), "run 'make refresh'"


def test_everybody_is_graded_and_has_a_page(graded):
    assert len(graded.verdicts) == len(CORPUS) + len(HONEST) >= 40 + len(HONEST)
    assert {f"{student}.html" for student in graded.verdicts} == {*graded.pages()}
    with Gradebook(graded.report.out / "gradebook.sqlite") as book:
        assert {verdict.student for verdict in book.verdicts(LAB)} == {*graded.verdicts}


def test_no_secret_comes_out(graded):
    hidden, _, _ = graded.secrets
    for path in graded.report.out.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not [name for name, value in hidden.items() if value.encode() in content], path


def test_nothing_outside_was_written_or_changed(graded):
    hidden, canaries, kept = graded.secrets
    for path, value in canaries.items():
        assert value in kept[path] and "was here" not in kept[path], path
    shared = "/ /root /home /etc /usr /usr/bin /opt /var /srv /run /tmp /var/tmp /dev/shm".split()
    for folder in (*shared, ROOT, ROOT / "mpilab", ROOT / "grading", graded.report.out):
        assert not glob.glob(f"{folder}/{graded.mark}*"), folder
    wanted = {"gradebook.sqlite", "grades.csv", "feedback", "differences"}
    assert {path.name for path in graded.report.out.iterdir()} <= wanted


def test_the_machine_is_clean_afterwards(graded):
    before, after = graded.before
    assert after - before == set()
    assert [*(graded.report.out.parent / "scratch").iterdir()] == []
    assert graded.calls == []


def test_a_browser_runs_nothing_of_the_pages(graded, require_tool):
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = require_tool("chromium", "chromium-browser", "google-chrome")
    asked = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("dialog", lambda dialog: asked.append(dialog.message))
        for path in sorted((graded.report.out / "feedback").iterdir()):
            page.goto(path.as_uri())
            assert graded.mark not in page.title() or path.name.startswith("=cmd"), path
            assert page.locator("script").count() == 0, path
            assert page.locator("[onerror], [onload], iframe, object, embed").count() == 0, path
        browser.close()
    assert [url for url in asked if not url.startswith(("file://", "data:image/svg+xml"))] == []


def test_terminals_and_spreadsheets_run_nothing(graded):
    table = graded.report.table
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", table)
    csv = (graded.report.out / "grades.csv").read_text(encoding="utf-8")
    assert not re.search(r'^"?[=+@-]', csv, re.MULTILINE)
    for name, page in graded.pages().items():
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202e]", page), name
