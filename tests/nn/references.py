"""Float64 references written from the formulas with plain loops; they share no code with the package."""

from __future__ import annotations

import math

import numpy as np

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm_step(x: Array, h: Array, c: Array, p: dict[str, Array]) -> tuple[Array, Array]:
    gates = p["w"] @ x + p["bi"] + p["u"] @ h + p["bh"]
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x: Array, h: Array, c: Array | None, p: dict[str, Array]) -> tuple[Array, None]:
    from_x, from_h = p["w"] @ x + p["bi"], p["u"] @ h + p["bh"]
    rx, zx, nx = np.split(from_x, 3)
    rh, zh, nh = np.split(from_h, 3)
    r, z = sigmoid(rx + rh), sigmoid(zx + zh)
    n = np.tanh(nx + r * nh)
    return (1 - z) * n + z * h, None


def tanh_step(x: Array, h: Array, c: Array | None, p: dict[str, Array]) -> tuple[Array, None]:
    return np.tanh(p["w"] @ x + p["bi"] + p["u"] @ h + p["bh"]), None


STEPS = {"lstm": lstm_step, "gru": gru_step, "rnn": tanh_step}


def cell_parameters(layer) -> dict[str, Array]:
    kernel = layer.kernel
    names = {"w": "weight_ih_l0", "u": "weight_hh_l0", "bi": "bias_ih_l0", "bh": "bias_hh_l0"}
    return {short: getattr(kernel, name).detach().numpy() for short, name in names.items()}


def run_cell(kind: str, xs: Array, p: dict[str, Array], h: Array | None = None, c: Array | None = None):
    """All outputs and the last state of one sequence without padding."""
    size = p["u"].shape[1]
    h = np.zeros(size) if h is None else h
    c = np.zeros(size) if c is None else c
    outputs = []
    for x in xs:
        h, c_new = STEPS[kind](x, h, c, p)
        c = c if c_new is None else c_new
        outputs.append(h)
    return np.array(outputs), h, c


def softmax(scores: Array) -> Array:
    e = np.exp(scores - scores.max())
    return e / e.sum()


def sparsemax(scores: Array) -> Array:
    """By bisection on the threshold t with sum(max(z - t, 0)) = 1."""
    low, high = scores.max() - 1, scores.max()
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if np.maximum(scores - t, 0).sum() > 1 else (low, t)
    return np.maximum(scores - low, 0)


def entmax15(scores: Array) -> Array:
    """By bisection on the threshold t with sum(max(z / 2 - t, 0) ** 2) = 1."""
    z = scores / 2
    low, high = z.max() - 1, z.max()
    for _ in range(200):
        t = (low + high) / 2
        low, high = (t, high) if (np.maximum(z - t, 0) ** 2).sum() > 1 else (low, t)
    return np.maximum(z - low, 0) ** 2


NORMALISERS = {"softmax": softmax, "sparsemax": sparsemax, "entmax15": entmax15}


def score_one(name: str, score, head: int, q: Array, k: Array, position: int) -> float:
    """One query against one key."""
    if name == "dot":
        return float(q @ k)
    if name == "scaled_dot":
        return float(q @ k) / math.sqrt(len(q))
    if name == "general":
        return float(k @ score.weight[head].detach().numpy() @ q)
    if name == "additive":
        w, u = score.query_weight[head].detach().numpy(), score.key_weight[head].detach().numpy()
        b, v = score.bias[head, 0].detach().numpy(), score.vector[head].detach().numpy()
        return float(v @ np.tanh(q @ w + k @ u + b))
    if name == "location":
        weight = score.weight[head].detach().numpy()
        return float(q @ weight[:, position]) if position < weight.shape[1] else -math.inf
    if name == "cosine":
        cosine = q @ k / (np.linalg.norm(q) * np.linalg.norm(k))
        return float(np.exp(score.log_sharpness[head].item()) * cosine)
    raise KeyError(name)


def attend_one(
    attention, name: str, normaliser: str, q: Array, keys: Array, values: Array, target_position: int
):
    """One query over the real keys of one source: context and weights of each head."""
    heads, n = attention.heads, len(keys)
    parts = []
    for tensor, projection in ((q[None], "query"), (keys, "key"), (values, "value")):
        if heads > 1:
            layer = getattr(attention, f"{projection}_projection")
            weight = getattr(layer, "weight", None)
            tensor = tensor if weight is None else tensor @ weight.detach().numpy().T
        parts.append(np.split(tensor, heads, axis=1))
    contexts, weights = [], []
    for head in range(heads):
        qh, kh, vh = parts[0][head][0], parts[1][head], parts[2][head]
        scores = np.array([score_one(name, attention.score, head, qh, kh[j], j) for j in range(n)])
        scores = apply_window(attention, scores, q, n, target_position)
        a = np.zeros(n)
        real = np.isfinite(scores)
        a[real] = NORMALISERS[normaliser](scores[real])
        weights.append(a)
        contexts.append(a @ vh)
    return np.concatenate(contexts), np.array(weights)


