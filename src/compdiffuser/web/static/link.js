// The whole state of the page, to and from the part of an address that never leaves the browser.

import { parse } from "./shapes.js";

export const USUAL = { chunks: "auto", candidates: 64, order: "autoregressive", steps: 10, repeats: 8, seed: 0 };
const MOST = 2 ** 31 - 1;
const MOST_NUMBERS = 64; // of a state
const [MOST_STOPS, MOST_REGIONS, MOST_PLANS] = [16, 32, 4];
const whole = (text, least) => (/^\d{1,10}$/.test(text) && Number(text) >= least && Number(text) <= MOST ? Number(text) : null);
const numbers = (text) => {
  const found = (text ?? "").split(",").map((part) => (part.trim() ? Number(part) : NaN));
  return found.length <= MOST_NUMBERS && found.every(Number.isFinite) ? found : null;
};

export function encode({ model, start, goal, via, avoid, plans, way, axes, a, b, compare, planned }) {
  const side = (s) => [s.chunks, s.candidates, s.order, s.steps, s.repeats, s.seed].join(",");
  const parts = { model, start: start.join(","), goal: goal.join(","), a: side(a) };
  if (axes) parts.axes = axes.join(",");
  if (compare) parts.b = side(b);
  if (via.length) parts.via = via.map((point) => point.join(",")).join(";");
  if (avoid.length) parts.avoid = avoid.join(";");
  if (plans > 1) parts.plans = plans;
  if (planned) parts.planned = "1";
  if (planned && way > 1) parts.way = way;
  const plain = (text) => encodeURIComponent(text).replace(/%(2C|3A|3B)/g, decodeURIComponent);
  return "#" + Object.entries(parts).map(([key, value]) => `${key}=${plain(value)}`).join("&");
}

/** What a link says; what is missing or broken is left out. */
export function decode(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = {};
  if (given.get("model")) state.model = given.get("model");
  for (const end of ["start", "goal"]) {
    const point = numbers(given.get(end));
    if (point) state[end] = point;
  }
  const axes = (given.get("axes") ?? "").split(",").map((part) => whole(part, 0));
  if (axes.length === 2 && axes.every((axis) => axis !== null && axis < MOST_NUMBERS)) state.axes = axes;
  for (const key of ["a", "b"]) {
    const settings = side(given.get(key));
    if (settings) state[key] = settings;
  }
  state.via = (given.get("via") ?? "").split(";").map(numbers).filter((point) => point?.length === 2).slice(0, MOST_STOPS);
  state.avoid = (given.get("avoid") ?? "").split(";").filter(parse).slice(0, MOST_REGIONS);
  state.plans = Math.min(whole(given.get("plans") ?? "", 1) ?? 1, MOST_PLANS);
  state.way = whole(given.get("way") ?? "", 1) ?? 1;
  state.compare = given.has("b");
  state.planned = given.get("planned") === "1";
  return state;
}

function side(text) {
  if (!text) return null;
  const [chunks, candidates, order, steps, repeats, seed] = text.split(",");
  const found = {
    chunks: chunks === "auto" ? "auto" : whole(chunks, 1),
    candidates: whole(candidates ?? "", 1),
    order: /^[\w-]{1,64}$/.test(order ?? "") ? order : null,
    steps: whole(steps ?? "", 1),
    repeats: whole(repeats ?? "", 1),
    seed: whole(seed ?? "", 0),
  };
  return Object.fromEntries(Object.entries(USUAL).map(([key, usual]) => [key, found[key] ?? usual]));
}
