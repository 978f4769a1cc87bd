"""docs/images/results-*.svg, drawn from the results' files; and the dark twin of every drawing."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[3] / "docs"
DARK = {
    "#ffffff": "#131416",  # a page of the repository may be dark while it shows the light drawing
    "#1f2328": "#e6edf3",
    "#59636e": "#a5afb9",
    "#8c959f": "#8c959f",
    "#d0d7de": "#4a525b",
    "#4338ca": "#a8a1ff",
    "#e8e6fb": "#332d66",
    "#0f766e": "#5ccfbd",
    "#b45309": "#f2b45c",
}
BY_HAND = ("pair", "way")
SERIES = ("#4338ca", "#0f766e", "#b45309")
ATTACKED = {
    "TTMark, pairs, a pool of 4 keys": "attacks",
    "transformers' SynthID-Text": "attacks-synthid",
    "vLLM's Gumbel": "attacks-gumbel",
}
ATTACKS = {
    "as written": "as written",
    "words exchanged for synonyms, 10% of the words": "one word in ten a synonym",
    "words exchanged for synonyms, 25% of the words": "one word in four a synonym",
    "words deleted, 10% of the words": "one word in ten deleted",
    "words deleted, 25% of the words": "one word in four deleted",
    "translated there and back": "translated into Portuguese and back",
    "sentences in another order, 100% of the sentences": "all sentences in another order",
    "end cut off, 50% of the words": "half cut off",
    "put into a text by people, 80% of the whole is theirs": "among four times as much by people",
    "look-alike letters, 100% of the words": "look-alike letters in all words",
    "small letters, 100% of the words": "small letters alone",
    "printed to PDF and copied, lines of 40 letters": "copied out of a PDF, 40 letters a line",
}
LEFT, RIGHT = 12, 330
EDITED = {0.1: "one word in ten edited", 0.25: "one word in four edited"}


@dataclass(frozen=True)
class Mark:
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Row:
    label: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Plot:
    """Rows under headings, on an axis from 0 to `end`, with the names of the marks of a row."""

    name: str
    title: str
    groups: dict[str, list[Row]]
    end: float
    unit: str = ""
    series: tuple[str, ...] = ()


def pictures() -> dict[Path, str]:
    """Every plot by day, and every drawing by night, by its path."""
    images = DOCS / "images"
    light = {images / f"{plot.name}-light.svg": svg(plot) for plot in plots()}
    light |= {(path := images / f"{name}-light.svg"): path.read_text() for name in BY_HAND}
    return light | {
        path.with_name(path.name.replace("light", "dark")): dark(text) for path, text in light.items()
    }


def dark(drawing: str) -> str:
    """The same drawing in the colours of a dark page."""
    return re.sub("|".join(DARK), lambda colour: DARK[colour[0]], drawing)


def plots() -> list[Plot]:
    """The plots of docs/results/index.md and docs/results/attacks.md."""
    few, many = "At most 1 false alarm in 100,000 texts", "At most 1 in 100"
    lengths = [_found(f"{tokens} tokens, as written", tokens=tokens) for tokens in (50, 100, 200, 400)]
    edited = {share: f"200 tokens, {words}" for share, words in EDITED.items()}
    found = {
        few: lengths + [_found(label, edited=share) for share, label in edited.items()],
        many: [_found(label, 1, edited=share) for share, label in edited.items()],
    }
    own: dict[str, Any] = {"detector": "its own", "keys": 1}
    ratio: dict[str, Any] = {"detector": "our likelihood ratio", "keys": 1}
    systems = [
        Row(label, tuple(_found("", tokens=100, arm=arm, **by).marks[0] for by in detectors))
        for arm, label, detectors in (
            ("ours", "ours, pairs", (ratio,)),
            ("single", "ours, single tokens", (ratio,)),
            ("vllm", "vLLM's Gumbel", (ratio, own)),
            ("vllm-dual", "vLLM's two keys", (ratio, own)),
            ("synthid", "transformers' SynthID-Text", (ratio, own)),
        )
    ]
    names = ("our likelihood ratio", "its own detector")
    return [
        Plot("results-found", "Marked answers that are found", found, 100, " %"),
        Plot("results-attacks", "Found after an attack", {few: _attacked(1e-5)}, 100, " %", tuple(ATTACKED)),
        Plot("results-systems", "Answers of 100 tokens that are found", {few: systems}, 100, " %", names),
    ]


def _found(label: str, rate: int = 0, **which: Any) -> Row:
    """What the service finds of our prose, 16 keys, no reader, where `which` says nothing else."""
    asked = {"arm": "ours", "detector": "the service", "reader": "no reader", "keys": 4, "kind": "prose"}
    asked |= {"tokens": 200, "edited": 0.0} | which
    rows = json.loads((DOCS / "results/results.json").read_text())["data"]
    (share,) = (row["shares"][rate] for row in rows if asked.items() <= row.items())
    return Row(label, (Mark(*(round(100 * share[key]) for key in ("estimate", "low", "high"))),))


def _attacked(rate: float) -> list[Row]:
    """Rows of the reports of `ttmark conformance attacks`, a mark for each system."""
    shares = [_shares(name, rate) for name in ATTACKED.values()]
    return [Row(label, tuple(share[attack] for share in shares)) for attack, label in ATTACKS.items()]


def _shares(name: str, rate: float) -> dict[str, Mark]:
    figures = json.loads((DOCS / f"results/{name}.json").read_text())["report"]["figures"]
    return {
        one["name"]: Mark(*(round(100 * one[key]) for key in ("share", "low", "high")))
        for one in figures
        if one["rate"] == rate
    }


def svg(plot: Plot) -> str:
    """The plot as a drawing 400 wide."""
    parts, y = [f'<text x="{LEFT}" y="22" font-weight="600">{plot.title}</text>'], 22
    for name, colour in zip(plot.series, SERIES, strict=False):
        y += 22
        parts.append(f'<circle cx="{LEFT + 5}" cy="{y - 5}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + 18}" y="{y}" fill="#59636e">{name}</text>')
    for heading, rows in plot.groups.items():
        if heading:
            y += 28
            parts.append(f'<text x="{LEFT}" y="{y}" fill="#59636e" font-weight="600">{heading}</text>')
        for row in rows:
            y += 22
            parts.append(f'<text x="{LEFT}" y="{y}">{row.label}</text>')
            for mark, colour in zip(row.marks, SERIES, strict=False):
                y += 17
                parts += _drawn(mark, colour, y, plot)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 {y + 14}" role="img"',
        'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{plot.title}</title>",
        f'<rect width="400" height="{y + 14}" fill="#ffffff"/>',
        '<g fill="#1f2328">',
        *parts,
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _drawn(mark: Mark, colour: str, y: int, plot: Plot) -> Iterator[str]:
    low, value, high = (LEFT + (RIGHT - LEFT) * one / plot.end for one in (mark.low, mark.value, mark.high))
    yield f'<path d="M{LEFT} {y - 4} H{RIGHT}" stroke="#d0d7de"/>'
    yield f'<path d="M{low:.1f} {y - 4} H{high:.1f}" stroke="{colour}" stroke-width="3"/>'
    yield f'<circle cx="{value:.1f}" cy="{y - 4}" r="5" fill="{colour}"/>'
    yield f'<text x="{RIGHT + 12}" y="{y}">{mark.value:g}{plot.unit}</text>'
