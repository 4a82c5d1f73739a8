"""The gradebook: every verdict that was ever given, in one SQLite file; and what is printed of it.

A submission is recorded in one transaction, so that a grader killed at any moment leaves either
the whole verdict or none. Nothing is overwritten: a regrade adds a run, and the newest counts.
"""

import base64
import hashlib
import json
import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mpilab.errors import InputError
from mpilab.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict

# PRAGMA application_id marks the file as ours ("mpil"), user_version numbers the tables below.
APPLICATION = 0x6D70696C
SCHEMA = 1

_TABLES = """
CREATE TABLE runs (
    id       INTEGER PRIMARY KEY,
    student  TEXT NOT NULL,
    lab      TEXT NOT NULL,
    key      TEXT NOT NULL,
    status   TEXT NOT NULL,
    total    REAL,
    reason   TEXT NOT NULL,
    sandbox  TEXT NOT NULL,
    feedback TEXT NOT NULL,
    seconds  REAL,
    recorded TEXT NOT NULL
);
CREATE INDEX runs_of_student ON runs (lab, student, id);
CREATE TABLE exercises (
    run      INTEGER NOT NULL REFERENCES runs (id),
    place    INTEGER NOT NULL,
    exercise TEXT NOT NULL,
    title    TEXT NOT NULL,
    PRIMARY KEY (run, place)
) WITHOUT ROWID;
CREATE TABLE items (
    run      INTEGER NOT NULL REFERENCES runs (id),
    exercise INTEGER NOT NULL,
    place    INTEGER NOT NULL,
    item     TEXT NOT NULL,
    title    TEXT NOT NULL,
    points   REAL NOT NULL,
    outcome  TEXT NOT NULL,
    reason   TEXT NOT NULL,
    evidence TEXT NOT NULL,
    PRIMARY KEY (run, exercise, place)
) WITHOUT ROWID
"""


def key(*parts):
    """What a verdict depends on, as one hex string.

    Give the digest of the submission, the lab, the digest of its rubric and the grader's version,
    as str or bytes: whoever changes one of them gets another key, and so a new verdict.
    """
    whole = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


@dataclass(frozen=True)
class Run:
    """One entry: the verdict, and how it came about.

    recorded is the time in UTC (ISO 8601), seconds the wall time of the grading or None, feedback
    the path of the student's page, or ''.
    """

    verdict: SubmissionVerdict
    key: str
    feedback: str
    seconds: float | None
    recorded: str


