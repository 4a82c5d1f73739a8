"""Manual marks: lateness, and points for free text, given in a spreadsheet or in a browser."""

import contextlib
import json
import math
import re
import secrets
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from mpilab.course.marks import LISTED
from mpilab.course.prose import html_of
from mpilab.errors import InputError
from mpilab.grading.decisions import (
    LATE,
    POINTS,
    Decision,
    Effective,
    EffectiveExercise,
    EffectiveItem,
    Run,
    about_of,
    manual,
    newest,
)
from mpilab.grading.gradebook import Gradebook, Overtaken, effective, run_of
from mpilab.grading.release import questions, solutions
from mpilab.grading.submission import member_path, open_archive, read_roster, student_name
from mpilab.judging.verdict import MANUAL
from mpilab.util import faults
from mpilab.util.files import bare_cell, csv_text, read_table
from mpilab.util.kit import ROOT
from mpilab.util.text import composed, plain

DAY = 86_400
_UNITS = {"m": 60, "h": 3600, "d": DAY}

COLUMNS = ("student", "exercise", "item", "most", "text", "before", "points", "comment", "text_id")
NEEDED = ("student", "exercise", "item", "points", "comment", "text_id")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Feedback pages, which hold what students wrote, in a frame of the page.
FRAMED_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; sandbox"
)
_FILES = {
    "": ("marking.html", "text/html; charset=utf-8"),
    "marking.js": ("marking.js", "text/javascript; charset=utf-8"),
    "marking.css": ("marking.css", "text/css; charset=utf-8"),
}
MOST_BYTES = 100_000


# Lateness. A decision records the submission time, the rule, and the share of the points deducted,
# so that it can be explained years later, or recomputed with another rule.


@dataclass(frozen=True)
class Rule:
    """The penalty for late submissions.

    due         the deadline, an aware datetime.
    per_day     share of the points (0 to 1) deducted for each day, or part of one, after it.
    most        largest share that is deducted.
    grace       seconds of lateness that cost nothing.
    extensions  {student: additional seconds}.
    """

    due: datetime
    per_day: float
    most: float = 1.0
    grace: int = 0
    extensions: dict[str, int] = field(default_factory=dict)

    def details(self, submitted: datetime, extension: int) -> dict[str, Any]:
        """The details that a Decision records for a submission at the time `submitted`."""
        late = (submitted - self.due).total_seconds() - extension
        days = 0 if late <= self.grace else math.ceil(late / DAY)
        return {
            "submitted": _utc(submitted),
            "due": _utc(self.due),
            "extension": extension,
            "grace": self.grace,
            "per_day": self.per_day,
            "most": self.most,
            "days": days,
            "share": round(min(days * self.per_day, self.most), 9),
        }


def decide(book: Gradebook, lab: str, times: Mapping[str, datetime], rule: Rule) -> list[Decision]:
    """New Decisions on lateness for {student: submission time}; unchanged ones are left out.

    An extension stays in force until another one is granted.
    """
    runs = {run.verdict.student: run for run in book.newest(lab)}
    standing = newest(book.decisions(lab))
    for student in (*times, *rule.extensions):
        if student not in runs:
            raise InputError(
                f"student {student!r}: no verdict on {lab} in {book.path}; check the name, or "
                "grade the submission first"
            )
    decisions = []
    for student, submitted in sorted(times.items()):
        before = standing.get((student, LATE, "", ""))
        granted = before.details.get("extension", 0) if before else 0
        details = rule.details(submitted, rule.extensions.get(student, granted))
        about = about_of(runs[student])
        if before is None or (before.details, before.about) != (details, about):
            decisions.append(
                Decision(lab, student, "", "", LATE, None, words(details), about, details)
            )
    return decisions


def withdraw(book: Gradebook, lab: str, reason: str) -> list[Decision]:
    """Decisions that withdraw all lateness decisions of a lab."""
    standing = newest(book.decisions(lab)).values()
    return [
        Decision(lab, each.student, "", "", LATE, None, reason, each.about)
        for each in standing
        if each.kind == LATE and not each.withdrawn
    ]


def words(details: Mapping[str, Any]) -> str:
    """The decision as a sentence for the student."""
    times = f"Handed in {_local(details['submitted'])}, due {_local(details['due'])}"
    if details["extension"]:
        times += f" with {_length(details['extension'])} more"
    if not details["days"]:
        return f"{times}: on time."
    capped = details["days"] * details["per_day"] > details["most"]
    share, per_day, most = (f"{100 * details[name]:.4g} %" for name in ("share", "per_day", "most"))
    return (
        f"{times}: {details['days']} day{'s' * (details['days'] > 1)} late, {share} of the points "
        f"({per_day} a day{f', at most {most}' * capped})."
    )


