"""The gradebook: all verdicts and manual decisions ever made, in one SQLite file.

Decisions (mpilab/grading/decisions.py) are kept beside the verdicts and change none. A submission
is recorded in one transaction, so that a grader killed at any time leaves either a complete verdict
or none. Nothing is overwritten: a regrade adds a run, and the newest counts.
"""

import difflib
import hashlib
import heapq
import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import Any, Self

from mpilab.diagnosis.model import Diagnosis
from mpilab.errors import InputError
from mpilab.grading import feedback
from mpilab.grading.decisions import (
    Decision,
    Effective,
    Run,
    Subject,
    missing,
    newest,
    of_run,
    stamped,
)
from mpilab.grading.feedback import loads
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict

# PRAGMA application_id marks the file as ours ("mpil"); user_version is the version of the tables.
APPLICATION = 0x6D70696C
SCHEMA = 6
LOOK_S = 0.01  # between two attempts where SQLite itself does not wait

# An empty line ends a statement, because triggers contain semicolons.
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
    recorded TEXT NOT NULL,
    assignment TEXT NOT NULL DEFAULT '',
    submission TEXT NOT NULL DEFAULT '',
    simgrid  TEXT NOT NULL DEFAULT '',
    jail     TEXT NOT NULL DEFAULT ''
);

CREATE INDEX runs_of_student ON runs (lab, student, id);

CREATE TABLE exercises (
    run      INTEGER NOT NULL REFERENCES runs (id),
    place    INTEGER NOT NULL,
    exercise TEXT NOT NULL,
    title    TEXT NOT NULL,
    answer   TEXT,
    rubric   TEXT NOT NULL DEFAULT '',
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
    unconfirmed INTEGER NOT NULL DEFAULT 0,
    diagnoses TEXT NOT NULL DEFAULT '[]',
    PRIMARY KEY (run, exercise, place)
) WITHOUT ROWID
"""
# Manual decisions are added, never changed. `class` lists the students of the class as last graded,
# and why a student has no verdict.
_DECISIONS = """
CREATE TABLE IF NOT EXISTS decisions (
    id       INTEGER PRIMARY KEY,
    token    TEXT NOT NULL UNIQUE,
    lab      TEXT NOT NULL,
    student  TEXT NOT NULL,
    exercise TEXT NOT NULL,
    item     TEXT NOT NULL,
    kind     TEXT NOT NULL,
    points   REAL,
    reason   TEXT NOT NULL,
    about    TEXT NOT NULL,
    details  TEXT NOT NULL,
    who      TEXT NOT NULL,
    decided  TEXT NOT NULL
);

CREATE INDEX IF NOT EXISTS decisions_on_student ON decisions (lab, student);

CREATE TRIGGER IF NOT EXISTS decisions_stay BEFORE UPDATE ON decisions
BEGIN SELECT RAISE(ABORT, 'a decision is never changed'); END;

CREATE TRIGGER IF NOT EXISTS decisions_are_kept BEFORE DELETE ON decisions
BEGIN SELECT RAISE(ABORT, 'a decision is never removed'); END;

