"""The page of a conformance report: tables whose rows draw their intervals, methods, limits, hashes."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.conformance.languages import NAMES
from ttmark.evaluation.conformance.measure import (
    ALL,
    DEPLOYED_SECTION,
    EDIT,
    FRESH_SECTION,
    KIND,
    LANGUAGE,
    LENGTH,
    SAMPLING,
)
from ttmark.evaluation.conformance.page_words import ABOUT, LIMITS, METHODS, STYLE
from ttmark.shared.counted import counted

_SCALE_ROOM = 1.1


def page_parts(report: Mapping[str, Any]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it."""
    figures = [Figure.of_stored(one) for one in report["figures"]]
    key, model = report["key"], report["model"]
    title = f"Error rates of key {key['key_id']} on {model['name']}"
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
    )
    parts = [f"<h1>{escape(title)}</h1>", *_facts(report), *_summary(figures)]
    for section in (FRESH_SECTION, DEPLOYED_SECTION, SAMPLING, LENGTH, KIND, LANGUAGE, EDIT):
        rows = [one for one in figures if one.section == section]
        parts += _section(section, rows)
        if section == LANGUAGE:
            parts += _spoken(report["spoken"])
    parts += ["<h2>Methods</h2>", _list(METHODS), "<h2>Limits</h2>", _list(LIMITS)]
    parts += ["<h2>What it was made of</h2>", *_provenance(report)]
    return head + "\n".join(parts) + "\n</main>\n", "\n</body>\n</html>\n"


def _facts(report: Mapping[str, Any]) -> Iterator[str]:
    key = report["key"]
    versions = ", ".join(f"{one['version']} ({one['state']})" for one in key["versions"])
    yield _definitions(
        {
            "Key": f"{key['key_id']} of tenant {key['tenant']}; versions: {versions}",
            "Profile": f"{key['profile_id']}, a pool of {counted(key['pool'], 'key')}",
            "Model": report["model"]["name"],
            "Made": f"{report['made_at']} by ttmark {report['release']}, size {report['size']},"
            f" seed {report['seed']}",
            "Signed with": report["signing_key"],
        }
    )


def _summary(figures: Sequence[Figure]) -> Iterator[str]:
    yield "<h2>In short</h2>"
    lines: list[str] = []
    for section, whose in ((FRESH_SECTION, "fresh keys"), (DEPLOYED_SECTION, "the deployed key")):
        lines += [
            f"False positives under {whose}, promised at most {_rate(one.rate)}:"
            f" {one.found:,} of {one.texts:,}, {_share(one)}. {promise_kept(one)}"
            for one in figures
            if one.section == section and one.name == ALL
        ]
    lines += [
        f"Unedited answers, sampling {one.name}: {_share(one)} are found at {_rate(one.rate)}"
        f" ({one.found:,} of {one.texts:,})."
        for one in figures
        if one.section == SAMPLING
    ]
    yield _list(lines)


def promise_kept(one: Figure) -> str:
    """What a count of false positives says about the promised rate."""
    interval = one.interval
    if interval.low > one.rate:
        return "This is more than promised."
    if interval.high <= one.rate:
        return "This shows that the promise is kept here."
    return (
        "This agrees with the promise; so few questions cannot show a rate below"
        f" {_percent(interval.high)}\u00a0%."
    )


def _section(section: str, rows: Sequence[Figure]) -> Iterator[str]:
    heading, about = ABOUT[section]
    yield f"<h2>{escape(heading)}</h2>"
    yield f"<p>{escape(about)}</p>"
    by_name: dict[str, list[Figure]] = {}
    for one in rows:
        by_name.setdefault(one.name, []).append(one)
    rates = list(dict.fromkeys(one.rate for one in rows))
    is_false = section in (FRESH_SECTION, DEPLOYED_SECTION)
    unit = "questions" if is_false else "texts"
    ends = {
        rate: max(one.interval.high for one in rows if one.rate == rate) * _SCALE_ROOM if is_false else 1.0
        for rate in rates
    }
    header = "".join(
        f"<th>at {_rate(rate)}" + (f", axis to {_percent(ends[rate])} %" if is_false else "") + "</th>"
        for rate in rates
    )
    yield f'<table class="figures"><thead><tr><th></th><th class="n">{unit}</th>{header}</tr></thead><tbody>'
    for name, of_name in by_name.items():
        cells = "".join(
            f'<td data-rate="at {_rate(one.rate)}">{_bar(one, ends[one.rate], promised=is_false)}'
            f"<span>{_share(one)}</span></td>"
            for one in of_name
        )
        count = f"{of_name[0].texts:,}"
        texts = f'<td class="n" data-unit="{unit}">{count}</td>'
        yield f'<tr><th scope="row">{escape(name)}</th>{texts}{cells}</tr>'
    yield "</tbody></table>"