def times_of_csv(path: str | Path, lab: str = "") -> dict[str, datetime]:
    """{student: time} of a CSV with the columns student and time; InputError with file:line.

    Students without a time (not submitted, or unknown when) are left out, and so are the rows of
    other labs if there is a column `lab`.
    """
    columns, rows = read_table(path)
    if not {"student", "time"} <= set(columns):
        raise InputError(
            f"{path}:1: no columns student and time; write 'student,time', "
            "then e.g. 'anna,2026-11-20T22:10'"
        )
    times = {}
    for line, row in rows:
        if lab and row.get("lab", "") not in ("", lab):
            continue
        where = f"{path}:{line}"
        student = composed(bare_cell(row["student"].strip()))
        if student in times:
            raise InputError(f"{where}: {student} is on two lines; keep the last time")
        time = row["time"].strip()
        times[student] = moment(time, where) if time else None
    return {student: time for student, time in times.items() if time}


def contradictions(verdicts: Iterable[Effective], path: str | Path, lab: str) -> list[str]:
    """A line for each student whom the platform calls late, and the rule does not, or the reverse.

    The platform's word is in the column `late` of the CSV `path`, if it has one.
    """
    words = {name: row.get("late", "") for name, row in read_roster(path, lab).items()}
    lines = []
    for each in verdicts:
        word = words.get(each.student, "")
        if each.late is None or word not in ("yes", "no"):
            continue
        if (word == "yes") != bool(each.late.details["days"]):
            ours = "not late" if word == "yes" else "late"
            theirs = "late" if word == "yes" else "not late"
            lines.append(
                f"{each.student}: {ours} by this rule, {theirs} according to the platform; compare "
                f"deadlines, extensions, and the time in {path}"
            )
    return [*lines[:LISTED], *[f"and {len(lines) - LISTED} more"] * (len(lines) > LISTED)]


def times_of_files(path: str | Path, lab: str) -> dict[str, datetime]:
    """{student: time when the file was last changed} of the submissions below `path`.

    Copying files may change their times. A zip stores them with a resolution of two seconds, in the
    local time of the machine that created it; a submission without one is left out.
    """
    path, times = Path(path), {}

    def found(name: str, time: datetime) -> None:
        # find_submissions already reports an invalid name as ungradable.
        with contextlib.suppress(InputError):
            times[student_name(name)] = time

    if path.is_dir():
        for entry in sorted(path.iterdir()):
            file = entry / f"{lab}.ipynb" if entry.is_dir() else entry
            name = entry.name if entry.is_dir() else entry.stem
            if not name.startswith(".") and file.is_file() and file.suffix in (".ipynb", ".zip"):
                changed = datetime.fromtimestamp(file.lstat().st_mtime, UTC)
                found(name, changed.replace(microsecond=0))
    elif zipfile.is_zipfile(path):
        with open(path, "rb") as opened, open_archive(opened, path, of_class=True) as archive:
            for member in archive.infolist():
                parts = member_path(member).parts
                if len(parts) > 1 and parts[-1] == f"{lab}.ipynb":
                    # Some programs write no date, which reads as 1980-00-00.
                    with contextlib.suppress(ValueError):
                        found(parts[-2], datetime(*member.date_time).astimezone())
    if not times:
        raise InputError(
            f"{path}: no submission of {lab} that has a time; name the graded submissions, or give "
            "--times"
        )
    return times


def moment(text: str, where: str) -> datetime:
    """An ISO 8601 time as an aware datetime; local time if it names no zone."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise InputError(
            f"{where}: {text!r} is not a time; write e.g. 2026-11-20T23:59, or "
            "2026-11-20T23:59+01:00"
        ) from None


def share(text: str, where: str) -> float:
    """'10%' or '0.1' -> 0.1; InputError outside of 0 to 100 %."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{where} {text!r}: not a share of the points; write e.g. 10%")
    return round(value, 9)


def length(text: str, where: str) -> int:
    """'15m', '2h', '3d' or '0' -> seconds."""
    match = re.fullmatch(r"(\d+)\s*([mhd])", text.strip())
    if not match and text.strip() != "0":
        raise InputError(f"{where} {text!r}: not a duration; write e.g. 15m, 2h or 3d")
    return int(match[1]) * _UNITS[match[2]] if match else 0


