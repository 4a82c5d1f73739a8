"""What a sweep has to say besides its table: what was left out, and what Open MPI chose."""

from dataclasses import dataclass, field


@dataclass
class Report:
    """left_out: {(algorithm, ranks, reason): sizes}; defaults: {(likeness, ranks): sizes} of
    openmpi:default; notes: other remarks."""

    left_out: dict = field(default_factory=dict)
    defaults: dict = field(default_factory=dict)
    notes: list = field(default_factory=list)

    def leave_out(self, point, reason):
        """Note that a point has no rows, and why."""
        self.left_out.setdefault((str(point.algorithm), point.ranks, reason), []).append(
            point.bytes
        )

    def note_default(self, point, likeness):
        """Note what openmpi:default sent as: '' where that is no single algorithm."""
        self.defaults.setdefault((likeness, point.ranks), []).append(point.bytes)

    def lines(self):
        """Everything as sentences, those that are about what is missing first."""
        return self.warnings() + self._of_defaults() + self.notes

    def warnings(self):
        """One sentence for each algorithm, number of ranks and reason of what was left out."""
        return [
            f"{algorithm} with {_ranks(ranks)}{_sizes(sizes)} is left out: {reason}"
            for (algorithm, ranks, reason), sizes in self.left_out.items()
        ]

    def _of_defaults(self):
        return [
            f"openmpi:default with {_ranks(ranks)}{_sizes(sizes)} ran like "
            f"{likeness or 'none that is known'}"
            for (likeness, ranks), sizes in self.defaults.items()
        ]


def _ranks(number):
    return f"{number} rank{'s' * (number != 1)}"


def _sizes(sizes):
    if sizes == [0]:
        return ""
    if len(sizes) == 1:
        return f" and {sizes[0]} bytes"
    listed = [str(size) for size in sorted(sizes)]
    return f", {', '.join(listed[:-1])} and {listed[-1]} bytes"
