/**
 * The player: a person plays, pauses and steps through a decoding.
 *
 *   import { createPlayer } from "./player.js";
 *   const player = createPlayer(container, record, { hypothesis: 0 });
 *   player.play(); player.goTo({ step: 2, phase: "weights" }); player.destroy();
 *
 * record   JSON of the schema regard-decoding/1, as an object.
 * options  hypothesis  which one is shown first, from 0
 *          head        "mean", or a head counted from 0
 *          words       whether the matrix shows words instead of pieces
 *          position    "start" or "end" (default)
 *          speed       1 is normal
 *          autoplay    begin at once
 * Returns  { play, pause, next, previous, goTo, destroy }; goTo takes a frame's number, "start", "end" or
 *          { step, phase }. The container gets an event "regard:frame" with { frame, frames, step, phase }.
 */

const SCHEMA = "regard-decoding/1";
const MILLISECONDS = {
  encode: 170, vector: 800, state: 420, scores: 620, weights: 620, context: 850, combine: 620, word: 560,
};
const REST = 0.45; // after a phase has moved, the share of its time that it stands still
const HEIGHT = { stateY: 40, contextY: 88, boxY: 64, barsTop: 168, barsBottom: 246, cellTop: 254, cellBottom: 296 };
const NAMES = {
  encode: "encode", vector: "one vector", state: "decoder state", scores: "scores", weights: "weights",
  context: "context", combine: "feed-forward", word: "word",
};
const ICONS = {
  start: "M5 4v12M16 4.5v11L7.5 10z",
  previous: "M12.5 4.5v11L4.5 10z",
  play: "M6 3.8v12.4L16.5 10z",
  pause: "M6.5 4v12M13.5 4v12",
  next: "M7.5 4.5v11l8-5.5z",
  end: "M15 4v12M4 4.5v11l8.5-5.5z",
};

let svgNamespace = null;