def _length(seconds: int) -> str:
    unit = next(unit for unit in ("d", "h", "m") if seconds % _UNITS[unit] == 0)
    name = {"d": "day", "h": "hour", "m": "minute"}[unit]
    count = seconds // _UNITS[unit]
    return f"{count} {name}{'s' * (count != 1)}"


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")


def _local(text: str) -> str:
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")


# Points for free text in a spreadsheet: `export` writes a CSV, `read` reads it back with points. A
# row identifies its text (text_id), so that points cannot be given to an unread text.


def export(book: Gradebook, lab: str, path: str | Path, everything: bool = False) -> int:
    """Write a row for each item to be graded manually, by exercise, then by student; their number.

    everything   also write the items that have points, for review.
    """
    runs = {run.verdict.student: run for run in book.newest(lab)}
    rows: list[Iterable[str]] = [COLUMNS]
    for where, each, exercise, item in readable(effective(book, lab)):
        if item.awarded is not None and not everything:
            continue
        given = item.decision
        before = "" if item.proposal is None else f"{item.proposal:g} for an earlier text"
        row = [
            each.student,
            *where,
            f"{item.points:g}",
            plain(exercise.answer or ""),
            before,
            f"{given.points:g}" if given else "",
            given.reason if given else "",
        ]
        about = about_of(runs[each.student], exercise)[:16]
        rows.append([*row, about])
    # The byte order mark tells spreadsheets that the file is UTF-8.
    text = csv_text(rows, line_end="\r\n")
    Path(path).write_text(text, encoding="utf-8-sig", newline="")
    return len(rows) - 1


# (exercise, item) and the marks of one student on it.
Readable = tuple[tuple[str, str], Effective, EffectiveExercise, EffectiveItem]


def readable(verdicts: Iterable[Effective]) -> list[Readable]:
    """The items that are graded manually, by exercise, except those that an override decides.

    A list of ((exercise, item), Effective, EffectiveExercise, EffectiveItem).
    """
    found: dict[tuple[str, str], list[Readable]] = {}
    for each in verdicts:
        for exercise in each.exercises:
            for item in exercise.items:
                hand = exercise.decision or item.decision
                if item.outcome == MANUAL and (hand is None or hand.kind == POINTS):
                    where = (exercise.exercise, item.item)
                    found.setdefault(where, []).append((where, each, exercise, item))
    return [row for rows in found.values() for row in rows]


def read(book: Gradebook, lab: str, path: str | Path) -> list[Decision]:
    """The Decisions in a CSV that `export` wrote and an instructor filled in.

    Rows without points, and those that change nothing, are left out. Raises InputError with
    file:line of every wrong row; then nothing of the file may be used.
    """
    path = Path(path)
    runs = {run.verdict.student: run for run in book.newest(lab)}
    waiting = {
        (each.student, *where): item for where, each, _, item in readable(effective(book, lab))
    }
    decisions, wrong = [], []
    seen: dict[tuple[str, ...], int] = {}
    for line, row in _rows(path):
        try:
            if not row["points"].strip():
                if row["comment"].strip():
                    raise InputError("a comment without points; fill in points too")
                continue
            decision = _decision(row, runs)
            if (first := seen.setdefault(decision.on, line)) != line:
                raise InputError(f"the same item as in line {first}; keep one of them")
            item = waiting.get((decision.student, decision.exercise, decision.item))
            if item is None:
                raise InputError("it has an override; withdraw that first")
            now = item.decision
            if now is None or (now.points, now.reason) != (decision.points, decision.reason):
                decisions.append(decision)
        except InputError as error:
            wrong.append(f"{path}:{line}: {error}")
    if wrong:
        more = f"\n… and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        raise InputError("nothing was imported:\n" + "\n".join(wrong[:20]) + more)
    return decisions


def _decision(row: Mapping[str, str], runs: Mapping[str, Run]) -> Decision:
    student = composed(bare_cell(row["student"]))
    if student not in runs:
        raise InputError(f"student {row['student']!r}: not in the gradebook; do not change names")
    run = runs[student]
    number = row["points"].strip()
    if not re.fullmatch(r"\d+([.,]\d+)?", number):
        raise InputError(f"points {number!r}: not a number; write e.g. 7 or 7.5")
    points, comment = float(number.replace(",", ".")), bare_cell(row["comment"])
    decision = manual(run, row["exercise"], row["item"], points, comment)
    if row["text_id"].strip() != decision.about[:16]:
        raise InputError("the text has changed since the export; export again, and reread it")
    return decision


