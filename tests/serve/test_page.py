"""The page in a real browser."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import regard.serve
from serve.servers import Server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

STATIC = Path(regard.serve.__file__).parent / "static"
PHONE = {"width": 390, "height": 844}


def test_pages_load_nothing_from_elsewhere(server):
    for path in STATIC.iterdir():
        addresses = re.findall(r"https?://[^\s\"'<)]+", path.read_text(encoding="utf-8"))
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, path
    for path in ("/", "/docs", "/static/page.js", "/static/player/player.js", "/favicon.ico"):
        answer = server.ask(path)
        assert answer.status == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/%00", "/static/player/../../app.py"]
)
def test_files_outside_are_not_served(server, path):
    assert server.ask(path).status == 404


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("needs chromium (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """The page, opened; nothing it does may be refused by its policy or end in an error."""
    context = browser.new_context(viewport={"width": 1200, "height": 900}, color_scheme="light")
    opened = context.new_page()
    troubles: list[str] = []
    # That the server has refused something is told by the page, and by the browser too.
    refused = "the server responded with a status of 4"
    opened.on(
        "console",
        lambda said: (
            troubles.append(said.text) if said.type == "error" and refused not in said.text else None
        ),
    )
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.set_default_timeout(20_000)
    opened.goto(server.url)
    opened.wait_for_function("() => document.querySelector('#about').textContent !== ''")
    yield opened
    context.close()
    assert not troubles


def type_source(page: Page, text: str) -> None:
    page.fill("#source", text)
    page.press("#source", "Enter")
    page.wait_for_function(
        "text => document.querySelector('.rp-line')?.innerText.replace(/\\s/g, '').startsWith(text)", arg=text
    )
    page.wait_for_selector("#ask:not([aria-busy])")


def test_source_is_answered_with_hypotheses_and_the_player(page):
    type_source(page, "abc")
    assert page.inner_text("#output") == "A B C"
    assert page.locator("#choices input").count() == 5
    assert page.locator(".rp-grid tbody tr, .rp-grid tr").count() >= 4
    assert page.locator(".rp-transport").is_visible()


def test_output_follows_the_typing(page):
    page.type("#source", "hg")
    page.wait_for_function("() => document.querySelector('#output').textContent === 'H G'")


def test_other_hypothesis_has_its_own_alignment(page, server):
    type_source(page, "abc")
    page.locator("#choices input").nth(2).check()
    second = server.predict("abc", nbest=5)[0]["alternatives"][2]["text"]
    assert page.inner_text("#output").strip() == second.strip()
    shown = page.locator("ol[aria-label=Output]").inner_text()
    assert re.sub(r"\s", "", shown).removesuffix("end") == second.replace(" ", "")


def test_link_shows_the_same_state(page, server):
    page.fill("#beam", "3")
    type_source(page, "abc")
    page.locator("#choices input").nth(1).check()
    page.locator(".rp-to-start").click()
    page.locator(".rp-to-next").click()
    page.locator("#link").click()
    caption = page.inner_text(".rp-caption")
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_selector(".rp-caption")
    other.wait_for_function("text => document.querySelector('.rp-caption').innerText === text", arg=caption)
    assert other.input_value("#source") == "abc"
    assert other.input_value("#beam") == "3"
    assert other.locator("#choices input").nth(1).is_checked()
    assert other.inner_text("#output") == page.inner_text("#output")


def test_player_steps_and_hovering_lights_the_sources(page):
    type_source(page, "abc")
    page.locator(".rp-to-start").click()
    first = page.inner_text(".rp-caption")
    page.locator(".rp-to-next").click()
    page.wait_for_function("text => document.querySelector('.rp-caption').innerText !== text", arg=first)
    page.locator(".rp-to-end").click()
    page.locator("ol[aria-label=Output] button").first.hover()
    page.wait_for_function(
        "() => [...document.querySelectorAll('ol[aria-label=Source] button')]"
        ".some(chip => Number(chip.style.getPropertyValue('--w')) > 0.3)"
    )


def test_everything_can_be_reached_by_keyboard(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "source"
    page.keyboard.type("abc")
    page.keyboard.press("Enter")
    page.wait_for_selector(".rp-transport")
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.id || document.activeElement.name || document.activeElement.className"
            )
        )
    assert {"run", "copy", "link", "hypothesis", "rp"} <= reached
    assert any("rp-to-play" in name for name in reached)


def test_every_control_has_a_name(page):
    type_source(page, "abc")
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, input, select, textarea, a[href]")]
        .filter(node => node.checkVisibility())
        .filter(node => !(node.ariaLabel || node.labels?.length || node.textContent.trim()))
        .map(node => node.outerHTML)"""
    )
    assert nameless == []
    assert page.get_attribute("#output", "aria-live") == "polite"


