"""Lists of hosts in short: "n[1-3]" is n1, n2, n3 (the form that Slurm writes them in)."""

import re

from mpilab.errors import InputError

# No cluster of the kit has more; a slip such as [1-100000000] should not fill the memory.
MOST = 4096

_LIST = re.compile(r"([^][]*)\[([^][]*)\]([^][]*)")
_RANGE = re.compile(r"\s*([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?\s*")


def expand(text):
    """The names of a list: "n[08-10]" -> ["n08", "n09", "n10"]; "csews[1-3,7]"; "n1" -> ["n1"].

    Numbers keep their leading zeros. Raises InputError for what is no such list.
    """
    if "[" not in text and "]" not in text:
        return [text]
    listed = _LIST.fullmatch(text)
    if listed is None:
        raise InputError(f"{text!r}: one pair of [ ] is understood; write e.g. 'n[1-4]'")
    before, numbers, behind = listed.groups()
    found = []
    for word in numbers.split(","):
        first, last = _ends(word, text)
        if int(last) - int(first) >= MOST:
            raise InputError(f"{text!r}: more than {MOST} hosts; write a smaller range")
        found += [f"{before}{number:0{len(first)}}{behind}"
                  for number in range(int(first), int(last) + 1)]  # fmt: skip
    return found


def _ends(word, text):
    """("1", "4") for "1-4", ("7", "7") for "7"."""
    ends = _RANGE.fullmatch(word)
    if ends is None:
        raise InputError(f"{text!r}: {word!r} is no range of numbers; write e.g. 'n[1-3,7]'")
    first, last = ends[1], ends[2] or ends[1]
    if int(first) > int(last):
        raise InputError(f"{text!r}: {first} is above {last}; write 'n[{last}-{first}]'")
    return first, last
