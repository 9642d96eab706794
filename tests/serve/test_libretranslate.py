"""LibreTranslate's interface, through its real client."""

from __future__ import annotations

import urllib.error
from urllib.parse import urlencode

import pytest
from libretranslatepy import LibreTranslateAPI

from regard.serve.catalogue import Catalogue, ServedModel, languages_of
from serve.servers import Server

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def test_real_client_translates_detects_and_lists(server):
    client = LibreTranslateAPI(server.url)
    assert client.translate("abc", "en", "x-upper") == "A B C"
    assert client.translate("hg", "auto", "x-upper") == "H G"
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["x-upper"]},
        {"code": "x-upper", "name": "x-upper", "targets": []},
    ]
    assert client.detect("abc") == [{"confidence": 100.0, "language": "en"}]
    [found] = client.detect("ab??")
    assert found["confidence"] == pytest.approx(50.0)


def test_real_client_sends_its_key(catalogue):
    with Server(catalogue, api_key="correct-horse") as server:
        assert LibreTranslateAPI(server.url, "correct-horse").translate("abc", "en", "x-upper") == "A B C"
        for client in (LibreTranslateAPI(server.url), LibreTranslateAPI(server.url, "another-horse")):
            with pytest.raises(urllib.error.HTTPError) as caught:
                client.translate("abc", "en", "x-upper")
            assert caught.value.code == 401
            caught.value.close()
            assert client.languages()


def test_lines_are_translated_each_and_stay_in_place(server):
    asked = {"q": "abc\n\nhg", "source": "en", "target": "x-upper"}
    assert server.ask("/translate", asked).json == {"translatedText": "A B C\n\nH G"}
    assert server.ask("/translate", {**asked, "q": ["ab", "c\nd"]}).json == {
        "translatedText": ["A B", "C\nD"]
    }


def test_alternatives_are_the_next_of_the_beam(server):
    asked = {"q": "abc", "source": "en", "target": "x-upper", "alternatives": 2}
    answer = server.ask("/translate", asked).json
    outputs = [one["text"] for one in server.predict("abc", nbest=3)[0]["alternatives"]]
    assert [answer["translatedText"], *answer["alternatives"]] == outputs
    many = server.ask("/translate", {**asked, "alternatives": 50}).json
    assert len(many["alternatives"]) == 4


def test_form_need_not_be_percent_encoded(server):
    answer = server.ask("/detect", "q=ab\u4e00\u4e8c".encode(), headers=FORM)
    assert answer.json == [{"confidence": 50.0, "language": "en"}]


def test_multipart_form_is_read(server):
    body = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\nabc\r\n--x--\r\n'
    answer = server.ask("/detect", body, headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.json == [{"confidence": 100.0, "language": "en"}]


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ({"target": "fr"}, 400, "no model is between these languages; there is en to x-upper"),
        ({"q": None}, 422, "q"),
        ({"q": ["a", "a" * 3000]}, 422, "q.1 has 3,000 characters, the limit is 2,000"),
        ({"format": "html"}, 422, "format: Input should be 'text'"),
        ({"alternatives": "many"}, 422, "alternatives: Input should be a valid integer"),
        ({"q": "a" * 3000}, 422, "q has 3,000 characters, the limit is 2,000"),
        ({"q": "a\n" * 300}, 413, "q has 301 lines, the limit is 256"),
    ],
)
def test_bad_request_is_told_what_to_change(server, change, status, message):
    answer = server.ask("/translate", {"q": "abc", "source": "en", "target": "x-upper", **change})
    assert answer.status == status
    assert message in answer.error


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"q=a", {"Content-Type": "text/plain"}, 415),
        (b"{", {}, 400),
        (b"[" * 100_000, {}, 400),
        (b"q=%FF", FORM, 400),
        (b"no form", {"Content-Type": "multipart/form-data"}, 400),
        (b'--x\r\nContent-Disposition: form-data; name="q"; filename="f"\r\n\r\na\r\n--x--\r\n',
         {"Content-Type": "multipart/form-data; boundary=x"}, 400),
        (urlencode([("q", "a"), ("q", "b")]).encode(), FORM, 422),
    ],
)  # fmt: skip
def test_body_that_cannot_be_read_is_told_so(server, body, headers, status):
    answer = server.ask("/detect", body, headers=headers)
    assert (answer.status, bool(answer.error)) == (status, True)


def test_server_without_languages_says_how_to_give_them(catalogue):
    plain = Catalogue([ServedModel("upper", catalogue.default.model)])
    with Server(plain) as server:
        answer = server.ask("/translate", {"q": "a", "source": "en", "target": "de"})
        assert (answer.status, "--languages NAME=SOURCE:TARGET" in answer.error) == (400, True)
        assert server.ask("/languages").json == []


def test_settings_for_the_page_of_libretranslate(server):
    found = server.ask("/frontend/settings").json
    assert (found["charLimit"], found["keyRequired"]) == (2000, False)
    assert found["language"]["source"] == {"code": "en", "name": "English"}


@pytest.mark.parametrize(
    ("source", "pair"),
    [("cldr:zh-en", ("zh", "en")), ("cldr:zh-en?items=2", ("zh", "en")), ("g2p:english", None), (None, None)],
)
def test_languages_are_read_off_the_name_of_a_corpus(source, pair):
    assert languages_of({"source": source}) == pair