def _rows(path: Path) -> list[tuple[int, dict[str, str]]]:
    """(line, {column: text}) of each row; `line` is where it begins."""
    columns, rows = read_table(path)
    if missing := [name for name in NEEDED if name not in columns]:
        raise InputError(
            f"{path}:1: no column {', '.join(missing)}; keep the first line as exported: "
            f"{','.join(COLUMNS)}"
        )
    return rows


# A local web page for reading free text side by side and giving points with the keyboard.
#
# It is served on 127.0.0.1 only, below a secret path; requests with another host name or from
# another page are rejected. Students' texts are sent as JSON and displayed as plain text.


class MarkingServer(ThreadingHTTPServer):
    """Serves the page for one lab of an open Gradebook at `url`.

    `marked` holds (student, exercise, item) of each item that has got points here, and still has
    them. Use serve_forever and server_close.
    """

    daemon_threads = True

    def __init__(self, book: Gradebook, lab: str, port: int = 0) -> None:
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise InputError(f"port {port}: {error.strerror}; name another port, or none") from None
        self.book, self.lab = book, lab
        self.marked: set[tuple[str, str, str]] = set()
        self.token = secrets.token_urlsafe(24)
        self.url = f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Report an error outside a response; ignore broken connections.

        The terminal in which the server runs is for its own messages.
        """
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            print(f"mpilab: {faults.report(error, 'mpilab marks page')}", file=sys.stderr)

    def answers(self) -> dict[str, Any]:
        """All texts to read: {"lab", "exercises": [{"id", "title", "answers": […]}]}.

        An exercise has its "question" and "model" answer as HTML, '' if this kit does not have the
        lab. An item of an answer has its "criteria", [{"points", "text"}], as the rubric had them,
        and the "token" of the newest decision on it.
        """
        runs = {run.verdict.student: run for run in self.book.newest(self.lab)}
        tokens = {on: each.token for on, each in newest(self.book.decisions(self.lab)).items()}
        asked, model = _asked(self.lab)
        exercises: dict[str, dict[str, Any]] = {}
        for _, each, exercise, item in readable(effective(self.book, self.lab)):
            name, text = exercise.exercise, plain(exercise.answer or "")
            shown = exercises.setdefault(
                name,
                {
                    "id": name,
                    "title": exercise.title,
                    "question": html_of(asked.get(name, "")),
                    "model": html_of(model.get(name, "")),
                    "answers": {},
                },
            )["answers"].setdefault(
                each.student,
                {
                    "student": each.student,
                    "text": text,
                    "html": html_of(text),
                    "known": exercise.answer is not None,
                    "about": about_of(runs[each.student], exercise),
                    "items": [],
                },
            )
            shown["items"].append(
                {
                    "id": item.item,
                    "title": item.title,
                    "most": item.points,
                    "criteria": item.evidence.get("criteria", []),
                    "token": tokens.get((each.student, POINTS, name, item.item), ""),
                    "points": item.decision.points if item.decision else None,
                    "comment": item.comment,
                    "proposal": item.proposal,
                }
            )
        listed = [
            {**each, "answers": list(each["answers"].values())} for each in exercises.values()
        ]
        return {"lab": self.lab, "exercises": listed}

    def given_now(self) -> list[dict[str, Any]]:
        """The newest decision on each item: {"student", "exercise", "item", and as `give`}."""
        return [
            {
                "student": each.student,
                "exercise": each.exercise,
                "item": each.item,
                "about": each.about,
                **_kept(each),
            }
            for each in newest(self.book.decisions(self.lab)).values()
            if each.kind == POINTS
        ]

    def page_of(self, student: str) -> bytes | None:
        """The feedback page of a student, with code and output; None if there is none."""
        runs = {run.verdict.student: run for run in self.book.newest(self.lab)}
        folder = Path(self.book.path).resolve().parent
        if student not in runs:
            return None
        path = (folder / (runs[student].feedback or f"feedback/{student}.html")).resolve()
        return path.read_bytes() if path.is_relative_to(folder) and path.is_file() else None

    def give(self, said: Any) -> dict[str, Any]:
        """Save the points that the page sent, a dict; {"points", "comment", "token"} of the item.

        Its "seen" is the token of the decision that the page knows of. Raises Overtaken if there is
        a newer one, and InputError, for example, if the text has changed since the page was loaded.
        """
        kinds = {"student": str, "exercise": str, "item": str, "about": str, "comment": str}
        if not isinstance(said, dict) or any(
            not isinstance(said.get(name), kind) for name, kind in kinds.items()
        ):
            raise InputError(f"expected {', '.join(kinds)} and points")
        points = said.get("points")
        if points is not None and (
            isinstance(points, bool) or not isinstance(points, (int, float))
        ):
            raise InputError(f"points {points!r}: not a number")
        run = run_of(self.book, self.lab, said["student"])
        decision = manual(run, said["exercise"], said["item"], points, said["comment"])
        if decision.about != said["about"]:
            raise InputError(
                f"{said['student']}: the text has changed since the page was opened; reload it"
            )
        (kept,) = self.book.decide([decision], seen={decision.on: str(said.get("seen", ""))})
        mark = (kept.student, kept.exercise, kept.item)
        (self.marked.discard if kept.withdrawn else self.marked.add)(mark)
        return _kept(kept)


def _kept(decision: Decision) -> dict[str, Any]:
    return {"points": decision.points, "comment": decision.reason, "token": decision.token}


def _asked(lab: str) -> tuple[dict[str, str], dict[str, str]]:
    """({exercise: question}, {exercise: model answer}) of a lab's texts, in Markdown."""
    source = ROOT / "labs" / "source" / f"{lab}.py"
    return (questions(source), solutions(source)) if source.is_file() else ({}, {})


