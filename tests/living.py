"""Whether processes of the kit have ended."""

from pathlib import Path


def is_alive(process):
    """Whether the process with this number has not ended. One for which init has not yet waited, a
    zombie, has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False
