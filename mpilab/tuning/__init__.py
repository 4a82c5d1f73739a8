"""Rules files of Open MPI, which select its algorithms by number of ranks and bytes.

In: sweeps, models, or a rules file. Out: a rules file, and what it does and costs.

Open MPI's component coll/tuned reads such a file (coll_tuned_dynamic_rules_filename) if
coll_tuned_use_dynamic_rules is set. The classic format is a list of numbers; any other file is
silently ignored.

rules         reads a file as Open MPI does, explains it, and writes one
choosing      chooses rules from measurements or models
proof         proves by the messages sent that rules take effect
comparison    times rules, Open MPI's own choice, and the best algorithms
judge         computes what a file costs
decisions     the rules that choose among our own kernels
"""

from mpilab.tuning.judge import complaint, predicted
from mpilab.tuning.rules import Rule, Rules, as_text, explain, parse, read

__all__ = ["Rule", "Rules", "as_text", "complaint", "explain", "parse", "predicted", "read"]
