"""Every route of both applications with every kind of wrong credential: nobody gets in."""

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.harness.forms import PATHS
from ttmark.shared.access.scopes import Scope

# Open to all on purpose; whatever else an application has needs a token.
OPEN = {
    "/healthz", "/readyz", "/metrics", "/openapi.json", "/", "/console/{name}", "/console/sign-in.json",
    "/.well-known/ttmark-case-key", "/.well-known/text-provenance.json", "/check", "/check/{name}",
}  # fmt: skip
BODIES = {
    "/v1/completions": {"model": "tiny-model", "prompt": "a", "max_tokens": 2},
    "/v1/chat/completions": {"model": "tiny-model", "messages": [{"role": "user", "content": "a"}]},
    "/v1/responses": {"model": "tiny-model", "input": "a", "max_output_tokens": 2},
    "/tokenize": {"model": "tiny-model", "prompt": "a"},
    "/detokenize": {"model": "tiny-model", "tokens": [1]},
    "/v1/readings": {"model": "tiny-model", "texts": ["a"]},
    "/v1/detect": {"inputs": [{"text": "a"}]},
    "/v1/detect/direct": {"inputs": [{"text": "a"}]},
    "/v1/detect/aligned": {"inputs": [{"text": "a"}]},
    "/v1/detect/localized": {"inputs": [{"text": "a"}]},
    "/v1/detect/public": {"text": "a"},
    "/v1/detect/jobs": {"mode": "direct", "inputs": [{"text": "a"}]},
    "/v1/cases/page": {"case": "{}"},
}


def sent(path: str) -> dict[str, Any]:
    """What a client of HTTP is given for the body of a request to `path`."""
    return {"files": {"file": b"a"}} if path in PATHS else {"json": BODIES.get(path)}


# The tiny model has no chat template: 400 to whoever gets in.
REFUSED_INSIDE = {"/v1/chat/completions", "/v1/responses"}
NO_ID = "0" * 32
NEEDED = {"gen": Scope.GENERATE, "detect": Scope.DETECT}
NEEDED_BY = {"/v1/readings": Scope.READ, "/v1/detect/public": Scope.DETECT_PUBLIC}
DETECTING = {Scope.DETECT, Scope.DETECT_EVIDENCE, Scope.DETECT_PUBLIC}
OTHERS = {
    "gen": DETECTING | {Scope.GENERATE_UNWATERMARKED, Scope.READ},
    "detect": DETECTING | {Scope.GENERATE, Scope.GENERATE_UNWATERMARKED, Scope.READ},
}


