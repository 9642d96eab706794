from __future__ import annotations

import numpy as np
import pytest

import regard
from regard.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def model(upper_model):
    return regard.load(upper_model)


def test_call_and_package_of_training_do_not_share_a_name():
    import regard.training.run

    assert callable(regard.train)


def test_prediction_has_what_the_readme_says(model):
    for p in model.predict(["abc"], beam=5):
        assert p.text == "A B C"
        assert p.score < 0
        assert p.attention.shape == (4, 4)
        assert p.source_tokens == ("a", "b", "c", "<eos>")
        assert p.target_tokens == ("A", "B", "C", "<eos>")
        assert len(p.token_log_probs) == 4
        assert p.attention.argmax(1).tolist() == [0, 1, 2, 3]


def test_score_of_the_own_output_is_the_score_it_came_with(model):
    made = model.predict(["abc", "h", "gfedcba"], beam=3)
    scored = model.score([(p.source, p.text) for p in made])
    for one, other in zip(made, scored, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert np.allclose(one.attention, other.attention, atol=1e-5)
        assert one.target_tokens == other.target_tokens
    assert next(p.score for p in model.score([("abc", "A"), ("abc", "A B C")])) < scored[0].score


def test_one_string_and_unknown_options_are_refused(model):
    with pytest.raises(ConfigError, match="takes a list of sources"):
        model.predict("abc")
    with pytest.raises(ConfigError, match=r"decoding\.beem: no such setting; did you mean 'beam'"):
        model.predict(["abc"], beem=3)


def test_blank_sources_give_blank_predictions(model):
    made = model.predict(["", "a", "  "])
    assert [p.text for p in made] == ["", "A", ""]
    assert model.predict([]) == []


def test_long_input_names_its_place(model):
    with pytest.raises(DataError, match="line 2: 501 source tokens, the limit is 500"):
        model.predict(["a", "b" * 501], long_inputs="error")
    made = model.predict(["a", "b" * 501], long_inputs="truncate", max_len=3)
    assert len(made[1].source_tokens) == 501
    assert "cut off" in made[1].note


def test_saved_copy_answers_the_same(model, tmp_path):
    model.save(tmp_path / "copy")
    again = regard.load(tmp_path / "copy")
    for one, other in zip(model.predict(["abc", "hg"]), again.predict(["abc", "hg"]), strict=True):
        assert (one.text, one.score) == (other.text, other.score)
    assert "A model of regard" in (tmp_path / "copy" / "README.md").read_text(encoding="utf-8")


def test_record_of_a_prediction_can_be_drawn_and_of_a_fixed_context_not(model, upper_pairs):
    record = model.predict(["ab"])[0].record()
    assert record.text == "A B"
    fixed = regard.train(
        upper_pairs[:40],
        settings={
            "model": {"context": "last", "hidden_size": 12, "embedding_size": 6},
            "training": {"epochs": 1, "threads": 1, "metric": "loss"},
        },
    )
    prediction = fixed.predict(["ab"])[0]
    assert prediction.attention is None
    assert prediction.to_json(attention=True)["attention"] is None
    with pytest.raises(ConfigError, match="one fixed vector"):
        prediction.record()


def test_json_of_a_prediction_says_what_is_not_as_usual(model):
    plain = model.predict(["ab"])[0].to_json()
    assert set(plain) == {"source", "text", "score", "normalised"}
    odd = model.predict(["a\u2603" + "b" * 600], long_inputs="truncate", max_len=1)[0].to_json()
    assert odd["unknown"] == ["\u2603"]
    assert odd["finished"] is False
    assert "note" in odd


def test_train_takes_files_configurations_and_shortcuts(upper_pairs, tmp_path):
    path = tmp_path / "p.tsv"
    path.write_text("".join(f"{s}\t{t}\n" for s, t in upper_pairs[:60]), encoding="utf-8")
    config = regard.config.make_config(
        {"model": {"hidden_size": 12, "embedding_size": 6}, "training": {"epochs": 1, "threads": 1}}
    )
    by_object = regard.train(str(path), config=config, seed=3)
    (tmp_path / "c.json").write_text(config.to_json(), encoding="utf-8")
    by_file = regard.train(path, config=tmp_path / "c.json", seed=3, minutes=1.0)
    assert by_object.config.training.seed == by_file.config.training.seed == 3
    one, other = by_object.predict(["abc"])[0], by_file.predict(["abc"])[0]
    assert (one.text, one.score) == (other.text, other.score)
