"""The gradebook: every verdict that was ever given, in one SQLite file; and what is printed of it.

What people decide (mpilab/grading/decisions.py) is kept beside the verdicts, and changes none.
A submission is recorded in one transaction, so that a grader killed at any moment leaves either
the whole verdict or none. Nothing is overwritten: a regrade adds a run, and the newest counts.
"""

import hashlib
import heapq
import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

from mpilab.errors import InputError
from mpilab.grading import evidence, tables
from mpilab.grading.decisions import Decision, stamped
from mpilab.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict


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
    the path of the student's page, or ''; assignment identifies the lab and the rubric, submission
    is the digest of what was handed in; both '' where a gradebook of an older mpilab doesn't know.
    """

    verdict: SubmissionVerdict
    key: str
    feedback: str
    seconds: float | None
    recorded: str
    assignment: str = ""
    submission: str = ""

    @property
    def identity(self):
        """What tells this run from all others, in whatever gradebook it is."""
        return (self.verdict.lab, self.verdict.student, self.key, self.recorded)


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
                tables.prepare(self._database, self.path, self.wait)
                self._check_health()
            except BaseException:
                self._database.close()
                raise
        return self

    def __exit__(self, *_):
        with self._explained():
            self._database.close()

    def record(self, verdict, key, *, feedback="", seconds=None, assignment="", submission=""):
        """Add the verdict as the newest run of its student and lab, all of it or nothing."""
        recorded = datetime.now(UTC).isoformat(timespec="milliseconds")
        run = Run(verdict, key, str(feedback), seconds, recorded, assignment, submission)
        with self._transaction() as database:
            tables.insert(database, run)

    def decide(self, decisions):
        """Add what a person has decided, a list of Decision: all or none. The list as it was kept:
        each with its time, later than that of any other here, and a token of its own."""
        with self._transaction() as database:
            (last,) = database.execute("SELECT max(decided) FROM decisions").fetchone()
            kept = list(stamped(decisions, after=last))
            for decision in kept:
                tables.insert_decision(database, decision)
            return kept

    def version(self):
        """Another value after every change of the gradebook, whoever made it."""
        with self._transaction("BEGIN") as database:
            (others,) = database.execute("PRAGMA data_version").fetchone()
            return others, database.total_changes

    def decisions(self, lab):
        """All that people have decided on a lab, a list of Decision, oldest first."""
        with self._transaction("BEGIN") as database:
            return [Decision(*row) for row in tables.decisions(database, lab)]

    def list_class(self, lab, absent):
        """Keep who is in the class, in the place of what was kept: {student: why there is no
        verdict on what was handed in, or ''}."""
        with self._transaction() as database:
            database.execute("DELETE FROM class WHERE lab = ?", (lab,))
            rows = [(lab, student, reason) for student, reason in absent.items()]
            database.executemany("INSERT INTO class VALUES (?, ?, ?)", rows)

    def class_list(self, lab):
        """The class as `list_class` has kept it; None where it has not."""
        with self._transaction("BEGIN") as database:
            rows = database.execute("SELECT student, reason FROM class WHERE lab = ?", (lab,))
            return dict(rows.fetchall()) or None

    def absorb(self, runs, decisions=()):
        """Put the runs of another gradebook, oldest first, among ours by their times, and add what
        people have decided there: all or none.

        What is here already stays as it is. Returns how many runs were new. Two machines' clocks
        may differ by less than it takes to grade a submission twice; each book's own order is kept.
        """
        with self._transaction() as database:
            for decision in decisions:
                tables.insert_decision(database, decision)
            own = self._read("1", ())[::-1]
            known = {run.identity for run in own}
            new = [run for run in runs if run.identity not in known]
            if not new:
                return 0
            streams = [list(zip(_times(part), part, strict=True)) for part in (own, new)]
            merged = [run for _, run in heapq.merge(*streams, key=lambda pair: pair[0])]
            kept = next(place for place, run in enumerate(merged) if run.identity not in known)
            # The newest run is the last: what is newer than the first new one is written anew.
            moved = database.execute(
                "SELECT id FROM runs ORDER BY id LIMIT -1 OFFSET ?", (kept,)
            ).fetchall()
            for table, column in (("items", "run"), ("exercises", "run"), ("runs", "id")):
                database.executemany(f"DELETE FROM {table} WHERE {column} = ?", moved)
            for run in merged[kept:]:
                tables.insert(database, run)
            return len(new)

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
        return [run.verdict for run in self.newest(lab)]

    def newest(self, lab):
        """The newest Run of each student of `lab`, sorted by student."""
        newest = self._runs(
            "id IN (SELECT max(id) FROM runs WHERE lab = ? GROUP BY student)", (lab,)
        )
        return sorted(newest, key=lambda run: run.verdict.student)

    def history(self, student, lab):
        """All runs of a student for `lab` as a list of `Run`, newest first."""
        return self._runs("student = ? AND lab = ?", (student, lab))

    def runs(self):
        """All runs of all students and labs as a list of `Run`, oldest first."""
        return self._runs("1", ())[::-1]

    def _runs(self, condition, values):
        with self._transaction("BEGIN"):
            return self._read(condition, values)

    def _read(self, condition, values):
        rows = self._database.execute(
            "SELECT id, student, lab, reason, sandbox, key, feedback, seconds, recorded,"
            f" assignment, submission FROM runs WHERE {condition} ORDER BY id DESC",
            values,
        ).fetchall()
        return [
            Run(SubmissionVerdict(student, lab, self._exercises(run), reason, sandbox), *others)
            for run, student, lab, reason, sandbox, *others in rows
        ]

    def _exercises(self, run):
        items = {}
        for place, *columns, text in self._database.execute(
            "SELECT exercise, item, title, points, outcome, reason, evidence"
            " FROM items WHERE run = ? ORDER BY exercise, place",
            (run,),
        ):
            item = ItemVerdict(*columns, evidence.loads(text))
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

    def _check_health(self):
        (health,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if health != "ok":
            raise InputError(self._damaged(health))

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


def _times(runs):
    """When each run was recorded; where a clock was set back, no earlier than the one before."""
    return list(accumulate((run.recorded for run in runs), max))