def _bar(one: Figure, end: float, *, promised: bool) -> str:
    """The interval as a line, the share as a mark, the promised rate as a stroke across."""
    interval = one.interval
    low, high, at = (
        100 * min(1.0, value / end) for value in (interval.low, interval.high, interval.estimate)
    )
    stroke = ""
    if promised:
        place = 100 * one.rate / end
        stroke = f'<rect class="promise" x="{place:.2f}" y="0" width="0.8" height="12"/>'
    return (
        '<svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="axis" x="0" y="0" width="100" height="12"/>'
        f'<rect class="interval" x="{low:.2f}" y="4.5" width="{max(0.4, high - low):.2f}" height="3"/>'
        f'{stroke}<rect class="estimate" x="{max(0.0, at - 0.6):.2f}" y="1.5" width="1.2" height="9"/></svg>'
    )


def _spoken(spoken: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    lines = [
        f"{NAMES[code]}: {counts['answers_in_it']} of {counts['answers']} answers"
        for code, counts in spoken.items()
    ]
    yield "<p>Answers that are in the language of their question, by a rough count of function words:</p>"
    yield _list(lines)


def _provenance(report: Mapping[str, Any]) -> Iterator[str]:
    model, machine = report["model"], report["machine"]
    yield _definitions(
        {
            "Command": report["command"],
            "Time": f"{report['seconds']:,.0f} s of this command; {report['answer_tokens']:,} tokens of"
            " marked answers",
            "Machine": f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB,"
            f" {machine['system']}",
            "Versions": ", ".join(f"{name} {version}" for name, version in report["versions"].items()),
            "Generation": ", ".join(f"{name} {value}" for name, value in model["served"].items()),
            "Detection": ", ".join(f"{name} {value}" for name, value in report["detection"].items()),
            "Profile": report["key"]["profile"],
            "Tokenizer": model["tokenizer_fingerprint"],
            "Prompts": report["prompts_sha256"],
            "Null tables": report["null_tables_sha256"],
        }
    )
    hashes = "".join(
        f"<tr><td>{escape(name)}</td><td><code>{value}</code></td></tr>"
        for name, value in model["files"].items()
    )
    yield f"<h3>Files of the model, SHA-256</h3><table><tbody>{hashes}</tbody></table>"
    sets = "".join(
        f"<tr><td>{escape(one['name'])}</td><td>{one['texts']:,}: {escape(one['origin'])}"
        f"<br><code>{one['sha256']}</code></td></tr>"
        for one in report["sets"]
    )
    yield f"<h3>Texts without a mark, SHA-256</h3><table><tbody>{sets}</tbody></table>"


def _definitions(entries: Mapping[str, str]) -> str:
    return "<dl>" + "".join(f"<dt>{a}</dt><dd>{escape(b)}</dd>" for a, b in entries.items()) + "</dl>"


def _list(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def _rate(rate: float) -> str:
    return f"{rate:.0e}".replace("e-0", "e-")


def _percent(share: float) -> str:
    """A share in percent with as many digits as small ones need."""
    percent = 100 * share
    return f"{percent:.1f}" if percent >= 1 or percent == 0 else f"{percent:.2g}"


def _share(one: Figure) -> str:
    interval = one.interval
    return f"{_percent(interval.estimate)}\u00a0% [{_percent(interval.low)}, {_percent(interval.high)}]"
