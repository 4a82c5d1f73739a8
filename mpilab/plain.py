"""Text that programs wrote, made fit to be shown: for panels and for feedback pages alike."""

import re

# Control sequences (colours), operating system commands (links), strings, two-letter escapes.
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
# The last group would turn the direction of writing: code that reads differently than it runs.
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff"
    r"\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def plain(text):
    """`text` without colours and overwritten progress bars; control characters become a visible �.

    Lines end with \\n.
    """
    text = _ANSI.sub("", str(text)).replace("\r\n", "\n")
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CONTROL.sub("\ufffd", "\n".join(lines))
