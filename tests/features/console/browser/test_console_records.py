"""What the console keeps and gives away (files' names, history, cases), and where things stand."""

import csv
import io
import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser import actions
from tests.browser.actions import file, give, invoke, row, sign_in
from tests.harness import drawn_pictures
from tests.harness.drawn_pictures import needs_tesseract
from ttmark.shared.schemas.detection.extraction import FILE_KINDS


def check(page: Page, *asked: str) -> None:
    actions.check(page, *asked)
    expect(page.locator("#headline")).to_be_focused()


@needs_tesseract
def test_a_screenshot_is_read_and_the_console_says_who_read_it(connected: Page) -> None:
    give(connected, file("screen.png", drawn_pictures.saved(drawn_pictures.page(), "PNG")))
    connected.get_by_role("button", name="Check the file").click()
    said = "A machine read this text in a picture: letters may be wrong."
    expect(row(connected, "screen.png")).to_contain_text(said, timeout=60_000)


def passages(site) -> str:
    parts = [site.human(300, 1), site.marked("press-room", 240), site.human(300, 2)]
    return " ".join([*parts, site.marked("help-desk", 240), site.human(300, 3)])


def test_check_is_above_the_fold(page: Page, site) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    button = page.get_by_role("button", name="Check the text")
    expect(button).to_be_in_viewport(ratio=1)
    sign_in(page, site.tokens["full"])
    page.get_by_text("Connected ·").wait_for()
    page.get_by_label("Text to check").fill("long text\n" * 100)
    expect(button).to_be_in_viewport(ratio=1)


@pytest.mark.long
def test_results_name_the_file_and_a_rejected_one_leaves_nothing(connected: Page, site) -> None:
    box, source = connected.get_by_label("Text to check"), connected.locator("#source")
    give(connected, file("letter.txt", site.marked("press-room", 120)))
    expect(box).not_to_have_value("")
    check(connected)
    expect(source).to_have_text("letter.txt")
    expect(connected.locator("#history .excerpt")).to_have_text("letter.txt")
    box.press_sequentially("x")
    check(connected)
    expect(source).to_have_text("letter.txt, edited")
    check(connected, site.human(80))
    expect(source).to_have_text("letter.txt, edited")
    connected.get_by_role("button", name="Clear").click()
    check(connected, site.human(80))
    expect(source).to_be_hidden()
    give(connected, file("picture.gif", b"GIF89a\0\0x"))
    expect(box).to_have_value("")
    expect(connected.locator("#result")).to_be_hidden()
    connected.get_by_role("button", name="Check the file").click()
    expect(row(connected, "picture.gif")).to_contain_text(f"Files can be {FILE_KINDS}.")


@pytest.mark.long
def test_the_history_survives_a_reload_and_a_service_away_and_ends_with_signing_out(connected, site):
    check(connected, site.marked("press-room", 120))
    check(connected, site.human(120))
    connected.route("**/v1/keys", lambda route: route.abort())
    connected.reload()
    expect(connected.locator("#access-problem")).to_contain_text("cannot be reached")
    connected.unroute("**/v1/keys")
    connected.reload()
    entries = connected.locator("#history button")
    expect(entries).to_have_count(2)
    entries.nth(1).click()
    expect(connected.locator("#headline")).to_have_text("Watermark found")
    expect(entries.nth(1)).to_have_attribute("aria-current", "true")
    expect(connected.locator("#document")).to_contain_text(site.marked("press-room", 120)[:40])
    connected.get_by_label("Text to check").fill("a draft that nobody else shall see")
    connected.get_by_role("button", name="Sign out").click()
    expect(connected.get_by_label("Text to check")).to_have_value("")
    expect(entries).to_have_count(0)
    expect(connected.locator("#result")).to_be_hidden()
    assert connected.evaluate("sessionStorage.length") == 0
    assert connected.evaluate("Object.keys(localStorage)") == []


@pytest.mark.long
def test_more_than_the_browser_keeps_costs_the_oldest(connected: Page, site) -> None:
    check(connected, "first " + site.human(60))
    connected.evaluate("sessionStorage.setItem('fill', 'x'.repeat(5 * 1024 * 1024 - 40_000))")
    check(connected, "second " + site.human(60))
    connected.evaluate("sessionStorage.setItem('fill', 'x'.repeat(5 * 1024 * 1024 - 12_000))")
    check(connected, "third " + site.human(60))
    expect(connected.locator("#history button")).to_have_count(3)
    connected.reload()
    expect(connected.locator("#history .excerpt").first).to_contain_text("third")
    assert connected.locator("#history button").count() < 3


