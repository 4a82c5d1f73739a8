"""Return feedback: pages and comments in the form in which each platform imports them.

In: a graded class, and the table of `mpilab collect`, which tells where each submission came from.
Out: what `give_back` writes. It sends nothing: the instructor uploads or pushes the result.
"""

import html
import io
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from mpilab.course.collect import (
    CANVAS,
    CANVAS_ANONYMOUS,
    CANVAS_NAME,
    GITHUB,
    GRADESCOPE,
    MOODLE,
    MOODLE_NAME,
    NBGRADER,
    time_in,
)
from mpilab.course.export import (
    comment_markdown,
    comment_text,
    gradescope,
    moodle_worksheet,
    new_worksheet,
)
from mpilab.course.marks import ClassMarks, require_final
from mpilab.errors import InputError, SetupError, Ungradable
from mpilab.grading.decisions import Effective
from mpilab.grading.marks import opened, remarked
from mpilab.grading.submission import TABLE, Roster, read_roster
from mpilab.util.files import atomic_write
from mpilab.util.text import composed, plain

AUTO, FOLDERS = "auto", "folders"

# nbgrader releases feedback only with these beside it (nbgrader/exchange/default/
# release_feedback.py): they tell its fetch_feedback whose page it is.
_NBGRADER_KEYS = ("timestamp.txt", "submission_secret.txt")


class Page(NamedTuple):
    """The feedback of a student with a final mark.

    effective   the marks in effect
    html        the page, with these marks
    entry       the student's row in the table of `mpilab collect`; {} if there is none
    """

    effective: Effective
    html: str
    entry: Mapping[str, str]

    @property
    def student(self) -> str:
        """The student's name in the gradebook."""
        return self.effective.student

    @property
    def source(self) -> tuple[str, ...]:
        """The parts of the submission's path in the download; () if it is not known."""
        return tuple(filter(None, self.entry.get("source", "").split("/")))


@dataclass(frozen=True)
class Job:
    """What is to be written for a platform.

    pages      the feedback of the students with a final mark
    unmarked   the other students, whose feedback is not to be written
    target     the folder to write
    roster     {student: row in the table of `mpilab collect`}
    table      the file with that table, for messages
    """

    marks: ClassMarks
    pages: list[Page]
    unmarked: set[str]
    target: Path
    roster: Roster
    table: Path
    template: Path | None
    source: Path | None
    visibility: str
    scale: bool


@dataclass(frozen=True)
class Returned:
    """What was written for a platform.

    paths      files and folders
    students   the students whose feedback is in them
    without    a line for each student whose feedback is not, although it should be
    notes      other lines for the instructor
    steps      what to do with the files
    """

    paths: list[Path]
    students: list[str]
    without: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)


def give_back(
    marks: ClassMarks,
    out: str | Path,
    *,
    to: str = AUTO,
    target: Path | None = None,
    partial: bool = False,
    roster: Path | None = None,
    template: Path | None = None,
    source: Path | None = None,
    visibility: str = "after_published",
    scale: bool = False,
) -> tuple[str, Returned]:
    """Write the feedback on a lab in the form of a platform; (the platform, Returned).

    out          the folder that `mpilab grade` has filled, with the pages
    to           a key of PLATFORMS, or 'auto': the one that the submissions were collected from
    target       the folder to write; default: OUT/PLATFORM
    partial      leave out students without a final mark, instead of raising InputError
    roster       the table of `mpilab collect`; default: the copy that `mpilab grade` left in `out`
    template     Moodle's grading worksheet, to be filled in
    source       what was collected: GitHub Classroom's repositories, or nbgrader's course
    visibility   Gradescope: when students see their tests
    scale        Moodle: scale marks to the template's maximum points

    Raises InputError, before it writes anything, if a student could get another's page.
    """
    out = Path(out)
    unmarked = require_final(marks, partial)
    table = roster or out / TABLE
    entries = read_roster(table, marks.lab) if roster or table.is_file() else {}
    to = _platform(entries, table) if to == AUTO else to
    pages, without = _pages(marks, out, unmarked, entries)
    job = Job(
        *(marks, pages, unmarked, target or out / to, entries, table),
        *(template, source, visibility, scale),
    )
    done = PLATFORMS[to](job)
    ungraded = sorted(set(entries) - {each.student for each in marks.students})
    without += [*done.without, *(f"{one}: collected, but not graded" for one in ungraded)]
    return to, Returned(done.paths, done.students, without, done.notes, done.steps)


