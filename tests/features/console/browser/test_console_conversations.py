"""Several files as messages of one conversation, evidence in plain words, and a reader that is away."""

from playwright.sync_api import Page, Route, expect

from tests.browser.actions import file, give, row


def test_messages_of_a_conversation_are_one_question_whose_evidence_grows(connected: Page, site) -> None:
    texts = [site.marked("press-room", 40), site.human(40), site.marked("help-desk", 40)]
    files = [file(f"{number}.txt", text) for number, text in enumerate(texts)]
    give(connected, *files)
    connected.get_by_label("These texts are messages of one conversation").check()
    asked: list[Route] = []
    connected.on("request", lambda request: asked.append(request) if "/detect" in request.url else None)
    connected.locator("#check").click()
    expect(connected.locator("#headline")).to_have_text("Watermark found in the conversation")
    assert len(asked) == 1
    expect(connected.locator("#batch-title")).to_have_text("3 files, one conversation")
    grown = connected.locator("#growth-list li")
    expect(grown).to_have_count(3)
    expect(grown.nth(0)).to_contain_text("0.txt (about 30 English words)")
    expect(grown.nth(0)).to_contain_text("E = 10^")
    expect(grown.nth(2)).to_contain_text("help-desk")
    expect(connected.locator("#where")).to_be_hidden()
    expect(connected.locator("#history .about")).to_contain_text("Messages of one conversation")


def test_a_conversation_of_which_a_file_is_not_read_is_not_asked_about(connected: Page, site) -> None:
    files = [file("a.txt", site.human(40)), file("b.docx", b"none")]
    give(connected, *files)
    connected.get_by_label("These texts are messages of one conversation").check()
    connected.locator("#check").click()
    expect(row(connected, "b.docx")).to_contain_text("Not read. ")
    expect(connected.locator("#announce")).to_contain_text("was not checked")
    expect(connected.locator("#result")).to_be_hidden()


def test_the_evidence_and_a_reader_that_is_down_are_said_in_plain_words(connected: Page, site) -> None:
    def answer(route: Route) -> None:
        response = route.fetch()
        answer = response.json()
        answer["results"][0]["reader"] = "down"
        route.fulfill(response=response, json=answer)

    connected.locator("#text").fill(site.marked("press-room", 120))
    connected.locator("#check").click()
    expect(connected.locator("#headline")).to_have_text("Watermark found")
    connected.locator("#numbers summary").click()
    for words in ("Evidence", "E = 10^", "None read along"):
        expect(connected.locator("#number-list")).to_contain_text(words)
    expect(connected.locator("#reader-note")).to_be_hidden()
    expect(connected.locator("#growth")).to_be_hidden()
    connected.route("**/v1/detect", answer)
    connected.locator("#text").fill(site.human(120))
    connected.locator("#check").click()
    expect(connected.locator("#reader-note")).to_have_text(
        "The language model that reads along does not answer. The text was checked without it, which finds "
        "less; the false alarm rate is the same."
    )
