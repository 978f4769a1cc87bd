"""Every PromQL expression of the dashboards and of the rules."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"
_GRAFANA_VARIABLES = {"$__rate_interval": "1m", "$__range": "1h"}
_SELECTOR = re.compile(r"\b([a-z][a-z_]*:)?(?:ttmark|process|up)[a-z0-9_]*(?::[a-z0-9_]+)?(?:\{[^}]*\})?")


@dataclass(frozen=True)
class Expression:
    """Where it stands and what it asks.

    Attributes:
        kind: panel, recording or alert.
    """

    kind: str
    place: str
    promql: str

    @property
    def selectors(self) -> tuple[str, ...]:
        """The metrics that it reads, with their matchers."""
        return tuple(dict.fromkeys(match[0] for match in _SELECTOR.finditer(self.promql)))


def panel_expressions() -> Iterator[Expression]:
    """Those of every panel and annotation, with Grafana's variables replaced."""
    for path in sorted((DEPLOY / "grafana/dashboards").glob("*.json")):
        document = json.loads(path.read_text())
        for panel in document["panels"]:
            for target in panel.get("targets", []):
                yield Expression("panel", f"{path.stem}: {panel['title']}", _plain(target["expr"]))


def annotation_expressions() -> Iterator[Expression]:
    """Those of the marks on the time axis; normally without data."""
    for path in sorted((DEPLOY / "grafana/dashboards").glob("*.json")):
        for annotation in json.loads(path.read_text())["annotations"]["list"]:
            yield Expression("annotation", f"{path.stem}: {annotation['name']}", _plain(annotation["expr"]))


def rule_expressions() -> Iterator[Expression]:
    """Those of the recording rules and of the alerts."""
    for path in sorted((DEPLOY / "prometheus/rules").glob("*.yml")):
        for group in yaml.safe_load(path.read_text())["groups"]:
            for rule in group["rules"]:
                if "record" in rule:
                    yield Expression("recording", rule["record"], rule["expr"])
                else:
                    yield Expression("alert", rule["alert"], rule["expr"])


def _plain(expression: str) -> str:
    for variable, value in _GRAFANA_VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression
