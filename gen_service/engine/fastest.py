"""Number format and CPU threads by measurement, on the model itself."""

from collections.abc import Iterable
from itertools import product

import torch

from gen_service.engine.cost_curve import CostCurve
from gen_service.engine.runner import Runner

_MEASURED_ROWS = 64


def fastest(runners: Iterable[Runner], threads: Iterable[int]) -> Runner:
    """The runner that is fastest with any of the numbers of threads; torch is left at that number.

    What counts is a pass of four rows, as ordinary decoding has, and one of 64, as probes have.
    """
    choices = list(product(runners, threads))
    runner, count = choices[0] if len(choices) == 1 else min(choices, key=lambda choice: _seconds(*choice))
    torch.set_num_threads(count)
    return runner


def _seconds(runner: Runner, threads: int) -> float:
    torch.set_num_threads(threads)
    curve = CostCurve.measure(runner.probe_once, _MEASURED_ROWS)
    return curve.seconds[2] + curve.seconds[-1]
