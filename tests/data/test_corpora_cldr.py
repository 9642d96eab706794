from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from collections import Counter
from datetime import date, time
from decimal import Decimal

import pytest
from babel import Locale
from babel.lists import format_list

from regard.data.corpora import load_corpus
from regard.data.corpora.cldr import make_examples
from regard.data.corpora.cldr_kinds import open_kinds, tidy
from regard.data.corpora.cldr_lists import Item, ListMaker
from regard.data.corpora.cldr_names import closed_names
from regard.errors import DataError

PAIRS = ["zh-en", "en-zh", "de-ja", "en-ar", "fr-ru", "zh_Hant-pt_BR"]
SPLITS = ("train", "dev", "test")


def examples(name, *, size=1500, items=(1, 3), seed=1):
    source, target = name.split("-")
    return make_examples((Locale.parse(source), Locale.parse(target)), size=size, items=items, seed=seed)


@pytest.fixture(scope="module", params=PAIRS)
def splits(request):
    return examples(request.param)


@pytest.fixture(scope="module")
def default():
    return examples("zh-en", size=12_000)


def test_sizes_are_as_asked(splits):
    assert [len(splits[split]) for split in SPLITS] == [1500, 150, 150]


def test_a_source_has_one_target_over_all_splits_and_items(splits):
    meanings: dict[str, set[str]] = {}
    for split in SPLITS:
        for example in splits[split]:
            for part in (example, *example.items):
                meanings.setdefault(part.source, set()).add(part.target)
    assert [source for source, targets in meanings.items() if len(targets) > 1] == []


def test_no_source_occurs_twice(splits):
    sources = [example.source for split in SPLITS for example in splits[split]]
    assert len(set(sources)) == len(sources)


def test_no_open_item_of_dev_or_test_occurs_in_training_in_any_form(splits):
    train = [item for example in splits["train"] for item in example.items]
    held = [item for split in ("dev", "test") for example in splits[split] for item in example.items]
    held_open = [item for item in held if item.key is not None]
    assert len(held_open) > 150
    assert not {item.source for item in held_open} & {item.source for item in train}
    assert not {item.key for item in held_open} & {item.key for item in train}


def test_no_held_out_list_of_names_is_part_of_a_training_line(splits):
    lists = [
        example.source
        for split in ("dev", "test")
        for example in splits[split]
        if all(item.key is None for item in example.items)
    ]
    assert lists
    assert not [text for text in lists if any(text in example.source for example in splits["train"])]


def test_single_items_of_dev_and_test_are_of_open_kinds(splits):
    singles = [e.items[0] for split in ("dev", "test") for e in splits[split] if len(e.items) == 1]
    assert singles
    assert all(item.key is not None for item in singles)


def test_names_of_dev_and_test_are_taught(splits):
    def names(split):
        return {item.source for example in splits[split] for item in example.items if item.key is None}

    assert names("test") | names("dev") <= names("train")


def test_lines_are_lists_written_by_both_locales(default):
    for example in default["test"][:50]:
        sources = [item.source for item in example.items]
        targets = [item.target for item in example.items]
        assert example.source == tidy(format_list(sources, locale="zh"))
        assert example.target == tidy(format_list(targets, locale="en"))
        assert len(set(sources)) == len(sources)


def test_each_name_is_seen_ten_times_in_the_default_training(default):
    counts = Counter(item.source for e in default["train"] for item in e.items if item.key is None)
    names = closed_names(Locale.parse("zh"), Locale.parse("en"))
    assert len(counts) == sum(map(len, names.values())) > 400
    assert min(counts.values()) >= 10
    singles = {e.source for e in default["train"] if len(e.items) == 1 and e.items[0].key is None}
    assert singles == set(counts)


def test_the_demonstration_date_is_in_test_and_never_in_training(default):
    assert default["test"][0].source == "2026年12月1日"
    assert default["test"][0].target == "December 1, 2026"
    assert not [e for split in ("train", "dev") for e in default[split] if "2026年12月1日" in e.source]


def test_the_demonstration_date_stays_out_of_training_when_lines_are_longer():
    splits = examples("zh-en", size=700, items=(2, 3))
    assert splits["test"][0].items[0].source == "2026年12月1日"
    assert not [e for e in splits["train"] if "2026年12月1日" in e.source]


