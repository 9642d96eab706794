"""The model card: what a model was made from, with numbers of its own run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.seq2seq import Seq2Seq

__all__ = ["describe", "model_card"]


def describe(model: Seq2Seq) -> dict[str, str]:
    """Return the main facts of a model, by name, as text."""
    settings, facts = model.config.model, model.facts
    context = str(settings.context)
    if context == "attention":
        chosen = settings.attention
        context = f"attention ({chosen.score}, {chosen.heads} head{'s' * (chosen.heads > 1)}, {chosen.window}, {chosen.normaliser})"
    direction = "bidirectional " if settings.bidirectional else ""
    described = {
        "preset": model.config.preset,
        "encoder": f"{settings.encoder_layers} {direction}{settings.cell} layer{'s' * (settings.encoder_layers > 1)}",
        "context": context,
        "decoder": f"{settings.decoder_layers} {settings.cell} layer{'s' * (settings.decoder_layers > 1)}",
        "hidden size": f"{settings.hidden_size}, embeddings {settings.embedding_size}",
        "parameters": f"{model.model.n_parameters:,}",
        "source": _side(
            model.source_tokenizer.kind, len(model.source_tokenizer), model.source_tokenizer.normal_form
        ),
        "target": _side(
            model.target_tokenizer.kind, len(model.target_tokenizer), model.target_tokenizer.normal_form
        ),
    }
    data, training = facts.data, facts.training
    if data:
        described["data"] = (
            f"{data.get('name')}: {data.get('n_train', 0):,} pairs, {data.get('n_dev', 0):,} held out"
        )
    if training:
        values = ", ".join(f"{name} {value:.4g}" for name, value in training.get("best_values", {}).items())
        described["training"] = (
            f"{training.get('steps', 0):,} updates in {training.get('seconds', 0):.0f} s on "
            f"{training.get('device')} ({training.get('precision')}); {training.get('reason', '')}"
        )
        if values:
            described["dev"] = f"{values} (update {training.get('best_step', 0):,})"
    described["regard"] = facts.regard_version
    return described


def _side(kind: str, size: int, form: str) -> str:
    return f"{kind}, {size:,} entries, {form}"


def model_card(model: Seq2Seq) -> str:
    """Write the card as Markdown."""
    rows = "\n".join(f"| {name} | {value} |" for name, value in describe(model).items())
    command = f"\n## Made by\n\n```\n{model.facts.command}\n```\n" if model.facts.command else ""
    return f"""# A model of regard

An attentional sequence-to-sequence model. Use it with

```
regard predict . input.txt
```

| | |
|---|---|
{rows}
{command}
## Limits

It knows what its training data showed and nothing else; sources of another kind than those get an answer too,
and it will often be wrong. Measure on data of your own: `regard evaluate . test.tsv`.
"""
