"""A page on this machine for reading free text side by side and giving points by keyboard.

It is served to 127.0.0.1 alone, below a path that nobody can guess, and to nobody who comes by
another name or from another page. What students wrote is sent as JSON and shown as text.
"""

import json
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

from mpilab.errors import InputError
from mpilab.grading.decisions import about_of, manual
from mpilab.grading.effective import effective, run_of
from mpilab.grading.manual_csv import readable
from mpilab.plain import plain

POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")  # fmt: skip
_FILES = {
    "": ("marking.html", "text/html; charset=utf-8"),
    "marking.js": ("marking.js", "text/javascript; charset=utf-8"),
    "marking.css": ("marking.css", "text/css; charset=utf-8"),
}
MOST_BYTES = 100_000


class MarkingServer(ThreadingHTTPServer):
    """Serves the page for one lab of an open Gradebook; `url` is where. `given` counts what was
    saved. Use serve_forever and server_close."""

    daemon_threads = True

    def __init__(self, book, lab, port=0):
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise InputError(f"port {port}: {error.strerror}; name another one, or none") from None
        self.book, self.lab, self.given = book, lab, 0
        self.token = secrets.token_urlsafe(24)
        self.url = f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def answers(self):
        """All that there is to read: {"lab", "exercises": [{"id", "title", "answers": […]}]}."""
        runs = {run.verdict.student: run for run in self.book.newest(self.lab)}
        exercises = {}
        for _, each, exercise, item in readable(effective(self.book, self.lab)):
            shown = exercises.setdefault(exercise.exercise, {
                "id": exercise.exercise, "title": exercise.title, "answers": {}
            })["answers"].setdefault(each.student, {
                "student": each.student, "text": plain(exercise.answer or ""),
                "known": exercise.answer is not None,
                "about": about_of(runs[each.student], exercise), "items": [],
            })  # fmt: skip
            shown["items"].append({
                "id": item.item, "title": item.title, "most": item.points,
                "points": item.decision.points if item.decision else None,
                "comment": item.comment, "proposal": item.proposal,
            })  # fmt: skip
        listed = [{**each, "answers": list(each["answers"].values())}
                  for each in exercises.values()]  # fmt: skip
        return {"lab": self.lab, "exercises": listed}

    def give(self, said):
        """Save points that the page sent, a dict; what it is told: the item's points and comment.

        Raises InputError, also where the text is not the one that was read.
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
            raise InputError(f"{said['student']}: the text has changed since the page was opened; "
                             "load it again")  # fmt: skip
        (kept,) = self.book.decide([decision])
        self.given += 1
        return {"points": kept.points, "comment": kept.reason}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "mpilab", ""
    timeout = 60

    def do_GET(self):
        name = self._name()
        if name in _FILES:
            file, kind = _FILES[name]
            self._send(HTTPStatus.OK, (files("mpilab.grading") / file).read_bytes(), kind)
        elif name == "answers":
            self._json(HTTPStatus.OK, self.server.answers())
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "no such page; use the address that was printed")

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        # Without its body read, the connection is of no more use.
        self.close_connection = True
        own = f"http://{self.headers.get('Host')}"
        if self._name() != "points":
            self._refuse(HTTPStatus.NOT_FOUND, "no such page; use the address that was printed")
        elif (
            self.headers.get("Origin") != own
            or self.headers.get_content_type() != "application/json"
        ):
            self._refuse(HTTPStatus.FORBIDDEN, "only this page itself may give points")
        elif not length.isdigit() or int(length) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MOST_BYTES} bytes")
        else:
            try:
                said = json.loads(self.rfile.read(int(length)))
                self._json(HTTPStatus.OK, self.server.give(said))
            except (InputError, json.JSONDecodeError, UnicodeDecodeError) as error:
                self._refuse(HTTPStatus.CONFLICT, str(error))

    def _name(self):
        """What is asked for below the token; None where the token or the host is another."""
        hosts = {f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost")}
        first, _, name = self.path.removeprefix("/").partition("/")
        known = secrets.compare_digest(first.encode(), self.server.token.encode())
        # By another name than ours, somebody's page has been led here (DNS rebinding).
        return name if known and self.headers.get("Host") in hosts else None

    def _refuse(self, status, message):
        self._json(status, {"error": message})

    def _json(self, status, content):
        self._send(status, json.dumps(content).encode(), "application/json")

    def _send(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Requests are not printed: their addresses hold the token."""
