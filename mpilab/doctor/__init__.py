"""What works on this machine, and the remedy for what does not: `mpilab doctor`.

    checks = examine()          a Check each, in a fixed order
    print(table(checks))        for people; as_json(checks) for programs
    healthy(checks)             does everything work that the labs need?

Every check probes: it compiles, runs, starts. Each has its own time limit, and what goes wrong in
one is that one's status. Nothing is left behind.
"""

from mpilab.doctor.check import Check
from mpilab.doctor.examination import examine, healthy
from mpilab.doctor.report import as_json, table

__all__ = ["Check", "as_json", "examine", "healthy", "table"]
