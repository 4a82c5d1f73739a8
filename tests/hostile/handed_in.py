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
    Stopped by: the reader of notebooks
    Status: ungradable
    Points: 0
    Reason: not valid JSON
    """
    put(folder / "no_json" / FILE, attacks.text()[:2000])


def not_utf8(folder, context):
    """Tries: bytes that are no text
    Stopped by: the reader of notebooks
    Status: ungradable
    Points: 0
    Reason: is not UTF-8 text
    """
    put(folder / "not_utf8" / FILE, attacks.text().replace(b"print", b"pr\xff\xfet"))


def old_format(folder, context):
    """Tries: a notebook of format 3
    Stopped by: the reader of notebooks
    Status: ungradable
    Points: 0
    Reason: a notebook of the old format 3
    """
    put(folder / "old_format" / FILE, b'{"nbformat": 3, "metadata": {}, "worksheets": [{}]}')


def nested_deeply(folder, context):
    """Tries: lists in lists, as deep as the reader's stack
    Stopped by: the reader of notebooks
    Status: ungradable
    Points: 0
    Reason: nested too deeply
    """
    put(folder / "nested_deeply" / FILE, b'{"nbformat": 4, "cells": ' + b"[" * 500_000)


def nested_metadata(folder, context):
    """Tries: metadata that JSON can read, but not who walks through them
    Stopped by: the reader of notebooks
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
    """Tries: hundreds of megabytes of outputs that came with it
    Stopped by: a limit of 20 MiB
    Status: ungradable
    Points: 0
    Reason: larger than 20 MiB
    """
    path = folder / "huge" / FILE
    put(path, attacks.text())
    os.truncate(path, 300 << 20)


def unfolds_in_memory(folder, context):
    """Tries: 18 MB of empty objects: gigabytes, once they are read
    Stopped by: a count of lists and objects before they are made
    Status: ungradable
    Points: 0
    Reason: more than 1000000 lists and objects
    """
    parts = b"{}," * 6_000_000 + b"{}"
    put(folder / "unfolds_in_memory" / FILE, b'{"nbformat": 4, "cells": [' + parts + b"]}")


def countless_cells(folder, context):
    """Tries: a hundred thousand cells
    Stopped by: a limit on cells
    Status: ungradable
    Points: 0
    Reason: 100000 cells, more than 10000
    """
    cells = b",".join([b'{"source":""}'] * 100_000)
    put(folder / "countless_cells" / FILE, b'{"nbformat": 4, "cells": [' + cells + b"]}")


def wrong_types(folder, context):
    """Tries: values of other types than a notebook has, where the grader looks
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
    """Tries: without the cell of an answer, which counts as blank
    Stopped by: answers go into a trusted copy
    Status: graded
    Points: 6
    Reason: left blank
    """
    put(
        folder / "missing_answer" / FILE,
        _notebook(lambda made: made["cells"].remove(_answer(made, "bcast_linear"))),
    )


def two_answers(folder, context):
    """Tries: two cells that both marked as the answer
    Stopped by: answers go into a trusted copy
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
    """Tries: answers under names and ids of its own
    Stopped by: answers go into a trusted copy
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


def worth_more(folder, context):
    """Tries: more points in the metadata, locked cells changed, cells added, a verdict as an output
    Stopped by: answers go into a trusted copy; nothing else goes along
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
    """Tries: a symbolic link in the place of the notebook
    Stopped by: links are not followed
    Status: ungradable
    Points: 0
    Reason: is a symbolic link
    """
    (folder / "link_to_a_secret").mkdir()
    (folder / "link_to_a_secret" / FILE).symlink_to(context["HOME_SECRET"])


def link_to_a_student(folder, context):
    """Tries: a symbolic link in the place of its folder, to an honest student's
    Stopped by: links are not followed
    Status: ungradable
    Points: 0
    Reason: is a symbolic link
    """
    (folder / "link_to_a_student").symlink_to(context["HONEST"])


def hard_link(folder, context):
    """Tries: a file that only the grader may read, by a second name of its own
    Stopped by: files with a second name are refused
    Status: ungradable
    Points: 0
    Reason: is a hard link: the file has 2 names
    """
    (folder / "hard_link").mkdir()
    os.link(context["BOOK"], folder / "hard_link" / FILE)


def named_pipe(folder, context):
    """Tries: a pipe in the place of the notebook, which nobody ever writes to
    Stopped by: plain files only, opened without waiting
    Status: ungradable
    Points: 0
    Reason: is not a file
    """
    (folder / "named_pipe").mkdir()
    os.mkfifo(folder / "named_pipe" / FILE)


def zip_that_climbs(folder, context):
    """Tries: a zip with paths that lead out of it
    Stopped by: paths are looked at; nothing is unpacked to disk
    Status: ungradable
    Points: 0
    Reason: a path outside it
    """
    up = "../" * 8 + f"tmp/{context['MARK']}"
    put(folder / "zip_that_climbs.zip", _zipped({FILE: attacks.text(), up: "was here"}))


def zip_bomb(folder, context):
    """Tries: a zip of a few kilobytes that unpacks to megabytes
    Stopped by: a limit on the ratio, before it is unpacked
    Status: ungradable
    Points: 0
    Reason: unpacks to 19000000 bytes
    """
    put(folder / "zip_bomb.zip", _zipped({FILE: b" " * 19_000_000}))


def zip_of_gigabytes(folder, context):
    """Tries: a zip that claims little and holds more
    Stopped by: what is unpacked is held against what was claimed
    Status: ungradable
    Points: 0
    Reason: is damaged
    """
    data = bytearray(_zipped({FILE: attacks.text() + b" " * 100_000}))
    at = data.index(b"PK\x01\x02") + 24
    data[at : at + 4] = (100).to_bytes(4, "little")
    put(folder / "zip_of_gigabytes.zip", bytes(data))


def zip_with_a_link(folder, context):
    """Tries: a symbolic link inside of a zip
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
    Stopped by: a refused name is listed as nobody else's
    Status: ungradable
    Points: 0
    Reason: a student's name of 120 characters
    """
    honest = os.path.basename(context["HONEST"])
    put(folder / (honest + " " * (119 - len(honest)) + "x") / FILE, attacks.text())


def formula_as_a_name(folder, context):
    """Tries: a name that a spreadsheet runs, and a browser
    Stopped by: names are escaped, and quoted for spreadsheets
    Status: graded
    Points: 14
    Reason:
    """
    name = f"=cmd('x')<img src=x onerror=document.title='{context['MARK']}'>"
    put(folder / name / FILE, attacks.text())
