// The page: one state, two panes at most, and the controls that change them.

import * as api from "./api.js";
import { askForToken } from "./door.js";
import { Sentence, hint, hush, told, warn } from "./hint.js";
import { USUAL, decode, encode } from "./link.js";
import { Maze, rounded } from "./maze.js";
import { Pane } from "./pane.js";
import { describe, showResult } from "./result.js";
import { setUpSharing } from "./sharing.js";
import { setUpTheme } from "./theme.js";

const $ = (id) => document.getElementById(id);
const SETTINGS = ["chunks", "candidates", "order", "steps", "repeats", "seed"];
const state = { model: "", start: [0, 0], goal: [0, 0], a: { ...USUAL }, b: { ...USUAL, order: "parallel" }, compare: false, planned: false };
let offer = null; // what the server has: models, orders, limits
let side = "a"; // whose settings are shown
let running = null; // what is under way: how to stop it, and a promise of its end

const panes = { a: new Pane("A", { move: place, hint }), b: new Pane("B", { move: place, hint }) };
const shown = () => (state.compare ? [panes.a, panes.b] : [panes.a]);
const sides = () => (state.compare ? ["a", "b"] : ["a"]);
const model = () => offer.models.find(({ name }) => name === state.model);

function remember() {
  history.replaceState(null, "", encode(state));
}

/** Put the start or the goal somewhere; plans made for another place are forgotten. */
function place(end, point) {
  running?.stop.abort();
  hush();
  state[end] = point;
  forgetPlans();
  showEnds();
}

function showEnds() {
  for (const end of ["start", "goal"]) {
    ["x", "y"].forEach((axis, i) => { $(`${end}-${axis}`).value = state[end][i]; });
    for (const pane of Object.values(panes)) pane.marks.show(end, state[end]);
  }
}

function forgetPlans() {
  for (const pane of Object.values(panes)) pane.forget();
  state.planned = false;
  remember();
  refresh();
}

/** Bring buttons and results in line with the state. */
function refresh() {
  const pane = panes[side];
  const busy = running !== null;
  $("plan").textContent = busy ? "Stop" : "Plan";
  $("another").disabled = busy;
  $("again").disabled = busy || !pane.plan;
  $("drive").disabled = busy || !pane.plan || !model()?.drivable;
  for (const button of document.querySelectorAll("[data-export]")) button.disabled = !pane.plan;
  $("result-title").textContent = state.compare ? `Result of ${side.toUpperCase()}` : "Result";
  showResult(pane, $("result"));
  $("lines").hidden = !pane.plan;
  for (const language of ["python", "shell"]) $(language).textContent = pane.plan?.reproduce?.[language] ?? "";
}

function showSettings() {
  for (const name of SETTINGS) $(name).value = state[side][name];
  for (const button of document.querySelectorAll("[data-side]")) button.setAttribute("aria-pressed", String(button.dataset.side === side));
}

function showTitles() {
  panes.a.title.textContent = state.compare ? `A: ${state.a.order}` : "Plan";
  panes.b.title.textContent = `B: ${state.b.order}`;
}

function showCompare() {
  $("compare").setAttribute("aria-pressed", String(state.compare));
  $("sides").hidden = !state.compare;
  if (!state.compare) side = "a";
  $("panes").className = state.compare ? "panes two" : "panes";
  $("panes").replaceChildren(...shown().map((pane) => pane.root));
  showTitles();
  showSettings();
  refresh();
}

function showModel() {
  const { maze, max_chunks: most } = model();
  const layout = new Maze(maze);
  for (const pane of Object.values(panes)) pane.setMaze(layout);
  const counts = Array.from({ length: Math.min(offer.limits.chunks, 2 * most) }, (_, k) => k + 1);
  $("chunks").replaceChildren(new Option("automatic", "auto"), ...counts.map((k) => new Option(k, k)));
  for (const name of ["candidates", "steps", "repeats"]) $(name).max = offer.limits[name];
  $("model").value = state.model;
  for (const settings of [state.a, state.b]) {
    if (settings.chunks > counts.length) settings.chunks = "auto";
    if (!offer.orders.includes(settings.order)) settings.order = USUAL.order;
  }
}

function problem(settings) {
  return { model: state.model, start: state.start.join(","), goal: state.goal.join(","), wave: offer.wave, ...settings };
}

/** Stop what is under way, and wait until it has cleaned up. */
async function halt() {
  while (running) {
    running.stop.abort();
    await running.ended;
  }
}

/** Run a task while the buttons say so, after the one before has ended; a second press of Plan stops it. */
async function busy(task) {
  await halt();
  const own = { stop: new AbortController() };
  running = own;
  hush();
  refresh();
  own.ended = task(own.stop.signal)
    .catch((error) => { if (error.name !== "AbortError") warn(told(error)); })
    .finally(() => {
      if (running === own) running = null;
      refresh();
    });
  await own.ended;
}

/** What all came to, once each of them has ended; where some failed, the first failure. */
async function all(promises) {
  const ends = await Promise.allSettled(promises);
  const failed = ends.find(({ status }) => status === "rejected");
  if (failed) throw failed.reason;
  return ends.map(({ value }) => value);
}

