"""When work was handed in, and what lateness costs.

What is decided is kept: the time, the rule it was held against, and the share of the points that
comes off. So it can be told years later, and worked out again by another rule.
"""

import contextlib
import csv
import math
import re
import zipfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from mpilab.errors import InputError
from mpilab.grading.decisions import LATE, Decision, about_of
from mpilab.grading.effective import newest
from mpilab.grading.submission import student_name

DAY = 86_400
_UNITS = {"m": 60, "h": 3600, "d": DAY}


@dataclass(frozen=True)
class Rule:
    """What lateness costs.

    due         when it had to be handed in, an aware datetime.
    per_day     share of the points (0 to 1) that each day begun after it takes.
    most        share that it takes at most.
    grace       seconds that nobody looks at.
    extensions  {student: seconds} that somebody has more.
    """

    due: datetime
    per_day: float
    most: float = 1.0
    grace: int = 0
    extensions: dict = field(default_factory=dict)

    def details(self, submitted, extension):
        """What a Decision keeps of a submission at the time `submitted`."""
        late = (submitted - self.due).total_seconds() - extension
        days = 0 if late <= self.grace else math.ceil(late / DAY)
        return {
            "submitted": _utc(submitted), "due": _utc(self.due), "extension": extension,
            "grace": self.grace, "per_day": self.per_day, "most": self.most, "days": days,
            "share": round(min(days * self.per_day, self.most), 9),
        }  # fmt: skip


def decide(book, lab, times, rule):
    """Decisions on lateness for all students of {student: time}; without those that stand already.

    An extension that was granted before counts on until another one is given.
    """
    runs = {run.verdict.student: run for run in book.newest(lab)}
    standing = newest(book.decisions(lab))
    for student in (*times, *rule.extensions):
        if student not in runs:
            raise InputError(f"student {student!r}: no verdict on {lab} in {book.path}; check the "
                             "name, or grade first")  # fmt: skip
    decisions = []
    for student, submitted in sorted(times.items()):
        before = standing.get((student, LATE, "", ""))
        granted = before.details.get("extension", 0) if before else 0
        details = rule.details(submitted, rule.extensions.get(student, granted))
        about = about_of(runs[student])
        if before is None or (before.details, before.about) != (details, about):
            decisions.append(Decision(lab, student, "", "", LATE, None, words(details), about,
                                      details))  # fmt: skip
    return decisions


def withdraw(book, lab, reason):
    """Decisions that take back all lateness that was found in a lab."""
    standing = newest(book.decisions(lab)).values()
    return [Decision(lab, each.student, "", "", LATE, None, reason, each.about)
            for each in standing if each.kind == LATE and not each.withdrawn]  # fmt: skip


def words(details):
    """What was decided, in a sentence for the student."""
    times = f"Handed in {_local(details['submitted'])}, due {_local(details['due'])}"
    if details["extension"]:
        times += f" with {_length(details['extension'])} more"
    if not details["days"]:
        return f"{times}: in time."
    capped = details["days"] * details["per_day"] > details["most"]
    share, per_day, most = (f"{100 * details[name]:.4g} %" for name in ("share", "per_day", "most"))
    return (
        f"{times}: {details['days']} day{'s' * (details['days'] > 1)} late, {share} of the points "
        f"({per_day} a day{f', at most {most}' * capped})."
    )


def times_of_csv(path):
    """{student: time} of a CSV with the columns student and time; InputError with file:line.

    Who has no time there did not hand in, or nobody knows when: they are left out.
    """
    path = Path(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if not {"student", "time"} <= set(reader.fieldnames or ()):
                raise InputError(f"{path}:1: no columns student and time; write 'student,time', "
                                 "then e.g. 'anna,2026-11-20T22:10'")  # fmt: skip
            times = {}
            for row in reader:
                where = f"{path}:{reader.line_num}"
                student = (row["student"] or "").strip()
                if student in times:
                    raise InputError(f"{where}: {student} stands in two lines; keep the last time")
                time = (row["time"] or "").strip()
                times[student] = moment(time, where) if time else None
            return {student: time for student, time in times.items() if time}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} is not UTF-8; save it as 'CSV UTF-8'"
        ) from None


def times_of_files(path, lab):
    """{student: time} by when the files below `path`, as they are graded, were last changed.

    Copying files may change their times; a zip keeps them to two seconds, in the local time of the
    machine where it was made.
    """
    path, times = Path(path), {}

    def found(name, time):
        # A name that is none is ungradable by that name already (find_submissions tells why).
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
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                parts = PurePosixPath(member.filename).parts
                if len(parts) > 1 and parts[-1] == f"{lab}.ipynb":
                    found(parts[-2], datetime(*member.date_time).astimezone())
    if not times:
        raise InputError(f"{path}: no submission of {lab}; name what was graded, or give --times")
    return times


def moment(text, where):
    """A time as people write it, as an aware datetime; local where it names no zone."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        raise InputError(f"{where}: {text!r} is no time; write e.g. 2026-11-20T23:59, or "
                         "2026-11-20T23:59+01:00") from None  # fmt: skip


def share(text, where):
    """'10%' or '0.1' -> 0.1; InputError outside of 0 to 100 %."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{where} {text!r}: no share of the points; write e.g. 10%")
    return round(value, 9)


def length(text, where):
    """'15m', '2h', '3d' or '0' -> seconds."""
    match = re.fullmatch(r"(\d+)\s*([mhd])", text.strip())
    if not match and text.strip() != "0":
        raise InputError(f"{where} {text!r}: no length of time; write e.g. 15m, 2h or 3d")
    return int(match[1]) * _UNITS[match[2]] if match else 0


def _length(seconds):
    unit = next(unit for unit in ("d", "h", "m") if seconds % _UNITS[unit] == 0)
    name = {"d": "day", "h": "hour", "m": "minute"}[unit]
    count = seconds // _UNITS[unit]
    return f"{count} {name}{'s' * (count != 1)}"


def _utc(time):
    return time.astimezone(UTC).isoformat(timespec="seconds")


def _local(text):
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")