def flattened(routes: Iterable[Any]) -> Iterator[Any]:
    """Routes, those of included routers too; whatever is neither has no path and breaks the tests."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is None:
            yield route
        else:
            yield from flattened(inner.routes)


def routes_of(replica: Any) -> Iterator[tuple[str, str]]:
    """Method and path of every route that the application has."""
    for route in flattened(replica.app.routes):
        for method in sorted(getattr(route, "methods", None) or {"GET"}):
            yield method, route.path


def protected(replica: Any) -> list[tuple[str, str]]:
    return [
        (method, path.replace("{model_id:path}", "tiny-model").replace("{job_id}", NO_ID))
        for method, path in routes_of(replica)
        if path not in OPEN
    ]


@pytest.fixture(scope="module", params=["gen", "detect"])
def replica(request: pytest.FixtureRequest, cluster: Any) -> Any:
    return cluster.of(request.param)[0]


@pytest.fixture(scope="module")
def tokens(cluster: Any) -> dict[str, Any]:
    """Wrong credentials that need a store to exist, by what is wrong with them."""
    operator = cluster.operator
    good, other = operator.token(), operator.token()
    prefix, token_id, secret = good.split("_")
    expired = operator.token(expires_at=datetime.now(UTC) + timedelta(milliseconds=1))
    revoked = operator.token()
    operator.revoke(revoked)
    flipped = secret[:-1] + ("0" if secret[-1] != "0" else "1")
    return {
        "good": good,
        "expired": expired,
        "revoked": revoked,
        "unknown": f"{prefix}_{'0' * 16}_{secret}",
        "wrong secret": f"{prefix}_{token_id}_{flipped}",
        "wrong secret from its first digit": f"{prefix}_{token_id}_{'0' * 64}",
        "another token's secret": f"{prefix}_{token_id}_{other.split('_')[2]}",
        "hash of the secret": f"{prefix}_{token_id}_" + hashlib.sha256(secret.encode()).hexdigest(),
        "upper case": good.upper(),
        "shortened": good[:-1],
        "prolonged": good + "0",
        "only the id": token_id,
        "very long": good + "0" * 10_000,
        "not ASCII": f"{prefix}_{'é' * 16}_{secret}",
        "two tokens": f"{good} {good}",
    }


def headers_of(tokens: dict[str, str]) -> dict[str, dict[str, bytes]]:
    """Every way to send no good token."""
    good = tokens["good"]
    cases: dict[str, dict[str, bytes]] = {
        name: {"Authorization": f"Bearer {token}".encode()}
        for name, token in tokens.items()
        if name != "good"
    }
    schemes = {
        "no scheme": good, "Basic": f"Basic {good}", "Token": f"Token {good}", "no space": f"Bearer{good}",
        "scheme only": "Bearer", "empty": "", "quoted": f'Bearer "{good}"',
    }  # fmt: skip
    cases |= {name: {"Authorization": value.encode()} for name, value in schemes.items()}
    return cases | {
        "missing": {},
        "in another header": {"X-API-Key": good.encode()},
        "in a cookie": {"Cookie": f"access_token={good}".encode()},
        "for a proxy": {"Proxy-Authorization": f"Bearer {good}".encode()},
    }


def test_every_route_is_open_on_purpose_or_protected(replica: Any) -> None:
    paths = {path for _, path in routes_of(replica)}
    assert all(path in OPEN or path in BODIES or path.startswith("/v1/") for path in paths)
    assert len(paths) >= 7
    assert {path for _, path in protected(replica)} - set(BODIES) <= {
        "/v1/models",
        "/v1/models/tiny-model",
        "/v1/keys",
        f"/v1/detect/jobs/{NO_ID}",
        f"/v1/detect/jobs/{NO_ID}/results",
        "/v1/content_provenance_checks",  # forms
        "/v1/extract",
    }


def test_no_wrong_credential_opens_any_route(replica, tokens):
    assert len(protected(replica)) * len(headers_of(tokens)) >= 4 * 25
    for method, path in protected(replica):
        for name, headers in headers_of(tokens).items():
            response = replica.request(method, path, None, json=BODIES.get(path), headers=headers)
            assert response.status_code == 401, (method, path, name, response.text)
            assert response.headers["www-authenticate"].startswith("Bearer")
            assert tokens["good"].split("_")[2] not in response.text


def test_a_good_token_opens_every_route(replica: Any, tokens: dict[str, str]) -> None:
    for method, path in protected(replica):
        response = replica.request(method, path, tokens["good"], **sent(path))
        expected = (
            {200, 400}
            if path in REFUSED_INSIDE
            else {404}
            if NO_ID in path or path == "/v1/cases/page"  # these replicas sign none
            else {200, 202}
        )
        assert response.status_code in expected, path


def test_no_route_opens_without_its_scope(cluster: Any, replica: Any) -> None:
    service = replica.name.split("-")[0]
    for method, path in protected(replica):
        needed = NEEDED_BY.get(path, NEEDED[service])
        token = cluster.operator.token(*({Scope.GENERATE, *OTHERS[service]} - {needed}))
        response = replica.request(method, path, token, **sent(path))
        assert response.status_code == 403, (method, path, response.text)
        assert f'scope="{needed.value}"' in response.headers["www-authenticate"]


def test_no_route_lets_one_tenant_use_or_see_another_s_key(cluster: Any) -> None:
    mine, other = cluster.operator.token(tenant="acme"), cluster.operator.token(tenant="globex")
    generator, detector = cluster.of("gen")[0], cluster.of("detect")[0]
    for path in ("/v1/completions", "/v1/chat/completions", "/v1/responses"):
        body = BODIES[path] | {"watermark": {"key_id": "acme-main"}}
        assert generator.request("POST", path, mine, json=body).status_code in (200, 400)
        foreign = generator.request("POST", path, other, json=body)
        unknown = generator.request("POST", path, other, json=body | {"watermark": {"key_id": "no-such-key"}})
        assert foreign.status_code == 404
        assert foreign.json() == unknown.json()
    for path in ("/v1/detect", "/v1/detect/direct", "/v1/detect/aligned", "/v1/detect/localized"):
        body = BODIES[path] | {"keys": ["acme-main"]}
        assert detector.request("POST", path, mine, json=body).status_code == 200
        assert detector.request("POST", path, other, json=body).status_code == 404
    for replica, path in (
        (generator, "/v1/models"),
        (generator, "/v1/models/tiny-model"),
        (detector, "/v1/keys"),
    ):
        assert "acme" not in replica.request("GET", path, other).text
        assert "globex" not in replica.request("GET", path, mine).text
    text = generator.ask(mine, max_tokens=200, ignore_eos=True, return_token_ids=True).json()
    document = {"inputs": [{"token_ids": text["choices"][0]["token_ids"]}]}
    assert detector.ask(mine, fpr=1e-3, **document).json()["results"][0]["verdict"] == "watermarked"
    assert detector.ask(other, fpr=1e-3, **document).json()["results"][0]["verdict"] != "watermarked"


def test_pages_from_the_origins_of_the_setting_may_call_and_read_headers(replica: Any) -> None:
    route = "/v1/completions" if replica.name == "gen-1" else "/v1/detect"
    for origin, status in (("http://localhost:5173", 200), ("http://localhost:5174", 400)):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        answer = replica.request("OPTIONS", route, None, headers=headers)
        assert answer.status_code == status
        assert (answer.headers.get("access-control-allow-origin") == origin) == (status == 200)
    answer = replica.request("GET", "/v1/models", None, headers={"Origin": "http://localhost:5173"})
    exposed = set(answer.headers["access-control-expose-headers"].split(", "))
    of_the_mark = {"X-TTMark-Status", "X-TTMark-Detectability"}
    assert (exposed & of_the_mark) == (of_the_mark if replica.name == "gen-1" else set())
