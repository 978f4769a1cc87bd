"""`POST /v1/detect`, and conversations: from exported keys and the readings of a document to an answer."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tests.harness.spec_detector.detector import Reach, too_short
from tests.harness.spec_detector.drawn_p_value import Tail, log10_mean, log10_sum, secret_of, seed_of
from tests.harness.spec_detector.paths import Prior, Text, log10_sums, posterior
from tests.harness.spec_detector.ratios import NEUTRAL, PLAIN, Array, cells_of, ratios_of
from tests.harness.spec_detector.reader_classes import Parts, Said
from tests.harness.spec_detector.scheme import Scheme

Row = tuple[int, ...]
ReaderState = Literal["none", "down", "not_needed", "read"]


@dataclass(frozen=True)
class Reading:
    """Tokens as one reading of a text gives them; where they end in its bytes, and what was said of it.

    The next two are None of token ids, or where nothing was said. `weight` and `count` are of all readings
    that have the text.
    """

    tokens: Sequence[int]
    ends: Sequence[int] | None = None
    parts: Parts | None = None
    weight: float = 1.0
    count: int = 1

    def said(self) -> Said | None:
        return None if self.parts is None or self.ends is None else Said(self.parts, self.ends)


@dataclass(frozen=True)
class Found:
    """What the service answers as well; `segments` are first and exclusive last token, log10 E, pool key."""

    verdict: str
    log10_p: float
    log10_e: float
    hypotheses: int
    scored_blocks: int
    key: tuple[str, int, int]
    fired: int
    reader: ReaderState
    weak: bool
    scope: str | None = None
    share: tuple[float, float, float] | None = None
    segments: tuple[tuple[int, int, float, int], ...] = ()
    tokens_needed: int | None = None
    tokens_typical: int | None = None


@dataclass(frozen=True)
class Span:
    """A passage of one key: what surely belongs to it is its core."""

    log10_e: float
    start: int
    end: int
    core: tuple[int, int]
    maker: tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class _Try:
    """One version on one reading."""

    export: dict[str, Any]
    version: dict[str, Any]
    reading: int
    of_keys: Array
    own_p: list[float]
    scored: int

    @property
    def keys(self) -> list[bytes]:
        return [bytes.fromhex(key) for key in self.version["prf_keys"]]

    @property
    def best(self) -> int:
        return min(range(len(self.own_p)), key=lambda k: (self.own_p[k], -self.of_keys[k]))

    @property
    def log10_p(self) -> float:
        return min(0.0, min(self.own_p) + math.log10(len(self.own_p)))


@dataclass(frozen=True)
class _Step:
    """One step of the question: all versions on all readings; `tries` are keys over the reading's weight."""

    best: _Try
    log10_p: float
    log10_e: float
    hypotheses: int
    tries: float
    fired: tuple[tuple[_Try, int], ...]


_UNKNOWN = 2**32 - 2


def rows_of(scheme: Scheme, tokens: Sequence[int]) -> list[Row]:
    """(context, block) at each position."""
    width = scheme.width + scheme.size
    return [tuple(tokens[at : at + width]) for at in range(len(tokens) - width + 1)]


def text_of(scheme: Scheme, tokens: Sequence[int], said: Said | None, seen: set[Row]) -> Text:
    """A text without a key; `seen` are rows of messages before it, and then of this one too."""
    ratios, contexts = ratios_of(scheme), set()
    rows = rows_of(scheme, tokens)
    classes = [PLAIN] * len(rows) if said is None else said.classes(scheme, ratios)
    for at, row in enumerate(rows):
        context = (row[: scheme.width], at % scheme.size)
        if row in seen or _UNKNOWN in row:
            classes[at] = NEUTRAL
        elif context in contexts:
            classes[at] = ratios.spent(classes[at])
        seen.add(row)
        contexts.add(context)
    surprise = None if said is None else said.surprise(scheme)
    return Text(ratios, scheme.size, np.array(classes, dtype=np.int64), surprise)


def cells_under(scheme: Scheme, key: bytes, tokens: Sequence[int]) -> Array:
    """The cell of the block at each position."""
    rows = rows_of(scheme, tokens)
    scores = [scheme.score(key, row[: scheme.width], row[scheme.width :], 0) for row in rows]
    return cells_of(scheme, np.array(scores, dtype=np.float64))


