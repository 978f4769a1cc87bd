"""The console in each language: what it says, what the service answers, and that nobody is shut out."""

from playwright.sync_api import Browser, Page, expect

from tests.browser.actions import faultless

ANSWERS = {
    "de": ("Wasserzeichen", "unserem Schlüssel press-room, Version 1", "1 von 100.000 Texten"),
    "es": ("Marca de agua", "nuestra clave press-room, versión 1", "1 de cada 100.000 textos"),
    "fr": ("Filigrane", "notre clé press-room, version 1", "1 sur 100\u202f000 textes"),
    "pt": ("Marca-d’água", "nossa chave press-room, versão 1", "1 em cada 100.000 textos"),
}

BEYOND = """() => document.documentElement.scrollWidth <= innerWidth ? [] :
  [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth)
    .map((one) => one.outerHTML.slice(0, 90))"""
"""What makes the page wider than its window."""


def test_console_and_answer_are_in_the_language_that_was_chosen(page: Page, site) -> None:
    text = f"{site.human(300)} {site.marked('press-room', 240)}"
    page.locator("#text").fill(text)
    for language, (headline, made_with, rate) in ANSWERS.items():
        page.set_viewport_size({"width": 1280, "height": 900})
        page.locator("#language").select_option(language)
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect(page.locator("#text")).to_have_value(text)
        if page.locator("#token").is_visible():
            page.locator("#token").fill(site.tokens["full"])
            page.keyboard.press("Enter")
            expect(page.locator("#sign-out")).to_be_visible()
        page.locator("#check").click()
        expect(page.locator("#headline")).to_contain_text(headline)
        expect(page.locator("#headline")).to_have_attribute("lang", language)
        expect(page.locator("#explanation")).to_contain_text(made_with)
        expect(page.locator("#facts")).to_contain_text(rate)
        page.locator("#numbers").evaluate("(numbers) => { numbers.open = true; }")
        faultless(page, language)
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate(BEYOND) == []
        page.locator("#language").select_option("en")
        expect(page.locator("#check-label")).to_have_text("Check the text")
        expect(page.locator("#facts")).to_contain_text("1 in 100,000 texts")
        expect(page.locator("#headline")).to_have_attribute("lang", language)  # as the service wrote it
        expect(page.locator("#text")).to_have_value(text)


def test_the_language_is_the_browser_s_until_another_is_chosen(chromium: Browser, site) -> None:
    with chromium.new_context(locale="fr-CA") as context:
        page = context.new_page()
        page.goto(site.url)
        expect(page).to_have_title("Vérification de filigrane · TTMark")
        page.get_by_role("combobox", name="Langue").select_option("es")
        expect(page.locator("html")).to_have_attribute("lang", "es")
        page.reload()
        expect(page).to_have_title("Comprobación de marca de agua · TTMark")
