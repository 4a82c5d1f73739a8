"""Rules files of Open MPI: which of its algorithms to use from how many ranks and bytes on.

Open MPI's component coll/tuned reads such a file (coll_tuned_dynamic_rules_filename) where it is
told to (coll_tuned_use_dynamic_rules). The classic format is a list of numbers, and a file that is
none is ignored without a word: so a file is read here as Open MPI reads it (reading.py), explained
(words.py), written (writing.py), chosen from measurements or from models (choosing.py), proved to
take effect by the messages that are sent (proof.py), and measured against what Open MPI does by
itself and against the best that there is (comparison.py). judge.py counts what a file costs.
"""

from mpilab.openmpi_rules.judge import complaint, predicted
from mpilab.openmpi_rules.model import Rule, Rules
from mpilab.openmpi_rules.reading import parse, read
from mpilab.openmpi_rules.words import explain
from mpilab.openmpi_rules.writing import as_text

__all__ = ["Rule", "Rules", "as_text", "complaint", "explain", "parse", "predicted", "read"]
