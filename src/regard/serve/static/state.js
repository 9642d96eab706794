/** The state of the page in the fragment of its address, so that a link shows what was seen. */

/** Read model, beam, source, hypothesis (from 0) and frame; what is missing is null. */
export function readState() {
  const found = new URLSearchParams(location.hash.slice(1));
  const number = (name) => {
    const value = Number.parseInt(found.get(name) ?? "", 10);
    return Number.isFinite(value) && value >= 0 ? value : null;
  };
  return { model: found.get("model"), beam: number("beam"), source: found.get("q"), hypothesis: number("hypothesis"), frame: number("frame") };
}

/** The fragment of a state; what is null or the default is left out. */
export function fragment({ model, beam, source, hypothesis, frame }) {
  const made = new URLSearchParams();
  if (source) made.set("q", source);
  if (model) made.set("model", model);
  if (beam) made.set("beam", beam);
  if (hypothesis) made.set("hypothesis", hypothesis);
  if (frame !== null && frame !== undefined) made.set("frame", frame);
  return `#${made}`;
}
