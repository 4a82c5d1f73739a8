"""The tables of a gradebook, in SQLite: made, brought up to date, and written to."""

import sqlite3
import time

from mpilab.errors import InputError
from mpilab.grading import evidence

# PRAGMA application_id marks the file as ours ("mpil"), user_version numbers the tables below.
APPLICATION = 0x6D70696C
SCHEMA = 3
LOOK_S = 0.01  # between two attempts at what SQLite does not wait for

# Statements end at an empty line: a trigger has semicolons within.
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
    submission TEXT NOT NULL DEFAULT ''
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
    PRIMARY KEY (run, exercise, place)
) WITHOUT ROWID
"""
# What people have decided: only ever added to. `class` is who is in the class as it was graded
# last, and why somebody has no verdict.
_PEOPLE = """
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
# From each older version to the next.
_UPGRADES = {
    1: ["ALTER TABLE runs ADD COLUMN assignment TEXT NOT NULL DEFAULT ''"],
    2: [
        "ALTER TABLE runs ADD COLUMN submission TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE exercises ADD COLUMN answer TEXT",
        "ALTER TABLE exercises ADD COLUMN rubric TEXT NOT NULL DEFAULT ''",
        *_PEOPLE.split("\n\n"),
    ],
}


def prepare(database, path, wait):
    """Make the tables of a new file, or bring older ones up to date; `wait` seconds at most for
    others who do the same.

    Raises InputError for a file that isn't ours to write: of another program, or of a newer mpilab.
    """
    database.execute("BEGIN")  # or what is read below might be of two moments
    try:
        new = _is_new(database, path)
    finally:
        database.execute("ROLLBACK")
    _use_wal(database, wait)
    if new:
        database.execute("BEGIN IMMEDIATE")
        # Another grader may have made them since we looked.
        if _is_new(database, path):
            for statement in [*_TABLES.split("\n\n"), *_PEOPLE.split("\n\n")]:
                database.execute(statement)
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {SCHEMA}")
        database.execute("COMMIT")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version < SCHEMA:
        _upgrade(database)
    database.execute("PRAGMA foreign_keys = ON")


def _use_wal(database, wait):
    """Keep a write-ahead log. SQLite does not wait by itself for another one who switches to it."""
    give_up = time.monotonic() + wait
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(LOOK_S)


def _upgrade(database):
    """Bring a gradebook of an older mpilab up to date, in one transaction."""
    database.execute("BEGIN IMMEDIATE")
    (version,) = database.execute("PRAGMA user_version").fetchone()
    for older in range(version, SCHEMA):
        for statement in _UPGRADES[older]:
            database.execute(statement)
    database.execute(f"PRAGMA user_version = {SCHEMA}")
    database.execute("COMMIT")


def _is_new(database, path):
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
            f"{path}: a gradebook of version {version}, and this mpilab knows version "
            f"{SCHEMA}; use the mpilab that wrote it, or a newer one"
        )
    return False


def insert(database, run):
    """Write a Run as the newest; within a transaction."""
    verdict = run.verdict
    number = database.execute(
        "INSERT INTO runs (student, lab, key, status, total, reason, sandbox, feedback, seconds,"
        " recorded, assignment, submission) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(verdict.student, verdict.lab, run.key, verdict.status, verdict.total),
            *(verdict.reason, verdict.sandbox, run.feedback, run.seconds, run.recorded),
            *(run.assignment, run.submission),
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
                "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(number, place, rank, item.item, item.title, float(item.points)),
                    *(item.outcome, item.reason, evidence.dumps(item.evidence)),
                ),
            )


def insert_decision(database, decision):
    """Write a Decision, unless it is there; within a transaction. True if it was not."""
    return (
        database.execute(
            "INSERT INTO decisions (token, lab, student, exercise, item, kind, points, reason,"
            " about, details, who, decided) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (token) DO NOTHING",
            (
                *(decision.token, decision.lab, decision.student, decision.exercise),
                *(decision.item, decision.kind, decision.points, decision.reason),
                *(decision.about, evidence.dumps(decision.details), decision.who),
                decision.decided,
            ),
        ).rowcount
        == 1
    )


def decisions(database, lab):
    """Decisions on a lab as the columns of a Decision, oldest first."""
    for *columns, details, who, decided, token in database.execute(
        "SELECT lab, student, exercise, item, kind, points, reason, about, details, who, decided,"
        " token FROM decisions WHERE lab = ? ORDER BY decided, token",
        (lab,),
    ):
        yield (*columns, evidence.loads(details), who, decided, token)
