"""The console is served whole, from here alone, under a strict policy."""

import re
from importlib.resources import files

import pytest

STATIC = files("ttmark.detect_service.features.console").joinpath("static")


async def test_the_page_is_served_to_everyone_with_a_strict_policy(service) -> None:
    response = await service.client.get("/")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


async def test_every_file_that_the_page_names_is_there_and_none_is_elsewhere(service) -> None:
    named: set[str] = set()
    for file in STATIC.iterdir():
        text = file.read_text(encoding="utf-8")
        named |= set(re.findall(r"""(?:href|src|from)[= ]["']([^"'#]+)["']""", text))
    assert "/console/main.js" in named
    for address in named:
        assert address.startswith("/console/"), address
        assert (await service.client.get(address)).status_code == 200


async def test_an_unchanged_file_is_not_sent_again(service) -> None:
    first = await service.client.get("/console/main.js")
    again = await service.client.get("/console/main.js", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_other_files_cannot_be_reached(service) -> None:
    for path in ("/console/__init__.py", "/console/..%2f__init__.py", "/console/"):
        assert (await service.client.get(path)).status_code == 404


@pytest.mark.parametrize("home", ["detect_service.features.console", "gen_service.features.playground"])
def test_nothing_in_a_page_is_inline(home: str) -> None:
    page = files(f"ttmark.{home}").joinpath("static/index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|<script(?! type=\"module\" src=)|\son\w+=|\sstyle=", page)