class Gradebook:
    """The gradebook in the file `path`, made where there is none; a context manager.

    One object may be used from several threads, and several processes may share the file: who
    comes second waits up to `wait` seconds. Raises InputError, with what to do, for a file that
    is damaged, not a gradebook, of a newer mpilab, locked or not writable.
    """

    def __init__(self, path, wait=30.0):
        self.path = Path(path)
        self.wait = wait
        self._lock = threading.Lock()
        self._database = None

    def __enter__(self):
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Transactions are begun and ended by us alone (isolation_level None).
            self._database = sqlite3.connect(
                self.path, timeout=self.wait, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise
        return self

    def __exit__(self, *_):
        with self._explained():
            self._database.close()

    def record(self, verdict, key, *, feedback="", seconds=None):
        """Add the verdict as the newest run of its student and lab, all of it or nothing."""
        recorded = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self._transaction() as database:
            run = database.execute(
                "INSERT INTO runs (student, lab, key, status, total, reason, sandbox, feedback,"
                " seconds, recorded) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(verdict.student, verdict.lab, key, verdict.status, verdict.total),
                    *(verdict.reason, verdict.sandbox, str(feedback), seconds, recorded),
                ),
            ).lastrowid
            for place, exercise in enumerate(verdict.exercises):
                database.execute(
                    "INSERT INTO exercises VALUES (?, ?, ?, ?)",
                    (run, place, exercise.exercise, exercise.title),
                )
                for rank, item in enumerate(exercise.items):
                    database.execute(
                        "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        (
                            *(run, place, rank, item.item, item.title, float(item.points)),
                            *(item.outcome, item.reason, json.dumps(_plain(item.evidence))),
                        ),
                    )

    def find(self, student, key):
        """The verdict for exactly this key, or None where it must be given first."""
        run = self.find_run(student, key)
        return run and run.verdict

    def find_run(self, student, key):
        """As `find`, but the whole `Run`.

        Only the newest run of a student and lab is looked at: a student who goes back to an older
        file gets a new run, so that the newest run stays the one that counts.
        """
        found = self._runs(
            "student = ? AND key = ? AND id ="
            " (SELECT max(id) FROM runs AS r WHERE r.lab = runs.lab AND r.student = runs.student)",
            (student, key),
        )
        return found[0] if found else None

    def verdicts(self, lab):
        """The newest verdict of each student of `lab`, sorted by student."""
        newest = self._runs(
            "id IN (SELECT max(id) FROM runs WHERE lab = ? GROUP BY student)", (lab,)
        )
        return sorted((run.verdict for run in newest), key=lambda verdict: verdict.student)

    def history(self, student, lab):
        """All runs of a student for `lab` as a list of `Run`, newest first."""
        return self._runs("student = ? AND lab = ?", (student, lab))

    def _runs(self, condition, values):
        with self._transaction("BEGIN") as database:
            rows = database.execute(
                "SELECT id, student, lab, reason, sandbox, key, feedback, seconds, recorded"
                f" FROM runs WHERE {condition} ORDER BY id DESC",
                values,
            ).fetchall()
            return [
                Run(
                    SubmissionVerdict(student, lab, self._exercises(run), reason, sandbox),
                    *(key, feedback, seconds, recorded),
                )
                for run, student, lab, reason, sandbox, key, feedback, seconds, recorded in rows
            ]

    def _exercises(self, run):
        items = {}
        for place, *columns, evidence in self._database.execute(
            "SELECT exercise, item, title, points, outcome, reason, evidence"
            " FROM items WHERE run = ? ORDER BY exercise, place",
            (run,),
        ):
            item = ItemVerdict(*columns, _rich(json.loads(evidence)))
            items.setdefault(place, []).append(item)
        exercises = self._database.execute(
            "SELECT place, exercise, title FROM exercises WHERE run = ? ORDER BY place", (run,)
        )
        return tuple(
            ExerciseVerdict(exercise, title, tuple(items.get(place, ())))
            for place, exercise, title in exercises
        )

    def _prepare(self):
        """Make the tables of a new file, or refuse a file that isn't ours to write."""
        database = self._database
        new = self._is_new()
        database.execute("PRAGMA journal_mode = WAL")
        if new:
            database.execute("BEGIN IMMEDIATE")
            # Another grader may have made them since we looked.
            if self._is_new():
                for statement in _TABLES.split(";"):
                    database.execute(statement)
                database.execute(f"PRAGMA application_id = {APPLICATION}")
                database.execute(f"PRAGMA user_version = {SCHEMA}")
            database.execute("COMMIT")
        database.execute("PRAGMA foreign_keys = ON")
        (health,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if health != "ok":
            raise InputError(self._damaged(health))

    def _is_new(self):
        """True for an empty database, False for a gradebook, InputError for anything else."""
        application, version, tables = (
            self._database.execute(query).fetchone()[0]
            for query in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if (application, version, tables) == (0, 0, 0):
            return True
        if application != APPLICATION:
            raise InputError(
                f"{self.path}: a database, but not a gradebook of mpilab; name another file"
            )
        if version != SCHEMA:
            raise InputError(
                f"{self.path}: a gradebook of version {version}, and this mpilab knows version "
                f"{SCHEMA}; use the mpilab that wrote it, or a newer one"
            )
        return False

    @contextmanager
    def _transaction(self, begin="BEGIN IMMEDIATE"):
        with self._lock, self._explained():
            self._database.execute(begin)
            try:
                yield self._database
            except BaseException:
                # After a full disk or an I/O error, SQLite has rolled back by itself.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    @contextmanager
    def _explained(self):
        """SQLite's errors, and the system's, as InputError with a remedy."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                message = self._damaged(error)
            elif name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                message = (
                    f"{self.path}: another program has been writing to the gradebook for "
                    f"{self.wait:g} s; wait until the other grader has ended, and start again"
                )
            elif name.startswith("SQLITE_FULL"):
                message = f"{self.path}: the disk is full; make room and start again"
            else:
                message = (
                    f"{self.path}: the gradebook can't be opened or written ({error}); check "
                    "that its folder exists, is writable and is on a local disk"
                )
            raise InputError(message) from error

    def _damaged(self, detail):
        detail = " ".join(str(detail).split())
        return (
            f"{self.path}: not a gradebook, or damaged ({detail}); restore it from a backup, or "
            "move it away and grade again: the submissions are all that is needed"
        )


def _plain(value):
    """Evidence as JSON can hold it; `_rich` is the inverse."""
    if isinstance(value, dict):
        if all(isinstance(name, str) and not name.startswith("$") for name in value):
            return {name: _plain(each) for name, each in value.items()}
        return {"$dict": [[_plain(name), _plain(each)] for name, each in value.items()]}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, tuple):
        return {"$tuple": [_plain(each) for each in value]}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    # numpy's scalars and arrays have tolist(); anything else is evidence as text at least.
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def _rich(value):
    if isinstance(value, list):
        return [_rich(each) for each in value]
    if isinstance(value, dict):
        if "$dict" in value:
            return {_rich(name): _rich(each) for name, each in value["$dict"]}
        if "$tuple" in value:
            return tuple(_rich(each) for each in value["$tuple"])
        if "$bytes" in value:
            return base64.b64decode(value["$bytes"])
        return {name: _rich(each) for name, each in value.items()}
    return value