def log10_evidence(text: Text, cells: Array) -> Array:
    """log10 E of rows of cells."""
    return log10_mean(log10_sums(text, text.priors(), cells))


def detect_combined(
    exports: Sequence[dict[str, Any]],
    readings: Sequence[Reading],
    fpr: float,
    *,
    secret: bytes = b"",
    reader: Literal["none", "down", "up"] = "none",
    wanted: Literal["auto", "always", "never"] = "auto",
) -> Found:
    """The answer for a document, from readings with what a reader says of them; empty secret: of the keys."""
    fits = wanted != "never" and all(reading.ends for reading in readings)
    two, missed = fits and reader == "up", wanted != "never" and reader == "down"
    silent = [replace(reading, parts=None) for reading in readings]
    step = _step(exports, silent, fpr, 0.1 if two else 1.0, secret)
    log10_p, log10_e, state = step.log10_p, step.log10_e, "down" if missed else "none"
    if two:
        log10_p, log10_e, state = min(0.0, log10_p + 1), log10_e - 1, "not_needed"
        open_ = step.log10_p > math.log10(fpr * 0.1)
        open_ &= float(step.best.of_keys.max()) >= 0.8 * math.log10(step.tries) - 0.3
        if wanted == "always" or open_:
            state = "down"
            if all(reading.parts is not None for reading in readings):
                state = "read"
                second = _step(exports, readings, fpr, 0.9, secret)
                read_p = min(0.0, second.log10_p - math.log10(0.9))
                log10_e = log10_sum([log10_e, second.log10_e + math.log10(0.9)])
                step = step if log10_p < read_p else second
                log10_p = min(log10_p, read_p)
    used = readings if state == "read" else silent
    return _answer(exports, used, fpr, step, log10_p, log10_e, state)  # type: ignore[arg-type]


def _step(
    exports: Sequence[dict[str, Any]], readings: Sequence[Reading], fpr: float, share: float, secret: bytes
) -> _Step:
    versions = [(one, version) for one in exports for version in reversed(one["versions"])]
    versions = [(one, version) for one, version in versions if "prf_keys" in version]
    limits = [math.log10(fpr * share * reading.weight / len(versions)) for reading in readings]
    together: dict[Any, list[bytes]] = {}
    for one, version in versions:
        together.setdefault(_group(one, version), []).extend(map(bytes.fromhex, version["prf_keys"]))
    secrets = {name: secret or secret_of(keys) for name, keys in together.items()}
    best, log10_p, of_readings, fired, keys = None, math.inf, [], {}, 0
    for number, (reading, limit) in enumerate(zip(readings, limits, strict=True)):
        tails: dict[Any, Tail] = {}
        tries = [_try(*one, number, reading, limit, secrets, tails) for one in versions]
        own = min(tries, key=lambda one: one.log10_p)
        of_reading = min(0.0, own.log10_p + math.log10(len(versions))) - math.log10(reading.weight)
        log10_e = float(log10_mean(np.concatenate([one.of_keys for one in tries])))
        of_readings.append(log10_e + math.log10(reading.weight))
        keys = sum(one.of_keys.size for one in tries)
        fired[number] = [
            (min(0.0, p + math.log10(len(one.own_p))), one, k)
            for one in tries
            for k, p in enumerate(one.own_p)
            if min(0.0, p + math.log10(len(one.own_p))) <= limit
        ]
        if of_reading < log10_p:
            best, log10_p = own, of_reading
    assert best is not None
    in_order = sorted(fired[best.reading], key=lambda one: one[0])
    return _Step(
        best,
        min(0.0, log10_p),
        log10_sum(of_readings),
        keys * sum(reading.count for reading in readings),
        keys / readings[best.reading].weight,
        tuple((one, k) for _, one, k in in_order),
    )


def _group(export: dict[str, Any], version: dict[str, Any]) -> Any:
    """Versions that have their draws in common."""
    return str(export["profile"]), len(version["prf_keys"])


