"""Folders and hundreds of files in the console: a table that is sorted, filtered, saved and remembered."""

import csv
import io
import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.actions import file, give

MAILS = "From a Mon\nSubject: first\n\n{}\n\nFrom b Tue\nSubject: second\n\n{}\n"


def names(page: Page) -> list[str]:
    return page.locator("#batch-list tr:visible .batch-file").all_text_contents()


@pytest.fixture
def folder(tmp_path: Path, site) -> Path:
    """Two files with a mark among seven, one of a kind that is not read, and one that is hidden."""
    files = {
        "in/deep/letter10.txt": site.marked("press-room", 160),
        "in/letter9.txt": site.human(150, 9),
        "in/short.md": "bade bor",
        "in/picture.gif": "x",
        "in/.hidden.txt": "x",
        "in/post.mbox": MAILS.format(site.human(150, 5), site.marked("help-desk", 160)),
        "in/rows.csv": f"id,text\nx,{site.human(150, 6)}\n,{site.human(150, 7)}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "in"


@pytest.fixture
def checked(connected: Page, folder: Path) -> Page:
    connected.locator("#folder").set_input_files(str(folder))
    expect(connected.locator("#batch-title")).to_have_text("5 files")
    expect(connected.locator("#batch-note")).to_have_text("1 of another kind was passed over.")
    connected.locator("#check").click()
    expect(connected.locator("#batch-title")).to_have_text("7 of 7 files", timeout=60_000)
    expect(connected.locator("#check")).to_have_attribute("aria-busy", "false")
    return connected


def test_a_folder_is_checked_row_by_row_sorted_filtered_saved_and_remembered(checked: Page, site) -> None:
    assert names(checked) == [
        "in/deep/letter10.txt",
        "in/letter9.txt",
        "in/post.mbox · 1: first",
        "in/post.mbox · 2: second",
        "in/rows.csv · x",
        "in/rows.csv · 2",
        "in/short.md",
    ]
    strength = checked.get_by_role("button", name="By chance alone")
    strength.click()
    found = names(checked)[:2]
    assert sorted(found) == ["in/deep/letter10.txt", "in/post.mbox · 2: second"]
    strength.click()
    assert names(checked)[-2:] == found[::-1]
    checked.get_by_label("Show").select_option("watermark found")
    assert len(names(checked)) == 2
    checked.get_by_label("Name, subject or sender has").fill("MBOX")
    assert names(checked) == ["in/post.mbox · 2: second"]
    expect(checked.locator("#batch-list tr:visible .probability")).to_contain_text("1 in 10")
    expect(checked.locator("#batch-left")).to_have_text(
        "Finished. Watermark found in 2 of 7 files; 0 without an answer."
    )
    checked.get_by_role("button", name="in/post.mbox · 2: second").click()
    expect(checked.locator("#headline")).to_have_text("Watermark found")
    expect(checked.locator("#document")).to_be_visible()
    checked.get_by_label("Name, subject or sender has").fill("")
    with checked.expect_download() as download:
        checked.get_by_role("button", name="Save list as CSV").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))
    assert [(row["file"], row["verdict"]) for row in rows] == [(name, "watermarked") for name in found[::-1]]
    # Answers outlive a reload, without a text, until they are forgotten.
    checked.reload()
    expect(checked.locator("#batch-title")).to_have_text("7 of 7 files", timeout=60_000)
    expect(checked.locator("#batch-kept")).to_contain_text("until you forget the list, sign out")
    checked.get_by_role("button", name="in/deep/letter10.txt").click()
    expect(checked.locator("#headline")).to_have_text("Watermark found")
    expect(checked.locator("#where")).to_be_hidden()
    expect(checked.locator("#batch-note")).to_contain_text("The text was not kept")
    everything = """() => new Promise((done) => {
        const opened = indexedDB.open("ttmark-files");
        opened.onsuccess = () => {
            const all = opened.result.transaction("rows").objectStore("rows").getAll();
            all.onsuccess = () => done(JSON.stringify(all.result));
        };
    })"""
    kept = checked.evaluate(everything)
    assert len(json.loads(kept)) == 7
    assert site.marked("press-room", 160)[:30] not in kept
    assert '"evidence"' not in kept.replace('"evidence":"blocks"', "")
    checked.get_by_label("Text to check").fill("another text")  # costs no answer
    expect(checked.locator("#batch-list tr")).to_have_count(7)
    checked.get_by_role("button", name="Forget this list").click()
    expect(checked.locator("#batch")).to_be_hidden()
    checked.wait_for_function(f"async () => (await ({everything})()) === '[]'")
    checked.reload()
    expect(checked.locator("#connection")).to_be_visible()
    expect(checked.locator("#batch")).to_be_hidden()