CREATE TABLE IF NOT EXISTS class (
    lab     TEXT NOT NULL,
    student TEXT NOT NULL,
    reason  TEXT NOT NULL,
    PRIMARY KEY (lab, student)
) WITHOUT ROWID
"""
# The upgrade from each older version to the next.
_UPGRADES = {
    1: ["ALTER TABLE runs ADD COLUMN assignment TEXT NOT NULL DEFAULT ''"],
    2: [
        "ALTER TABLE runs ADD COLUMN submission TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE exercises ADD COLUMN answer TEXT",
        "ALTER TABLE exercises ADD COLUMN rubric TEXT NOT NULL DEFAULT ''",
        *_DECISIONS.split("\n\n"),
    ],
    3: [
        "ALTER TABLE runs ADD COLUMN simgrid TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE items ADD COLUMN unconfirmed INTEGER NOT NULL DEFAULT 0",
    ],
    4: ["ALTER TABLE items ADD COLUMN diagnoses TEXT NOT NULL DEFAULT '[]'"],
    5: ["ALTER TABLE runs ADD COLUMN jail TEXT NOT NULL DEFAULT ''"],
}


# The SQLite tables: create, upgrade and write them.


def prepare(database: sqlite3.Connection, path: Path, wait: float) -> None:
    """Create the tables of a new file, or upgrade older ones.

    Waits at most `wait` seconds for other processes that do the same. Raises InputError for a file
    of another program or of a newer mpilab.
    """
    database.execute("BEGIN")  # so that the queries below read the same state
    try:
        new = _is_new(database, path)
    finally:
        database.execute("ROLLBACK")
    _use_wal(database, wait)
    if new:
        database.execute("BEGIN IMMEDIATE")
        # Another grader may have created them in the meantime.
        if _is_new(database, path):
            for statement in [*_TABLES.split("\n\n"), *_DECISIONS.split("\n\n")]:
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {SCHEMA}")
        database.execute("COMMIT")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version < SCHEMA:
        _upgrade(database)
    database.execute("PRAGMA foreign_keys = ON")


def _use_wal(database: sqlite3.Connection, wait: float) -> None:
    """Use a write-ahead log. SQLite itself does not wait while another process switches to it."""
    give_up = time.monotonic() + wait
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(LOOK_S)


def _upgrade(database: sqlite3.Connection) -> None:
    """Upgrade the gradebook of an older mpilab, in one transaction."""
    database.execute("BEGIN IMMEDIATE")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    for older in range(version, SCHEMA):
        for statement in _UPGRADES[older]:
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {SCHEMA}")
    database.execute("COMMIT")


def _is_new(database: sqlite3.Connection, path: Path) -> bool:
    """True for an empty database, False for a gradebook, InputError for anything else."""
    application, version, tables = (
        database.execute(query).fetchone()[0]
        for query in (
            "PRAGMA application_id",
            "PRAGMA user_version",
            "SELECT count(*) FROM sqlite_master",
        )
    )
    if (application, version, tables) == (0, 0, 0):
        return True
    if application != APPLICATION:
        raise InputError(f"{path}: a database, but not a gradebook of mpilab; name another file")
    if not 1 <= version <= SCHEMA:
        raise InputError(
            f"{path}: a gradebook of version {version}, but this mpilab reads version {SCHEMA}; "
            "use the mpilab that wrote it, or a newer one"
        )
    return False


def insert(database: sqlite3.Connection, run: Run) -> None:
    """Write a Run as the newest; call it within a transaction."""
    verdict = run.verdict
    number = database.execute(
        "INSERT INTO runs (student, lab, key, status, total, reason, sandbox, feedback, seconds,"
        " recorded, assignment, submission, simgrid, jail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(verdict.student, verdict.lab, run.key, verdict.status, verdict.total),
            *(verdict.reason, verdict.sandbox, run.feedback, run.seconds, run.recorded),
            *(run.assignment, run.submission, verdict.simgrid, verdict.jail),
        ),
    ).lastrowid
    for place, exercise in enumerate(verdict.exercises):
        database.execute(
            "INSERT INTO exercises (run, place, exercise, title, answer, rubric)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                *(number, place, exercise.exercise, exercise.title),
                *(exercise.answer, exercise.rubric),
            ),
        )
        for rank, item in enumerate(exercise.items):
            database.execute(
                "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(number, place, rank, item.item, item.title, float(item.points)),
                    *(item.outcome, item.reason, feedback.dumps(item.evidence)),
                    item.unconfirmed,
                    json.dumps([each.to_json() for each in item.diagnoses]),
                ),
            )


def insert_decision(database: sqlite3.Connection, decision: Decision) -> bool:
    """Write a Decision; False if it exists already. Call it within a transaction."""
    return (
        database.execute(
            "INSERT INTO decisions (token, lab, student, exercise, item, kind, points, reason,"
            " about, details, who, decided) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (token) DO NOTHING",
            (
                *(decision.token, decision.lab, decision.student, decision.exercise),
                *(decision.item, decision.kind, decision.points, decision.reason),
                *(decision.about, feedback.dumps(decision.details), decision.who),
                decision.decided,
            ),
        ).rowcount
        == 1
    )


def decisions_on(database: sqlite3.Connection, lab: str) -> Iterator[tuple[Any, ...]]:
    """Yield the decisions on a lab, each as the fields of a Decision, oldest first."""
    for *columns, details, who, decided, token in database.execute(
        "SELECT lab, student, exercise, item, kind, points, reason, about, details, who, decided,"
        " token FROM decisions WHERE lab = ? ORDER BY decided, token",
        (lab,),
    ):
        yield (*columns, feedback.loads(details), who, decided, token)


def key(*parts: object) -> str:
    """A hash, in hex, of everything that a verdict depends on.

    Pass the digest of the submission, the lab, the digest of its rubric and the versions of the
    grader and of the tools that it judges with, as str or bytes. If any of them changes, so does
    the key, and a new verdict is required.
    """
    whole = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else str(part).encode()
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


class Overtaken(InputError):
    """Somebody else has decided on the same thing meanwhile; `decision` is theirs."""

    def __init__(self, decision: Decision) -> None:
        given = "withdrew the points" if decision.points is None else f"gave {decision.points:g}"
        super().__init__(
            f"{decision.student}: {decision.who} {given} meanwhile; save again to replace that"
        )
        self.decision = decision


class Gradebook:
    """The gradebook in the file `path`, created if there is none; a context manager.

    Several threads may use one object, and several processes may share the file; each waits up to
    `wait` seconds for the others. Raises InputError, with a remedy, for a file that is damaged, not
    a gradebook, of a newer mpilab, locked or not writable.
    """

    def __init__(self, path: str | Path, wait: float = 30.0) -> None:
        self.path = Path(path)
        self.wait = wait
        self._lock = threading.Lock()
        self._database: sqlite3.Connection  # while the context lasts

    def __enter__(self) -> Self:
        with self._explained():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # With isolation_level None, only our own statements begin and end transactions.
            self._database = sqlite3.connect(
                self.path, timeout=self.wait, isolation_level=None, check_same_thread=False
            )
            try:
                prepare(self._database, self.path, self.wait)
                self._check_health()
            except BaseException:
                self._database.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._explained():
            self._database.close()

    def record(
        self,
        verdict: SubmissionVerdict,
        key: str,
        *,
        feedback: str = "",
        seconds: float | None = None,
        assignment: str = "",
        submission: str = "",
    ) -> None:
        """Add the verdict as the newest run of its student and lab, atomically."""
        recorded = datetime.now(UTC).isoformat(timespec="milliseconds")
        run = Run(verdict, key, str(feedback), seconds, recorded, assignment, submission)
        with self._transaction() as database:
            insert(database, run)

    def decide(
        self, decisions: Iterable[Decision], *, seen: Mapping[Subject, str] | None = None
    ) -> list[Decision]:
        """Add a list of Decision atomically; returns them as stored.

        Each has a time, later than that of any other in the gradebook, and its own token. `seen`
        has the token of the decision that the caller knows on a subject, '' if none: raises
        Overtaken, and adds nothing, if somebody else has decided on it since.
        """
        decisions = list(decisions)
        with self._transaction() as database:
            for lab in {decision.lab for decision in decisions if seen}:
                standing = newest(Decision(*row) for row in decisions_on(database, lab))
                for subject, token in (seen or {}).items():
                    now = standing.get(subject)
                    if now is not None and now.token != token:
                        raise Overtaken(now)
            (last,) = database.execute("SELECT max(decided) FROM decisions").fetchone()
            kept = list(stamped(decisions, after=last))
            for decision in kept:
                insert_decision(database, decision)
            return kept

    def version(self) -> tuple[int, int]:
        """A value that changes whenever any process changes the gradebook."""
        with self._transaction("BEGIN") as database:
            (others,) = database.execute("PRAGMA data_version").fetchone()
            return others, database.total_changes

    def decisions(self, lab: str) -> list[Decision]:
        """All manual decisions on a lab, a list of Decision, oldest first."""
        with self._transaction("BEGIN") as database:
            return [Decision(*row) for row in decisions_on(database, lab)]

    def list_class(self, lab: str, absent: dict[str, str]) -> None:
        """Replace the class list: {student: why there is no verdict on the submission, or ''}."""
        with self._transaction() as database:
            database.execute("DELETE FROM class WHERE lab = ?", (lab,))
            rows = [(lab, student, reason) for student, reason in absent.items()]
            database.executemany("INSERT INTO class VALUES (?, ?, ?)", rows)

    def class_list(self, lab: str) -> dict[str, str] | None:
        """The class as `list_class` stored it; None if it never did."""
        with self._transaction("BEGIN") as database:
            rows = database.execute("SELECT student, reason FROM class WHERE lab = ?", (lab,))
            return dict(rows.fetchall()) or None

    def absorb(self, runs: Sequence[Run], decisions: Iterable[Decision] = ()) -> int:
        """Merge in the runs (oldest first) and decisions of another gradebook, atomically.

        Runs are merged by time; each gradebook keeps its own order, and existing entries do not
        change. Returns the number of new runs. Two machines' clocks may differ by less than it
        takes to grade a submission twice.
        """
        with self._transaction() as database:
            for decision in decisions:
                insert_decision(database, decision)
            own = self._read("1", ())[::-1]
            known = {run.identity for run in own}
            new = [run for run in runs if run.identity not in known]
            if not new:
                return 0
            streams = [list(zip(_times(part), part, strict=True)) for part in (own, new)]
            merged = [run for _, run in heapq.merge(*streams, key=lambda pair: pair[0])]
            kept = next(place for place, run in enumerate(merged) if run.identity not in known)
            # The last row must be the newest run, so runs after the first new one are rewritten.
            moved = database.execute(
                "SELECT id FROM runs ORDER BY id LIMIT -1 OFFSET ?", (kept,)
            ).fetchall()
            for table, column in (("items", "run"), ("exercises", "run"), ("runs", "id")):
                database.executemany(f"DELETE FROM {table} WHERE {column} = ?", moved)
            for run in merged[kept:]:
                insert(database, run)
            return len(new)

    def find(self, student: str, key: str) -> SubmissionVerdict | None:
        """The verdict for exactly this key; None if it has not been given yet."""
        run = self.find_run(student, key)
        return None if run is None else run.verdict

    def find_run(self, student: str, key: str) -> Run | None:
        """Like `find`, but returns the whole `Run`.

        Only the newest run of a student and lab is considered: a student who hands in an older file
        again gets a new run, so that the newest run is always the one that counts.
        """
        found = self._runs(
            "student = ? AND key = ? AND id ="
            " (SELECT max(id) FROM runs AS r WHERE r.lab = runs.lab AND r.student = runs.student)",
            (student, key),
        )
        return found[0] if found else None

    def verdicts(self, lab: str) -> list[SubmissionVerdict]:
        """The newest verdict of each student of `lab`, sorted by student."""
        return [run.verdict for run in self.newest(lab)]

    def newest(self, lab: str) -> list[Run]:
        """The newest Run of each student of `lab`, sorted by student."""
        newest = self._runs(
            "id IN (SELECT max(id) FROM runs WHERE lab = ? GROUP BY student)", (lab,)
        )
        return sorted(newest, key=lambda run: run.verdict.student)

    def history(self, student: str, lab: str) -> list[Run]:
        """All runs of a student for `lab` as a list of `Run`, newest first."""
        return self._runs("student = ? AND lab = ?", (student, lab))

    def runs(self) -> list[Run]:
        """All runs of all students and labs as a list of `Run`, oldest first."""
        return self._runs("1", ())[::-1]

    def labs(self) -> list[str]:
        """The names of all labs with a run, sorted."""
        with self._transaction("BEGIN"):
            labs = self._database.execute("SELECT DISTINCT lab FROM runs ORDER BY lab").fetchall()
        return [lab for (lab,) in labs]

    def _runs(self, condition: str, values: tuple[str, ...]) -> list[Run]:
        with self._transaction("BEGIN"):
            return self._read(condition, values)

    def _read(self, condition: str, values: tuple[str, ...]) -> list[Run]:
        rows = self._database.execute(
            "SELECT id, student, lab, reason, sandbox, simgrid, jail, key, feedback, seconds,"
            f" recorded, assignment, submission FROM runs WHERE {condition} ORDER BY id DESC",
            values,
        ).fetchall()
        return [
            Run(
                SubmissionVerdict(
                    student, lab, self._exercises(run), reason, sandbox, simgrid, jail
                ),
                *others,
            )
            for run, student, lab, reason, sandbox, simgrid, jail, *others in rows
        ]

    def _exercises(self, run: int) -> tuple[ExerciseVerdict, ...]:
        items: dict[int, list[ItemVerdict]] = {}
        rows = self._database.execute(
            "SELECT exercise, item, title, points, outcome, reason, evidence, unconfirmed,"
            " diagnoses FROM items WHERE run = ? ORDER BY exercise, place",
            (run,),
        )
        for place, name, title, points, outcome, reason, text, unconfirmed, told in rows:
            diagnoses = tuple(map(Diagnosis.from_json, json.loads(told)))
            item = ItemVerdict(
                name, title, points, outcome, reason, loads(text), bool(unconfirmed), diagnoses
            )
            items.setdefault(place, []).append(item)
        exercises = self._database.execute(
            "SELECT place, exercise, title, answer, rubric FROM exercises WHERE run = ?"
            " ORDER BY place",
            (run,),
        )
        return tuple(
            ExerciseVerdict(exercise, title, tuple(items.get(place, ())), answer, rubric)
            for place, exercise, title, answer, rubric in exercises
        )

    def _check_health(self) -> None:
        (health,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if health != "ok":
            raise InputError(self._damaged(health))

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            self._database.execute(begin)
            try:
                yield self._database
                self._database.execute("COMMIT")
            except BaseException:
                # After most errors on a full disk, SQLite has already rolled back.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn SQLite and system errors into InputError with a remedy."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
                message = self._damaged(error)
            elif name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                message = (
                    f"{self.path}: another program has been writing to the gradebook for "
                    f"{self.wait:g} s; wait until the other grader has finished, and start again"
                )
            elif name.startswith("SQLITE_FULL"):
                message = f"{self.path}: the disk is full; free some space and start again"
            else:
                message = (
                    f"{self.path}: the gradebook can't be opened or written ({error}); check "
                    "that its folder exists, is writable and is on a local disk"
                )
            raise InputError(message) from error

    def _damaged(self, detail: object) -> str:
        detail = " ".join(str(detail).split())
        return (
            f"{self.path}: not a gradebook, or damaged ({detail}); restore it from a backup, or "
            "move it and grade again: only the submissions are needed"
        )


def _times(runs: Iterable[Run]) -> list[str]:
    """When each run was recorded; if the clock was set back, no earlier than the run before."""
    return list(accumulate((run.recorded for run in runs), max))


# The marks of a class: its verdicts with the manual decisions on them.


def effective(book: Gradebook, lab: str) -> list[Effective]:
    """The marks that count for the class: a list of Effective, sorted by student.

    The class is the one graded or merged last; a student in it without a verdict on the submission
    is ungradable. If the gradebook lists no class, it is all students with a verdict.
    """
    runs = {run.verdict.student: run for run in book.newest(lab)}
    standing = newest(book.decisions(lab))
    absent = book.class_list(lab) or dict.fromkeys(runs, "")
    shape = next((run.verdict.exercises for run in runs.values() if run.verdict.exercises), ())
    return [
        of_run(runs[student], standing)
        if student in runs and not reason
        else missing(student, lab, shape, reason or "There is no verdict on it.")
        for student, reason in sorted(absent.items())
    ]


def run_of(book: Gradebook, lab: str, student: str) -> Run:
    """The Run of a student on which decisions can be made.

    Raises InputError if the student has none, or none on the latest submission.
    """
    runs = book.history(student, lab)
    listed = book.class_list(lab) or {each.student: "" for each in book.verdicts(lab)}
    if student not in listed:
        near = difflib.get_close_matches(student, listed, n=3) or sorted(listed)[:3]
        raise InputError(
            f"student {student!r}: not in the class of {lab} in {book.path}; it has, "
            f"e.g., {', '.join(near) or 'nobody'}"
        )
    if listed[student] or not runs:
        raise InputError(
            f"student {student!r}: the submission has no verdict; grade it first. {listed[student]}"
        )
    return runs[0]
