"""Several files at once in the console: an answer for each, whatever becomes of the others."""

import json
import re
from email.message import EmailMessage
from pathlib import Path

import pytest
from openai import OpenAI
from playwright.sync_api import Page, Route, expect

from tests.browser.actions import choose, file, give, invoke, row
from tests.harness.set_pages import FILES, para, pdf
from ttmark.shared.schemas.detection.extraction import FILE_KINDS


@pytest.fixture
def five(connected: Page, site) -> Page:
    """The console with five files that were chosen and not checked yet."""
    files = [
        file("found.txt", site.marked("press-room", 160)),
        file("picture.gif", b"GIF89a\0\0x"),
        file("broken.docx", b"none"),
        file("page.html", f"<p>{site.human(160)}</p>"),
        file("empty.md", " \n"),
    ]
    give(connected, *files)
    return connected


def test_each_file_gets_an_answer_that_opens_from_the_list_and_one_that_fails_stops_none(five: Page) -> None:
    expect(five.locator("#batch-list tr")).to_have_count(5)
    expect(five.locator("#check")).to_be_focused()  # the keyboard goes on from here
    five.keyboard.press("Enter")
    expect(five.locator("#batch-title")).to_have_text("5 of 5 files")
    expect(row(five, "found.txt")).to_contain_text("Watermark found")
    expect(row(five, "picture.gif")).to_contain_text(f"Files can be {FILE_KINDS}.")
    expect(row(five, "broken.docx")).to_contain_text("Not read. ")
    expect(row(five, "page.html")).to_contain_text("No watermark found")
    expect(row(five, "empty.md")).to_contain_text("Too short to tell")
    assert five.locator("#batch-progress").evaluate("bar => [bar.value, bar.max]") == [5, 5]
    expect(five.locator("#announce")).to_have_text(
        "Finished. Watermark found in 1 of 5 files; 2 without an answer."
    )
    expect(five.locator("#history .excerpt")).to_have_count(0)  # the list itself remembers them
    for name, headline in (("page.html", "No watermark found"), ("found.txt", "Watermark found")):
        row(five, name).get_by_role("button").press("Enter")
        expect(five.locator("#headline")).to_have_text(headline)
        expect(five.locator("#source")).to_have_text(name)
    expect(row(five, "picture.gif").get_by_role("button")).to_have_count(0)
    expect(five.locator("#batch-list tr")).to_have_count(5)


def test_a_mail_that_brings_marked_text_accuses_its_sender_of_nothing(connected: Page, site) -> None:
    mail, marked = EmailMessage(), site.marked("press-room", 160)
    mail.set_content(f"{site.human(150)}\n\nOn 3 Nov 2026, at 09:12, Ann wrote:\n\n> {marked}\n", cte="8bit")
    mail.add_attachment(marked, filename="essay.txt")
    give(connected, file("mail.eml", mail.as_bytes()))
    connected.get_by_role("button", name="Check the file").click()
    expect(row(connected, "mail.eml · essay.txt")).to_contain_text("Watermark found in an attachment")
    row(connected, "mail.eml · mail").get_by_role("button").click()
    expect(connected.locator("#headline")).to_have_text("Watermark found in quoted lines")
    expect(connected.locator("#facts")).to_contain_text("Whose words\nquoted lines", use_inner_text=True)


def test_a_passage_of_a_pdf_has_the_number_of_its_page(connected: Page, site) -> None:
    parts = (site.human(300, 1), f"{site.human(80, 2)} {site.marked('press-room', 200)}")
    give(connected, file("report.pdf", pdf(*(para(part, measure=440) for part in parts))))
    choose(connected, "Mixed")
    connected.get_by_label("False alarms").select_option("1e-3")
    connected.get_by_role("button", name="Check the file").click()
    row(connected, "report.pdf").get_by_role("button").click()
    expect(connected.locator("#passages")).to_contain_text("page 2")


OUTCOMES = {"watermarked": "detected", "not_detected": "not_detected", "too_short": None}


