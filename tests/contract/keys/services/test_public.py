"""The public tier of two replicas over one Redis: people without a token share what they may ask."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.waiting import eventually
from ttmark.shared.access.scopes import Scope

PATH = "/v1/detect/public"
TEXT = "The keeper climbed the stairs each night and lit the lamp before the ships came by. " * 3


@pytest.fixture
def replicas(cluster: Any, tmp_path: Path) -> Any:
    file = tmp_path / "token"
    file.write_text(cluster.operator.token(Scope.DETECT_PUBLIC) + "\n")
    settings = {
        "TTMARK_PUBLIC_TOKEN_FILE": str(file),
        "TTMARK_PUBLIC_ADDRESS_WORDS_PER_DAY": "750",
        "TTMARK_PUBLIC_ADDRESS_REQUESTS_PER_MINUTE": "0",
    }
    both = [cluster.start(name, settings) for name in ("detect-7", "detect-8")]
    for replica in both:
        eventually(lambda replica=replica: replica.ready)
    yield both
    for name in ("detect-7", "detect-8"):
        cluster.stop(name)


def test_words_and_passages_count_over_all_replicas(replicas: Any) -> None:
    def ask(number: int, text: str, **headers: str) -> int:
        response = replicas[number % 2].request("POST", PATH, None, json={"text": text}, headers=headers)
        return int(response.status_code)

    variants = [ask(number, TEXT + "more " * number) for number in range(8)]
    assert variants == [200] * 8  # from the fifth on it is told what was said of it before
    few = [ask(number, f"{number} is a number") for number in range(20)]
    assert few.count(200) == 7  # of fifty words; those above took the others
    assert ask(0, "another number", **{"X-Forwarded-For": "198.51.100.7"}) == 429


def test_guests_of_an_application_without_a_token_file_are_refused(cluster: Any) -> None:
    replica = cluster.of("detect")[0]
    assert replica.request("POST", PATH, None, json={"text": "a"}, headers={}).status_code == 401
    page = replica.request("GET", "/check", None, headers={})
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
