"""What a message and what a collective should cost: Hockney, LogP, LogGP, and their fits.

In: measured times, or the parameters of a model. Out: predicted times, and the choices that follow.

point_to_point  one message: α-β, LogP and LogGP (latency, overhead, gaps); robust regression
textbook        any schedule, round by round, also with nodes; the least time that links allow;
                orders of ranks in lab 04
costs           cost of each algorithm of each collective, and the best segment
choice          α and β per algorithm, γ(P), what the models choose, and the regret
declared        the costs declared by the kernels' headers, compared with recordings
file_access     requests to a file: on a disk, on a parallel file system
"""

from mpilab.models.choice import (
    Gamma,
    choose,
    fit_gamma,
    fit_per_algorithm,
    regret,
    regret_left_out,
)
from mpilab.models.costs import best_segment, coefficients, cost
from mpilab.models.point_to_point import Hockney, LogGP, LogP, fit_hockney, fit_loggp, fit_logp
from mpilab.models.textbook import least_seconds, predict, predict_placed, predict_schedule

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
    "least_seconds",
    "predict",
    "predict_placed",
    "predict_schedule",
    "regret",
    "regret_left_out",
]