def _platform(entries: Roster, table: Path) -> str:
    """The platform that the submissions came from; FOLDERS if none is known."""
    known = {entry.get("platform", "") for entry in entries.values()} - {""}
    if len(known) > 1 or not known <= set(PLATFORMS):
        raise InputError(
            f"{table}: submissions from {', '.join(sorted(known))}; choose one of "
            f"{', '.join(PLATFORMS)} with --to"
        )
    return next(iter(known), FOLDERS)


def _pages(
    marks: ClassMarks, out: Path, unmarked: set[str], entries: Roster
) -> tuple[list[Page], list[str]]:
    """(the pages with the marks in effect, a line for each student without a usable one)."""
    pages, without = [], []
    with opened(out, marks.lab) as book:
        runs = {run.verdict.student: run for run in book.newest(marks.lab)}
        touched = {decision.student for decision in book.decisions(marks.lab)}
    for each in marks.students:
        if each.student in unmarked:
            continue
        run = runs.get(each.student)
        path = out / ((run and run.feedback) or f"feedback/{each.student}.html")
        if not path.resolve().is_relative_to(out.resolve()):
            raise InputError(f"{path}: the page of {each.student!r} is outside of {out}; move it")
        if not path.is_file():
            without.append(f"{each.student}: {path} is missing; grade this submission again")
            continue
        text = path.read_text(encoding="utf-8")
        # A page that was copied or renamed by hand must not reach somebody else.
        title = html.unescape(text.partition("<title>")[2].partition("</title>")[0])
        if not title.endswith(f": feedback for {plain(each.student)}"):
            raise InputError(
                f"{path}: is titled {title[:100]!r}, so it is not the page of {each.student!r}; "
                "remove it, and grade this submission again"
            )
        current = remarked(text, each) if each.student in touched else text
        if current is None:
            without.append(f"{each.student}: {path} is of an older mpilab; grade it again")
            continue
        pages.append(Page(each, current, entries.get(each.student, {})))
    return pages, without


def _refuse_equal(names: Mapping[str, str], what: str) -> None:
    """InputError if two of {student: name} are equal where case or composition do not count."""
    seen: dict[str, str] = {}
    for student, name in names.items():
        folded = composed(name).casefold()
        other = seen.setdefault(folded, student)
        if other != student:
            raise InputError(
                f"{what} {name!r} would be both {other!r}'s and {student!r}'s, at least where "
                "upper and lower case are the same; nothing was written. Rename one of the "
                "submissions, and grade it again"
            )


def _write_folders(target: Path, files: Mapping[str, Path], job: Job, gone: Iterable[Path]) -> None:
    """Write {student: path below `target`}, and remove `gone`: pages of an earlier return."""
    _refuse_equal({student: str(path) for student, path in files.items()}, "the file")
    for path in (target / one for one in gone):
        path.unlink(missing_ok=True)
    pages = {page.student: page.html for page in job.pages}
    for student, path in files.items():
        atomic_write(target / path, pages[student])


def _zip(target: Path, members: Mapping[str, str], executable: Iterable[str] = ()) -> Path:
    """Write {name: text} as a zip; the same texts give the same bytes."""
    executable = set(executable)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = (0o755 if name in executable else 0o644) << 16
            archive.writestr(member, text.encode())
    return atomic_write(target, data.getvalue())


def _same(first: str, second: str) -> bool:
    """True if two names differ at most in Unicode's composition."""
    return composed(first) == composed(second)


def _handed_in(job: Job) -> list[Page]:
    """The pages of students who handed in something, and so have a place for them."""
    return [page for page in job.pages if not page.effective.is_absent]


def _unknown(page: Page, job: Job, platform: str) -> str:
    return (
        f"{page.student}: {job.table} does not tell which file in {platform}'s download is "
        "theirs; collect again, or name the table with --roster"
    )


# Plain folders, and Gradescope.

