"""Panels, rows and dashboards as values, and the JSON that Grafana provisions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

GRID_WIDTH = 24
_DATASOURCE = {"type": "prometheus", "uid": "prometheus"}


@dataclass(frozen=True)
class Query:
    """A PromQL expression; `legend` may name labels as {{label}}."""

    expr: str
    legend: str = ""


@dataclass(frozen=True)
class Panel:
    """One picture.

    Attributes:
        description: what the reader learns from it, and what is normal.
        unit: Grafana's name: s, percentunit, reqps, short, bytes, none.
        kind: timeseries, stat, heatmap (buckets by le) or bargauge.
        bad_below, bad_above: where red begins.
    """

    title: str
    description: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    height: int = 7
    stacked: bool = False
    bad_below: float | None = None
    bad_above: float | None = None


@dataclass(frozen=True)
class Row:
    """Panels under a heading; they flow into lines of 24 columns."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Dashboard:
    """A page; `uid` is also its file name and the end of its address."""

    uid: str
    title: str
    description: str
    rows: tuple[Row, ...]

    def document(self) -> dict[str, Any]:
        """The JSON document, the same for the same dashboard."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": ["ttmark"],
            "schemaVersion": 41,
            "editable": False,
            "refresh": "30s",
            "time": {"from": "now-3h", "to": "now"},
            "timezone": "browser",
            "links": [
                {
                    "title": "TTMark",
                    "type": "dashboards",
                    "tags": ["ttmark"],
                    "asDropdown": True,
                    "keepTime": True,
                }
            ],
            "annotations": {"list": [_RESTARTS, _ALERTS]},
            "panels": list(_placed(self.rows)),
        }


_RESTARTS = {
    "name": "restarts",
    "datasource": _DATASOURCE,
    "enable": True,
    "iconColor": "blue",
    "expr": 'changes(process_start_time_seconds{job=~"ttmark-.+"}[1m]) > 0',
    "titleFormat": "restart of {{job}} {{instance}}",
}
_ALERTS = {
    "name": "alerts",
    "datasource": _DATASOURCE,
    "enable": True,
    "iconColor": "red",
    "expr": 'ALERTS{alertname=~"TTMark.+", alertstate="firing"}',
    "titleFormat": "{{alertname}}",
}


def _placed(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    number, top = 1, 0
    for row in rows:
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "gridPos": {"x": 0, "y": top, "w": GRID_WIDTH, "h": 1},
            "panels": [],
        }
        number, top, left, tallest = number + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > GRID_WIDTH:
                top, left, tallest = top + tallest, 0, 0
            yield _panel(panel, number, {"x": left, "y": top, "w": panel.width, "h": panel.height})
            number, left, tallest = number + 1, left + panel.width, max(tallest, panel.height)
        top += tallest


def _panel(panel: Panel, number: int, position: dict[str, int]) -> dict[str, Any]:
    instant = panel.kind in ("stat", "bargauge")
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": _DATASOURCE,
            "expr": query.expr,
            "legendFormat": query.legend,
            "format": "heatmap" if panel.kind == "heatmap" else "time_series",
            "instant": instant,
            "range": not instant,
        }
        for index, query in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": position,
        "targets": targets,
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel),
    }


def _defaults(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.bad_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": panel.bad_below}]
    if panel.bad_above is not None:
        steps.append({"color": "red", "value": panel.bad_above})
    defaults: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.kind == "timeseries":
        marked = panel.bad_below is not None or panel.bad_above is not None
        defaults["min"] = 0
        defaults["custom"] = {
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 0,
            "stacking": {"mode": "normal" if panel.stacked else "none"},
            "thresholdsStyle": {"mode": "line" if marked else "off"},
        }
    else:
        defaults["color"] = {"mode": "thresholds"}
    return defaults


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "timeseries":
        return {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if panel.kind == "heatmap":
        return {
            "calculate": False,
            "yAxis": {"unit": panel.unit},
            "color": {"mode": "scheme", "scheme": "Blues", "steps": 32},
            "legend": {"show": True},
        }
    return {
        "reduceOptions": {"calcs": ["lastNotNull"], "values": False, "fields": ""},
        "colorMode": "value",
        "orientation": "auto",
    }
