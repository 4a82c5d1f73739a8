"""Runs under AddressSanitizer and UndefinedBehaviorSanitizer: their settings, and their reports."""

from pathlib import Path

# Open MPI keeps memory until the end and beyond: leaks of the process are not the kernel's.
_COMMON = "exitcode=66:abort_on_error=0:handle_abort=0:symbolize=1"
_LOG = "sanitizer"


def settings(directory):
    """Environment variables for ranks that leave their reports in `directory`."""
    log = f"log_path={Path(directory) / _LOG}:{_COMMON}"
    return {
        "ASAN_OPTIONS": f"{log}:detect_leaks=0:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": f"{log}:print_stacktrace=1:halt_on_error=1",
    }


def reports(directory, ranks):
    """{rank: report} of the ranks (RankRecording or None) that left one in `directory`."""
    by_process = {int(rank.header["pid"]): rank.rank for rank in ranks if rank is not None}
    found = {}
    for path in sorted(Path(directory).glob(f"{_LOG}.*")):
        process = path.suffix.removeprefix(".")
        rank = by_process.get(int(process)) if process.isdigit() else None
        if rank is not None:
            found[rank] = path.read_text(encoding="utf-8", errors="replace")
    return found