class _Handler(BaseHTTPRequestHandler):
    server: MarkingServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "mpilab", ""
    timeout = 60

    def do_GET(self) -> None:
        self._guarded(self._get)

    def do_POST(self) -> None:
        self._guarded(self._post)

    def _guarded(self, answer: Callable[[], None]) -> None:
        """Handle a request: log an unexpected error and report it to the page in three parts."""
        try:
            answer()
        except (ConnectionError, TimeoutError):
            self.close_connection = True  # the page was closed meanwhile, or has stopped reading
        except Exception as error:
            self.close_connection = True
            told = faults.report(error, f"mpilab marks page, {self.command}")
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, told)

    def _get(self) -> None:
        name = self._name()
        if name in _FILES:
            file, kind = _FILES[name]
            self._send(HTTPStatus.OK, (files("mpilab.course") / file).read_bytes(), kind)
        elif name == "answers":
            self._json(HTTPStatus.OK, self.server.answers())
        elif name == "given":
            self._json(HTTPStatus.OK, self.server.given_now())
        elif name and name.startswith("page/"):
            page = self.server.page_of(unquote(name.removeprefix("page/")))
            if page is None:
                self._refuse(HTTPStatus.NOT_FOUND, "there is no feedback page of this student")
            else:
                self._send(HTTPStatus.OK, page, "text/html; charset=utf-8", FRAMED_POLICY)
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "no such page; use the address that was printed")

    def _post(self) -> None:
        length = self.headers.get("Content-Length", "")
        # The connection cannot be reused unless the body is read.
        self.close_connection = True
        own = f"http://{self.headers.get('Host')}"
        if self._name() != "points":
            self._refuse(HTTPStatus.NOT_FOUND, "no such page; use the address that was printed")
        elif (
            self.headers.get("Origin") != own
            or self.headers.get_content_type() != "application/json"
        ):
            self._refuse(HTTPStatus.FORBIDDEN, "only this page may set points")
        elif not length.isdigit() or int(length) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MOST_BYTES} bytes")
        else:
            try:
                body = self.rfile.read(int(length))
            except TimeoutError:
                self._refuse(
                    HTTPStatus.REQUEST_TIMEOUT,
                    f"only a part arrived: fewer than {length} bytes within {self.timeout} s; save "
                    "the points again",
                )
                return
            try:
                said = json.loads(body)
                self._json(HTTPStatus.OK, self.server.give(said))
            except Overtaken as error:
                told = {"error": str(error), "now": _kept(error.decision)}
                self._json(HTTPStatus.CONFLICT, told)
            except (InputError, json.JSONDecodeError, UnicodeDecodeError) as error:
                self._refuse(HTTPStatus.CONFLICT, str(error))

    def _name(self) -> str | None:
        """The path below the token; None if the token or the host is wrong."""
        hosts = {f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost")}
        first, _, name = self.path.removeprefix("/").partition("/")
        known = secrets.compare_digest(first.encode(), self.server.token.encode())
        # A foreign host name means DNS rebinding: another site's page was directed here.
        return name if known and self.headers.get("Host") in hosts else None

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._json(status, {"error": message})

    def _json(self, status: HTTPStatus, content: Any) -> None:
        self._send(status, json.dumps(content).encode(), "application/json")

    def _send(self, status: HTTPStatus, body: bytes, kind: str, policy: str = POLICY) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: the addresses of requests contain the token."""
