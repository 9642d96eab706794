"""The page in a real browser: playing, stepping, hovering, dark, a phone's width."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from explain.models import SOURCES, random_model
from regard.explain.page import write_page
from regard.explain.trace import trace

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, or a skip that says what is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"needs a browser: none of {', '.join(BROWSERS)} is installed (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        # As root, as in most containers, the browser has no sandbox.
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    records = {
        "attention": trace(random_model(target_kind="bpe"), SOURCES[0], beam=3, max_len=5),
        "heads": trace(random_model(attention={"heads": 2}), SOURCES[0], max_len=4),
        "before": trace(random_model(attend_before_cell=True), SOURCES[0], max_len=4),
        "fixed": trace(random_model(context="last"), SOURCES[0], max_len=4),
        "target": trace(random_model(), SOURCES[0], target="one two"),
        "subwords": trace(random_model(target_kind="bpe"), SOURCES[0], target="one 2 two"),
        "hostile": trace(random_model(), "</script><img src=x onerror='window.hacked=1'>", max_len=4),
        "odd": trace(random_model(), "\u0645\u0631\u062d\u0628\u0627\u200d\x07", max_len=4),
        "long": trace(random_model(), "2026年12月1日" * 9, max_len=4),
    }
    for name, record in records.items():
        write_page(record, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in records}


class Opened:
    """A page that is open, with what it complained of and what it asked for."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1000, "height": 800}, **options})
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.add_init_script(
            "window.frames_seen = []; document.addEventListener('regard:frame', (e) => frames_seen.push(e.detail));"
        )
        self.page.goto(path.as_uri())
        self.page.wait_for_selector(".rp-caption b")

    @property
    def caption(self) -> str:
        return self.page.inner_text(".rp-caption")

    def wait(self, condition: str, *, seconds: float) -> None:
        """Wait until something is true; the page's own policy forbids to have it evaluated there again and again."""
        end = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < end, condition
            self.page.wait_for_timeout(30)

    def key(self, name: str) -> None:
        self.page.focus(".rp")
        self.page.keyboard.press(name)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: Any) -> None:
        folder = os.environ.get("REGARD_SCREENSHOTS")
        if folder:
            name = os.environ["PYTEST_CURRENT_TEST"].split("::")[-1].split(" ")[0]
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)
        self.context.close()
        if error[0] is None:
            assert not self.complaints
            assert all(url.startswith("file:") for url in self.requests)
            assert len(self.requests) == 1


@pytest.mark.parametrize("name", ["attention", "heads", "before", "fixed", "target", "hostile", "long"])
def test_page_opens_without_a_complaint_and_steps_through_every_frame(browser, pages, name):
    with Opened(browser, pages[name], reduced_motion="reduce") as opened:
        page = opened.page
        opened.key("Home")
        n_frames = int(page.get_attribute(".rp-slider", "max")) + 1
        page.evaluate("frames_seen.splice(0, frames_seen.length - 1)")
        captions = [opened.caption]
        for _ in range(n_frames - 1):
            opened.key("ArrowRight")
            captions.append(opened.caption)
        seen = list(dict.fromkeys(page.evaluate("frames_seen.map((one) => one.frame)")))
        assert seen == list(range(n_frames))
        assert all(before != after for before, after in pairwise(captions))
        assert page.evaluate("window.hacked") is None
        assert page.locator("img").count() == 0


def test_play_goes_from_the_start_to_the_end_and_pause_stops_it(browser, pages):
    with Opened(browser, pages["attention"]) as opened:
        page = opened.page
        page.select_option(".rp-speed", "4")
        page.click("[aria-label=Play]")
        opened.wait("frames_seen.at(-1).phase === 'context'", seconds=30)
        page.click("[aria-label=Pause]")
        stopped = page.evaluate("frames_seen.at(-1).frame")
        page.wait_for_timeout(500)
        assert page.evaluate("frames_seen.at(-1).frame") == stopped
        opened.key("Space")
        opened.wait("frames_seen.at(-1).frame === frames_seen.at(-1).frames - 1", seconds=60)
        page.wait_for_selector("[aria-label=Play]")
        steps = page.evaluate("frames_seen.filter((one) => one.step === 1).map((one) => one.phase)")
        order = [phase for place, phase in enumerate(steps) if place == 0 or steps[place - 1] != phase]
        assert order == ["state", "scores", "weights", "context", "combine", "word"]


