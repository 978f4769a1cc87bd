"""What the steps of an engine look like from outside: its thread tells, the metrics remember."""

import time
from collections.abc import Sequence as Items

from gen_service.engine.scheduler import Work
from gen_service.engine.sequence import Sequence
from shared.observability.engine_metrics import EngineMetrics


class StepRecorder:
    """Records the steps of one engine; the engine's thread calls it, but for `arrived`."""

    def __init__(self, metrics: EngineMetrics, model: str) -> None:
        self._metrics = metrics
        self._model = model
        self._arrivals: dict[Sequence, float] = {}
        self._preemptions = 0

    def arrived(self, sequence: Sequence) -> None:
        """A completion came in."""
        self._arrivals[sequence] = time.monotonic()

    def left(self, sequence: Sequence) -> None:
        """A completion ended, possibly before its first step."""
        self._arrivals.pop(sequence, None)

    def stepped(
        self, works: Items[Work[Sequence]], preemptions: int, *, forward: float, reweight: float, total: float
    ) -> None:
        """A step has ended; seconds of its parts and of the whole.

        Args:
            preemptions: of the engine since its start.
        """
        now = time.monotonic()
        for work in works:
            arrival = self._arrivals.pop(work.sequence, None)
            if arrival is not None:
                self._metrics.admitted(self._model, max(0.0, now - total - arrival))
        self._metrics.preempted(self._model, preemptions - self._preemptions)
        self._preemptions = preemptions
        parts = {"forward": forward, "reweight": reweight, "other": max(0.0, total - forward - reweight)}
        self._metrics.seconds_spent(self._model, parts)

    def computes(self, works: Items[Work[Sequence]]) -> None:
        """A forward pass over `works` is about to run; their blocks are as the pass finds them."""
        rows = {"prefill": 0, "probe": 0, "commit": 0}
        candidates: list[int] = []
        for work in works:
            builder = work.sequence.builder
            if not work.pieces:
                rows["probe"] += work.rows
                if builder is not None and builder.frontier.shape[1] == 1:
                    candidates.append(work.rows)
            for piece in work.pieces:
                rows["prefill" if piece.is_chunk else "commit"] += piece.stop - piece.start
        self._metrics.stepped(self._model, rows, candidates)
