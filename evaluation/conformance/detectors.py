"""What is asked whether a text is marked: a detection service, or a command that prints a p-value."""

import hashlib
import math
import shlex
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from pathlib import Path

from ttmark.evaluation.adversaries.catalogue import Verdict
from ttmark.evaluation.run_folder import append_lines, read_lines
from ttmark.shared.client import Client, ClientError
from ttmark.shared.schemas.detection.detect import CombinedRequest, DetectionResult, Document

AT_ONCE = 2
SECONDS = 120
LEAST_P = 1e-300
EVIDENCE = "detect:evidence"

Judge = Callable[[Sequence[str], float], Sequence[DetectionResult]]
"""The results of texts at a false positive rate, as a caller with the scope `detect:evidence` gets them."""


class NoAnswer(ValueError):
    """A detector did not say what was asked."""


def log10_p_of(judge: Judge, texts: Sequence[str], rates: Sequence[float]) -> list[float]:
    """One p-value for each text that is found at exactly those of the rates at which its verdict says so.

    A p-value is drawn for as sharply as the rate needs that is asked at. So the smallest rate is asked at
    first, the others about what was not found yet, and the p-value of the rate at which a text is found
    counts.

    Raises:
        NoAnswer: a text was not examined.
    """
    found, left, finer = [0.0] * len(texts), list(range(len(texts))), -math.inf
    for rate in sorted(rates):
        results = judge([texts[index] for index in left], rate) if left else ()
        for index, one in zip(tuple(left), results, strict=True):
            if one.error is not None:
                raise NoAnswer(one.error.message)
            said = 0.0 if one.log10_p is None else one.log10_p
            is_found = one.verdict == "watermarked"
            found[index] = max(said, finer if is_found else math.nextafter(math.log10(rate), 0.0))
            if is_found:
                left.remove(index)
        finer = math.nextafter(math.log10(rate), 0.0)
    return found


def by_service(client: Client, keys: Sequence[str], rates: Sequence[float]) -> Callable[..., list[float]]:
    """Log10 p of texts by `POST /v1/detect`, about these keys, or about all of the token's.

    Raises:
        NoAnswer: the token does not see evidence: questions without it would count against its limits.
    """
    if EVIDENCE not in client.keys().scopes:
        raise NoAnswer(
            f"the token lacks the scope {EVIDENCE}: without it the many variants of a text would spend its"
            " limits, and the answers hold no p-value (`ttmark tokens create`)"
        )

    def judge(texts: Sequence[str], rate: float) -> Sequence[DetectionResult]:
        inputs = [Document(text=text) for text in texts]
        return client.detect(CombinedRequest(inputs=inputs, keys=list(keys) or None, fpr=rate)).results

    return lambda _, texts: log10_p_of(judge, texts, rates)


def told_by_service(client: Client, keys: Sequence[str], rate: float) -> Verdict:
    """What a token without evidence is told; None where a limit on questions ends the answers.

    Raises:
        NoAnswer: the token sees evidence, which no attacker's does.
    """
    if EVIDENCE in client.keys().scopes:
        raise NoAnswer(f"the plain token has the scope {EVIDENCE}: an attacker's token would not")

    def verdict(text: str) -> bool | None:
        try:
            asked = CombinedRequest(inputs=[Document(text=text)], keys=list(keys) or None, fpr=rate)
            (result,) = client.detect(asked).results
        except ClientError as error:
            if error.status != HTTPStatus.TOO_MANY_REQUESTS:
                raise
            return None
        return None if result.error is not None else result.verdict == "watermarked"

    return verdict


def told_once(told: Verdict, folder: Path) -> Verdict:
    """Keeps each verdict in a file, so that a run that goes on asks nobody a second time."""
    path = folder / "verdicts.jsonl"
    known: dict[str, bool | None] = dict(read_lines(path))

    def verdict(text: str) -> bool | None:
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in known:
            known[digest] = told(text)
            append_lines(path, [[digest, known[digest]]])
        return known[digest]

    return verdict


def told_by_command(command: str, rate: float) -> Verdict:
    """Whether a command's p-value is at most the rate; a command knows no limits."""
    words = shlex.split(command)
    return lambda text: _said_by(words, text) <= math.log10(rate)


def by_command(command: str) -> Callable[..., list[float]]:
    """Log10 p of texts by a command that reads one on standard input and prints its p-value."""
    words = shlex.split(command)

    def log10_p(_: object, texts: Sequence[str]) -> list[float]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(partial(_said_by, words), texts))

    return log10_p


def translated_by(command: str) -> Callable[[str], str]:
    """A text as a command prints it that reads it on standard input, and translates it there and back.

    Raises:
        NoAnswer: the command fails, takes too long, or prints nothing.
    """
    words = shlex.split(command)

    def translated(text: str) -> str:
        printed = _printed("--translator", words, text)
        if text.strip() and not printed.strip():
            raise NoAnswer("--translator printed nothing")
        return printed

    return translated


def _printed(option: str, words: Sequence[str], text: str) -> str:
    try:
        return subprocess.run(
            words, input=text, capture_output=True, encoding="utf-8", timeout=SECONDS, check=True
        ).stdout
    except subprocess.CalledProcessError as error:
        raise NoAnswer(f"{option}: exit code {error.returncode}: {error.stderr.strip()[-200:]}") from error
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise NoAnswer(f"{option}: {error}") from error


def _said_by(words: Sequence[str], text: str) -> float:
    printed = _printed("--detector", words, text)
    try:
        p = float(printed)
    except ValueError as error:
        raise NoAnswer(f"--detector prints no p-value: {error}") from error
    if not 0.0 <= p <= 1.0:
        raise NoAnswer(f"--detector printed {p}, which is no p-value")
    return math.log10(max(p, LEAST_P))