_AUTOGRADER = resources.files("mpilab.course") / "gradescope_autograder.py"
# Its images have Python, but nothing says that they always will.
_GRADESCOPE_SETUP = """\
#!/bin/sh
command -v python3 || { apt-get update && apt-get install -y python3; }
"""


def _folders(job: Job) -> Returned:
    lab, students = job.marks.lab, [page.student for page in job.pages]
    gone = [Path(student, f"{lab}.html") for student in job.unmarked]
    _write_folders(job.target, {s: Path(s, f"{lab}.html") for s in students}, job, gone)
    return Returned([job.target], students)


def _gradescope(job: Job) -> Returned:
    _refuse_equal({each.student: each.student for each in job.marks.students}, "the folder")
    done = gradescope(job.marks, job.target, visibility=job.visibility, partial=True)
    emails = {}
    for student in done:
        entry = job.roster.get(student, {})
        email = entry.get("email") or entry.get("id", "")
        if "@" in email:
            emails[student] = email
    if not emails:
        notes = [
            f"{job.target}: no autograder.zip, which needs addresses: collect from Gradescope's "
            "export, or name a table with the columns student and email with --roster"
        ]
        return Returned([job.target], done, notes=notes)
    _refuse_equal(emails, "the e-mail address")
    without = [f"{one}: no e-mail address in {job.table}" for one in done if one not in emails]
    places = {email.casefold(): f"results/{n}.json" for n, email in enumerate(emails.values())}
    members = {
        "setup.sh": _GRADESCOPE_SETUP,
        "run_autograder": _AUTOGRADER.read_text("utf-8"),
        "students.json": json.dumps(places, indent=1, ensure_ascii=False),
    }
    for student, place in zip(emails, places.values(), strict=True):
        members[place] = (job.target / student / "results.json").read_text("utf-8")
    archive = _zip(job.target / "autograder.zip", members, ("setup.sh", "run_autograder"))
    steps = [
        f"in the assignment, 'Configure Autograder': upload {archive}",
        "then 'Regrade All Submissions': each student gets the results in it",
    ]
    return Returned([archive], list(emails), without, steps=steps)


# Moodle: 'Upload multiple feedback files in a zip' finds a student by the number in the name of
# the folder (mod/assign/feedback/file/importziplib.php), 'Upload grading worksheet' by the column
# Identifier. Both must be as Moodle wrote them.


def _moodle(job: Job) -> Returned:
    named, without = {}, []
    # (marks, number, name, time) of each row of the worksheet.
    known: list[tuple[Effective, str, str, datetime | None]] = []
    for page in job.pages:
        number = page.entry.get("id", "")
        if page.effective.is_absent and number:  # a mark, but no page to read
            known.append((page.effective, number, page.student, None))
            continue
        names = filter(None, map(MOODLE_NAME.fullmatch, page.source))
        # A folder within the submission may have such a name, too.
        found = next((each for each in names if each["id"] == number), None)
        if found is None:
            without.append(_unknown(page, job, "Moodle"))
        else:
            named[page.student] = (page, found)
            time = time_in(job.table, page.student, page.entry.get("time", ""))
            known.append((page.effective, number, found["name"], time))
    _refuse_equal({each.student: number for each, number, *_ in known}, "the number")
    name = f"{job.marks.lab}-feedback.html"
    members = {}
    for page, found in named.values():
        file = found["file"] or ""
        place = found[0].removesuffix(file) + name if file else f"{found[0]}/{name}"
        members[place] = page.html
    notes: list[str] = []
    if job.template:
        sheet = moodle_worksheet(
            job.marks, job.template, roster=job.roster or None, partial=True, scale=job.scale
        )
        text = sheet.text
        without += [f"{student}: no row in {job.template}" for student in sheet.without]
        notes = [f"{job.template}: no mark for the row of {row}" for row in sheet.unmarked]
    else:
        entries = [
            (
                each,
                {
                    "Identifier": f"Participant {number}",
                    "Full name": full_name,
                    "Last modified (submission)": _moodle_time(time),
                },
            )
            for each, number, full_name, time in known
        ]
        text = new_worksheet(job.marks, entries)
    paths = [
        atomic_write(job.target / "worksheet.csv", text),
        _zip(job.target / "feedback.zip", members),
    ]
    steps = [
        "in the assignment, first 'Upload grading worksheet': worksheet.csv (points, reasons)",
        "then 'Upload multiple feedback files in a zip': feedback.zip (pages)",
    ]
    return Returned(paths, [each.student for each, *_ in known], without, notes, steps)


