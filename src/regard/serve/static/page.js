/** The page: a source, its outputs, and the player that shows how they came about. */

import { createPlayer } from "/static/player/player.js";
import { ask, useKey } from "/static/api.js";
import { fragment, readState } from "/static/state.js";
import { themeButton } from "/static/theme-button.js";

const PAUSE = 450; // milliseconds without a key after which the source is decoded

const node = (id) => document.getElementById(id);
const [form, source, model, beam, output, trouble, notes] = ["ask", "source", "model", "beam", "output", "trouble", "notes"].map(node);

let models = [];
let limits = null;
let running = null; // the AbortController of the request under way
let timer = null;
let record = null;
let player = null;
let chosen = 0;
let frame = null;
let wantedFrame = null;

const modelNow = () => models.find((one) => one.name === model.value) ?? models[0];
const chance = (score) => {
  const value = 100 * Math.exp(score);
  return value >= 99.95 ? "100 %" : value >= 10 ? `${value.toFixed(0)} %` : value >= 0.1 ? `${value.toFixed(1)} %` : "< 0.1 %";
};

// Settings ---------------------------------------------------------------------------------------------------

async function begin() {
  try {
    const answer = await ask("/v1/models");
    ({ models, limits } = answer);
  } catch (error) {
    if (error.status === 401) askForKey();
    else complain(error);
    return;
  }
  node("key-form").hidden = true;
  if (!models.length) {
    complain(new Error("This server has models of journeys only: POST /v1/journeys, described at /docs."));
    form.querySelectorAll("input, textarea, select, button").forEach((one) => (one.disabled = true));
    return;
  }
  model.replaceChildren(...models.map(({ name }) => new Option(name, name)));
  node("model-choice").hidden = models.length < 2;
  beam.max = limits.max_beam;
  source.maxLength = limits.max_input_length;
  restore();
}

function askForKey() {
  node("key-form").hidden = false;
  node("key").focus();
}

function restore() {
  const state = readState();
  if (models.some((one) => one.name === state.model)) model.value = state.model;
  showModel();
  if (state.beam) beam.value = Math.min(state.beam, limits.max_beam);
  source.value = state.source ?? "";
  chosen = state.hypothesis ?? 0;
  wantedFrame = state.frame;
  if (source.value.trim()) run({ keep: true });
  else clear();
}

function showModel() {
  const now = modelNow();
  beam.value = now.beam;
  const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
  const name = (code) => {
    try {
      return code ? names.of(code) : "";
    } catch {
      return code;
    }
  };
  node("source-language").textContent = name(now.source_language);
  node("target-language").textContent = name(now.target_language);
  source.lang = now.source_language ?? "";
  output.lang = now.target_language ?? "";
  const size = now.parameters >= 1e6 ? `${(now.parameters / 1e6).toFixed(1)} million` : `${Math.round(now.parameters / 1e3)} thousand`;
  const sees = now.attention ? (now.heads > 1 ? `attention with ${now.heads} heads` : "attention") : `one vector (${now.context})`;
  node("about").textContent = `${now.name}: ${size} parameters, ${sees}, regard ${now.version}`;
}

// Asking -----------------------------------------------------------------------------------------------------

async function run({ keep = false } = {}) {
  clearTimeout(timer);
  running?.abort();
  if (!models.length) return;
  if (!source.value.trim()) {
    clear();
    return;
  }
  if (!beam.reportValidity()) return;
  if (!keep) [chosen, wantedFrame] = [0, null];
  const mine = (running = new AbortController());
  const width = Number(beam.value) || modelNow().beam;
  form.setAttribute("aria-busy", "true");
  try {
    const asked = { model: model.value, beam: width };
    const answer = await ask("/v1/predict", { ...asked, inputs: [source.value], nbest: width }, mine.signal);
    showOutputs(answer.predictions[0]);
    record = await ask("/v1/explain", { ...asked, input: source.value }, mine.signal);
    showPlayer();
    remember();
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
  } finally {
    if (running === mine) {
      running = null;
      form.removeAttribute("aria-busy");
    }
  }
}

