"""What a message and what a collective should cost.

hockney.py    α-β: one message takes α + β n
logp.py       LogP and LogGP: latency, overhead, gaps
gamma.py      γ(P): what it costs to serve several children at once
scheduled.py  any schedule, round by round; two_distances.py the same within and between nodes
costs/        a formula for each algorithm of each collective
fitting.py    α and β for each algorithm by itself, by a robust regression (robust.py)
file_access.py   requests to a file: on a disk, on a parallel file system
choice.py     what the models choose, and the regret
"""

from mpilab.models.choice import choose, regret, regret_left_out
from mpilab.models.costs import best_segment, coefficients, cost
from mpilab.models.fitting import fit_per_algorithm
from mpilab.models.gamma import Gamma, fit_gamma
from mpilab.models.hockney import Hockney, fit_hockney
from mpilab.models.logp import LogGP, LogP, fit_loggp, fit_logp
from mpilab.models.scheduled import predict, predict_schedule
from mpilab.models.two_distances import predict_placed

__all__ = [
    "Gamma",
    "Hockney",
    "LogGP",
    "LogP",
    "best_segment",
    "choose",
    "coefficients",
    "cost",
    "fit_gamma",
    "fit_hockney",
    "fit_loggp",
    "fit_logp",
    "fit_per_algorithm",
    "predict",
    "predict_placed",
    "predict_schedule",
    "regret",
    "regret_left_out",
]