def test_keys_step_by_phase_and_by_word_and_jump(browser, pages):
    with Opened(browser, pages["attention"], reduced_motion="reduce") as opened:
        page = opened.page
        opened.key("Home")
        assert "reads 2 and gives the state h₁" in opened.caption
        opened.key("ArrowRight")
        assert "h₂" in opened.caption
        opened.key("ArrowLeft")
        assert "h₁" in opened.caption
        opened.key("ArrowDown")
        assert "word 1 of" in opened.caption
        opened.key("ArrowDown")
        assert "word 2 of" in opened.caption
        opened.key("ArrowUp")
        assert page.evaluate("frames_seen.at(-1)")["phase"] == "state"
        opened.key("End")
        assert page.evaluate("frames_seen.at(-1).frame === frames_seen.at(-1).frames - 1")


def test_hovering_a_word_lights_its_sources(browser, pages):
    with Opened(browser, pages["attention"]) as opened:
        page = opened.page
        page.locator(".rp-line[aria-label=Output] button").nth(1).hover()
        weights = page.evaluate("JSON.parse(record.textContent).hypotheses[0].steps[1].weights[0]")
        chips = ".rp-line[aria-label=Source] button"
        lit = page.eval_on_selector_all(
            chips, "all => all.map((one) => Number(one.style.getPropertyValue('--w')))"
        )
        assert lit == pytest.approx(weights, abs=1e-3)
        assert "candidates for word 2" in page.inner_text(".rp-candidates")
        assert "word 2 of" in opened.caption
        page.locator(chips).nth(0).hover()
        column = page.evaluate(
            "JSON.parse(record.textContent).hypotheses[0].steps.map((one) => one.weights[0][0])"
        )
        outputs = ".rp-line[aria-label=Output] button"
        lit = page.eval_on_selector_all(
            outputs, "all => all.map((one) => Number(one.style.getPropertyValue('--w')))"
        )
        assert lit == pytest.approx(column, abs=1e-3)


def test_another_hypothesis_and_head_and_words_change_the_matrix(browser, pages):
    with Opened(browser, pages["attention"]) as opened:
        page = opened.page
        hypotheses = page.evaluate("JSON.parse(record.textContent).hypotheses")
        page.get_by_label("hypothesis").select_option("1")
        assert page.locator(".rp-grid tbody tr").count() == len(hypotheses[1]["steps"])
        assert page.inner_text(".rp-badge") == "the model’s own output"
        n_words = len(set(page.evaluate("JSON.parse(record.textContent).source_words")))
        page.check(".rp-check input")
        assert page.locator(".rp-grid thead th").count() == n_words < 11
    with Opened(browser, pages["heads"]) as opened:
        page = opened.page
        page.get_by_label("head").select_option("1")
        first = float(page.locator(".rp-cell").first.evaluate("one => one.style.getPropertyValue('--w')"))
        weights = page.evaluate("JSON.parse(record.textContent).hypotheses[0].steps[0].weights")
        assert first == pytest.approx(weights[1][0], abs=1e-3)
        assert abs(weights[0][0] - weights[1][0]) > 1e-3


def test_given_target_is_called_so(browser, pages):
    with Opened(browser, pages["target"]) as opened:
        assert opened.page.inner_text(".rp-badge") == "a given target"
        assert not opened.page.is_visible(".rp-remark")
        assert "The given word" in opened.caption


def test_fixed_context_shows_its_vector_and_a_cut_output_that_it_is_cut(browser, pages):
    with Opened(browser, pages["fixed"]) as opened:
        assert opened.page.locator(".rp-vector i").count() == 20
        assert opened.page.locator(".rp-grid").count() == 0
    with Opened(browser, pages["long"]) as opened:
        assert opened.page.inner_text(".rp-remark") == "cut at the length limit"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_the_button(browser, pages, scheme):
    def brightness() -> float:
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate("getComputedStyle(document.querySelector('.rp')).color")
        shades = [
            sum(map(int, one.removeprefix("rgb(").removesuffix(")").split(","))) / 3 for one in (colour, ink)
        ]
        assert abs(shades[0] - shades[1]) > 120  # text stands out
        return shades[0]

    with Opened(browser, pages["attention"], color_scheme=scheme) as opened:
        page = opened.page
        assert (brightness() > 128) == (scheme == "light")
        page.click("#theme")
        assert (brightness() > 128) == (scheme == "dark")