def test_no_cell_of_a_table_is_a_formula(connected: Page) -> None:
    cells = json.loads(Path("tests/harness/spreadsheet_cells.json").read_text())
    written = connected.evaluate(
        "async cells => { const { cell } = await import('/console/history_csv.js');"
        " return cells.map(([name]) => cell(name)); }",
        cells,
    )
    assert [next(csv.reader([one], strict=True)) for one in written] == [[cell] for _, cell in cells]


@pytest.mark.long
def test_the_history_as_csv(connected: Page, site) -> None:
    check(connected, '=HYPERLINK("x"), ' + site.marked("press-room", 120))
    check(connected, "bade bor")
    with connected.expect_download() as download:
        connected.get_by_role("button", name="Save as CSV").click()
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))
    assert [row["verdict"] for row in rows] == ["too_short", "watermarked"]
    assert rows[1]["key"].startswith("press-room, version 1")
    assert rows[1]["text_begins"].startswith('\'=HYPERLINK("x"), ')
    assert float(rows[1]["log10_p"]) < -5


@pytest.mark.long
def test_a_saved_case_is_verified_by_a_second_person(connected: Page, site, tmp_path):
    text = passages(site)
    check(connected, text, "Mixed", "1e-3")
    checked = tmp_path / "text.txt"
    checked.write_text(text)
    for button, ending in (("Save case", "json"), ("Save case as page", "html")):
        with connected.expect_download() as download:
            connected.get_by_role("button", name=button, exact=True).click()
        assert download.value.suggested_filename.endswith(ending)
        case = tmp_path / f"case.{ending}"
        download.value.save_as(case)
        verify = ["case", "verify", str(case), "--url", site.url, "--text", str(checked), "--json"]
        result = invoke(verify)
        assert result.exit_code == 0, result.output
        document = json.loads(result.stdout.splitlines()[-1])["case"]  # the service's log stands before it
        assert len(document["result"]["segments"]) == 2
        assert site.tokens["full"] not in case.read_text()
        case.write_text(case.read_text().replace("help-desk", "help-desc"))
        assert invoke(verify).exit_code == 1


@pytest.mark.long
def test_what_is_not_found_has_no_colour_of_ours(connected: Page, site) -> None:
    """A grey has red, green and blue that are almost equal; ours have far more blue."""
    spread = """() => ['1', '2', '3', '4'].map((level) => {
        const sample = document.querySelector('.swatch.heat-' + level);
        const [r, g, b] = getComputedStyle(sample).backgroundColor.match(/[\\d.]+/g).map(Number);
        const style = getComputedStyle(document.getElementById('document'), `::highlight(heat-${level})`);
        const drawn = style.backgroundColor.match(/[\\d.]+/g).map(Number);
        return Math.max(b - r, drawn[2] - drawn[0], Math.abs(g - drawn[1]));
    })"""
    check(connected, site.human(200))
    assert max(connected.evaluate(spread)) < 20
    expect(connected.locator("#where-note")).to_contain_text("Chance alone")
    check(connected, site.marked("press-room", 120))
    assert max(connected.evaluate(spread)) > 60
    expect(connected.locator("#where-note")).to_contain_text("not a sign of a human author")


@pytest.mark.long
def test_a_phone_has_no_boxes_that_scroll_inside(connected: Page, site) -> None:
    connected.set_viewport_size({"width": 390, "height": 844})
    check(connected, passages(site), "Mixed", "1e-3")
    connected.get_by_text("The numbers").click()
    connected.locator("#keys summary").click()
    scrolling = connected.evaluate(
        """() => [...document.querySelectorAll('main *')].filter((node) => node.tagName !== 'TEXTAREA'
            && ['auto', 'scroll'].includes(getComputedStyle(node).overflowY)
            && node.scrollHeight > node.clientHeight + 1).map((node) => node.id || node.className)"""
    )
    assert scrolling == []
    assert connected.evaluate("document.documentElement.scrollWidth") <= 390
    connected.locator("#passages button").nth(1).click()
    connected.wait_for_function(
        "() => { const { top } = document.getElementById('passage-2').getClientRects()[0];"
        " return top > 60 && top < innerHeight; }"
    )


def test_a_link_to_a_case_that_was_kept_says_what_took_its_place(page: Page, site) -> None:
    page.goto("about:blank")
    page.goto(f"{site.url}/#case={'0' * 32}")
    expect(page.locator("#text-problem")).to_contain_text("The service keeps no cases any more.")
    assert page.evaluate("location.hash") == ""
    sign_in(page, site.tokens["verdict"])
    page.get_by_text("Connected ·").wait_for()
    expect(page.locator("#text-problem")).to_contain_text("ask for the one that this link named")
