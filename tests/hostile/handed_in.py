"""Hostile submissions that no file of the repository can hold: each function makes one."""

import io
import json
import os
import stat
import zipfile

import attacks
from attacks import LAB, POINTS, put

FILE = f"{LAB}.ipynb"
ALL = sum(POINTS.values())


def _notebook(change):
    """The right notebook after `change` of it, as bytes."""
    made = json.loads(attacks.text())
    change(made)
    return json.dumps(made).encode()


def _answer(made, name):
    return next(
        cell
        for cell in made["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == name
    )


def _zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def no_json(folder, context):
    """Tries: half a file
    Stopped by: the notebook reader
    Status: ungradable
    Points: 0
    Reason: not valid JSON
    """
    put(folder / "no_json" / FILE, attacks.text()[:2000])


def not_utf8(folder, context):
    """Tries: bytes that are not text
    Stopped by: the notebook reader
    Status: ungradable
    Points: 0
    Reason: is not UTF-8 text
    """
    put(folder / "not_utf8" / FILE, attacks.text().replace(b"print", b"pr\xff\xfet"))


def old_format(folder, context):
    """Tries: a notebook in format 3
    Stopped by: the notebook reader
    Status: ungradable
    Points: 0
    Reason: a notebook of the old format 3
    """
    put(folder / "old_format" / FILE, b'{"nbformat": 3, "metadata": {}, "worksheets": [{}]}')


def nested_deeply(folder, context):
    """Tries: lists nested as deep as the reader's stack
    Stopped by: the notebook reader
    Status: ungradable
    Points: 0
    Reason: nested too deeply
    """
    put(folder / "nested_deeply" / FILE, b'{"nbformat": 4, "cells": ' + b"[" * 500_000)


def nested_metadata(folder, context):
    """Tries: metadata that JSON can read, but a recursive function cannot
    Stopped by: the notebook reader
    Status: ungradable
    Points: 0
    Reason: nested too deeply
    """
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    put(
        folder / "nested_metadata" / FILE,
        attacks.text().replace(b'"metadata": {}', b'"metadata": ' + deep, 1),
    )


def huge(folder, context):
    """Tries: hundreds of megabytes of stored outputs
    Stopped by: a limit of 20 MiB
    Status: ungradable
    Points: 0
    Reason: larger than 20 MiB
    """
    path = folder / "huge" / FILE
    put(path, attacks.text())
    os.truncate(path, 300 << 20)


def unfolds_in_memory(folder, context):
    """Tries: 18 MB of empty objects, which take gigabytes once parsed
    Stopped by: a count of lists and objects before parsing
    Status: ungradable
    Points: 0
    Reason: more than 1000000 lists and objects
    """
    parts = b"{}," * 6_000_000 + b"{}"
    put(folder / "unfolds_in_memory" / FILE, b'{"nbformat": 4, "cells": [' + parts + b"]}")


def countless_cells(folder, context):
    """Tries: a hundred thousand cells
    Stopped by: a limit on the number of cells
    Status: ungradable
    Points: 0
    Reason: 100000 cells, more than 10000
    """
    cells = b",".join([b'{"source":""}'] * 100_000)
    put(folder / "countless_cells" / FILE, b'{"nbformat": 4, "cells": [' + cells + b"]}")


def wrong_types(folder, context):
    """Tries: values of unexpected types wherever the grader looks
    Stopped by: only text is taken, whatever the types
    Status: graded
    Points: 14
    Reason:
    """

    def change(made):
        odd = [
            {"id": []},
            {"id": {}},
            {"metadata": 5},
            {"metadata": {"nbgrader": [1]}},
            {"metadata": {"nbgrader": {"grade_id": {}}}},
            {"cell_type": {}},
        ]
        usual = {"cell_type": "code", "source": "", "metadata": {}}
        made["cells"] += [{**usual, **each, "get": 1} for each in odd]
        made["metadata"] = made["nbformat_minor"] = [float("nan")]

    put(folder / "wrong_types" / FILE, _notebook(change))


def missing_answer(folder, context):
    """Tries: a notebook without one of the answer cells, which counts as blank
    Stopped by: answers are copied into a trusted notebook
    Status: graded
    Points: 6
    Reason: left blank
    """
    put(
        folder / "missing_answer" / FILE,
        _notebook(lambda made: made["cells"].remove(_answer(made, "bcast_linear"))),
    )


def two_answers(folder, context):
    """Tries: two cells that are both marked as the answer
    Stopped by: answers are copied into a trusted notebook
    Status: ungradable
    Points: 0
    Reason: both marked as the answer
    """

    def change(made):
        again = json.loads(json.dumps(_answer(made, "placement")))
        again["source"] = "def placement(*arguments):\n    return []"
        made["cells"].append(again)

    put(folder / "two_answers" / FILE, _notebook(change))


def renamed_answers(folder, context):
    """Tries: answers under other names and ids
    Stopped by: answers are copied into a trusted notebook
    Status: ungradable
    Points: 0
    Reason: none of the 2 answer cells
    """

    def change(made):
        for name in POINTS:
            cell = _answer(made, name)
            cell["metadata"]["nbgrader"]["grade_id"] = f"{name}_2"
            cell["id"] = f"{name}-2"

    put(folder / "renamed_answers" / FILE, _notebook(change))


def half_a_character(folder, context):
    """Tries: half of a surrogate pair in an answer, which no file can hold
    Stopped by: the reader of notebooks
    Status: ungradable
    Points: 0
    Reason: holds half a character
    """

    def change(made):
        cell = _answer(made, "bcast_linear")
        cell["source"] = "".join(cell["source"]) + "/* \ud800 */"

    put(folder / "half_a_character" / FILE, _notebook(change))


def long_number(folder, context):
    """Tries: a number of 100,000 digits, which Python refuses to read
    Stopped by: the reader of notebooks
    Status: ungradable
    Points: 0
    Reason: not usable as JSON
    """
    digits = b'"nbformat": 4, "x": ' + b"1" * 100_000
    put(folder / "long_number" / FILE, attacks.text().replace(b'"nbformat": 4', digits))


def answers_of_other_kinds(folder, context):
    """Tries: answers in cells that are not code, in a million parts, with a path before the name
    Stopped by: only the text of an answer cell is used, whatever its type
    Status: graded
    Points: 14
    Reason:
    """

    def change(made):
        kernel, function = _answer(made, "bcast_linear"), _answer(made, "placement")
        kernel["cell_type"] = "markdown"
        named = "".join(kernel["source"]).replace("%%kernel ", "%%kernel ../../tmp/x;id ", 1)
        kernel["source"] = named
        function["cell_type"] = "raw"
        function["source"] = [*"".join(function["source"]), "\n", *("#" * 900_000)]

    put(folder / "answers_of_other_kinds" / FILE, _notebook(change))


def minus_minus(folder, context):
    """Tries: an expression nested deeper than Python's compiler can follow
    Stopped by: the sandbox: its own process raises an error
    Status: graded
    Points: 8
    Reason: raised MemoryError | raised RecursionError
    """

    def change(made):
        cell = _answer(made, "placement")
        cell["source"] = "".join(cell["source"]) + f"\nq = {'-' * 200_000}1"

    put(folder / "minus_minus" / FILE, _notebook(change))


def folder_and_zip(folder, context):
    """Tries: two submissions under one name, a folder and a zip
    Stopped by: neither is graded
    Status: ungradable
    Points: 0
    Reason: handed in 2 times
    """
    put(folder / "folder_and_zip" / FILE, attacks.text())
    put(folder / "folder_and_zip.zip", _zipped({FILE: attacks.text()}))


def zip_of_folders(folder, context):
    """Tries: a zip of a hundred thousand empty folders
    Stopped by: a limit on the size of a zip
    Status: ungradable
    Points: 0
    Reason: the zip is too large
    """
    folders = dict.fromkeys((f"{number}/" for number in range(100_000)), b"")
    put(folder / "zip_of_folders.zip", _zipped({**folders, FILE: attacks.text()}))


def device(folder, context):
    """Tries: a device that never ends in place of the notebook
    Stopped by: only regular files are opened
    Status: ungradable
    Points: 0
    Reason: is not a file
    """
    (folder / "device").mkdir()
    os.mknod(folder / "device" / FILE, stat.S_IFCHR | 0o644, os.makedev(1, 5))


def worth_more(folder, context):
    """Tries: more points in the metadata, changed locked cells, added cells, a verdict as an output
    Stopped by: answers are copied into a trusted notebook; nothing else is
    Status: graded
    Points: 14
    Reason:
    """

    def change(made):
        for name in POINTS:
            _answer(made, name)["metadata"]["nbgrader"] |= {"points": 1000, "locked": True}
        added = "import mpilab.judging.judge\nmpilab.judge.fail_all = None\nprint('@MARK@')"
        made["cells"].insert(
            0,
            {
                "cell_type": "code",
                "source": added.replace("@MARK@", context["MARK"]),
                "metadata": {},
                "outputs": [],
            },
        )
        for cell in made["cells"]:
            if cell["cell_type"] == "code" and cell["source"] != added:
                cell["outputs"] = [
                    {
                        "output_type": "stream",
                        "name": "stdout",
                        "text": f"all checks pass {context['MARK']}",
                    }
                ]

    put(folder / "worth_more" / FILE, _notebook(change))


def link_to_a_secret(folder, context):
    """Tries: a symbolic link in place of the notebook
    Stopped by: links are not followed
    Status: ungradable
    Points: 0
    Reason: is a symbolic link
    """
    (folder / "link_to_a_secret").mkdir()
    (folder / "link_to_a_secret" / FILE).symlink_to(context["HOME_SECRET"])


def link_to_a_student(folder, context):
    """Tries: a symbolic link to an honest student's folder, in place of its own
    Stopped by: links are not followed
    Status: ungradable
    Points: 0
    Reason: is a symbolic link
    """
    (folder / "link_to_a_student").symlink_to(context["HONEST"])


def hard_link(folder, context):
    """Tries: a file that only the grader may read, through a second name
    Stopped by: files with more than one name are refused
    Status: ungradable
    Points: 0
    Reason: is a hard link: the file has 2 names
    """
    (folder / "hard_link").mkdir()
    os.link(context["BOOK"], folder / "hard_link" / FILE)


def named_pipe(folder, context):
    """Tries: a pipe to which nothing is ever written, in place of the notebook
    Stopped by: only plain files are read, opened without blocking
    Status: ungradable
    Points: 0
    Reason: is not a file
    """
    (folder / "named_pipe").mkdir()
    os.mkfifo(folder / "named_pipe" / FILE)


def zip_that_climbs(folder, context):
    """Tries: a zip with paths that lead out of it
    Stopped by: paths are checked; nothing is unpacked to disk
    Status: ungradable
    Points: 0
    Reason: a path outside it
    """
    up = "../" * 8 + f"tmp/{context['MARK']}"
    put(folder / "zip_that_climbs.zip", _zipped({FILE: attacks.text(), up: "was here"}))


def zip_bomb(folder, context):
    """Tries: a zip of a few kilobytes that unpacks to megabytes
    Stopped by: a limit on the compression ratio, checked before unpacking
    Status: ungradable
    Points: 0
    Reason: unpacks to 19000000 bytes
    """
    put(folder / "zip_bomb.zip", _zipped({FILE: b" " * 19_000_000}))


def zip_of_gigabytes(folder, context):
    """Tries: a zip that contains more than it declares
    Stopped by: the unpacked size is compared with the declared one
    Status: ungradable
    Points: 0
    Reason: is damaged
    """
    data = bytearray(_zipped({FILE: attacks.text() + b" " * 100_000}))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (100).to_bytes(4, "little")
    put(folder / "zip_of_gigabytes.zip", bytes(data))


def zip_with_a_link(folder, context):
    """Tries: a symbolic link inside a zip
    Stopped by: links are refused
    Status: ungradable
    Points: 0
    Reason: is a symbolic link
    """
    link = zipfile.ZipInfo(FILE)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    put(folder / "zip_with_a_link.zip", _zipped({link: str(context["HOME_SECRET"])}))


def takes_anothers_name(folder, context):
    """Tries: a folder whose name, cut to its first 100 characters, is an honest student's
    Stopped by: a refused name is listed in full, as no other student's
    Status: ungradable
    Points: 0
    Reason: a student's name of 120 characters
    """
    honest = os.path.basename(context["HONEST"])
    put(folder / (honest + " " * (119 - len(honest)) + "x") / FILE, attacks.text())


def formula_as_a_name(folder, context):
    """Tries: a name that a spreadsheet or a browser would execute
    Stopped by: names are escaped, and quoted for spreadsheets
    Status: graded
    Points: 14
    Reason:
    """
    name = f"=cmd('x')<img src=x onerror=document.title='{context['MARK']}'>"
    put(folder / name / FILE, attacks.text())