def test_all_kinds_occur_in_every_split(default):
    kinds = {item.kind for example in default["train"] for item in example.items}
    assert len(kinds) == 10
    for split in ("dev", "test"):
        assert {item.kind for example in default[split] for item in example.items} == kinds


@pytest.mark.parametrize("items", [(1, 1), (2, 3), (5, 7), (1, 12)])
def test_lengths_of_lists_are_as_asked(items):
    splits = examples("zh-en", size=400, items=items)
    lengths = {split: Counter(len(e.items) for e in splits[split]) for split in SPLITS}
    assert set(lengths["train"]) == set(range(items[0], items[1] + 1))
    assert all(set(lengths[split]) <= set(lengths["train"]) for split in SPLITS)


KNOWN = [
    ("dates", "long", date(1926, 12, 1), "1926年12月1日", "December 1, 1926"),
    ("dates", "full", date(2038, 6, 4), "2038年6月4日星期五", "Friday, June 4, 2038"),
    ("dates", "yMMMEd", date(1954, 5, 17), "1954年5月17日周一", "Mon, May 17, 1954"),
    ("dates", "yMd", date(2041, 5, 13), "2041/5/13", "5/13/2041"),
    ("months", "yMMMM", date(2010, 5, 1), "2010年5月", "May 2010"),
    ("days of the year", "MMMMd", date(2010, 10, 11), "10月11日", "October 11"),
    ("times", "short", time(14, 31), "14:31", "2:31 PM"),
    ("times", "medium", time(0, 7, 9), "00:07:09", "12:07:09 AM"),
    ("times", "hm", time(22, 46), "下午10:46", "10:46 PM"),
    ("relative times", "long day 1", 3, "3天后", "in 3 days"),
    ("relative times", "long minute -1", 1, "1分钟前", "1 minute ago"),
    ("relative times", "long hour 1", 24, "24小时后", "in 24 hours"),
    ("numbers with units", "long length-kilometer", Decimal("24615"), "24,615公里", "24,615 kilometers"),
    ("numbers with units", "long length-foot", Decimal(1), "1英尺", "1 foot"),
    ("numbers with units", "long length-foot", Decimal("2.5"), "2.5英尺", "2.5 feet"),
    ("numbers with units", "short mass-kilogram", Decimal("1.5"), "1.5 kg", "1.5 kg"),
    ("amounts of money", "name EUR", Decimal("307.71"), "307.71欧元", "307.71 euros"),
    ("amounts of money", "name USD", Decimal("1.00"), "1.00美元", "1.00 US dollars"),
    ("amounts of money", "standard JPY", Decimal("380.00"), "JP¥380", "¥380"),
    ("amounts of money", "standard CNY", Decimal("5.20"), "¥5.20", "CN¥5.20"),
]


@pytest.mark.parametrize(("kind_name", "form_name", "value", "source", "target"), KNOWN)
def test_known_expressions_have_their_known_translations(kind_name, form_name, value, source, target):
    kinds = open_kinds(Locale.parse("zh"), Locale.parse("en"))
    kind = next(kind for kind in kinds if kind.name == kind_name)
    form, rivals = next(
        (form, rivals) for form, rivals in kind.forms if form_name in (form.name, f"{form.name} {form.group}")
    )
    assert kind.write(form, value, rivals)[:2] == (source, target)


def test_chinese_long_and_medium_dates_are_one_form():
    for kind in open_kinds(Locale.parse("zh"), Locale.parse("en")):
        if kind.name == "dates":
            assert [form.name for form, _ in kind.forms] == ["long", "full", "yMd", "yMMMEd"]


def test_a_form_that_looks_like_another_for_one_value_takes_its_target():
    # English writes the long and the medium date of a day in May alike, German does not.
    dates = next(kind for kind in open_kinds(Locale.parse("en"), Locale.parse("de")) if kind.name == "dates")
    forms = {form.name: (form, rivals) for form, rivals in dates.forms}
    medium, rivals = forms["medium"]
    assert dates.write(medium, date(2031, 5, 3), rivals)[:2] == ("May 3, 2031", "3. Mai 2031")
    assert dates.write(medium, date(2031, 8, 3), rivals)[:2] == ("Aug 3, 2031", "03.08.2031")


