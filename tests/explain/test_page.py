from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from explain.models import random_model
from regard.explain.page import player_file, render_page, write_page
from regard.explain.serial import to_object
from regard.explain.trace import trace

HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror=alert(1)>&<!--\u2028"


class Elements(HTMLParser):
    """The elements that a browser would see, with the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self._in_script = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")
        self._in_script = tag == "script"

    def handle_endtag(self, tag):
        self._in_script = False

    def handle_data(self, data):
        if self._in_script:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def hostile():
    model = random_model()
    return trace(model, HOSTILE, beam=2, max_len=5)


def test_page_names_nothing_outside_of_itself(hostile):
    page = render_page(hostile)
    without_data = page.replace(HOSTILE, "")
    assert not re.search(r"https?:|//[a-z0-9-]+\.[a-z]|url\(|@import|import\(", without_data)
    seen = Elements(page)
    assert not {"link", "img", "iframe", "base", "object", "embed"} & set(seen.tags)
    assert not {"src", "href"} & {name for name, _ in seen.attributes}


def test_text_that_looks_like_markup_is_text(hostile):
    seen = Elements(render_page(hostile))
    assert seen.tags.count("script") == 3
    assert not any(name.startswith("on") for name, _ in seen.attributes)
    assert json.loads(seen.scripts[0]) == to_object(hostile)
    assert json.loads(seen.scripts[0])["source"] == HOSTILE


def test_only_the_player_may_run(hostile):
    import base64
    import hashlib

    seen = Elements(render_page(hostile))
    policy = dict(seen.attributes)["content"]
    policies = [
        value for name, value in seen.attributes if name == "content" and "script-src" in (value or "")
    ]
    digest = base64.b64encode(hashlib.sha256(seen.scripts[2].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policies[0]
    assert "default-src 'none'" in policies[0]
    assert policy is not None


def test_page_says_whether_it_shows_an_output_or_a_given_target():
    model = random_model()
    assert "for the model’s own output" in render_page(trace(model, "12", max_len=3))
    given = render_page(trace(model, "12", target="one"))
    assert "for a given target" in given
    assert "for the model’s own output" not in given


def test_options_reach_the_player(hostile, tmp_path):
    write_page(hostile, tmp_path / "a.html", options={"hypothesis": 1, "words": True})
    seen = Elements((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert json.loads(seen.scripts[1]) == {"hypothesis": 1, "words": True}


def test_player_sets_text_only_as_text():
    script = player_file("player.js")
    assert script.count("innerHTML") == 1  # an empty svg element, for its namespace
    for never in ("outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttpRequest"):
        assert never not in script
    assert "export function createPlayer" in script


def test_half_surrogates_do_not_break_the_file(tmp_path):
    record = trace(random_model(), "a\ud800b", max_len=3)
    write_page(record, tmp_path / "a.html")
    assert "\\ud800" in (tmp_path / "a.html").read_text(encoding="utf-8")
