"""What a lab asks for, once it has been read (mpilab/exercises.py reads it)."""

from dataclasses import dataclass, field

from mpilab.errors import InputError

KERNEL, PYTHON, TEXT = "kernel", "python", "text"

# What can be read off a recording: of all ranks together, or of the rank that sends most.
# Between nodes and between groups: what crosses, and the most that one rank gets from beyond.
# Reads of files: requests of all ranks, of the one with most of them or of their bytes; the largest
# request; how many ranks read; and requests that all ranks make together. Left behind: ranks with a
# view of theirs on a file, and what was made but never freed.
QUANTITIES = ("rounds", "messages", "bytes", "busiest_messages", "busiest_bytes",
              "busiest_received", "node_messages", "node_bytes", "node_received_bytes",
              "group_messages", "group_bytes", "group_received_bytes",
              "reads", "busiest_reads", "read_bytes", "busiest_read_bytes", "largest_read",
              "reading_ranks", "collective_reads", "unexchanged_bytes", "views_left",
              "leaks")  # fmt: skip
MOST = "most_"  # before a quantity: an upper bound
COUNTED = (*QUANTITIES, *(MOST + quantity for quantity in QUANTITIES))


@dataclass(frozen=True)
class Item:
    """The smallest thing that carries points.

    cases      for a kernel: what it is run with.
    simulated  for a kernel: what is tried in simulation only, beyond `cases`.
    than, faster   for a kernel: in each of `simulated`, its simulated time times `faster` is at
               most that of our kernel `than`; "" where time does not count.
    counted    for a kernel: pairs (one of COUNTED, formula) that recordings must show.
    arguments  for a Python function: the argument lists it is called with.
    expected   for a Python function: name of the trusted function that returns the right value.
    complaint  instead of that: name of a trusted function that says what is wrong with a value.
    """

    id: str
    title: str
    points: float
    cases: tuple = ()
    counted: tuple = ()
    arguments: tuple = ()
    expected: str = ""
    complaint: str = ""
    simulated: tuple = ()
    than: str = ""
    faster: float = 1.0


@dataclass(frozen=True)
class Exercise:
    """One answer that the lab asks for.

    variants  where the answer may be one of several kernels: an Exercise for each, with the same
              id and the same number of points. The exercise itself has then no function, and one
              item that stands for those of whichever is chosen.
    """

    id: str
    title: str
    kind: str
    items: tuple
    collective: str = ""
    function: str = ""
    allowed: tuple = ()
    reference: str = ""
    variants: tuple = ()

    @property
    def points(self):
        """Points that can be had."""
        return sum(item.points for item in self.items)

    @property
    def functions(self):
        """The names that the function of an answer may have."""
        return tuple(each.function for each in self.variants or (self,) if each.function)

    @property
    def references(self):
        """Our own answers, below src_c: one, or one of each variant."""
        return tuple(each.reference for each in self.variants or (self,) if each.reference)

    @property
    def needs_simulation(self):
        """Can some item, of any variant, only be judged where SimGrid is installed?"""
        return any(item.simulated for each in self.variants or (self,) for item in each.items)

    def variant(self, function):
        """The exercise that an answer which defines `function` is judged by.

        Without variants that is this one, whatever the answer defines; None where no variant has
        a function of this name.
        """
        if not self.variants:
            return self
        return next((each for each in self.variants if each.function == function), None)


@dataclass(frozen=True)
class Rubric:
    """All exercises of a lab.

    digest_text  decides whether the rubric has changed.
    parameters   what papermill sets when it runs a submission.
    leave_out    files below src_c that are no references, and not handed out either.
    """

    lab: str
    title: str
    exercises: tuple
    digest_text: str
    parameters: dict = field(default_factory=dict)
    leave_out: tuple = ()

    def exercise(self, name):
        """The exercise with this id; InputError, with the known ones, where there is none."""
        for exercise in self.exercises:
            if exercise.id == name:
                return exercise
        known = ", ".join(exercise.id for exercise in self.exercises)
        raise InputError(f"exercise {name!r}: not in lab {self.lab}; it has {known}")

    @property
    def references(self):
        """Our own answers to all exercises, and `leave_out`, below src_c: none of them may be
        handed out."""
        answers = (name for exercise in self.exercises for name in exercise.references)
        return (*answers, *self.leave_out)
