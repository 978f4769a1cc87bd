"""The pages of reports are templates, in the folder beside this file; here is what all of them are given."""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.report.result import rate_name
from ttmark.evaluation.run_manifest import in_words
from ttmark.shared.cases.signed_page import whole_page
from ttmark.shared.languages.words import counted


def made_with(report: Mapping[str, Any], more: str = "") -> dict[str, str]:
    """Command, time, machine and versions of a report."""
    return {
        "Command": report["command"],
        "Time": f"{report['seconds']:,.0f} s of this command{more}",
        "Machine": f"{in_words(report['machine'])}, {report['machine']['system']}",
        "Versions": named(report["versions"]),
    }


def named(values: Mapping[str, object]) -> str:
    """Names, each with its value, in a line."""
    return ", ".join(f"{name} {value}" for name, value in values.items())


def percent(share: float) -> str:
    """A share in percent with as many digits as small ones need."""
    value = 100 * share
    return f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.2g}"


def share(one: Figure) -> str:
    """The share that is found, with its interval."""
    interval = one.interval
    return f"{percent(interval.estimate)}\u00a0% [{percent(interval.low)}, {percent(interval.high)}]"


def page(template: str, title: str, **values: object) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it."""
    pages = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.globals.update(
        capital=lambda text: text[:1].upper() + text[1:],
        counted=counted,
        made_with=made_with,
        named=named,
        rate_name=rate_name,
        share=share,
        thousands="{:,.0f}".format,
    )
    return whole_page(title, [pages.get_template(template).render(title=title, **values)])