def apply_window(attention, scores: Array, q: Array, n: int, target_position: int) -> Array:
    """Scores outside the window become minus infinity."""
    scores = scores.copy()
    if attention.monotonic is not None:
        centre: float = min(target_position, n - 1)
        width = attention.monotonic.half_width
    elif attention.predictive is not None:
        hidden = np.tanh(attention.predictive.hidden.weight.detach().numpy() @ q)
        centre = (n - 1) * sigmoid(attention.predictive.position.weight.detach().numpy() @ hidden)[0]
        width = attention.predictive.half_width
        scores += np.array([-((j - centre) ** 2) / (2 * (width / 2) ** 2) for j in range(n)])
    else:
        return scores
    return np.array([s if abs(j - centre) <= width else -math.inf for j, s in enumerate(scores)])


class ReferenceModel:
    """The whole encoder-decoder for one source at a time, step by step."""

    def __init__(self, model) -> None:
        self.m, self.s = model, model.settings

    def encode(self, source: list[int]):
        """States in source order, and each layer's final hidden and cell state."""
        tokens = [*source[-2::-1], source[-1]] if self.s.reverse_source else source
        xs = self.m.encoder.embedding.weight.detach().numpy()[tokens]
        finals = []
        for number, layer in enumerate(self.m.encoder.layers):
            out, h, c = run_cell(self.s.cell, xs, cell_parameters(layer.forwards))
            if layer.backwards is not None:
                back, hb, cb = run_cell(self.s.cell, xs[::-1], cell_parameters(layer.backwards))
                out, h, c = (
                    np.concatenate([out, back[::-1]], 1),
                    np.concatenate([h, hb]),
                    np.concatenate([c, cb]),
                )
            xs = out + xs if self.s.residual and number else out
            finals.append((h, c))
        if self.s.reverse_source:
            xs = np.concatenate([xs[-2::-1], xs[-1:]])
        return xs, finals

    def fixed(self, states: Array, finals) -> Array:
        """The one context vector."""
        context, kind = self.m.decoder.context, self.s.context
        if kind == "last":
            return finals[-1][0]
        if kind == "projected":
            pooled = finals[-1][0]
        elif self.s.pool == "mean":
            pooled = states.mean(0)
        elif self.s.pool == "max":
            pooled = states.max(0)
        else:
            q = context.query.detach().numpy()[0, 0]
            pooled = softmax(states @ q / math.sqrt(len(q))) @ states
        return np.tanh(
            context.projection.weight.detach().numpy() @ pooled + context.projection.bias.detach().numpy()
        )

    def log_probs(self, source: list[int], target_in: list[int]) -> Array:
        """Log-probabilities of what follows each of ``target_in``."""
        d, s = self.m.decoder, self.s
        states, finals = self.encode(source)
        attends = s.context == "attention"
        c_fixed = None if attends else self.fixed(states, finals)
        n_layers = len(d.layers)
        if d.bridge is None:
            hs, cs = [h for h, _ in finals], [c for _, c in finals]
        else:
            summary = finals[-1][0] if attends else c_fixed
            made = d.bridge.weight.detach().numpy() @ summary + d.bridge.bias.detach().numpy()
            parts = np.split(made, n_layers * (2 if d.has_cell else 1))
            hs = [np.tanh(part) for part in parts[:n_layers]]
            cs = parts[n_layers:] if d.has_cell else [np.zeros(s.hidden_size)] * n_layers
        fed, rows = np.zeros(s.hidden_size), []
        for step, token in enumerate(target_in):
            x = [d.embedding.weight.detach().numpy()[token]]
            context = c_fixed
            if s.attend_before_cell:
                context, _ = self.attend(hs[-1], states, step)
            if d.feed_context:
                x.append(context)
            if s.input_feeding:
                x.append(fed)
            value = np.concatenate(x)
            for number, layer in enumerate(d.layers):
                hs[number], c = STEPS[s.cell](value, hs[number], cs[number], cell_parameters(layer))
                cs[number] = cs[number] if c is None else c
                value = hs[number] + value if s.residual and number else hs[number]
            if attends and not s.attend_before_cell:
                context, _ = self.attend(value, states, step)
            read = np.concatenate([value, context]) if d.read_context else value
            fed = np.tanh(d.readout.weight.detach().numpy() @ read + d.readout.bias.detach().numpy())
            logits = d.output.weight.detach().numpy() @ fed + d.output.bias.detach().numpy()
            rows.append(logits - logits.max() - np.log(np.exp(logits - logits.max()).sum()))
        return np.array(rows)

    def attend(self, query: Array, states: Array, step: int):
        """The attention's context and weights."""
        a = self.s.attention
        return attend_one(
            self.m.decoder.context.attention, a.score, a.normaliser, query, states, states, step
        )