def luminance(page: Page, selector: str) -> float:
    red, green, blue = map(
        int,
        re.findall(
            r"\d+", page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).backgroundColor")
        )[:3],
    )
    return (0.3 * red + 0.6 * green + 0.1 * blue) / 255


def test_dark_and_light_by_system_and_by_button(page):
    type_source(page, "abc")
    assert min(luminance(page, name) for name in ("body", ".card", ".rp-panel")) > 0.8
    page.emulate_media(color_scheme="dark")
    assert max(luminance(page, name) for name in ("body", ".card", ".rp-panel")) < 0.2
    page.click("#theme")
    assert luminance(page, "body") > 0.8
    page.reload()
    page.wait_for_selector(".rp-panel")
    assert min(luminance(page, name) for name in ("body", ".card", ".rp-panel")) > 0.8


def test_page_fits_a_phone(page):
    page.set_viewport_size(PHONE)
    type_source(page, "abcdefgh")
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("#run").bounding_box()["height"] >= 34


def test_error_of_the_server_is_shown(page):
    page.fill("#source", "a b " * 400)
    page.press("#source", "Enter")
    page.wait_for_selector("#trouble:not([hidden])")
    assert "tokens, the model upper takes 500" in page.inner_text("#trouble")
    assert page.get_attribute("#trouble", "role") == "alert"


def test_source_is_text_and_never_markup(page):
    page.fill("#source", "<b>a</b><img src=x onerror=alert(1)>")
    page.press("#source", "Enter")
    page.wait_for_selector(".rp")
    assert page.locator("#output b, #output img, .rp-line b, .rp img, #notes img").count() == 0


def test_interface_is_described(page, server):
    page.goto(f"{server.url}/docs")
    page.wait_for_selector("#post-v1-predict")
    text = page.inner_text("#post-v1-predict")
    assert "list of 1 to 256" in text
    assert "curl http" in text


def test_page_asks_for_the_key_and_keeps_it_for_the_tab(browser, catalogue):
    with Server(catalogue, api_key="correct-horse") as server:
        page = browser.new_page()
        page.set_default_timeout(20_000)
        page.goto(server.url)
        page.fill("#key", "correct-horse")
        page.press("#key", "Enter")
        page.wait_for_function("() => document.querySelector('#about').textContent !== ''")
        page.reload()
        page.wait_for_function("() => document.querySelector('#about').textContent !== ''")
        type_source(page, "abc")
        assert page.inner_text("#output") == "A B C"
        page.close()


def test_page_lets_choose_between_models(browser, catalogue):
    from regard.serve.catalogue import Catalogue, ServedModel

    model = catalogue.default.model
    with Server(Catalogue([ServedModel("one", model, ("zh", "en")), ServedModel("two", model)])) as server:
        page = browser.new_page()
        page.goto(f"{server.url}/#q=ab&model=two")
        page.wait_for_selector(".rp")
        assert page.input_value("#model") == "two"
        page.select_option("#model", "one")
        page.wait_for_function("() => location.hash.includes('model=one')")
        assert page.inner_text("#source-language") == "Chinese"
        page.close()