def test_every_character_is_seen_and_lines_go_the_way_they_are_read(browser, pages):
    with Opened(browser, pages["odd"]) as opened:
        page = opened.page
        chips = page.locator(".rp-line[aria-label=Source] button").all_inner_texts()
        assert chips[-3:] == ["U+200D", "U+0007", "end"]
        first, second = (
            page.locator(".rp-line[aria-label=Source] button").nth(place).bounding_box() for place in (0, 1)
        )
        assert first["x"] > second["x"]
        assert page.get_attribute(".rp-line[aria-label=Output]", "dir") == "ltr"
        assert "U+200D U+0007" in page.inner_text(".rp-remark")


def test_blanks_of_subwords_are_seen_as_blanks_and_read_out(browser, pages):
    with Opened(browser, pages["subwords"], reduced_motion="reduce") as opened:
        page = opened.page
        assert "\u2581" in page.evaluate("record.textContent")
        n_seen = 0
        opened.key("Home")
        for _ in range(int(page.get_attribute(".rp-slider", "max"))):
            opened.key("ArrowRight")
            assert "\u2581" not in page.evaluate("document.querySelector('.rp').outerHTML")
            assert "\u2423" not in opened.caption + page.get_attribute(".rp-stage", "aria-label")
            marked = page.locator(".rp-candidates th", has_text="\u2423")
            n_seen += marked.count()
            for one in marked.all():
                token = one.locator("xpath=text()").count() and one.inner_text().removesuffix(" (chosen)")
                assert one.get_attribute("aria-label").startswith("blank")
                assert token == 0 or token.startswith("\u2423")
        assert n_seen
        (blank,) = page.locator(".rp-line[aria-label=Output] button.rp-blank").all()
        assert (blank.inner_text(), blank.get_attribute("aria-label")) == ("\u2423", "blank")
        blank.hover()
        assert "is a blank: the model gives" in opened.caption


@pytest.mark.parametrize("name", ["attention", "heads", "fixed", "target", "long"])
def test_phone_shows_everything_without_scrolling_sideways(browser, pages, name):
    with Opened(browser, pages[name], viewport={"width": 380, "height": 780}, has_touch=True) as opened:
        page = opened.page
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        for control in page.locator(".rp-transport button").all():
            box = control.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= 380
            assert box["width"] >= 36


def test_source_wider_than_the_stage_is_followed(browser, pages):
    with Opened(
        browser, pages["long"], viewport={"width": 380, "height": 780}, reduced_motion="reduce"
    ) as opened:
        page = opened.page
        opened.key("Home")
        assert page.evaluate("document.querySelector('.rp-scroll').scrollLeft") == 0
        page.evaluate("player.goTo(80)")
        assert page.evaluate("document.querySelector('.rp-scroll').scrollLeft") > 500


def test_controls_have_names_and_a_visible_focus(browser, pages):
    with Opened(browser, pages["attention"]) as opened:
        page = opened.page
        names = page.eval_on_selector_all(
            ".rp-transport button, .rp-transport input, .rp-transport select",
            "all => all.map((one) => one.getAttribute('aria-label'))",
        )
        assert all(names)
        page.keyboard.press("Tab")
        seen = set()
        for _ in range(12):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "[document.activeElement.className, getComputedStyle(document.activeElement).outlineStyle]"
            )
            seen.add(focused[1])
        assert seen == {"solid"}


def test_destroy_leaves_nothing_and_frames_that_are_not_there_are_refused(browser, pages):
    with Opened(browser, pages["attention"]) as opened:
        page = opened.page
        message = page.evaluate(
            "(() => { try { player.goTo({ step: 99 }); } catch (e) { return e.message; } })()"
        )
        assert "there is no frame" in message
        page.evaluate("player.play(); player.destroy()")
        assert page.locator("#player > *").count() == 0