def test_years_of_two_digits_are_of_one_century():
    rng = random.Random(3)
    dates = next(kind for kind in open_kinds(Locale.parse("en"), Locale.parse("zh")) if kind.name == "dates")
    years = [key[2].year for source, _, key in (dates.sample(rng) for _ in range(600)) if source[-3] == "/"]
    assert len(years) > 50
    assert min(years) >= 1950
    assert max(years) <= 2049


def test_no_line_holds_an_odd_blank_or_a_tab(splits):
    text = "".join(e.source + e.target for split in SPLITS for e in splits[split])
    assert not {"\u00a0", "\u202f", "\t", "\n"} & set(text)


def test_one_source_names_one_thing_across_closed_kinds():
    names = closed_names(Locale.parse("en"), Locale.parse("zh"))
    sources = [source for pairs in names.values() for source, _ in pairs]
    assert len(set(sources)) == len(sources)
    assert ("Arabic", "阿拉伯语") in names["languages"]


def test_a_list_that_could_mean_two_things_is_not_used():
    locales = Locale.parse("zh"), Locale.parse("en")
    maker = ListMaker(locales, open_kinds(*locales), {}, (1, 1), "x", [Item("甲", "A", "dates", 1)])
    maker._meaning["甲"] = "B"
    with pytest.raises(DataError, match="ask for a smaller size"):
        maker.make(10)


def test_more_lines_than_there_are_is_an_error_with_the_way_out():
    locales = Locale.parse("zh"), Locale.parse("en")
    months = [kind for kind in open_kinds(*locales) if kind.name == "months"]
    with pytest.raises(DataError, match=r"zh to en has no more than .* lists of 1 to 1 items"):
        ListMaker(locales, months, {}, (1, 1), "x").make(6000)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cldr:zh-xx", "Babel has no locale 'xx'"),
        ("cldr:zh-english", "Babel has no locale 'english'"),
        ("cldr:zh", "two locales with one hyphen"),
        ("cldr", "two locales with one hyphen"),
        ("cldr:zh-Hant-en", "zh_Hant-pt_BR"),
        ("cldr:en-en", "the same locale"),
        ("cldr:zh-en?items=0-3", "items is '0-3', but a range"),
    ],
)
def test_wrong_locales_and_ranges_are_named(name, message):
    with pytest.raises(DataError, match=message):
        load_corpus(name)


def test_options_in_the_name_and_as_keywords_are_the_same():
    by_name, by_keyword = (
        load_corpus("cldr:zh-en?items=2-4", size=50),
        load_corpus("cldr:zh-en", size=50, items=(2, 4)),
    )
    assert by_name == by_keyword
    assert load_corpus("cldr:zh-en?items=2-4", size=50, items=3).name == "cldr:zh-en?items=3-3"


def test_seed_changes_all_but_the_reserved_date():
    first, second = (load_corpus("cldr:zh-en", size=200, seed=seed) for seed in (1, 2))
    assert set(first.test) & set(second.test) == {("2026年12月1日", "December 1, 2026")}


@pytest.mark.parametrize("hash_seed", ["0", "77"])
def test_pairs_do_not_depend_on_process_hash_seed_or_locale(hash_seed):
    script = (
        "import hashlib; from regard.data.corpora import load_corpus; "
        "print([hashlib.sha256(repr((c.train, c.dev, c.test)).encode('utf-8')).hexdigest() for c in "
        "(load_corpus('cldr:zh-en', size=300), load_corpus('sort', size=30), load_corpus('cedict', size=30))])"
    )
    env = {
        **os.environ,
        "PYTHONHASHSEED": hash_seed,
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONIOENCODING": "ascii",
    }
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    here = [load_corpus("cldr:zh-en", size=300), load_corpus("sort", size=30), load_corpus("cedict", size=30)]
    digests = [hashlib.sha256(repr((c.train, c.dev, c.test)).encode("utf-8")).hexdigest() for c in here]
    assert done.stdout.strip() == str(digests)
