"""Executes every expression and says which of them parse and have data."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.harness.observe.expressions import (
    Expression,
    annotation_expressions,
    panel_expressions,
    rule_expressions,
)
from tests.harness.observe.prometheus import Prometheus

# Series with these matchers come into being with the first fault of their kind.
_ONLY_AFTER_A_FAULT = ('status="429"', 'status=~"5.."')


@dataclass(frozen=True)
class Verdict:
    """What Prometheus made of one expression.

    Attributes:
        problem: empty if it parsed and everything that it reads is there.
    """

    expression: Expression
    problem: str


def check_all(prometheus: Prometheus) -> list[Verdict]:
    """Panels and recording rules must return numbers; what alerts read must be there."""
    expressions = [*panel_expressions(), *annotation_expressions(), *rule_expressions()]
    broken = {
        rule["name"]: rule.get("lastError", "") for rule in prometheus.rules() if rule["health"] == "err"
    }
    verdicts = []
    for expression in expressions:
        problem = broken.get(expression.place) or _problem(expression, prometheus)
        verdicts.append(Verdict(expression, problem))
    return verdicts


def summary(verdicts: Iterable[Verdict]) -> dict[str, tuple[int, int]]:
    """Expressions and how many of them are well, by kind."""
    counts: dict[str, tuple[int, int]] = {}
    for verdict in verdicts:
        total, well = counts.get(verdict.expression.kind, (0, 0))
        counts[verdict.expression.kind] = total + 1, well + (not verdict.problem)
    return counts


def _problem(expression: Expression, prometheus: Prometheus) -> str:
    try:
        numbers = _numbers(prometheus, expression.promql)
        if expression.kind in ("panel", "recording"):
            return "" if numbers else "no data"
        empty = [selector for selector in expression.selectors if not _has_series(selector, prometheus)]
    except ValueError as error:
        return str(error)
    return f"no series: {', '.join(empty)}" if empty else ""


def _has_series(selector: str, prometheus: Prometheus) -> bool:
    for matcher in _ONLY_AFTER_A_FAULT:
        selector = selector.replace(f", {matcher}", "").replace(f"{matcher}, ", "").replace(matcher, "")
    return bool(prometheus.query(f"last_over_time({selector}[5m])"))


def _numbers(prometheus: Prometheus, promql: str) -> list[float]:
    return [number for number in _values(prometheus, promql) if not math.isnan(number)]


def _values(prometheus: Prometheus, promql: str) -> Iterator[float]:
    for sample in prometheus.query(promql):
        yield float(sample["value"][1])