def _try(
    export: dict[str, Any],
    version: dict[str, Any],
    number: int,
    reading: Reading,
    limit: float,
    secrets: dict[Any, bytes],
    tails: dict[Any, Tail],
) -> _Try:
    scheme, tokens = Scheme(export["profile"]), reading.tokens
    text = text_of(scheme, tokens, reading.said(), set())
    keys = [bytes.fromhex(key) for key in version["prf_keys"]]
    cells = [cells_under(scheme, key, tokens) for key in keys]
    of_keys = log10_evidence(text, np.array(cells).reshape(len(keys), -1))
    log10_rate = limit - math.log10(len(keys))
    own_p = []
    for found, row in zip(of_keys.tolist(), cells, strict=True):
        p = min(0.0, -found)
        if text.positions and found >= 0.3 * (-log10_rate - 1.5):
            name = _group(export, version)
            if name not in tails:
                tails[name] = Tail(text, log10_rate, seed_of(secrets[name], scheme.null.name, tokens, text))
            p = tails[name].log10_p(row)
        own_p.append(p)
    scored = int(np.count_nonzero(text.classes != NEUTRAL))
    return _Try(export, version, number, of_keys, own_p, scored)


def _answer(
    exports: Sequence[dict[str, Any]],
    readings: Sequence[Reading],
    fpr: float,
    step: _Step,
    log10_p: float,
    log10_e: float,
    state: ReaderState,
) -> Found:
    best = step.best
    name = (best.export["key_id"], best.version["version"])
    found = Found(
        verdict="watermarked",
        log10_p=log10_p,
        log10_e=log10_e,
        hypotheses=step.hypotheses,
        scored_blocks=best.scored,
        key=(*name, best.best),
        fired=sum((one.export["key_id"], one.version["version"]) == name for one, _ in step.fired),
        reader=state,
        weak=log10_p <= min(math.log10(fpr) + 2, -2),
    )
    if log10_p <= math.log10(fpr):
        return _with_passages(found, readings[best.reading], step)
    every = [
        Reach(Scheme(one["profile"]), blocks, len(version["prf_keys"]) / reading.weight)
        for reading in readings
        for one in exports
        for version in one["versions"]
        if "prf_keys" in version
        for blocks in [_blocks(Scheme(one["profile"]), len(reading.tokens))]
    ]
    short = too_short(every, math.log10(fpr) - math.log10(len(every) // len(readings)))
    needed, typical = short or (None, None)
    verdict = "too_short" if short else "not_detected"
    return replace(found, verdict=verdict, tokens_needed=needed, tokens_typical=typical)


def _blocks(scheme: Scheme, tokens: int) -> int:
    return max(0, -(-(tokens - scheme.width - scheme.size + 1) // scheme.size))


def _with_passages(found: Found, reading: Reading, step: _Step) -> Found:
    n, spans, best = len(reading.tokens), list[Span](), step.best
    fire = step.fired or ((best, best.best),)
    least = 0.05 / len(fire)
    odds = [10 ** min(e, 12.0) / best.of_keys.size for e in best.of_keys.tolist()]
    others = [(best, k) for k, o in enumerate(odds) if o >= least and (best, k) not in fire]
    unmarked = np.ones(n)
    for one, k in (*fire, *others):
        scheme = Scheme(one.export["profile"])
        text = text_of(scheme, reading.tokens, reading.said(), set())
        cells = cells_under(scheme, one.keys[k], reading.tokens)
        carried = carried_by(scheme, text, cells, reading.tokens)
        unmarked *= 1 - (1 if (one, k) in fire else odds[k] / (1 + odds[k])) * carried
        if (one, k) not in fire:
            continue
        most = math.log10(max(1, n * (n + 1) // 2) * step.tries)
        name = (one.export["key_id"], one.version["version"], k)
        for start, end in _runs(carried >= 0.5):
            if end - start < scheme.size:
                continue
            at = np.arange(text.positions) + scheme.width
            rest = text.with_neutral((at < end) & (at + scheme.size > start))
            gain = log10_evidence(text, cells[None])[0] - log10_evidence(rest, cells[None])[0]
            sure = [at for at in range(start, end) if carried[at] >= 0.95]
            core = (sure[0], sure[-1] + 1) if sure else (start, end)
            if gain >= most:
                spans.append(Span(most - float(gain), start, end, core, name))
    spans = _meeting(spans)
    makers = {one.maker for one in spans}
    marked = 1 - unmarked
    estimate, low = float(marked.mean()), float((marked >= 0.95).mean())
    high = sum(bool((marked[t : t + 17] >= least).any()) for t in range(n)) / n
    listed = spans if high < 1 or len(makers) > 1 else []
    return replace(
        found,
        scope="passages" if listed else "whole",
        share=(estimate, min(low, estimate), max(high, estimate)),
        segments=tuple((one.start, one.end, one.log10_e, one.maker[2]) for one in listed),
    )


def _meeting(spans: Sequence[Span]) -> list[Span]:
    """Those whose cores overlap no better one's, in order, cut where they meet."""
    kept: list[Span] = []
    for one in sorted(spans, key=lambda span: span.log10_e):
        if all(one.core[1] <= other.core[0] or other.core[1] <= one.core[0] for other in kept):
            kept.append(one)
    kept.sort(key=lambda span: span.core)
    for i in range(1, len(kept)):
        before, after = kept[i - 1], kept[i]
        if before.end > after.start:
            meet = max(before.core[1], min(after.core[0], (before.end + after.start) // 2))
            kept[i - 1], kept[i] = replace(before, end=meet), replace(after, start=meet)
    return kept


def carried_by(scheme: Scheme, text: Text, cells: Array, tokens: Sequence[int]) -> Array:
    """How much each token is carried."""
    if not text.positions:
        return np.zeros(len(tokens))
    priors = [*text.priors(), *[Prior(strength, 0.03, 0.03, 0.9) for strength in (0, 1)]]
    apart = [posterior(text, prior, cells)[1:] for prior in priors]
    logs = np.array([log for _, log in apart])
    weights = 10.0 ** (logs - logs.max())
    mean = sum(weight * one for weight, (one, _) in zip(weights / weights.sum(), apart, strict=True))
    first: dict[Row, int] = {}
    equal = [first.setdefault(row, at) for at, row in enumerate(rows_of(scheme, tokens))]
    place = np.clip(np.arange(len(tokens)) - scheme.width, 0, text.positions - 1)
    return 1.0 - np.asarray(mean)[equal][place]


def _runs(flags: Array) -> Iterator[tuple[int, int]]:
    start = None
    for at, flag in enumerate([*flags.tolist(), False]):
        if flag and start is None:
            start = at
        elif not flag and start is not None:
            yield start, at
            start = None


def detect_conversation(
    exports: Sequence[dict[str, Any]],
    ways: Sequence[tuple[Sequence[Reading], float]],
    fpr: float,
    *,
    reader: Literal["none", "down", "up"] = "none",
    wanted: Literal["auto", "always", "never"] = "auto",
) -> tuple[list[float], float, ReaderState]:
    """log10 E up to each message, log10 p, and what the reader did; of ways of reading, with weights."""
    silent = [([replace(message, parts=None) for message in way], weight) for way, weight in ways]
    grown = _grown(exports, silent)
    fits = wanted != "never" and any(message.ends for way, _ in ways for message in way)
    if not fits or reader != "up":
        state: ReaderState = "down" if wanted != "never" and reader == "down" else "none"
        return grown, -max(0.0, *grown), state
    open_ = math.log10(0.1 * fpr) < -max(0.0, *grown) < -0.3
    state, grown = "not_needed", [value - 1 for value in grown]
    if wanted == "always" or open_:
        state = "down"
        if all(message.parts is not None for way, _ in ways for message in way if message.ends):
            state = "read"
            read = [value + math.log10(0.9) for value in _grown(exports, ways)]
            grown = [log10_sum(pair) for pair in zip(grown, read, strict=True)]
    return grown, -max(0.0, *grown), state


def _grown(exports: Sequence[dict[str, Any]], ways: Sequence[tuple[Sequence[Reading], float]]) -> list[float]:
    """log10 of the mean over the ways, by weight, of the products up to each message."""
    products = []
    for way, weight in ways:
        seen: dict[int, set[Row]] = {number: set() for number in range(len(exports))}
        of_messages = []
        for message in way:
            of_keys = []
            for number, exported in enumerate(exports):
                scheme = Scheme(exported["profile"])
                text = text_of(scheme, message.tokens, message.said(), seen[number])
                for version in exported["versions"]:
                    for key in version.get("prf_keys", ()):
                        cells = cells_under(scheme, bytes.fromhex(key), message.tokens)
                        of_keys.append(float(log10_evidence(text, cells[None])[0]))
            of_messages.append(float(log10_mean(np.array(of_keys))))
        products.append(np.cumsum(of_messages) + math.log10(weight))
    return [log10_sum(list(each)) for each in zip(*products, strict=True)]
