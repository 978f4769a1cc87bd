"""Strict JSON in windows: what is refused, and what is read, is what it is of the whole body."""

import random

import pytest

from ttmark.shared.http import request_body
from ttmark.shared.http.request_body import HttpLimits, parse_json
from ttmark.shared.http.service_errors import MalformedJson


def test_windows_of_a_body_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = HttpLimits(max_json_depth=2, max_json_containers=3)
    pieces = [*'\\"[]{},aé\u2003😀', "\\ud83d", '\\"', '["', '"]', "\\\\"]
    drawn = random.Random(1)

    def said(body: bytes) -> str:
        try:
            return repr(parse_json(body, limits))
        except MalformedJson as error:
            return error.message

    bodies = ["".join(drawn.choices(pieces, k=drawn.randrange(24))) for _ in range(4_000)]
    bodies += [f'["{body.replace(chr(34), "")}"]' for body in bodies]
    bodies += ['"' * count for count in range(58, 64)] + ["\\" * count + '"[[[[' for count in range(12)]
    encoded = [body.encode() for body in bodies] + [body.encode()[:-1] for body in bodies[:500]]
    whole = [said(body) for body in encoded]
    assert len(set(whole)) > 500
    for window in (1, 3):
        monkeypatch.setattr(request_body, "_WINDOW", window)
        assert [said(body) for body in encoded] == whole