def test_the_console_the_command_and_openai_s_client_answer_alike(
    connected: Page, site, tmp_path: Path
) -> None:
    texts = {
        "watermarked": site.marked("press-room", 160),
        "not_detected": site.human(160),
        "too_short": "Hi.",
    }
    for verdict, text in texts.items():
        for name, made in FILES.items():
            (tmp_path / f"{verdict}-{name}").write_bytes(made(text))
    paths = sorted(tmp_path.iterdir())
    in_the_console: dict[str, dict[str, object]] = {}

    def watch(route: Route) -> None:
        name = re.search(rb'filename="(.*?)"', route.request.post_data_buffer)[1].decode()
        response = route.fetch()
        in_the_console[name] = response.json()["texts"][0]["result"]
        route.fulfill(response=response)

    connected.route("**/v1/content_provenance_checks", watch)
    give(connected, *(file(path.name, path.read_bytes()) for path in paths))
    connected.locator("#check").click()
    expect(connected.locator("#batch-title")).to_have_text("12 of 12 files", timeout=60_000)
    said = invoke(["detect", "--json", "--url", site.url, "--token", site.tokens["full"], *map(str, paths)])
    results = [json.loads(line) for line in said.stdout.splitlines() if line.startswith('{"id"')]
    by_the_command = {Path(one["id"]).name: one for one in results}
    assert in_the_console.keys() == by_the_command.keys() == {path.name for path in paths}
    for name, one in by_the_command.items():
        there = in_the_console[name]
        assert {**there, "id": one["id"], "evidence": None} | {"case": 0} == {**one, "case": 0}
        assert name.startswith(one["verdict"])
    client = OpenAI(api_key=site.tokens["full"], base_url=f"{site.url}/v1", max_retries=0)
    for path in paths:
        results = client.content_provenance_checks.create(file=path).results
        found = {one.type: one.outcome for one in results}
        assert found.get("text_watermark") == OUTCOMES[by_the_command[path.name]["verdict"]], path.name


@pytest.mark.long
def test_a_service_that_refuses_one_file_is_asked_about_the_others(connected: Page, site) -> None:
    files = [file(f"{name}.txt", site.human(150, seed)) for seed, name in enumerate(["a", "b", "c"])]
    give(connected, *files)
    second = site.human(150, 1)

    def answer(route: Route) -> None:
        if second.encode() in (route.request.post_data_buffer or b""):
            route.fulfill(status=500, json={"detail": "It broke."})
        else:
            route.continue_()

    connected.route("**/v1/content_provenance_checks", answer)
    connected.locator("#check").click()
    expect(row(connected, "b.txt")).to_contain_text("The check did not go through. It broke.")
    expect(row(connected, "c.txt")).to_contain_text("No watermark found")


@pytest.mark.long
def test_a_text_that_failed_in_the_service_has_no_verdict(connected: Page, site) -> None:
    message = {"headline": "Not examined", "explanation": "An error on our side.", "caution": "No answer."}
    error = {"code": "internal_error", "message": "An error."}
    result = {"id": "0", "verdict": "not_examined", "error": error, "message": message, "tokens": 0}
    answer = {"results": [result], "skipped_keys": [], "request_id": "r"}
    connected.route("**/v1/detect", lambda route: route.fulfill(json=answer))
    of_file = {"texts": [{"text": "", "result": result}], "skipped_keys": [], "request_id": "r"}
    connected.route("**/v1/content_provenance_checks", lambda route: route.fulfill(json=of_file))
    connected.locator("#text").fill(site.human(40))
    connected.locator("#check").click()
    expect(connected.locator("#failure-text")).to_have_text("An error on our side.")
    expect(connected.locator("#result")).to_be_hidden()
    give(connected, file("a.txt", "one"), file("b.txt", "two"))
    connected.locator("#check").click()
    expect(row(connected, "b.txt")).to_contain_text("An error on our side.")
    expect(connected.locator("#announce")).to_contain_text("0 of 2 files; 2 without an answer")
    expect(connected.locator("#history .excerpt")).to_have_count(0)


@pytest.mark.long
def test_too_many_and_too_large_files_are_refused_in_words(connected: Page) -> None:
    give(connected, *(file(f"{n}.txt", "x") for n in range(1_001)))
    expect(connected.locator("#text-problem")).to_have_text(
        "Files not read: 1,001. Up to 1,000 are checked at once."
    )
    expect(connected.locator("#batch")).to_be_hidden()
    large = [file("large.txt", b"a" * 9_000_000), file("small.txt", "bade bor")]
    give(connected, *large)
    connected.locator("#check").click()
    expect(row(connected, "large.txt")).to_contain_text("Not read. It is larger than the service takes")
    expect(row(connected, "small.txt")).to_contain_text("Too short to tell")


@pytest.mark.long
def test_files_are_dropped_together(connected: Page, site) -> None:
    connected.evaluate(
        """([marked, human]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([marked], "one.txt"));
            transfer.items.add(new File([human], "two.txt"));
            document.getElementById("drop").dispatchEvent(
                new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }""",
        [site.marked("press-room", 160), site.human(160)],
    )
    choose(connected, "Unedited")
    connected.locator("#check").click()
    expect(row(connected, "one.txt")).to_contain_text("Watermark found")
    expect(row(connected, "two.txt")).to_contain_text("No watermark found")