def _moodle_time(time: datetime | None) -> str:
    """The time of a submission as Moodle writes it in English, or a dash."""
    return time.strftime("%A, %d %B %Y, %I:%M %p") if time else "–"


# Canvas: 'Upload Submissions' attaches each file of a zip to a comment. It finds the student and
# the submission by the first two numbers between underscores in its name (Assignment#
# infer_comment_context_from_filename in canvas-lms). Comments as text go through its API:
# https://canvas.instructure.com/doc/api/submissions.html#method.submissions_api.bulk_update


def _canvas(job: Job) -> Returned:
    members, comments, ids, without = {}, {}, {}, []
    for page in job.pages:
        number = page.entry.get("id", "")
        names = [
            match
            for form in (CANVAS_ANONYMOUS, CANVAS_NAME)
            for match in map(form.fullmatch, page.source)
            if match
        ]
        found = next((each for each in names if each["id"] == number), None)
        # Of a group, the file is under the number of one member: the others get words only.
        if not number or (not names and not page.effective.is_absent):
            without.append(_unknown(page, job, "Canvas"))
            continue
        ids[page.student] = number
        if found is not None:
            members[f"{found['start']}{job.marks.lab}-feedback.html"] = page.html
        if number.isdigit():  # of an anonymous assignment, Canvas tells no numbers
            comments[number] = {"text_comment": comment_text(page.effective)}
    _refuse_equal(ids, "the number")
    body = json.dumps({"grade_data": comments}, indent=2, ensure_ascii=False)
    paths = [
        _zip(job.target / "feedback.zip", members),
        atomic_write(job.target / "comments.json", body + "\n"),
    ]
    steps = [
        "pages: in the assignment, 'Upload Submissions': feedback.zip",
        "reasons as text, through the API (docs/reporting.md has the command): comments.json",
        "do each only once: Canvas adds a comment each time",
    ]
    return Returned(paths, list(ids), without, steps=steps)


# nbgrader: its feedback tree, as `nbgrader generate_feedback` would write it.


def _nbgrader(job: Job) -> Returned:
    course = job.source or job.target
    files, keys, without, missing = {}, {}, [], []
    for page in _handed_in(job):
        parts = page.source
        parts = parts[parts.index("submitted") + 1 :] if "submitted" in parts else parts
        # In nbgrader, another spelling of the name in Unicode would be another student.
        student = parts[0] if len(parts) > 2 else page.student
        stem = Path(parts[-1]).stem if len(parts) > 2 else job.marks.lab
        if not _same(student, page.student):
            without.append(_unknown(page, job, "nbgrader"))
            continue
        folder = Path("feedback", student, job.marks.lab)
        files[page.student] = folder / f"{stem}.html"
        own = course / "submitted" / student / job.marks.lab
        found = {name: own / name for name in _NBGRADER_KEYS if (own / name).is_file()}
        keys.update({job.target / folder / name: path for name, path in found.items()})
        if len(found) < len(_NBGRADER_KEYS):
            missing.append(page.student)
    gone = [
        path.relative_to(job.target)
        for student in job.unmarked
        for path in (job.target / "feedback" / student / job.marks.lab).glob("*.html")
    ]
    _write_folders(job.target, files, job, gone)
    for path, key in keys.items():
        atomic_write(path, key.read_bytes())
    notes = []
    if missing:
        listed = ", ".join(missing[:5]) + ", …" * (len(missing) > 5)
        notes.append(
            f"{course / 'submitted'}: no {' and '.join(_NBGRADER_KEYS)} of {listed}; 'nbgrader "
            "release_feedback' needs them. Name the course's folder with --source"
        )
    steps = [
        f"copy {job.target / 'feedback'} into the course's folder, if it is not there",
        f"run there: nbgrader release_feedback {job.marks.lab}",
    ]
    return Returned([job.target / "feedback"], list(files), without, notes, steps)


