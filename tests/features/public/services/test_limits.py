"""What is counted of the public over all replicas."""

from tests.harness.waiting import eventually
from ttmark.detect_service.features.public.public_allowance import PublicBudget
from ttmark.shared.access.scopes import Scope


def test_words_and_passages_of_the_public_count_over_all_replicas(cluster, tmp_path, monkeypatch):
    """People without a token share what they may ask."""
    monkeypatch.setattr(PublicBudget.__init__, "__defaults__", (0, PublicBudget.of(1, 1).asker))
    (tmp_path / "token").write_text(cluster.operator.token(Scope.DETECT_PUBLIC) + "\n")
    settings = {"TTMARK_PUBLIC_TOKEN_FILE": str(tmp_path / "token"), "TTMARK_PUBLIC_WORDS_PER_DAY": "7500"}
    names = ("detect-7", "detect-8")
    replicas = [cluster.start(name, settings) for name in names]
    for replica in replicas:
        eventually(lambda replica=replica: replica.ready)

    def ask(number: int, text: str, **headers: str) -> int:
        replica = replicas[number % 2]
        response = replica.request("POST", "/v1/detect/public", None, json={"text": text}, headers=headers)
        return int(response.status_code)

    text = "The keeper climbed the stairs each night and lit the lamp before the ships came by. " * 3
    variants = [ask(number, text + "more " * number) for number in range(8)]
    assert variants == [200] * 8  # from the fifth on it is told what was said of it before
    few = [ask(number, f"{number} is a number") for number in range(20)]
    assert few.count(200) == 7  # of fifty words; those above took the others
    assert ask(0, "another number", **{"X-Forwarded-For": "198.51.100.7"}) == 429
    page = replicas[0].request("GET", "/check", None, headers={})
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name in names:
        cluster.stop(name)
