"""Rules files of Open MPI, which select its algorithms by number of ranks and bytes.

Open MPI's component coll/tuned reads such a file (coll_tuned_dynamic_rules_filename) if
coll_tuned_use_dynamic_rules is set. The classic format is a list of numbers; any other file is
silently ignored. rules.py reads a file as Open MPI does, explains it and writes one; choosing.py
chooses rules from measurements or models; proof.py proves by the messages sent that they take
effect; comparison.py measures them against Open MPI's own choice and the best algorithms; judge.py
computes what a file costs. decisions.py contains the rules that choose among our own kernels.
"""

from mpilab.tuning.judge import complaint, predicted
from mpilab.tuning.rules import Rule, Rules, as_text, explain, parse, read

__all__ = ["Rule", "Rules", "as_text", "complaint", "explain", "parse", "predicted", "read"]