# GitHub Classroom: a commit on a branch of its own in each clone. Neither the work tree nor any
# other branch changes. The clone is the students' work, so no hook, filter or remote of it runs.

_GIT = (
    *("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "protocol.allow=never", "-c", "commit.gpgSign=false"),
)
_AUTHOR = {
    f"GIT_{role}_{part}": value
    for role in ("AUTHOR", "COMMITTER")
    for part, value in (("NAME", "mpilab"), ("EMAIL", "mpilab@localhost"))
}


def _github(job: Job) -> Returned:
    if shutil.which("git") is None:
        raise SetupError("git is not installed; install it with the system's package manager")
    if job.source is None:
        raise InputError(
            "github-classroom: give the folder with the clones, as for 'mpilab collect', with "
            "--source DIR"
        )
    lab, branch = job.marks.lab, f"feedback-{job.marks.lab}"
    clones, without, done, unchanged = {}, [], [], 0
    for page in _handed_in(job):
        clone = _clone_of(page, job.source)
        if clone is None:
            without.append(f"{page.student}: no clone of theirs in {job.source}")
        else:
            clones[page.student] = (page, clone)
    _refuse_equal({student: str(clone) for student, (_, clone) in clones.items()}, "the clone")
    for student, (page, clone) in clones.items():
        title = f"{job.marks.title}: feedback"
        files = {
            f"feedback/{lab}.md": comment_markdown(page.effective, title),
            f"feedback/{lab}.html": page.html,
        }
        try:
            unchanged += not _commit(clone, branch, files, f"Feedback on {lab}")
        except Ungradable as error:
            without.append(f"{student}: {error}")
        else:
            done.append(student)
    notes = [f"{unchanged} of them as before"] if unchanged else []
    steps = [f"to publish it: git -C CLONE push origin {branch}, in each clone"]
    return Returned([job.source], done, without, notes, steps)


def _clone_of(page: Page, source: Path) -> Path | None:
    """The folder of the student's clone, which is no link; None if there is none."""
    for depth in (1, 2):
        path = source.joinpath(*page.source[:depth])
        links = [each for each in (path, path / ".git") if each.is_symlink()]
        named = composed(path.name).endswith(page.student)
        if len(page.source) > depth and named and not links and (path / ".git").is_dir():
            return path
    return None


def _commit(clone: Path, branch: str, files: Mapping[str, str], message: str) -> bool:
    """Commit `files` on a branch of a clone; False if it holds them already.

    The branch begins at the commit that is checked out. Raises Ungradable with git's message.
    """
    with tempfile.TemporaryDirectory() as scratch:
        own = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
        env = {**own, **_AUTHOR, "GIT_INDEX_FILE": f"{scratch}/index", "LC_ALL": "C"}

        def git(*words: str, data: str = "", may_fail: bool = False) -> str:
            ran = subprocess.run(
                [*_GIT, f"--git-dir={clone.absolute() / '.git'}", *words],
                input=data.encode(),
                capture_output=True,
                env=env,
                cwd=scratch,
            )
            if ran.returncode and not may_fail:
                said = ran.stderr.decode(errors="replace").strip().splitlines() or [""]
                raise Ungradable(f"{clone}: git {words[0]} failed: {plain(said[-1])}")
            return ran.stdout.decode(errors="replace").strip() if not ran.returncode else ""

        tip = git("rev-parse", "--verify", "--quiet", f"refs/heads/{branch}", may_fail=True)
        base = tip or git("rev-parse", "--verify", "HEAD^{commit}")
        git("read-tree", base)
        for name, text in files.items():
            blob = git("hash-object", "-w", "--stdin", data=text)
            git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
        tree = git("write-tree")
        if tree == git("rev-parse", f"{base}^{{tree}}"):
            return False
        commit = git("commit-tree", tree, "-p", base, "-m", message)
        git("update-ref", f"refs/heads/{branch}", commit, tip or "0" * len(commit))
        return True


# What `mpilab feedback --to` offers.
PLATFORMS: dict[str, Callable[[Job], Returned]] = {
    MOODLE: _moodle,
    CANVAS: _canvas,
    GITHUB: _github,
    NBGRADER: _nbgrader,
    GRADESCOPE: _gradescope,
    FOLDERS: _folders,
}
