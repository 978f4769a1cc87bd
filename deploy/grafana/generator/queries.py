"""PromQL that several panels share."""

from deploy.grafana.generator.layout import Query

RATE = "[$__rate_interval]"
API = 'route=~"/v1/.+"'


def per_second(metric: str, by: str = "", selector: str = "", legend: str = "") -> Query:
    """Rate of a counter, summed over instances."""
    labels = f"{{{selector}}}" if selector else ""
    group = f" by ({by})" if by else ""
    names = " ".join(f"{{{{{name.strip()}}}}}" for name in by.split(",")) if by else ""
    return Query(f"sum{group} (rate({metric}{labels}{RATE}))", legend or names)


def quantiles(metric: str, *levels: float, selector: str = "", by: str = "") -> tuple[Query, ...]:
    """Quantiles of a histogram over all instances."""
    labels = f"{{{selector}}}" if selector else ""
    group = f"le, {by}" if by else "le"
    names = " ".join(f"{{{{{name.strip()}}}}}" for name in by.split(",")) if by else ""
    return tuple(
        Query(
            f"histogram_quantile({level}, sum by ({group}) (rate({metric}_bucket{labels}{RATE})))",
            f"p{level * 100:g} {names}".strip(),
        )
        for level in levels
    )


def buckets(metric: str, selector: str = "") -> tuple[Query, ...]:
    """A histogram for a heatmap."""
    labels = f"{{{selector}}}" if selector else ""
    return (Query(f"sum by (le) (increase({metric}_bucket{labels}{RATE}))", "{{le}}"),)


def ratio(part: str, whole: str, by: str = "") -> Query:
    """Rate of one counter over that of another, both summed over instances."""
    group = f" by ({by})" if by else ""
    return Query(
        f"sum{group} (rate({part}{RATE})) / sum{group} (rate({whole}{RATE}))",
        f"{{{{{by}}}}}" if by else "ratio",
    )


def mean(metric: str, by: str = "", selector: str = "") -> Query:
    """Mean of a histogram's observations over all instances."""
    labels = f"{{{selector}}}" if selector else ""
    return ratio(f"{metric}_sum{labels}", f"{metric}_count{labels}", by)
