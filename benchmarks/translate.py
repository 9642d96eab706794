"""Chinese to English on Tatoeba beside OpenNMT-py, trained for the same wall time in the same run.

    python benchmarks/translate.py [--minutes 7] [--skip-peer] [--skip-compounds]

Both get the same lower-cased, tokenized targets and the same minutes on an otherwise idle machine, one after
the other; both are scored by sacrebleu without tokenization on the dev set, beam 5. OpenNMT-py runs in an
environment of its own (made under benchmarks/.peers when it is first needed) at the configuration it was
measured with before: see CONFIGURATION. A second model of ours learns words of CC-CEDICT besides (see
`dictionary`), and translates the compounds of compounds.tsv, a list fixed before any training of which nothing
stands in either source. It needs the extra "bench".

Writes benchmarks/results/translate.md and translate.json.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from machine import RESULTS, ROOT, describe, shared_data
from peers import ENVIRONMENT, PEERS, environment
from regard.config import merge

WORK = PEERS / "translate"
OURS = {
    "data": {"target": {"tokenizer": "bpe", "vocabulary_size": 5000}, "source": {"min_frequency": 2}},
    "model": {"hidden_size": 384, "embedding_size": 256, "dropout": 0.2},
    "training": {"batch_size": 64, "learning_rate": 3e-3, "epochs": 1000, "patience": 0, "metric": "loss"},
}
CONFIGURATION = """
encoder_type: brnn
decoder_type: rnn
rnn_type: LSTM
word_vec_size: 256
hidden_size: 512
layers: 1
dropout: [0.3]
optim: adam
learning_rate: 0.001
max_grad_norm: 1
batch_size: 64
batch_type: sents
global_attention: general
input_feed: 0
label_smoothing: 0.1
world_size: 1
num_workers: 0
train_steps: 100000
valid_steps: 100000
save_checkpoint_steps: 100
keep_checkpoint: 3
report_every: 100
"""


def tokenized(text: str) -> str:
    """Lower-case a sentence and set punctuation apart."""
    return " ".join(re.findall(r"\w+(?:['\u2019]\w+)*|[^\w\s]", text.lower()))


def read(path: Path) -> list[tuple[str, str]]:
    """Sources without blanks, and tokenized targets."""
    from regard.data.readers import read_pairs

    return [(pair.source.replace(" ", ""), tokenized(pair.target)) for pair in read_pairs(path)]


def scores(outputs: list[str], references: list[str]) -> dict[str, float]:
    """BLEU and chrF, and the signature."""
    from regard.evaluate.metrics import BLEU, CHRF

    bleu, chrf = BLEU(tokenize="none"), CHRF()
    return {
        "bleu": round(bleu.score(outputs, references), 2),
        "chrf": round(chrf.score(outputs, references), 2),
        "signature": bleu.signature(),
    }


WITH_WORDS = merge(OURS, {"data": {"target": {"vocabulary_size": 6000}}, "training": {"batch_size": 96}})
N_SIDE_BY_SIDE = 25_000


def dictionary(words: list, train: list, never: set[str]) -> list[tuple[str, str]]:
    """Words and pairs of words side by side, from CC-CEDICT.

    Only words that stand in the sentences (as any run of one to four characters) and whose gloss is in lower case
    and of at most three words: names, idioms and rare words only take time from the others. A verb's gloss loses
    its "to". Then `N_SIDE_BY_SIDE` times two of them at random stand side by side, and so do their glosses, that of
    a verb at the end as its present participle: so a model learns that a compound is made of its parts (joining
    examples is an old augmentation; Nguyen et al. 2021 show it for translation). What contains one of the compounds
    to be translated is left out, so none is ever seen.
    """
    import inflect

    attested = {
        source[start : start + n]
        for source, _ in train
        for n in (1, 2, 3, 4)
        for start in range(len(source) - n + 1)
    }
    kept = [
        (word, tokenized(gloss))
        for word, gloss in words
        if gloss.islower() and len(gloss.split()) <= 3 and word in attested
    ]
    present_participle = inflect.engine().present_participle
    firsts = [
        (word, gloss)
        for word, gloss in kept
        if 2 <= len(word) <= 3 and len(gloss.split()) <= 2 and not gloss.startswith("to ")
    ]
    seconds = firsts + [
        (word, present_participle(gloss.split()[1]))
        for word, gloss in kept
        if len(word) == 2 and gloss.startswith("to ") and len(gloss.split()) == 2
    ]
    draw = random.Random(1)
    joined: list[tuple[str, str]] = []
    while len(joined) < N_SIDE_BY_SIDE:
        first, second = draw.choice(firsts), draw.choice(seconds)
        source = first[0] + second[0]
        if not any(compound in source for compound in never):
            joined.append((source, f"{first[1]} {second[1]}"))
    return [(word, gloss.removeprefix("to ")) for word, gloss in kept if gloss != "to"] + joined


def ours(train: list, dev: list, minutes: float, name: str, settings: dict = OURS) -> tuple[dict, object]:
    """Train and score our model."""
    import regard
    from regard.cli.progress import TrainingDisplay

    began = time.perf_counter()
    with TrainingDisplay() as display:
        model = regard.train(
            train,
            dev=dev,
            output=WORK / name,
            settings=settings,
            minutes=minutes,
            force=True,
            listeners=[display],
        )
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    outputs = [prediction.text for prediction in model.predict([source for source, _ in dev], beam=5)]
    row = {
        "model": name,
        "seconds": round(seconds, 1),
        "steps": model.facts.training["steps"],
        "parameters": model.model.n_parameters,
        "decoding_seconds": round(time.perf_counter() - began, 1),
        **scores(outputs, [target for _, target in dev]),
    }
    (WORK / f"{name}.out").write_text("\n".join(outputs) + "\n", encoding="utf-8")
    print(json.dumps(row), flush=True)
    return row, model


def peer(train: list, dev: list, minutes: float) -> dict:
    """Train OpenNMT-py until the time is over, and score the best of its last three checkpoints."""
    programs, folder = environment("opennmt", "OpenNMT-py==3.0.4"), WORK / "opennmt"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("model_step_*"):
        old.unlink()
    for part, pairs in (("train", train), ("dev", dev)):
        (folder / f"{part}.src").write_text("".join(" ".join(s) + "\n" for s, _ in pairs), encoding="utf-8")
        (folder / f"{part}.tgt").write_text("".join(t + "\n" for _, t in pairs), encoding="utf-8")
    config = folder / "config.yaml"
    config.write_text(
        f"save_data: {folder}/data\nsrc_vocab: {folder}/src.vocab\ntgt_vocab: {folder}/tgt.vocab\noverwrite: true\n"
        "src_words_min_frequency: 2\ntgt_words_min_frequency: 2\n"
        f"data:\n  corpus:\n    path_src: {folder}/train.src\n    path_tgt: {folder}/train.tgt\n"
        f"save_model: {folder}/model\n{CONFIGURATION}",
        encoding="utf-8",
    )
    run = {"env": ENVIRONMENT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([programs / "onmt_build_vocab", "-config", config, "-n_sample", "-1"], check=True, **run)
    began = time.perf_counter()
    with (folder / "log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [programs / "onmt_train", "-config", config], env=ENVIRONMENT, stdout=log, stderr=log
        )
        try:
            process.wait(timeout=minutes * 60)
            sys.exit(f"OpenNMT-py ended by itself: see {folder / 'log'}")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
    seconds = time.perf_counter() - began
    best: dict = {}
    for checkpoint in sorted(folder.glob("model_step_*.pt")):
        began = time.perf_counter()
        output = folder / "out"
        done = subprocess.run(
            [
                programs / "onmt_translate",
                "-model",
                checkpoint,
                "-src",
                folder / "dev.src",
                "-output",
                output,
                "-beam_size",
                "5",
                "-batch_size",
                "64",
            ],
            check=False,
            **run,
        )
        if done.returncode:  # killed while it was being written
            continue
        outputs = output.read_text(encoding="utf-8").split("\n")[: len(dev)]
        row = {
            "model": "OpenNMT-py 3.0.4",
            "seconds": round(seconds, 1),
            "steps": int(checkpoint.stem.rpartition("_")[2]),
            "decoding_seconds": round(time.perf_counter() - began, 1),
            **scores(outputs, [target for _, target in dev]),
        }
        print(json.dumps(row), flush=True)
        if row["bleu"] > best.get("bleu", -1):
            best = row
    if not best:
        sys.exit(f"OpenNMT-py wrote no checkpoint in {minutes:g} minutes: see {folder / 'log'}")
    return best


def wanted() -> list[tuple[str, str]]:
    """The fixed list: compounds, and what is accepted for each."""
    lines = (ROOT / "benchmarks" / "compounds.tsv").read_text(encoding="utf-8").splitlines()
    return [(compound, accepted) for compound, _, accepted in (line.partition("\t") for line in lines)]


def compounds(model: object, sources: set[str]) -> list[dict]:
    """Translate the fixed list; none of it may stand in what was trained on."""
    rows = []
    for compound, accepted in wanted():
        if any(compound in source for source in sources):
            sys.exit(f"{compound} stands in the training data, so it shows nothing")
        prediction = model.predict([compound], beam=5)[0]  # type: ignore[attr-defined]
        record = prediction.record()
        pairs = [pair.split("-") for pair in record.pharaoh().split()]
        alignment = ", ".join(
            f"{record.target_tokens[int(t)].strip(chr(0x2581))}\u2190{record.source_tokens[int(s)]}"
            for s, t in pairs
        )
        right = prediction.text.strip(" .!?") in accepted.split(";")
        rows.append(
            {
                "source": compound,
                "output": prediction.text,
                "accepted": accepted,
                "right": right,
                "alignment": alignment,
                "pharaoh": record.pharaoh(),
            }
        )
    return rows


def report(results: dict) -> str:
    """The results as Markdown."""
    lines = [
        "# Chinese to English, Tatoeba",
        "",
        "Made by `python benchmarks/translate.py`. Targets lower-cased and tokenized for both, sacrebleu without",
        "tokenization on the 1,000 dev sentences, beam 5; trained one after the other for the wall time given.",
        "Of OpenNMT-py the best of the last three checkpoints (one each 100 updates) counts.",
        "",
        f"{results['machine']}.",
        "",
        "| model | training s | updates | BLEU | chrF | decoding s |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in results["rows"]:
        lines.append(
            f"| {row['model']} | {row['seconds']:.0f} | {row['steps']:,} | {row['bleu']:.2f} | {row['chrf']:.2f} | "
            f"{row['decoding_seconds']:.1f} |"
        )
    lines += [
        "",
        f"Signature: `{results['rows'][0]['signature']}`. Settings of ours: `{json.dumps(OURS)}`",
        f"(with CC-CEDICT: batches of {WITH_WORDS['training']['batch_size']}, "
        f"{WITH_WORDS['data']['target']['vocabulary_size']:,} target subwords).",
    ]
    if results.get("compounds"):
        right = sum(row["right"] for row in results["compounds"])
        lines += [
            "",
            "## Compounds never seen",
            "",
            "Translated by the model trained on Tatoeba, on the words of CC-CEDICT that stand in its sentences (gloss in",
            f"lower case, at most three words), and on {N_SIDE_BY_SIDE:,} random pairs of such words side by side, with",
            "their glosses side by side and a verb at the end as its present participle (see `dictionary` in the script).",
            "The list was fixed before any training; nothing of it stands in either source (CC-CEDICT taken whole) or",
            f"among the random pairs. Right: {right} of {len(results['compounds'])}.",
            "",
            "| compound | output | | strongest source of each token |",
            "|---|---|---|---|",
        ]
        for row in results["compounds"]:
            mark = "right" if row["right"] else f"expected {row['accepted'].replace(';', ' / ')}"
            lines.append(f"| {row['source']} | {row['output']} | {mark} | {row['alignment']} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run all parts and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=7.0, help="training time of each model")
    parser.add_argument("--compounds-minutes", type=float, default=10.0, help="of the model with CC-CEDICT")
    parser.add_argument("--skip-peer", action="store_true")
    parser.add_argument("--only-compounds", action="store_true", help="keep the other rows of the last run")
    parser.add_argument("--skip-compounds", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if max(arguments.minutes, arguments.compounds_minutes) > 10:
        sys.exit("at most 10 minutes")
    data = shared_data() / "tatoeba_zh_en"
    WORK.mkdir(parents=True, exist_ok=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    train, dev = read(data / "train.tsv"), read(data / "dev.tsv")
    results: dict = {"machine": describe(), "rows": []}

    def write() -> None:
        text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
        (arguments.output / "translate.json").write_text(text, encoding="utf-8")
        (arguments.output / "translate.md").write_text(report(results), encoding="utf-8")

    if arguments.only_compounds:
        before = json.loads((arguments.output / "translate.json").read_text(encoding="utf-8"))
        results["rows"] = [row for row in before["rows"] if "CEDICT" not in row["model"]]
    else:
        results["rows"].append(ours(train, dev, arguments.minutes, "regard, Tatoeba")[0])
        write()
    if not arguments.skip_peer and not arguments.only_compounds:
        results["rows"].append(peer(train, dev, arguments.minutes))
        write()
    if not arguments.skip_compounds:
        from regard.data.corpora import load_corpus
        from regard.explain.heatmap import draw_heatmap

        corpus = load_corpus("cedict")
        entries = [*corpus.train, *corpus.dev, *corpus.test]
        words = dictionary(entries, train, {compound for compound, _ in wanted()})
        both = [*train, *words]
        minutes = arguments.compounds_minutes
        row, model = ours(both, dev, minutes, "regard, Tatoeba + CC-CEDICT", WITH_WORDS)
        results["rows"].append(row)
        everything = {source for source, _ in [*both, *dev, *entries]}
        results["compounds"] = compounds(model, everything)
        draw_heatmap(
            model.predict(["\u673a\u5668\u5b66\u4e60"])[0].record(),  # type: ignore[attr-defined]
            arguments.output / "machine-learning.png",
        )
        write()
    print(report(results))


if __name__ == "__main__":
    main()