async function plan(wave = {}) {
  if (!$("form").reportValidity() || ["start", "goal"].some((end) => refuse(end, state[end]))) return;
  await busy(async (signal) => {
    const keys = sides();
    state.planned = false;
    const plans = await all(keys.map((key) => panes[key].run(problem({ ...state[key], ...wave[key] }), signal)));
    state.planned = plans.every(Boolean);
    remember();
    if (state.planned) hint(keys.map((key) => describe(state.compare ? `Plan ${key.toUpperCase()}` : "The plan", panes[key].plan)).join(" "));
  });
}

/** The plans that are shown once more, whatever the settings say by now. */
async function again() {
  const wave = {};
  for (const key of sides()) {
    const options = panes[key].plan?.options;
    if (!options) continue;
    for (const name of SETTINGS) state[key][name] = options[name] ?? state[key][name];
    if (options.wave) wave[key] = { wave: options.wave };
  }
  showTitles();
  showSettings();
  await plan(wave);
}

async function drive() {
  await busy(async (signal) => {
    const outcomes = await all(shown().filter((pane) => pane.plan).map((pane) => pane.drive(signal)));
    hint(outcomes.map(({ sentence }) => sentence).join(" "));
  });
}

/** Say why a mark cannot stand somewhere; false where it can. */
function refuse(end, point) {
  const reason = panes.a.board.maze.refusal(point);
  if (reason) hint(`The ${end} ${reason}. Choose a place on open floor.`);
  return Boolean(reason);
}

/** The link and the plans shown, for a file. */
function whole() {
  const plans = Object.entries(panes).filter(([key, pane]) => pane.plan && (key === "a" || state.compare));
  return [encode(state), Object.fromEntries(plans.map(([key, pane]) => [key, pane.plan]))];
}

/** What was read from a file: the state, and the plans as they were. */
async function takeOver(link, plans) {
  const given = decode(link);
  const names = [given.model, ...Object.values(plans).map((made) => made.model)];
  const strange = names.find((name) => !usable().some((known) => known.name === name));
  if (strange !== undefined) throw new Sentence(`This server has no model '${strange.slice(0, 100)}'.`);
  if (new Set(names).size > 1) throw new Sentence("The plan in this file is for another model than its link.");
  await halt();
  restore(given);
  for (const [key, made] of Object.entries(plans)) panes[key].show(made);
  state.planned = Boolean(panes.a.plan);
  remember();
  refresh();
}

/** Models whose plans can be drawn on a map. */
const usable = () => offer.models.filter(({ maze, dim }) => maze && dim === 2);

/** Take over what a link says, as far as this server has it. */
function restore(given) {
  const known = usable().some(({ name }) => name === given.model);
  if (given.model && !known) warn(`This server has no model '${given.model}'.`);
  if (known) state.model = given.model;
  const { example } = model();
  Object.assign(state, { start: given.start ?? example.start, goal: given.goal ?? example.goal });
  for (const key of ["a", "b"]) if (given[key]) state[key] = { ...given[key] };
  state.compare = Boolean(given.compare);
  showModel();
  showEnds();
  showCompare();
}

function listen() {
  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running.stop.abort();
    else plan();
  });
  $("again").addEventListener("click", again);
  $("another").addEventListener("click", () => {
    for (const key of sides()) state[key].seed = (state[key].seed + 1) % 2 ** 31;
    showSettings();
    plan();
  });
  $("drive").addEventListener("click", drive);
  $("compare").addEventListener("click", async () => {
    await halt();
    state.compare = !state.compare;
    panes.b.forget();
    if (state.compare) state.planned = false;
    showCompare();
    remember();
  });
  $("model").addEventListener("change", async () => {
    await halt();
    restore({ ...state, model: $("model").value, start: null, goal: null });
    forgetPlans();
  });
  for (const name of SETTINGS) {
    $(name).addEventListener("change", () => {
      const value = $(name).value;
      if (!$(name).checkValidity()) return;
      state[side][name] = name === "order" || value === "auto" ? value : Number(value);
      state.planned = false;
      showTitles();
      remember();
    });
  }
  for (const end of ["start", "goal"]) {
    for (const axis of ["x", "y"]) {
      $(`${end}-${axis}`).addEventListener("change", () => {
        const point = rounded(["x", "y"].map((each) => Number.parseFloat($(`${end}-${each}`).value)));
        if (refuse(end, point)) showEnds();
        else place(end, point);
      });
    }
  }
  for (const button of document.querySelectorAll("[data-side]")) {
    button.addEventListener("click", () => {
      side = button.dataset.side;
      showSettings();
      refresh();
    });
  }
  addEventListener("hashchange", () => start(decode(location.hash)));
}

async function start(given) {
  await halt();
  restore(given);
  if (given.planned) plan();
  else forgetPlans();
}

async function begin() {
  setUpTheme($("theme"));
  setUpSharing({ whole, takeOver, current: () => ({ pane: panes[side], name: `plan-${state.model}` }) });
  api.onTokenAsked(askForToken);
  try {
    offer = await api.models();
  } catch (error) {
    warn(told(error));
    return;
  }
  const names = usable().map(({ name }) => name);
  if (!names.length) {
    document.querySelector("main").inert = true;
    warn("No model of this server has a maze that could be drawn here. Its plans can be had over HTTP.");
    return;
  }
  $("model").replaceChildren(...names.map((name) => new Option(name, name)));
  $("order").replaceChildren(...offer.orders.map((name) => new Option(name, name)));
  state.model = names.includes(offer.default) ? offer.default : names[0];
  listen();
  await start(decode(location.hash));
  document.documentElement.dataset.ready = "true";
}

begin();
