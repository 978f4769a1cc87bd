"""Runs every PromQL expression of the dashboards and rules, and says which of them parse and have data."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.harness.observe.prometheus import Prometheus

DEPLOY = Path(__file__).parents[3] / "deploy"
_GRAFANA_VARIABLES = {"$__rate_interval": "1m", "$__range": "1h"}
_LABEL_VALUES = re.compile(r"label_values\((?P<series>.+), (?P<label>\w+)\)")
# What a dashboard that knows the conventions alone asks of a model server.
_OF_CONVENTIONS = tuple(
    f"gen_ai_server_{name}_seconds"
    for name in ("request_duration", "time_to_first_token", "time_per_output_token")
)
_SELECTOR = re.compile(r"\b([a-z][a-z_]*:)?(?:ttmark|process|up)[a-z0-9_]*(?::[a-z0-9_]+)?(?:\{[^}]*\})?")


@dataclass(frozen=True)
class Expression:
    """Where it stands and what it asks; of a panel, recording, alert, annotation, or convention."""

    kind: str
    place: str
    promql: str

    @property
    def selectors(self) -> tuple[str, ...]:
        """The metrics that it reads, with their matchers."""
        return tuple(dict.fromkeys(match[0] for match in _SELECTOR.finditer(self.promql)))


def dashboard_expressions(prometheus: Prometheus) -> Iterator[Expression]:
    """Those of every panel and of the marks on the time axis, with Grafana's variables replaced: a panel is
    asked for each value of its dashboard's own.

    The marks normally have no data.
    """
    for path in sorted((DEPLOY / "grafana/dashboards").glob("*.json")):
        document = json.loads(path.read_text())
        own = {one["name"]: one["definition"] for one in document.get("templating", {}).get("list", [])}
        for panel in document["panels"]:
            for target in panel.get("targets", []):
                for promql in _of_each_value(_plain(target["expr"]), own, prometheus):
                    yield Expression("panel", f"{path.stem}: {panel['title']}", promql)
        for annotation in document["annotations"]["list"]:
            yield Expression("annotation", f"{path.stem}: {annotation['name']}", _plain(annotation["expr"]))


def rule_expressions() -> Iterator[Expression]:
    for path in sorted((DEPLOY / "prometheus/rules").glob("*.yml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                if "record" in rule:
                    yield Expression("recording", rule["record"], rule["expr"])
                else:
                    yield Expression("alert", rule["alert"], rule["expr"])


def convention_expressions() -> Iterator[Expression]:
    """What a dashboard asks for that was written for OpenTelemetry's names."""
    labels = "gen_ai_operation_name, gen_ai_provider_name, gen_ai_request_model"
    for name in _OF_CONVENTIONS:
        rate = f'rate({name}_bucket{{gen_ai_request_model!="", error_type=""}}[1m])'
        yield Expression("convention", name, f"histogram_quantile(0.95, sum by (le, {labels}) ({rate}))")


def _of_each_value(expression: str, variables: Mapping[str, str], prometheus: Prometheus) -> list[str]:
    """The expression for each value of the variables in it; as it is where one has none, which fails."""
    found = [expression]
    for name, definition in variables.items():
        asked = _LABEL_VALUES.fullmatch(definition)
        values = prometheus.label_values(**asked.groupdict()) if asked and f"${name}" in expression else []
        found = [one.replace(f"${name}", value) for one in found for value in values] or found
    return found


def _plain(expression: str) -> str:
    for variable, value in _GRAFANA_VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression


# Series with these matchers come into being with the first fault of their kind.
_ONLY_AFTER_A_FAULT = ('status="429"', 'status=~"5.."')


@dataclass(frozen=True)
class Verdict:
    """What Prometheus made of one expression; no problem: it parsed, and all that it reads is there."""

    expression: Expression
    problem: str


def check_all(prometheus: Prometheus) -> list[Verdict]:
    """Panels, recording rules and conventions must return numbers; what alerts read must be there."""
    expressions = [*dashboard_expressions(prometheus), *rule_expressions(), *convention_expressions()]
    broken = {
        rule["name"]: rule.get("lastError", "") for rule in prometheus.rules() if rule["health"] == "err"
    }
    return [Verdict(one, broken.get(one.place) or _problem(one, prometheus)) for one in expressions]


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
        if expression.kind in ("panel", "recording", "convention"):
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
    values = (float(sample["value"][1]) for sample in prometheus.query(promql))
    return [value for value in values if not math.isnan(value)]
