"""What this machine supports of emulated hosts, determined by trying (trial.py)."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mpilab.errors import SetupError
from mpilab.hosts.description import Description
from mpilab.kernels.build import need
from mpilab.util.kit import BUILD

TRIAL = Path(__file__).with_name("trial.py")
TRIAL_S = 60  # normally 0.1 s; a few seconds on a busy machine
RELAY = BUILD / "mpilab-relay"
# /usr/sbin is often not on PATH.
SYSTEM = ("/usr/sbin", "/sbin", "/usr/bin", "/bin")
TOOLS = ("ip", "tc", "nsenter")
INSTEAD = (
    "On one host, 'mpilab run KERNEL --places ...' lets the ranks pretend to be on several, and "
    "'mpilab simulate KERNEL --platform ...' simulates their times; in Docker, 'docker run "
    "--privileged' allows namespaces."
)


@dataclass(frozen=True)
class Capabilities:
    """What this machine supports of emulated hosts.

    namespaces   "root" (created by root), "rootless" (in a user namespace), or "none"
    reason       why there are none
    tbf          the kernel can limit the rate of links
    netem        the kernel can delay packets on links
    relay        the kit's relay can delay them instead
    tools        {name: path} of the system programs needed
    missing      those not found
    """

    namespaces: str
    reason: str = ""
    tbf: bool = False
    netem: bool = False
    relay: bool = False
    tools: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def latency_by(self) -> str:
        """The source of latency: "netem", "relay", or "" if there is none."""
        return "netem" if self.netem else "relay" if self.relay else ""

    def describe(self) -> str:
        """The capabilities in one line."""
        if self.namespaces == "none":
            return f"no emulated hosts: {self.reason}"
        rate = "speed by tbf" if self.tbf else "no limit of speed (no tbf in this kernel)"
        late = {
            "netem": "latency by netem",
            "relay": "latency by the relay (no netem in this kernel)",
            "": "no latency (no netem in this kernel, and no relay)",
        }[self.latency_by]
        by = {"root": "by root", "rootless": "without root"}[self.namespaces]
        return f"namespaces made {by}; {rate}; {late}"

    def need(self, description: Description) -> None:
        """Raise SetupError if this description's hosts and links cannot be created here."""
        if self.namespaces == "none":
            raise SetupError(f"emulated hosts cannot be made here: {self.reason}. {INSTEAD}")
        links = (description.host_link, description.group_link)
        if any(link.rate is not None for link in links) and not self.tbf:
            raise SetupError(
                f"{description.name}: its links have a rate, and this kernel cannot hold one "
                "(sch_tbf). Load it with 'sudo modprobe sch_tbf', or leave 'rate' out"
            )
        if any(link.latency > 0 for link in links) and not self.latency_by:
            remedy = f"Run 'make build', which makes {RELAY}"
            if _has_relay():
                remedy = "The relay may not send raw packets here; 'sudo modprobe sch_netem'"
            raise SetupError(
                f"{description.name}: its links have a latency, and neither this kernel "
                f"(sch_netem) nor the relay can make one. {remedy}, or leave 'latency' out"
            )


@cache
def probe() -> Capabilities:
    """The Capabilities of this machine; probed once per process, in about 50 ms."""
    if not sys.platform.startswith("linux"):
        return Capabilities("none", f"namespaces are for Linux, and this is {sys.platform}")
    tools = {name: path for name in TOOLS if (path := find(name)) is not None}
    missing = tuple(name for name in TOOLS if name not in tools)
    if missing:
        remedy = "install them, e.g. by 'apt-get install iproute2 util-linux'"
        reason = f"not found: {', '.join(missing)}; {remedy}"
        return Capabilities("none", reason, missing=missing)
    command = [sys.executable, "-I", "-S", str(TRIAL), tools["ip"], tools["tc"]]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=TRIAL_S, check=False)
        found = json.loads(said.stdout)
    except subprocess.TimeoutExpired:
        return Capabilities("none", f"the trial ({TRIAL}) did not end within {TRIAL_S} s")
    except ValueError:
        return Capabilities("none", f"the trial broke: {said.stderr.strip()[-300:]}")
    packets = found.pop("packets", False)
    return Capabilities(**found, relay=packets and _has_relay(), tools=tools)


def _has_relay() -> bool:
    try:
        return need(RELAY).exists()
    except SetupError:  # reported, with its remedy, when latency is requested
        return False


def find(name: str) -> str | None:
    """The path of a system program, or None."""
    beside = (Path(folder, name) for folder in SYSTEM)
    return shutil.which(name) or next((str(path) for path in beside if path.exists()), None)
