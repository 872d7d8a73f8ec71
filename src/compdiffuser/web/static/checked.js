// What a plan from a file must be, so that the page can show it and plan it again.

const MOST_BYTES = 32 * 2 ** 20;
const MOST = { n_chunks: 1024, horizon: 4096, states: 100_000, candidates: 2048 };
const whole = (value, least, most) => Number.isInteger(value) && value >= least && value <= most;
const maybe = (value, test) => value === undefined || value === null || test(value);
const text = (value) => typeof value === "string" && value.length <= 10_000;
const near = (value) => Number.isFinite(value) && Math.abs(value) < 1e6;
const point = (state) => Array.isArray(state) && state.length >= 2 && state.length <= 64 && state.every(near);
const path = (states, most) => Array.isArray(states) && states.length > 0 && states.length <= most && states.every(point);

function candidate(made) {
  return whole(made?.n_chunks, 1, MOST.n_chunks) && maybe(made.score, Number.isFinite) && maybe(made.origin, text) && path(made.path, 10_000)
    && maybe(made.failed, (list) => Array.isArray(list) && list.length <= 16 && list.every((piece) => text(piece?.test) && path(piece.path, 1000)))
    && maybe(made.measures, measures);
}

function other(made, { horizon, overlap }) {
  return whole(made?.n_chunks, 1, MOST.n_chunks) && path(made.states, MOST.states) && made.states.length === made.n_chunks * (horizon - overlap) + overlap
    && near(made.length) && maybe(made.way, (value) => whole(value, 1, 64)) && maybe(made.candidates, (list) => Array.isArray(list) && list.length <= MOST.candidates && list.every(candidate))
    && maybe(made.verdict?.measures, measures) && (made.verdict?.measures == null || texts(made.verdict.failed)) && ["why", "origin", "fault"].every((key) => maybe(made[key], text));
}

const texts = (list) => Array.isArray(list) && list.every(text);
const measures = (given) => typeof given === "object" && Object.values(given).every((share) => share === null || Number.isFinite(share));

function options(given) {
  const settings = ["candidates", "steps", "repeats"].every((key) => maybe(given[key], (value) => whole(value, 1, 2 ** 31 - 1)));
  const chunks = maybe(given.chunks, (value) => value === "auto" || whole(value, 1, MOST.n_chunks));
  return settings && chunks && maybe(given.seed, (value) => whole(value, 0, 2 ** 31 - 1)) && maybe(given.wave, (value) => whole(value, 1, 2 ** 31 - 1))
    && maybe(given.order, (value) => /^[\w-]{1,64}$/.test(value));
}

/** Whether the numbers of a plan agree with each other, and nothing in it is of another kind than the page expects. */
export function sound(plan) {
  if (typeof plan !== "object" || plan === null || !text(plan.model)) return false;
  const { n_chunks: count, horizon, overlap, states } = plan;
  const sizes = whole(count, 1, MOST.n_chunks) && whole(horizon, 2, MOST.horizon) && whole(overlap, 0, horizon - 1);
  return sizes && path(states, MOST.states) && states.length === count * (horizon - overlap) + overlap
    && point(plan.start) && point(plan.goal)
    && ["length", "confidence", "seconds"].every((key) => near(plan[key])) && maybe(plan.score, Number.isFinite)
    && maybe(plan.candidates, (list) => Array.isArray(list) && list.length <= MOST.candidates && list.every(candidate))
    && ["origin", "fault", "why", "verdict.told", "reproduce.python", "reproduce.shell"].every((key) => maybe(key.split(".").reduce((value, part) => value?.[part], plan), text))
    && maybe(plan.verdict?.measures, measures) && (plan.verdict?.measures == null ? maybe(plan.verdict?.failed, texts) : texts(plan.verdict.failed))
    && ["via", "avoid"].every((key) => maybe(plan[key], (list) => Array.isArray(list) && list.length <= 64 && list.every(text)))
    && maybe(plan.way, (value) => whole(value, 1, 64)) && maybe(plan.others, (list) => Array.isArray(list) && list.length <= 8 && list.every((made) => other(made, plan)))
    && maybe(plan.options, options);
}

/** A sentence where a file is too large to be read; null where it is not. */
export const tooLarge = ({ size }) => (size > MOST_BYTES ? `A plan has at most ${MOST_BYTES / 2 ** 20} MB, this file has ${Math.ceil(size / 2 ** 20)} MB.` : null);