function remember() {
  const state = { source: source.value, beam: Number(beam.value), model: models.length > 1 ? model.value : null, hypothesis: chosen };
  history.replaceState(null, "", fragment(state));
}

// Showing ----------------------------------------------------------------------------------------------------

function showOutputs(prediction) {
  const hypotheses = prediction.alternatives ?? [prediction];
  chosen = Math.min(chosen, hypotheses.length - 1);
  trouble.hidden = true;
  const said = [];
  if (prediction.unknown) said.push(`Not in the model’s vocabulary: ${prediction.unknown.join(" ")}`);
  if (prediction.finished === false) said.push("The output was cut at its longest length.");
  notes.textContent = said.join(" ");
  notes.hidden = !said.length;
  node("alternatives").hidden = hypotheses.length < 2;
  node("choices").replaceChildren(...hypotheses.map(choice));
  node("copy").hidden = node("link").hidden = false;
  showText(hypotheses[chosen]);
}

function choice(hypothesis, place) {
  const label = document.createElement("label");
  const input = Object.assign(document.createElement("input"), { type: "radio", name: "hypothesis", value: place, checked: place === chosen });
  const text = Object.assign(document.createElement("span"), { className: "text", dir: "auto", textContent: hypothesis.text || "(empty)" });
  text.lang = output.lang;
  const bar = Object.assign(document.createElement("i"), { ariaHidden: "true" });
  bar.style.setProperty("--share", Math.exp(hypothesis.score));
  const value = Object.assign(document.createElement("span"), { className: "value", textContent: chance(hypothesis.score) });
  value.title = `log-probability ${hypothesis.score.toFixed(3)}`;
  label.append(input, text, bar, value);
  input.addEventListener("change", () => {
    chosen = place;
    showText(hypothesis);
    if (record) showPlayer();
    remember();
  });
  return label;
}

function showText({ text }) {
  output.textContent = text || "(empty output)";
  output.classList.toggle("empty", !text);
}

function showPlayer() {
  player?.destroy();
  node("shown").hidden = false;
  // One hypothesis at a time: which one is chosen above, beside the others.
  const hypothesis = record.hypotheses[Math.min(chosen, record.hypotheses.length - 1)];
  player = createPlayer(node("player"), { ...record, hypotheses: [hypothesis] });
  if (wantedFrame !== null) player.goTo(wantedFrame);
  wantedFrame = null;
}

function clear() {
  player?.destroy();
  [player, record, frame] = [null, null, null];
  node("player").replaceChildren();
  output.textContent = "The output, and how it came about, are shown here.";
  output.classList.add("empty");
  for (const id of ["shown", "alternatives", "copy", "link", "trouble", "notes"]) node(id).hidden = true;
}

function complain(error) {
  clear();
  output.textContent = "";
  trouble.textContent = error.message;
  trouble.hidden = false;
  if (error.status === 401) askForKey();
}

async function copy(text, button) {
  const name = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  node("said").textContent = button.textContent;
  setTimeout(() => { button.textContent = name; }, 1500);
}

// Events -----------------------------------------------------------------------------------------------------

form.addEventListener("submit", (event) => {
  event.preventDefault();
  run();
});
source.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(run, PAUSE);
});
source.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    run();
  }
});
model.addEventListener("change", () => { showModel(); run(); });
beam.addEventListener("change", () => run());
node("player").addEventListener("regard:frame", (event) => { frame = event.detail.frame; });
node("copy").addEventListener("click", (event) => copy(output.textContent, event.currentTarget));
node("link").addEventListener("click", (event) => {
  const state = { source: source.value, beam: Number(beam.value), model: models.length > 1 ? model.value : null, hypothesis: chosen, frame };
  const address = new URL(fragment(state), location.href);
  history.replaceState(null, "", address);
  copy(address.href, event.currentTarget);
});
node("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(node("key").value.trim());
  begin();
});
addEventListener("hashchange", restore);

themeButton(node("theme"));
begin();