@pytest.mark.long
def test_a_service_that_takes_no_more_is_waited_for_and_says_how_many_hours(connected: Page, site) -> None:
    files = [file(f"{seed}.txt", site.human(150, seed)) for seed in range(12)]
    answered: list[Route] = []
    busy = {"Retry-After": "10000"}

    def answer(route: Route) -> None:
        if len(answered) < 5:
            answered.append(route)
            route.continue_()
        else:
            route.fulfill(status=429, headers=busy, json={"detail": "Too many."})

    connected.route("**/v1/content_provenance_checks", answer)
    give(connected, *files)
    connected.locator("#check").click()
    expect(connected.locator("#batch-wait")).to_have_text(
        "Too many checks at once: the service takes more in 3 hours. 7 files wait for it."
    )
    expect(connected.locator("#batch-list tr.failed")).to_have_count(0)
    connected.locator("#check").click()  # stops
    expect(connected.locator("#batch-wait")).to_be_hidden()
    busy["Retry-After"] = "1"
    connected.locator("#check").click()  # goes on with what has no answer
    expect(connected.locator("#batch-wait")).to_be_visible()
    connected.unroute("**/v1/content_provenance_checks")
    expect(connected.locator("#batch-title")).to_have_text("12 of 12 files", timeout=60_000)
    expect(connected.locator("#batch-list tr.not_detected")).to_have_count(12)


@pytest.mark.long
def test_a_service_that_is_away_is_asked_again_and_weak_evidence_can_be_chosen(connected: Page, site) -> None:
    files = [file(f"{seed}.txt", site.human(150, seed)) for seed in range(3)]
    away: list[Route] = []

    def answer(route: Route) -> None:
        if len(away) < 2:
            away.append(route)
            route.abort()
        else:
            response = route.fetch()
            body = response.json()
            body["texts"][0]["result"]["weak"] = True
            route.fulfill(response=response, json=body)

    connected.route("**/v1/content_provenance_checks", answer)
    give(connected, *files)
    connected.locator("#check").click()
    expect(connected.locator("#batch-wait")).to_contain_text("The service does not answer at the moment.")
    connected.evaluate("() => { const now = Date.now; Date.now = () => now() + 10_000; }")  # have passed
    expect(connected.locator("#batch-title")).to_have_text("3 of 3 files", timeout=60_000)
    expect(connected.locator("#batch-list tr.failed")).to_have_count(0)
    connected.get_by_label("Show").select_option("weak evidence")
    assert len(names(connected)) == 3
    connected.get_by_label("Show").select_option("too short to tell")
    assert names(connected) == []


@pytest.mark.long
def test_a_mail_is_listed_and_found_by_its_subject_and_its_sender(connected: Page, tmp_path: Path) -> None:
    for name, sender in (("a.eml", "Anna Example <anna@example.org>"), ("b.eml", "bob@example.org")):
        (tmp_path / name).write_text(f"Subject: Walks\nFrom: {sender}\n\nA short text.\n")
    connected.locator("#file").set_input_files([tmp_path / "a.eml", tmp_path / "b.eml"])
    connected.locator("#check").click()
    expect(connected.locator("#batch-title")).to_have_text("2 of 2 files", timeout=60_000)
    title = "Walks · Anna Example <anna@example.org>"
    expect(connected.locator(".batch-mail").first).to_have_text(title)
    connected.get_by_label("Name, subject or sender has").fill("anna@")
    assert names(connected) == ["a.eml"]
    with connected.expect_download() as download:
        connected.get_by_role("button", name="Save list as CSV").click()
    (row,) = csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig")))
    assert (row["file"], row["title"]) == ("a.eml", title)
