from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from explain.models import SOURCES, random_model
from regard.prediction import Prediction


class Parsed(HTMLParser):
    """Elements, their attributes and all text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_notebook_shows_text_score_weights_and_alternatives():
    made = random_model(attention={"heads": 2}).predict([SOURCES[0]], beam=3, nbest=3, max_len=5)[0]
    seen = Parsed(made._repr_html_())
    assert made.source in seen.text
    assert made.text in seen.text
    assert f"{made.score:.3f}" in seen.text
    assert seen.tags.count("td") == made.attention.size
    assert seen.tags.count("li") == 3
    assert f"{made.attention[0, 0]:.1%}" in made._repr_html_()


def test_notebook_shows_the_blank_sign_of_subwords_as_a_blank():
    shown = random_model(target_kind="bpe").score([(SOURCES[0], "one two")])[0]._repr_html_()
    assert "\u2423" in shown
    assert "\u2581" not in shown


def test_notebook_escapes_every_text():
    bad = "<script>alert('x')</script>\" onmouseover=\"x"
    made = Prediction(
        bad, bad, source_tokens=(bad, "<eos>"), target_tokens=(bad,),
        attention_heads=np.full((1, 1, 2), 0.5, np.float32),
        alternatives=(Prediction(bad, bad), Prediction(bad, bad)),
    )  # fmt: skip
    seen = Parsed(made._repr_html_())
    assert set(seen.tags) <= {
        *("div", "bdi", "b", "span", "ol", "li"),
        *("table", "thead", "tbody", "tr", "th", "td"),
    }
    assert seen.names <= {"style", "title"}
    assert seen.text.replace("␣", " ").count(bad) == 6


@pytest.mark.parametrize(
    "made", [Prediction("", ""), random_model(context="last").predict(["12"], max_len=3)[0]]
)
def test_notebook_shows_a_prediction_without_weights_too(made):
    seen = Parsed(made._repr_html_())
    assert "table" not in seen.tags
    assert made.text in seen.text


def test_notebook_cuts_what_is_too_large_and_says_so():
    weights = np.full((1, 71, 83), 1 / 83, np.float32)
    made = Prediction("s", "t", source_tokens=("a",) * 83, target_tokens=("b",) * 71, attention_heads=weights)
    seen = Parsed(made._repr_html_())
    assert seen.tags.count("td") == 3600
    assert "the first 60 of 71 rows and 83 columns" in seen.text