/** Make an HTML element; text is always set as text, never as markup. */
function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Make an SVG element. */
function svg(tag, attributes = {}, ...children) {
  if (svgNamespace === null) {
    const template = document.createElement("template");
    template.innerHTML = "<svg></svg>";
    svgNamespace = template.content.firstChild.namespaceURI;
  }
  return filled(document.createElementNS(svgNamespace, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
}

const clamp = (value, least, most) => Math.min(most, Math.max(least, value));
const mix = (from, to, share) => from + (to - from) * share;
const ease = (p) => (p < 0.5 ? 4 * p * p * p : 1 - (-2 * p + 2) ** 3 / 2);
const sub = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
const percent = (share) => {
  const value = 100 * share;
  return value >= 99.95 ? "100 %" : value >= 10 && value < 99.5 ? `${value.toFixed(0)} %` : value >= 0.1 ? `${value.toFixed(1)} %` : "< 0.1 %";
};
const fixed = (value, digits) => value.toFixed(digits).replace("-", "−");
const short = (text, most) => {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
};
const wide = (character) => /[\u1100-\u11ff\u2e80-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffee]/u.test(character) || character > "\uffff";
const widthOf = (text) => [...text].reduce((sum, character) => sum + (wide(character) ? 15 : 8.6), 0);

/** A token in which every character can be seen. */
function visible(token) {
  const prints = (character) => /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(character);
  // Joiners shape the letters beside them; alone they would not be seen.
  const joins = [...token].some(prints);
  return [...token].map((character) => {
    if (character === " ") return "␣";
    if (prints(character) || (joins && "\u200c\u200d".includes(character))) return character;
    return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  }).join("");
}

/** Which way a text is read: that of its first letter. */
const direction = (text) => (/^\P{L}*[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u.test(text) ? "rtl" : "ltr");

const isEnd = (tokens, place, ended) => ended && place === tokens.length - 1;
const MARKED = ["word", "bpe", "unigram"];
/** Tokenizers of these kinds write a blank as a mark that no reader of a text knows. */
const plain = (token, kind) => (MARKED.includes(kind) ? token.replace(/▁/g, " ") : token);
/** A token in a line or a matrix: the blank before a word is the gap before it, not a part of the word. */
function label(tokens, place, ended, kind) {
  if (isEnd(tokens, place, ended)) return "end";
  const token = plain(tokens[place], kind);
  return visible(MARKED.includes(kind) && token.length > 1 && token.startsWith(" ") ? token.slice(1) : token);
}
/** How a token is read out where its blanks are drawn as signs; null where it has none. */
const spoken = (text) => (text.includes("␣") ? text.replaceAll("␣", " blank ").replace(/ +/g, " ").trim() : null);
const named = (text) => (text === "␣" ? "a blank" : text);
const quoted = (text) => (text === "␣" ? named(text) : `“${text}”`);

/** Weights of a step and head; "mean" is the mean over heads. */
function row(matrix, head) {
  if (!matrix) return null;
  if (head !== "mean") return matrix[head];
  return matrix[0].map((_, place) => {
    const column = matrix.map((one) => one[place]);
    return column.includes(null) ? null : column.reduce((sum, value) => sum + value, 0) / column.length;
  });
}

/** Everything that is shown one after the other. */
function framesOf(record, hypothesis) {
  const frames = record.source_tokens.map((_, place) => ({ phase: "encode", step: -1, place }));
  if (record.vector) frames.push({ phase: "vector", step: -1 });
  const phases = !record.heads
    ? ["state", "combine", "word"]
    : record.attends === "before"
      ? ["scores", "weights", "context", "state", "combine", "word"]
      : ["state", "scores", "weights", "context", "combine", "word"];
  hypothesis.steps.forEach((_, step) => phases.forEach((phase) => frames.push({ phase, step })));
  return { frames, phases };
}

/** Sum a row of weights over the pieces of each source word. */
function summed(weights, words) {
  const sums = new Array(Math.max(...words) + 1).fill(0);
  weights.forEach((weight, place) => { sums[words[place]] += weight; });
  return sums;
}

/** The matrix by words: summed over source pieces, averaged over target pieces. */
function byWords(rows, sourceWords, targetWords) {
  const grouped = [];
  rows.forEach((weights, step) => {
    const sums = summed(weights, sourceWords);
    (grouped[targetWords[step]] ??= []).push(sums);
  });
  return grouped.map((group) => group[0].map((_, place) => group.reduce((sum, one) => sum + one[place], 0) / group.length));
}

function wordTexts(tokens, words, ended, kind) {
  const texts = [];
  tokens.forEach((token, place) => {
    texts[words[place]] = (texts[words[place]] ?? "") + (isEnd(tokens, place, ended) ? "end" : plain(token, kind));
  });
  return texts.map((text) => visible(text.trim() || text));
}

class Player {
  constructor(container, record, options) {
    if (!record || record.schema !== SCHEMA) {
      throw new Error(`the player shows records of the schema ${SCHEMA}, not of ${record && record.schema}`);
    }
    if (!record.hypotheses.length) throw new Error("the record has no hypothesis to show");
    Object.assign(this, { container, record, speed: options.speed ?? 1, peek: null, column: null, playing: false });
    this.hypothesisNumber = clamp(options.hypothesis ?? 0, 0, record.hypotheses.length - 1);
    this.head = record.heads > 1 ? (options.head ?? "mean") : "mean";
    if (this.head !== "mean") this.head = clamp(Number(this.head), 0, record.heads - 1);
    this.words = Boolean(options.words);
    this.progress = 1;
    this.motion = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.build();
    this.choose(this.hypothesisNumber, options.position === "start" ? "start" : "end");
    this.observer = new ResizeObserver(() => this.layout());
    this.observer.observe(this.scroller);
    if (options.autoplay) this.play();
  }

  get hypothesis() { return this.record.hypotheses[this.hypothesisNumber]; }
  get current() { return this.frames[this.frame]; }
  weights(step) { return row(this.hypothesis.steps[step].weights, this.head); }
  scores(step) { return row(this.hypothesis.steps[step].scores, this.head); }
  source(place) { return label(this.record.source_tokens, place, true, this.record.source_kind); }
  target(step) { return label(this.hypothesis.target_tokens, step, this.hypothesis.finished, this.record.target_kind); }

  // What is on the page -------------------------------------------------------------------------------------

  build() {
    this.root = html("section", {
      class: "rp", tabindex: "0", role: "group",
      "aria-label": "Player of the decoding. Space plays and pauses, left and right step, up and down go by words, Home and End jump.",
      onkeydown: (event) => this.onKey(event),
    });
    this.sourceLine = html("ol", { class: "rp-line", "aria-label": "Source" });
    this.targetLine = html("ol", { class: "rp-line", "aria-label": "Output" });
    this.targetName = html("span", { class: "rp-line-name" });
    this.stage = svg("svg", { class: "rp-stage", role: "img" });
    this.scroller = html("div", { class: "rp-scroll", onscroll: () => this.draw() }, this.stage);
    this.caption = html("p", { class: "rp-caption", role: "status", "aria-live": "polite" });
    this.candidates = html("div", { class: "rp-panel rp-candidates" });
    this.matrix = html("div", { class: "rp-panel rp-matrix" });
    this.root.append(
      this.buildChoices(),
      html("div", { class: "rp-reading" },
        html("div", { class: "rp-row" }, html("span", { class: "rp-line-name" }, "source"), this.sourceLine),
        html("div", { class: "rp-row" }, this.targetName, this.targetLine)),
      html("div", { class: "rp-theatre" }, this.scroller, this.caption, this.buildTransport()),
      html("div", { class: "rp-panels" }, this.candidates, this.matrix),
    );
    this.container.replaceChildren(this.root);
  }

  buildChoices() {
    const { record } = this;
    const bar = html("div", { class: "rp-choices" });
    this.badge = html("span", { class: "rp-badge" });
    this.remark = html("span", { class: "rp-remark" });
    bar.append(this.badge, this.remark);
    if (record.hypotheses.length > 1) {
      const options = record.hypotheses.map((one, place) =>
        html("option", { value: place }, `${place + 1}. ${short(one.text, 42)}  (${fixed(one.score, 2)})`));
      this.chooser = html("select", { onchange: (event) => this.choose(Number(event.target.value), "end") }, ...options);
      bar.append(html("label", { class: "rp-choice" }, html("span", {}, "hypothesis"), this.chooser));
    }
    if (record.heads > 1) {
      const heads = ["mean", ...Array(record.heads).keys()];
      const options = heads.map((head) =>
        html("option", { value: head, selected: head === this.head }, head === "mean" ? "mean of heads" : `head ${head + 1}`));
      const onchange = ({ target: { value } }) => {
        this.head = value === "mean" ? value : Number(value);
        this.refresh();
      };
      bar.append(html("label", { class: "rp-choice" }, html("span", {}, "head"), html("select", { onchange }, ...options)));
    }
    return bar;
  }

  buildTransport() {
    const button = (name, text, onclick) =>
      html("button", { type: "button", class: `rp-button rp-to-${name}`, "aria-label": text, title: text, onclick },
        svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, svg("path", { d: ICONS[name] })));
    this.playButton = button("play", "Play", () => (this.playing ? this.pause() : this.play()));
    this.slider = html("input", {
      type: "range", min: 0, step: 1, class: "rp-slider", "aria-label": "Position in the decoding",
      oninput: () => { this.pause(); this.goTo(Number(this.slider.value)); },
    });
    const speeds = [0.5, 1, 2, 4].map((speed) => html("option", { value: speed, selected: speed === this.speed }, `${speed}×`));
    const speed = html("select", {
      class: "rp-speed", "aria-label": "Speed", onchange: (event) => { this.speed = Number(event.target.value); },
    }, ...speeds);
    return html("div", { class: "rp-transport", role: "toolbar", "aria-label": "Playing" },
      button("start", "To the start", () => { this.pause(); this.goTo("start"); }),
      button("previous", "One step back", () => this.previous()),
      this.playButton,
      button("next", "One step on", () => this.next()),
      button("end", "To the end", () => { this.pause(); this.goTo("end"); }),
      this.slider, speed);
  }

  /** Show another hypothesis. */
  choose(number, position) {
    this.pause();
    this.hypothesisNumber = number;
    Object.assign(this, framesOf(this.record, this.hypothesis));
    this.slider.max = this.frames.length - 1;
    const own = this.hypothesis.origin === "output";
    this.badge.textContent = own ? "the model’s own output" : "a given target";
    this.badge.dataset.origin = this.hypothesis.origin;
    const lacking = [...new Set(this.record.unknown)].map(visible);
    const unknown = lacking.length ? `not in the vocabulary: ${lacking.slice(0, 12).join(" ")}${lacking.length > 12 ? " …" : ""}` : "";
    const cut = this.hypothesis.finished ? "" : "cut at the length limit";
    this.remark.textContent = [cut, unknown].filter(Boolean).join("; ");
    this.remark.hidden = !this.remark.textContent;
    this.targetName.textContent = own ? "output" : "given";
    if (this.chooser) this.chooser.value = number;
    this.frame = position === "start" ? 0 : this.frames.length - 1;
    this.progress = 1;
    this.refresh();
  }

  /** Make anew what depends on hypothesis and head. */
  refresh() {
    this.peek = this.column = null;
    this.fillLines();
    this.fillMatrix();
    this.shownCandidates = null;
    this.layout();
    this.announce();
    this.follow("auto");
  }

  fillLines() {
    const { record, hypothesis } = this;
    const chip = (tokens, place, ended, kind, attributes) => {
      const text = label(tokens, place, ended, kind);
      const following = place + 1 < tokens.length && !isEnd(tokens, place + 1, ended) ? tokens[place + 1] : "";
      const gap = kind === "space" ? following : MARKED.includes(kind) && following.startsWith("▁");
      const classes = ["rp-chip", isEnd(tokens, place, ended) ? "rp-end" : "", text === "␣" ? "rp-blank" : ""];
      return html("li", { class: gap ? "rp-item rp-gap" : "rp-item" },
        html("button", { type: "button", class: classes.filter(Boolean).join(" "), dir: "auto", "aria-label": spoken(text), ...attributes }, text));
    };
    const sourceChips = record.source_tokens.map((_, place) => chip(record.source_tokens, place, true, record.source_kind, {
      onmouseenter: () => this.lightColumn(place), onmouseleave: () => this.lightColumn(null),
      onfocus: () => this.lightColumn(place), onblur: () => this.lightColumn(null),
    }));
    const targetChips = hypothesis.target_tokens.map((_, step) => chip(hypothesis.target_tokens, step, hypothesis.finished, record.target_kind, {
      onmouseenter: () => this.lightStep(step), onmouseleave: () => this.lightStep(null),
      onfocus: (event) => event.target.matches(":focus-visible") && this.lightStep(step), onblur: () => this.lightStep(null),
      onclick: () => { this.pause(); this.goTo({ step, phase: "word" }); },
    }));
    this.sourceLine.dir = direction(record.source);
    this.targetLine.dir = direction(hypothesis.text);
    this.sourceLine.replaceChildren(...sourceChips);
    this.targetLine.replaceChildren(...targetChips);
    this.sourceChips = sourceChips.map((item) => item.firstChild);
    this.targetChips = targetChips.map((item) => item.firstChild);
  }

  fillMatrix() {
    const { record, hypothesis } = this;
    this.matrixRows = [];
    if (!record.heads) {
      this.fillVector();
      return;
    }
    let rows = hypothesis.steps.map((_, step) => this.weights(step));
    let columns = record.source_tokens.map((_, place) => this.source(place));
    let names = hypothesis.steps.map((_, step) => this.target(step));
    const canGroup = new Set(record.source_words).size < columns.length || new Set(hypothesis.target_words).size < names.length;
    const grouped = this.words && canGroup;
    if (grouped) {
      rows = byWords(rows, record.source_words, hypothesis.target_words);
      columns = wordTexts(record.source_tokens, record.source_words, true, record.source_kind);
      names = wordTexts(hypothesis.target_tokens, hypothesis.target_words, hypothesis.finished, record.target_kind);
    }
    const stepOf = (place) => (grouped ? hypothesis.target_words.lastIndexOf(place) : place);
    const head = html("tr", {}, html("td", {}),
      ...columns.map((name) => html("th", { scope: "col", dir: "auto", "aria-label": spoken(name), class: widthOf(name) > 30 ? "rp-turned" : null }, html("span", {}, short(name, 14)))));
    const body = rows.map((weights, place) => {
      const cells = weights.map((weight, column) => {
        const cell = html("td", { class: "rp-cell", title: `${columns[column]} → ${names[place]}: ${percent(weight)}` },
          html("span", { class: "rp-sr" }, percent(weight)));
        cell.style.setProperty("--w", weight.toFixed(4));
        return cell;
      });
      return html("tr", {
        onmouseenter: () => this.lightStep(stepOf(place)), onmouseleave: () => this.lightStep(null),
        onclick: () => { this.pause(); this.goTo({ step: stepOf(place), phase: "word" }); },
      }, html("th", { scope: "row", dir: "auto", "aria-label": spoken(names[place]) }, short(names[place], 18)), ...cells);
    });
    this.matrixShape = { columns: columns.length, beside: 24 + Math.max(...names.map((name) => 0.9 * widthOf(short(name, 18)))) };
    this.sizeMatrix();
    body.forEach((line, place) => {
      const steps = grouped ? hypothesis.target_words.flatMap((word, step) => (word === place ? [step] : [])) : [place];
      this.matrixRows.push({ line, steps });
    });
    const toggle = canGroup
      ? html("label", { class: "rp-check" }, html("input", {
          type: "checkbox", checked: this.words, onchange: (event) => { this.words = event.target.checked; this.fillMatrix(); this.draw(); },
        }), "by words")
      : null;
    this.matrix.replaceChildren(
      html("div", { class: "rp-panel-head" }, html("h3", {}, "alignment"), toggle,
        html("span", { class: "rp-scale", "aria-hidden": "true" }, "0", html("i"), "1")),
      html("div", { class: "rp-table-scroll", tabindex: "0", role: "region", "aria-label": "Alignment matrix" },
        html("table", { class: "rp-grid" }, html("caption", { class: "rp-sr" }, "Attention weights, a row for each output token"),
          html("thead", {}, head), html("tbody", {}, ...body))));
  }

  /** Make the matrix's cells as large as there is room for. */
  sizeMatrix() {
    if (!this.matrixShape) return;
    const { columns, beside } = this.matrixShape;
    const room = (this.matrix.clientWidth || 560) - 34 - beside;
    this.matrix.style.setProperty("--cell", `${clamp(Math.floor(room / columns), 17, 36)}px`);
  }

  /** A fixed context has no weights; its one vector is drawn as a strip. */
  fillVector() {
    const { vector } = this.record;
    const most = Math.max(...vector.map(Math.abs), 1e-9);
    const cells = vector.map((value, place) => {
      const cell = html("i", { title: `c[${place}] = ${fixed(value, 3)}` });
      cell.style.setProperty("--w", (Math.abs(value) / most).toFixed(3));
      if (value < 0) cell.className = "rp-negative";
      return cell;
    });
    this.matrix.replaceChildren(
      html("div", { class: "rp-panel-head" }, html("h3", {}, "the one vector")),
      html("p", { class: "rp-note" }, `All that the decoder knows of the source are these ${vector.length} numbers. There are no weights to show.`),
      html("div", { class: "rp-vector", role: "img", "aria-label": `The context vector, ${vector.length} numbers` }, ...cells));
  }

  fillCandidates(step) {
    if (this.shownCandidates === step) return;
    this.shownCandidates = step;
    const heading = (text) => html("div", { class: "rp-panel-head" }, html("h3", {}, text));
    if (step < 0) {
      this.candidates.replaceChildren(heading("candidates"),
        html("p", { class: "rp-note" }, "The decoder has not begun."));
      return;
    }
    const { candidates, token, log_prob: logProb, rank } = this.hypothesis.steps[step];
    const ended = this.hypothesis.finished && step === this.hypothesis.steps.length - 1;
    const shown = candidates.map((one, place) => ({ ...one, place: place + 1, chosen: place + 1 === rank }));
    if (!shown.some((one) => one.chosen)) shown.push({ token, prob: Math.exp(logProb), place: rank, chosen: true });
    const lines = shown.map((one) => {
      const bar = html("i");
      bar.style.setProperty("--w", one.prob.toFixed(4));
      const text = one.token === "<eos>" && (ended || !one.chosen) ? "end" : visible(plain(one.token, this.record.target_kind));
      const said = spoken(text);
      const parts = short(text, 20).split(/(␣)/).map((part) => (part === "␣" ? html("span", { class: "rp-blank" }, part) : part));
      return html("tr", { class: one.chosen ? "rp-chosen" : null },
        html("td", { class: "rp-place" }, String(one.place)),
        html("th", { scope: "row", dir: "auto", "aria-label": said && (one.chosen ? `${said} (chosen)` : said) }, ...parts, one.chosen ? html("span", { class: "rp-sr" }, " (chosen)") : null),
        html("td", { class: "rp-bar" }, bar), html("td", { class: "rp-number" }, percent(one.prob)));
    });
    this.candidates.replaceChildren(heading(`candidates for word ${step + 1}`),
      html("table", {}, html("caption", { class: "rp-sr" }, `The likeliest words at step ${step + 1}`), html("tbody", {}, ...lines)));
  }

  // The stage ---------------------------------------------------------------------------------------------

  /** Make the stage's elements for the width there is. */
  layout() {
    const width = this.scroller.clientWidth || 640;
    const { record } = this;
    const n = record.source_tokens.length;
    const labels = record.source_tokens.map((_, place) => short(this.source(place), 12));
    const longest = Math.max(15, ...labels.slice(0, -1).map(widthOf));
    const room = (width - 24) / n;
    const turned = longest + 6 > Math.max(room, 21);
    const cell = clamp(room, turned ? 22 : Math.max(22, longest + 6), Math.max(66, turned ? 0 : longest + 12));
    // A turned label reaches to the left of its token.
    const reach = turned ? Math.max(0, ...labels.map((text, place) => 0.7 * widthOf(text) - (place + 0.5) * cell - 8)) : 0;
    this.width = Math.max(width, cell * n + 24 + reach);
    this.cell = cell;
    const foot = turned ? 20 + longest * 0.72 : 26;
    this.height = HEIGHT.cellBottom + foot;
    set(this.stage, { viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height });
    const from = Math.max((this.width - cell * n) / 2, 12 + reach) + cell / 2;
    this.x = record.source_tokens.map((_, place) => from + place * cell);
    this.stage.replaceChildren();
    this.sizeMatrix();
    this.drawEncoder(labels, turned);
    this.drawPipeline();
    this.draw();
  }

  drawEncoder(labels, turned) {
    const { record, cell } = this;
    const most = Math.max(...record.encoder_norms, 1e-9);
    const inside = Math.min(cell - 4, 38);
    const { cellTop, cellBottom } = HEIGHT;
    this.curves = svg("g", { class: "rp-curves" });
    this.queries = svg("g", { class: "rp-queries" });
    this.bars = svg("g", {});
    const cells = svg("g", {});
    this.axis = svg("line", { class: "rp-axis", x1: this.x[0] - cell / 2, x2: this.x.at(-1) + cell / 2, y1: HEIGHT.barsBottom, y2: HEIGHT.barsBottom });
    this.stage.append(this.queries, this.curves, this.axis, this.bars, cells);
    this.places = this.x.map((x, place) => {
      const level = (record.encoder_norms[place] / most) * (cellBottom - cellTop - 4);
      const box = svg("rect", { class: "rp-cell-box", x: x - inside / 2, y: cellTop, width: inside, height: cellBottom - cellTop, rx: 7 });
      const fill = svg("rect", { class: "rp-cell-fill", x: x - inside / 2 + 2, y: cellBottom - 2 - level, width: inside - 4, height: level, rx: 5 });
      const name = inside < 24 ? null : svg("text", { class: "rp-math", x, y: (cellTop + cellBottom) / 2 + 5 }, `h${sub(place + 1)}`);
      const link = place ? svg("line", { class: "rp-link", x1: this.x[place - 1] + inside / 2, x2: x - inside / 2, y1: (cellTop + cellBottom) / 2, y2: (cellTop + cellBottom) / 2 }) : null;
      const text = turned
        ? svg("text", { class: "rp-token", transform: `translate(${x + 4} ${cellBottom + 14}) rotate(-46)`, "text-anchor": "end" }, labels[place])
        : svg("text", { class: "rp-token", x, y: cellBottom + 19, "text-anchor": "middle" }, labels[place]);
      if (isEnd(record.source_tokens, place, true)) text.classList.add("rp-dim");
      const hidden = svg("title", {}, `${this.source(place)}: the state h${place + 1} has length ${record.encoder_norms[place].toFixed(2)}`);
      const state = svg("g", { class: "rp-state" }, ...[hidden, link, box, fill, name].filter(Boolean));
      cells.append(state, text);
      const bar = svg("rect", { class: "rp-bar-rect", x: x - Math.min(inside, 26) / 2, width: Math.min(inside, 26), rx: 3 });
      const value = svg("text", { class: "rp-value", x, "text-anchor": "middle" });
      const curve = svg("path", { class: "rp-curve", pathLength: 1 });
      const dot = svg("circle", { class: "rp-dot", r: 3.5 });
      const query = svg("line", { class: "rp-query" });
      this.bars.append(bar, value);
      this.curves.append(curve, dot);
      this.queries.append(query);
      return { state, text, box, bar, value, curve, dot, query };
    });
  }

  drawPipeline() {
    const node = (name, radius) => svg("g", { class: `rp-node rp-node-${name}` }, svg("circle", { r: radius }), svg("text", { class: "rp-math", y: 5 }));
    this.stateNode = node("s", 19);
    this.contextNode = node("c", 19);
    this.stateNote = svg("text", { class: "rp-note-text", "text-anchor": "middle" });
    this.contextNote = svg("text", { class: "rp-note-text", "text-anchor": "middle" });
    this.links = { s: svg("path", { class: "rp-wire" }), c: svg("path", { class: "rp-wire" }), word: svg("path", { class: "rp-wire" }), back: svg("path", { class: "rp-wire rp-back" }) };
    this.movers = { s: svg("circle", { class: "rp-dot rp-dot-s", r: 6 }), c: svg("circle", { class: "rp-dot rp-dot-c", r: 6 }) };
    this.box = svg("g", { class: "rp-box" },
      svg("rect", { class: "rp-box-frame", x: -46, y: -27, width: 92, height: 54, rx: 10 }),
      svg("rect", { class: "rp-box-s", x: -43, y: -24, width: 86, height: 23, rx: 7 }),
      svg("rect", { class: "rp-box-c", x: -43, y: 1, width: 86, height: 23, rx: 7 }),
      svg("text", { class: "rp-math rp-box-text", y: 5, "text-anchor": "middle" }));
    this.wordPill = svg("g", { class: "rp-word" }, svg("rect", { y: -16, height: 32, rx: 16 }), svg("text", { y: 5, "text-anchor": "middle" }));
    this.wordNote = svg("text", { class: "rp-note-text", "text-anchor": "middle" });
    this.pipeline = svg("g", {}, ...Object.values(this.links), this.stateNode, this.contextNode, this.stateNote,
      this.contextNote, this.box, this.movers.s, this.movers.c, this.wordPill, this.wordNote);
    this.stage.append(this.pipeline);
  }

  /** Where the parts of the pipeline stand: in the middle of what can be seen of the stage. */
  pipelinePlaces() {
    const seen = this.scroller.clientWidth || this.width;
    const span = Math.min(seen, 760);
    const left = clamp(this.scroller.scrollLeft, 0, this.width - seen) + (seen - span) / 2;
    const narrow = span < 480;
    return {
      s: left + span * (narrow ? 0.1 : 0.12), c: left + span * (narrow ? 0.33 : 0.4),
      box: left + span * (narrow ? 0.6 : 0.66), word: left + span * (narrow ? 0.87 : 0.89), narrow, span,
    };
  }

  /** How far each part of the frame's step has come, from 0 to 1. */
  amounts() {
    const peeking = this.peek !== null;
    const step = peeking ? this.peek : this.current.step;
    const encoded = this.current.phase === "encode" && !peeking ? this.current.place + ease(this.progress) : this.record.source_tokens.length;
    const amounts = { step, encoded, vector: 0 };
    const here = step < 0 ? -1 : this.phases.indexOf(this.current.phase);
    this.phases.forEach((phase, place) => {
      amounts[phase] = peeking || place < here ? 1 : place === here ? ease(this.progress) : 0;
    });
    if (this.record.vector) amounts.vector = step >= 0 ? 1 : this.current.phase === "vector" ? ease(this.progress) : 0;
    return amounts;
  }

  draw() {
    if (!this.places) return;
    const amounts = this.amounts();
    const { step } = amounts;
    const at = this.pipelinePlaces();
    const weights = step >= 0 && this.record.heads ? this.weights(step) : null;
    this.drawPlaces(amounts, weights, at);
    this.drawNodes(amounts, at);
    this.drawWord(amounts, at);
    this.paintText(amounts, weights);
    this.fillCandidates(step);
    this.slider.value = this.frame;
    this.slider.setAttribute("aria-valuetext", this.describe());
    this.stage.setAttribute("aria-label", this.describe());
  }

  /** Encoder states, score and weight bars, and the streams into the context. */
  drawPlaces(amounts, weights, at) {
    const { barsTop, barsBottom, stateY } = HEIGHT;
    const scores = weights ? this.scores(amounts.step) : null;
    const finite = scores ? scores.filter((score) => score !== null) : [];
    const largest = Math.max(...finite.map(Math.abs), 1e-9);
    const middle = (barsTop + barsBottom) / 2;
    const best = weights ? weights.indexOf(Math.max(...weights)) : -1;
    const asWeight = amounts.weights ?? 0;
    this.axis.style.opacity = weights ? Math.max(asWeight, 0.001) : 0;
    this.places.forEach((place, number) => {
      const shown = clamp(amounts.encoded - number, 0, 1);
      set(place.state, { transform: `translate(0 ${mix(10, 0, shown)})`, opacity: shown });
      place.text.style.opacity = mix(0.35, 1, shown);
      const x = this.x[number];
      if (!weights) {
        this.drawFixed(place, x, amounts, at);
        return;
      }
      const weight = weights[number];
      const score = scores[number] === null ? 0 : scores[number] / largest;
      const grown = amounts.scores * score * 25;
      const top = mix(Math.min(middle, middle - grown), barsBottom - weight * (barsBottom - barsTop), asWeight);
      const bottom = mix(Math.max(middle, middle - grown), barsBottom, asWeight);
      set(place.bar, { y: top, height: Math.max(0, bottom - top) });
      place.bar.style.opacity = amounts.scores;
      place.bar.style.setProperty("--share", `${100 * asWeight}%`);
      this.drawValue(place, { number, weight, score: scores[number], top, bottom, asWeight, grown, best, amounts });
      this.drawStream(place, { x, weight, top: barsBottom - weight * (barsBottom - barsTop), at, amount: amounts.context, moving: this.isMoving("context") });
      const reach = this.isMoving("scores") ? Math.sin(Math.PI * clamp(this.progress, 0, 1)) : 0;
      set(place.query, { x1: at.s, y1: stateY + 19, x2: mix(at.s, x, Math.min(1, 2 * this.progress)), y2: mix(stateY + 19, middle, Math.min(1, 2 * this.progress)) });
      place.query.style.opacity = 0.55 * reach;
      const lit = weight * asWeight;
      place.box.style.setProperty("--lit", `${(100 * lit).toFixed(1)}%`);
          });
  }

  drawFixed(place, x, amounts, at) {
    place.bar.style.opacity = place.query.style.opacity = 0;
    place.value.textContent = "";
    place.box.style.setProperty("--lit", "0%");
    const uses = this.record.context === "pooled" || x === this.x.at(-1);
    this.drawStream(place, {
      x, weight: uses ? 0.35 : 0, top: HEIGHT.cellTop - 4, at, amount: amounts.vector, moving: this.isMoving("vector"),
    });
  }

  isMoving(phase) { return this.peek === null && this.current.phase === phase && this.progress < 1; }

  drawValue(place, { number, weight, score, top, bottom, asWeight, grown, best, amounts }) {
    const roomy = this.cell >= 34;
    const ofWeight = asWeight >= 0.5;
    const wanted = ofWeight ? weight >= (roomy ? 0.03 : 0.12) : roomy || number === best;
    const text = !wanted || amounts.scores < 0.4 ? "" : ofWeight ? `${Math.round(100 * weight)}` : score === null ? "–" : fixed(score, 1);
    place.value.textContent = text;
    set(place.value, { y: !ofWeight && grown < 0 ? bottom + 11 : top - 5 });
    place.value.classList.toggle("rp-strong", ofWeight && number === best);
    place.value.style.opacity = ofWeight ? 2 * asWeight - 1 : clamp(amounts.scores * (1 - 2 * asWeight), 0, 1);
  }

  /** The share of one encoder state on its way into the context. */
  drawStream(place, { x, weight, top, at, amount, moving }) {
    const endY = HEIGHT.contextY + 19;
    const bend = (top + endY) / 2;
    const visibleEnough = weight >= 0.01;
    // Not through the number over the bar.
    if (place.value.textContent) top -= 17;
    set(place.curve, { d: `M${x} ${top} C${x} ${bend} ${at.c} ${bend} ${at.c} ${endY}`, "stroke-width": 0.8 + 6.5 * weight });
    place.curve.style.strokeDasharray = `${amount} 2`;
    place.curve.style.opacity = visibleEnough && amount > 0 ? 0.22 + 0.55 * weight : 0;
    const t = amount;
    const bezier = (p0, p1, p2, p3) => (1 - t) ** 3 * p0 + 3 * (1 - t) ** 2 * t * p1 + 3 * (1 - t) * t * t * p2 + t ** 3 * p3;
    set(place.dot, { cx: bezier(x, x, at.c, at.c), cy: bezier(top, bend, bend, endY), r: 2 + 5 * Math.sqrt(weight) });
    place.dot.style.opacity = moving && visibleEnough ? 0.9 : 0;
  }

  /** s_t, c_t, and [s_t; c_t] on its way through the feed-forward layer. */
  drawNodes(amounts, at) {
    const { stateY, contextY, boxY } = HEIGHT;
    const { step } = amounts;
    const one = step >= 0 ? this.hypothesis.steps[step] : null;
    const t = step < 0 ? "" : sub(step + 1);
    const single = !this.record.heads;
    const has = { s: one ? amounts.state : 0, c: single ? amounts.vector : amounts.context ?? 0 };
    // With attention before the cell, the query of a step is the state of the one before.
    const queries = this.record.attends === "before" && one && !single;
    const stateShown = queries ? Math.max(has.s, 0.75) : has.s;
    set(this.stateNode, { transform: `translate(${at.s} ${stateY})` });
    set(this.contextNode, { transform: `translate(${at.c} ${contextY})` });
    this.stateNode.style.setProperty("--on", stateShown);
    this.contextNode.style.setProperty("--on", has.c);
    this.stateNode.lastChild.textContent = queries && has.s < 0.5 ? `s${sub(step)}` : `s${t}`;
    this.contextNode.lastChild.textContent = single ? "c" : `c${t}`;
    const before = step > 0 ? `after ${short(this.target(step - 1), at.narrow ? 6 : 14)}` : step === 0 ? "first step" : "";
    this.stateNote.textContent = before;
    set(this.stateNote, { x: at.s, y: stateY + 36 });
    const norm = one && one.context_norm !== null ? `length ${one.context_norm.toFixed(1)}` : "";
    this.contextNote.textContent = has.c > 0.9 && !at.narrow ? norm : "";
    set(this.contextNote, { x: at.c + 26, y: contextY + 20, "text-anchor": "start" });
    set(this.box, { transform: `translate(${at.box} ${boxY})` });
    const edge = at.box - 46;
    set(this.links.s, { d: `M${at.s + 20} ${stateY} C${mix(at.s, edge, 0.5)} ${stateY} ${mix(at.s, edge, 0.6)} ${boxY - 13} ${edge} ${boxY - 13}` });
    set(this.links.c, { d: `M${at.c + 20} ${contextY} C${mix(at.c, edge, 0.7)} ${contextY} ${mix(at.c, edge, 0.7)} ${boxY + 13} ${edge} ${boxY + 13}` });
    set(this.links.word, { d: `M${at.box + 46} ${boxY} L${at.word} ${boxY}` });
    set(this.links.back, { d: queries ? `M${at.c - 19} ${contextY} C${mix(at.s, at.c, 0.4)} ${contextY} ${at.s + 8} ${contextY - 6} ${at.s + 6} ${stateY + 19}` : "M0 0" });
    const moving = this.isMoving("combine");
    const going = Math.min(1, 1.6 * (amounts.combine ?? 0));
    this.move(this.movers.s, this.links.s, going, moving && going < 1);
    this.move(this.movers.c, this.links.c, going, moving && going < 1);
    const filled = step < 0 ? 0 : clamp(1.6 * (moving ? ease(this.progress) : amounts.combine) - 0.6, 0, 1);
    this.box.style.setProperty("--on", filled);
    this.box.lastChild.textContent = step < 0 ? "[s; c]" : `[s${t}; c${single ? "" : t}]`;
  }

  move(dot, path, share, shown) {
    dot.style.opacity = shown ? 1 : 0;
    if (!shown || !path.getTotalLength) return;
    const point = path.getPointAtLength(path.getTotalLength() * share);
    set(dot, { cx: point.x, cy: point.y });
  }

  /** The word comes out. */
  drawWord(amounts, at) {
    const { boxY } = HEIGHT;
    const { step } = amounts;
    const out = step < 0 ? 0 : amounts.word;
    const text = step < 0 ? "" : short(this.target(step), at.narrow ? 7 : 12);
    const width = Math.min(Math.max(40, widthOf(text) + 24), at.narrow ? 92 : 150);
    set(this.wordPill, { transform: `translate(${mix(at.box + 30, at.word, out)} ${boxY}) scale(${mix(0.6, 1, out)})`, opacity: out });
    set(this.wordPill.firstChild, { x: -width / 2, width });
    this.wordPill.lastChild.textContent = text;
    this.wordNote.textContent = out > 0.9 ? percent(Math.exp(this.hypothesis.steps[step].log_prob)) : "";
    set(this.wordNote, { x: at.word, y: boxY + 34 });
  }

  /** The lines of source and output, and the rows of the matrix. */
  paintText(amounts, weights) {
    const step = this.current.step;
    const done = step < 0 ? 0 : this.current.phase === "word" && this.progress > 0.5 ? step + 1 : step;
    const column = this.column;
    const asWeight = amounts.weights ?? 0;
    this.sourceChips.forEach((chip, place) => {
      const light = weights && column === null ? weights[place] * asWeight : place === column ? 1 : 0;
      chip.style.setProperty("--w", light.toFixed(3));
      chip.classList.toggle("rp-ghost", amounts.encoded <= place);
    });
    this.targetChips.forEach((chip, place) => {
      const ofColumn = column === null || !this.record.heads ? 0 : this.weights(place)[column];
      chip.style.setProperty("--w", ofColumn.toFixed(3));
      chip.classList.toggle("rp-ghost", place >= done);
      chip.classList.toggle("rp-current", place === amounts.step);
      if (place === amounts.step) chip.setAttribute("aria-current", "step");
      else chip.removeAttribute("aria-current");
    });
    for (const { line, steps } of this.matrixRows) {
      line.classList.toggle("rp-undone", !steps.some((one) => one < done));
      line.classList.toggle("rp-here", steps.includes(amounts.step));
    }
  }

  // What the person does ----------------------------------------------------------------------------------

  lightStep(step) {
    if (this.peek === step) return;
    this.peek = step;
    this.draw();
    this.say();
  }

  lightColumn(place) {
    this.column = place;
    this.draw();
  }

  onKey(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { target, key } = event;
    if (target.matches("select, input[type=checkbox]") && key !== "Home" && key !== "End") return;
    const inTable = target.matches(".rp-table-scroll") && target.scrollWidth > target.clientWidth;
    const actions = {
      " ": target.matches("button") ? null : () => (this.playing ? this.pause() : this.play()),
      ArrowRight: inTable ? null : () => this.next(),
      ArrowLeft: inTable ? null : () => this.previous(),
      ArrowDown: () => this.jump(1),
      ArrowUp: () => this.jump(-1),
      Home: () => { this.pause(); this.goTo("start"); },
      End: () => { this.pause(); this.goTo("end"); },
    };
    if (!actions[key]) return;
    event.preventDefault();
    actions[key]();
  }

  /** Go by whole words. */
  jump(by) {
    this.pause();
    const { step, phase } = this.current;
    const to = by < 0 && phase !== this.phases[0] && step >= 0 ? step : step + by;
    if (to < 0) this.goTo("start");
    else if (to >= this.hypothesis.steps.length) this.goTo("end");
    else this.goTo({ step: to, phase: by < 0 ? this.phases[0] : "word" });
  }

  play() {
    if (this.playing) return;
    if (this.frame >= this.frames.length - 1 && this.progress >= 1) {
      this.frame = 0;
      this.progress = 0;
    }
    this.setPlaying(true);
    this.run(true);
  }

  pause() {
    if (!this.playing) return;
    this.setPlaying(false);
    this.progress = 1;
    cancelAnimationFrame(this.timer);
    this.draw();
    this.announce();
  }

  setPlaying(playing) {
    this.playing = playing;
    const name = playing ? "Pause" : "Play";
    this.playButton.setAttribute("aria-label", name);
    this.playButton.title = name;
    this.playButton.querySelector("path").setAttribute("d", ICONS[playing ? "pause" : "play"]);
    this.caption.setAttribute("aria-live", playing ? "off" : "polite");
    this.root.classList.toggle("rp-playing", playing);
  }

  /** Move through the frame, and while playing through those after it. */
  run() {
    cancelAnimationFrame(this.timer);
    let last = null;
    let rest = 0;
    this.announce();
    this.follow();
    const tick = (now) => {
      const passed = last === null ? 0 : Math.min(now - last, 100);
      last = now;
      const length = MILLISECONDS[this.current.phase] / this.speed;
      const before = this.progress;
      this.progress = this.motion.matches ? 1 : Math.min(1, this.progress + passed / length);
      if (this.progress !== before || before < 1) this.draw();
      if (this.progress >= 1) {
        if (!this.playing) return;
        rest += passed;
        const still = length * (this.motion.matches ? 1 + REST : this.current.phase === "encode" ? 0.1 : REST);
        if (rest >= still) {
          if (this.frame >= this.frames.length - 1) {
            this.pause();
            return;
          }
          this.frame += 1;
          this.progress = 0;
          rest = 0;
          this.announce();
          this.follow();
        }
      }
      this.timer = requestAnimationFrame(tick);
    };
    this.timer = requestAnimationFrame(tick);
  }

  next() {
    this.pause();
    if (this.frame >= this.frames.length - 1) return;
    this.frame += 1;
    this.progress = this.motion.matches ? 1 : 0;
    this.draw();
    this.run();
  }

  previous() {
    this.pause();
    if (this.frame > 0) this.goTo(this.frame - 1);
  }

  goTo(position) {
    let frame = position;
    if (position === "start") frame = 0;
    else if (position === "end") frame = this.frames.length - 1;
    else if (position && typeof position === "object") {
      const phase = position.phase ?? "word";
      frame = this.frames.findIndex((one) => one.step === position.step && one.phase === phase);
    }
    if (!Number.isInteger(frame) || frame < 0 || frame >= this.frames.length) {
      throw new RangeError(`there is no frame ${JSON.stringify(position)}: frames go from 0 to ${this.frames.length - 1}`);
    }
    this.frame = frame;
    this.progress = 1;
    this.peek = null;
    if (!this.playing) cancelAnimationFrame(this.timer);
    this.draw();
    this.announce();
    this.follow();
  }

  /** Keep what happens in sight where the source is wider than the stage. */
  follow(how = "smooth") {
    const room = this.scroller.clientWidth;
    if (this.width <= room) return;
    const { phase, step, place } = this.current;
    const weights = step >= 0 && this.record.heads ? this.weights(step) : null;
    const at = phase === "encode" ? place : weights ? weights.indexOf(Math.max(...weights)) : null;
    if (at === null) return;
    const left = clamp(this.x[at] - room / 2, 0, this.width - room);
    this.scroller.scrollTo({ left, behavior: this.motion.matches || phase === "encode" ? "auto" : how });
  }

  /** Say what a frame shows. */
  describe(frame = this.current) {
    const { phase, step, place } = frame;
    const n = step + 1;
    if (phase === "encode") return `The encoder reads ${named(this.source(place))} and gives the state h${sub(place + 1)}.`;
    if (phase === "vector") return "The whole source is put into one vector c; the decoder sees nothing else of it.";
    const one = this.hypothesis.steps[step];
    const weights = this.record.heads ? this.weights(step) : null;
    const best = weights ? weights.indexOf(Math.max(...weights)) : -1;
    const c = this.record.heads ? `c${sub(n)}` : "c";
    const after = step ? `after ${quoted(this.target(step - 1))}` : "at the beginning";
    const before = this.record.attends === "before";
    const query = `s${sub(before ? step : n)}`;
    const prob = percent(Math.exp(one.log_prob));
    const texts = {
      state: !this.record.heads
        ? `The decoder’s state ${after} is s${sub(n)}.`
        : before ? `The cell takes the context in and makes the state s${sub(n)}.` : `The decoder’s state ${after} is s${sub(n)}; it is the query.`,
      scores: () => {
        const scores = this.scores(step);
        const top = scores.indexOf(Math.max(...scores.filter((score) => score !== null)));
        return `How well each encoder state answers ${query}: the highest is ${fixed(scores[top], 1)}, of ${quoted(this.source(top))}.`;
      },
      weights: () => `The ${this.record.normaliser} makes weights of the scores, which sum to 1: ${quoted(this.source(best))} has ${percent(weights[best])}.`,
      context: `The sum of the encoder states, each times its weight, is the context ${c}.`,
      combine: `[s${sub(n)}; ${c}] goes through the feed-forward layer.`,
      word: this.hypothesis.origin === "target"
        ? `The given word ${n} is ${quoted(this.target(step))}: the model gives it ${prob}, place ${one.rank}.`
        : `Out comes word ${n} of ${this.frames.at(-1).step + 1}, ${quoted(this.target(step))}, with a probability of ${prob}.`,
    };
    const text = texts[phase];
    return typeof text === "function" ? text() : text;
  }

  /** The caption tells what the stage shows: the frame, or the word that is pointed at. */
  say() {
    const frame = this.peek === null ? this.current : { phase: "word", step: this.peek };
    this.caption.replaceChildren(html("b", {}, NAMES[frame.phase]), ` ${this.describe(frame)}`);
  }

  announce() {
    const { phase, step } = this.current;
    this.say();
    const detail = { frame: this.frame, frames: this.frames.length, step, phase };
    this.container.dispatchEvent(new CustomEvent("regard:frame", { detail, bubbles: true }));
  }

  destroy() {
    this.setPlaying(false);
    cancelAnimationFrame(this.timer);
    this.observer.disconnect();
    this.container.replaceChildren();
  }
}

/** Mount a player; see the head of this file. */
export function createPlayer(container, record, options = {}) {
  const player = new Player(container, record, options);
  return {
    play: () => player.play(),
    pause: () => player.pause(),
    next: () => player.next(),
    previous: () => player.previous(),
    goTo: (position) => player.goTo(position),
    destroy: () => player.destroy(),
  };
}
