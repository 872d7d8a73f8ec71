// The page: one state, two panes at most, and the controls that change them.

import * as api from "./api.js";
import { askForToken } from "./door.js";
import { Fields } from "./fields.js";
import { Sentence, hint, hush, told, warn } from "./hint.js";
import { legend } from "./legend.js";
import { USUAL, decode, encode } from "./link.js";
import { Pane } from "./pane.js";
import { describe, showResult } from "./result.js";
import { setUpSharing } from "./sharing.js";
import { parse } from "./shapes.js";
import { setUpAbout, setUpDock, setUpTheme } from "./theme.js";
import { Tools } from "./tools.js";
import { Undo } from "./undo.js";
import { View, drawable } from "./view.js";
import { info, setUpWords } from "./words.js";

const $ = (id) => document.getElementById(id);
const result = $("result"); // kept, since it moves
const SETTLED_MS = 200; // after which a region or a waypoint that is dragged counts as put down
const SETTINGS = ["chunks", "candidates", "order", "steps", "repeats", "seed"];
const state = { model: "", start: [], goal: [], via: [], avoid: [], plans: 1, way: 1, axes: null, a: { ...USUAL }, b: { ...USUAL, order: "parallel" }, compare: false, planned: false };
let able = false; // whether this browser draws three dimensions
let offer = null; // what the server has: models, orders, limits
let view = null; // what of the model is drawn; null where nothing can be
let side = "a"; // whose settings are shown
let deep = false; // whether three dimensions are shown
let running = null; // what is under way: how to stop it, and a promise of its end
let settling = null; // changes during a drive that more may follow: the steps at which they began, and a timer

const handlers = { move: place, hint, add: addStop, remove: removeStop, change: enclose, done: () => tools.take(null), choose };
const panes = { a: new Pane("A", handlers), b: new Pane("B", handlers) };
const tools = new Tools({ choose: (tool) => Object.values(panes).forEach(({ board }) => board.setTool(tool)), place: placeMiddle, plans: askFor, clear: clearSteering, hint });
const shown = () => (state.compare ? [panes.a, panes.b] : [panes.a]);
const sides = () => (state.compare ? ["a", "b"] : ["a"]);
const model = () => offer.models.find(({ name }) => name === state.model);
/** The ground of what has a place, whatever is drawn. */
const above = () => (view.axes ? new View(model()).ground : view.ground);
const undo = new Undo();
const fields = new Fields($("ends"), (mark, point) => (refuse(mark, point, above()) ? showEnds() : place(mark, point)));

function remember() {
  history.replaceState(null, "", encode(state));
}

/** What the page is now, to come back to. */
function now() {
  const kept = sides().filter((key) => panes[key].plan).map((key) => [key, { plan: panes[key].plan, film: panes[key].film, outcome: panes[key].outcome }]);
  return { link: encode(state), plans: Object.fromEntries(kept) };
}

/** Change the problem; plans made for another one are forgotten. */
function pose(kind, changes) {
  undo.keep(kind, now);
  settle();
  running?.stop.abort();
  hush();
  Object.assign(state, changes);
  forgetPlans();
  showEnds();
}

/** Put a mark somewhere. */
function place({ id, end, at, stop }, point) {
  const moved = [...state[end]];
  if (end === "via") {
    moved[stop] = point;
    steer(id, { via: moved });
    return;
  }
  at.forEach((where, i) => { moved[where] = point[i]; });
  pose(id, { [end]: moved });
}

function addStop(point) {
  steer(`stop ${state.via.length}`, { via: [...state.via, point] });
  tools.take(null);
}

function removeStop({ stop }) {
  steer(`no stop ${stop}`, { via: state.via.filter((_, i) => i !== stop) });
}

/** Regions were drawn, moved or deleted. */
function enclose(avoid) {
  steer(avoid.length === state.avoid.length ? "move regions" : `regions ${avoid.length}`, { avoid });
}

function clearSteering() {
  steer("clear", { avoid: [], via: [] });
}

/** Regions or waypoints change. While an agent is on its way, it soon goes on with a plan that fits them. */
function steer(kind, changes) {
  const steps = settling?.steps ?? new Map(shown().map((pane) => [pane, pane.step]).filter(([, step]) => step !== null));
  if (!steps.size) {
    pose(kind, changes);
    return;
  }
  undo.keep(kind, now);
  Object.assign(state, { ...changes, planned: false });
  remember();
  showEnds();
  markStale();
  clearTimeout(settling?.timer);
  settling = { steps, timer: setTimeout(() => goOn(steps), SETTLED_MS) };
}

/** Drive on from where the agents are, or were when the first of some changes was made. */
function goOn(steps) {
  settling = null;
  busy(async (signal) => {
    const outcomes = await all([...steps].map(([pane, step]) => pane.steer(steering(), pane.step ?? step, signal)));
    hint(outcomes.map(({ sentence }) => sentence).join(" "));
  });
}

/** What is drawn to steer by. */
function steering() {
  return { avoid: state.avoid, via: state.via.map(String) };
}

/** Forget changes that were to be driven by. */
function settle() {
  clearTimeout(settling?.timer);
  settling = null;
}

/** What was chosen by key appears in the middle, to be moved from there. */
function placeMiddle(tool) {
  const [{ board, regions, marks }] = shown();
  const { left, right, bottom, top } = board.ground;
  const ends = marks.drawn.map(({ point }) => point);
  const middle = ends.length ? [0, 1].map((axis) => ends.reduce((sum, point) => sum + point[axis], 0) / ends.length) : [(left + right) / 2, (bottom + top) / 2];
  if (tool === "waypoint") marks.place(board.ground.refusal(middle) ? board.ground.nudged(middle) ?? marks.drawn[0].point : middle);
  else regions.place(tool, middle);
}

/** Ask for so many plans. */
function askFor(plans) {
  undo.keep("plans", now);
  Object.assign(state, { plans, planned: false, way: 1 });
  remember();
  refresh();
}

/** One of several plans is chosen. */
function choose(pane, way) {
  if (running || !pane.plan) return;
  undo.keep("choose", now);
  pane.choose(way);
  if (!state.compare) state.way = way;
  remember();
  refresh();
}

function showEnds() {
  fields.show(state);
  if (!view) return;
  tools.show(state, model().groups[0]?.columns.length === 2);
  const seen = view.flat ? state : { ...state, via: [], avoid: [] };
  for (const pane of Object.values(panes)) {
    pane.marks.show(seen);
    pane.regions.show(seen.avoid);
    pane.space?.setEnds(state);
  }
}

function forgetPlans() {
  for (const pane of Object.values(panes)) pane.forget();
  Object.assign(state, { planned: false, way: 1 });
  remember();
  refresh();
}

/** Bring buttons and results in line with the state. */
function refresh() {
  const pane = panes[side];
  const busy = running !== null;
  $("plan").textContent = busy ? "Stop" : "Plan";
  $("plan").disabled = !view;
  $("undo").disabled = busy || !undo.possible;
  $("another").disabled = busy || !view;
  $("again").disabled = busy || !pane.plan;
  $("drive").disabled = busy || !pane.plan || !model()?.drivable;
  $("drive").title = model()?.drivable ? "Follow the plan in the real environment" : "There is no simulator for this planner";
  for (const button of document.querySelectorAll("[data-export]")) button.disabled = !pane.plan;
  $("result-title").textContent = state.compare ? "Results" : "Result";
  showResult(shown(), pane, result);
  $("candidates-title").textContent = state.compare ? `Candidates of ${side.toUpperCase()}, best first` : "Candidates, best first";
  $("lines").hidden = !pane.plan;
  for (const language of ["python", "shell"]) $(language).textContent = pane.plan?.reproduce?.[language] ?? "";
  markStale();
}

/** Say where settings no longer belong to the plan shown. */
function markStale() {
  for (const key of ["a", "b"]) {
    const made = panes[key].plan?.options;
    const steered = made && panes[key].madeFor(steering()) && (panes[key].asked ?? state.plans) === state.plans;
    panes[key].stale.hidden = !made || (steered && SETTINGS.every((name) => (made[name] ?? state[key][name]) === state[key][name]));
  }
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
  document.body.classList.toggle("comparing", state.compare);
  $("panes").className = state.compare ? "panes two" : "panes";
  $("panes").replaceChildren(...(view ? [...(view.flat ? [tools.root] : []), ...shown().map((pane) => pane.root), legend(view)] : [nothing()]));
  // Beside two maps there is room for results below them, beside one there is none.
  if (state.compare) $("panes").append(result);
  else document.querySelector(".export").before(result);
  showTitles();
  showSettings();
  refresh();
  $("space").disabled = !able || !view?.flat;
  if (deep) showSpace(true);
}

/** What is shown of a planner whose states are single numbers. */
function nothing() {
  const box = document.createElement("article");
  box.className = "pane nothing";
  box.innerHTML = "<h2>Nothing to draw here</h2><p></p><pre tabindex='0'></pre>";
  box.querySelector("p").textContent = `A state of “${model().title}” is one number, and a map needs two. Its plans can be had over HTTP and on the command line:`;
  box.querySelector("pre").textContent = `compdiffuser plan ${state.model} --start=${state.start} --goal=${state.goal}`;
  return box;
}

function showModel() {
  const chosen = model();
  view = drawable(chosen) ? new View(chosen, state.axes) : null;
  state.axes = state.axes && view ? view.axes : null;
  if (view) for (const pane of Object.values(panes)) pane.setView(view);
  fields.setModel(chosen);
  showAxes(chosen);
  const counts = Array.from({ length: Math.min(offer.limits.chunks, 2 * chosen.max_chunks) }, (_, k) => k + 1);
  $("chunks").replaceChildren(new Option("automatic", "auto"), ...counts.map((k) => new Option(k, k)));
  for (const name of ["candidates", "steps", "repeats"]) $(name).max = offer.limits[name];
  $("model").value = state.model;
  for (const settings of [state.a, state.b]) {
    if (settings.chunks > counts.length) settings.chunks = "auto";
    if (!offer.orders.includes(settings.order)) settings.order = USUAL.order;
  }
}

/** Planners of more than two numbers let one choose which are drawn. */
function showAxes({ dim, names, groups }) {
  $("axes").hidden = !view || dim <= 2;
  const above = groups.some(({ columns }) => columns.length >= 2) ? [new Option("from above", "")] : [];
  $("axis-x").replaceChildren(...above, ...names.map((name, column) => new Option(name, column)));
  $("axis-y").replaceChildren(...names.map((name, column) => new Option(name, column)));
  const [x, y] = view?.axes ?? ["", groups[0]?.columns[1] ?? 1];
  $("axis-x").value = x;
  $("axis-y").value = y;
  $("axis-y").disabled = x === "";
}

async function chooseAxes() {
  await halt();
  undo.keep("axes", now);
  const x = $("axis-x").value;
  let y = Number($("axis-y").value);
  if (x !== "" && Number(x) === y) y = (y + 1) % model().dim;
  restore({ ...state, axes: x === "" ? null : [Number(x), y] });
  forgetPlans();
}

/** Whether this browser draws in three dimensions at all. */
function canDraw() {
  const canvas = document.createElement("canvas");
  const able = canvas.getContext("webgl2");
  able?.getExtension("WEBGL_lose_context")?.loseContext();
  return Boolean(able);
}

/** Three dimensions for the panes shown, or the map again. */
async function showSpace(on) {
  const wanted = on && view?.flat;
  deep = Boolean(wanted);
  $("space").setAttribute("aria-pressed", String(deep));
  if (!wanted) {
    for (const pane of Object.values(panes)) pane.setSpace(null);
    return;
  }
  const name = state.model;
  try {
    const [{ Space }, described] = await Promise.all([import("./space.js"), model().drivable ? api.scene(name).catch(() => null) : null]);
    if (!deep || name !== state.model) return;
    for (const [key, pane] of Object.entries(panes)) {
      const shown = key === "a" || state.compare;
      pane.setSpace(shown ? new Space(tooSlow) : null, described);
      pane.space?.setEnds(state);
    }
  } catch {
    showSpace(false);
    hint("Three dimensions cannot be drawn here; this is the map.");
  }
}

function tooSlow() {
  showSpace(false);
  hint("This machine draws three dimensions too slowly; this is the map.");
}

function problem(settings) {
  const columns = view.columns.join(",");
  const ends = { start: state.start.join(","), goal: state.goal.join(",") };
  return { model: state.model, ...ends, wave: offer.wave, columns, ...steering(), plans: state.plans, ...settings };
}

/** Stop what is under way, and wait until it has cleaned up. */
async function halt() {
  settle();
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
  if (!view || !$("form").reportValidity() || view.marks.some((mark) => refuse(mark, mark.at.map((where) => state[mark.end][where])))) return;
  await busy(async (signal) => {
    const keys = sides();
    state.planned = false;
    const plans = await all(keys.map((key) => panes[key].run(problem({ ...state[key], ...wave[key] }), signal)));
    state.planned = plans.every(Boolean);
    for (const key of keys) panes[key].asked = state.plans;
    if (state.planned && state.way > 1 && !state.compare) panes.a.choose(state.way);
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
    const outcomes = await all(shown().filter((pane) => pane.plan).map((pane) => pane.drive(steering(), signal)));
    hint(outcomes.map(({ sentence }) => sentence).join(" "));
  });
}

/** Say why a mark cannot stand somewhere; false where it can. */
function refuse({ name, at }, point, ground = view.ground) {
  const reason = at.length >= 2 ? ground.refusal(point.slice(0, 2)) : point.every(Number.isFinite) ? null : "needs a number";
  if (reason) hint(`The ${name} ${reason}. Choose another place.`);
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
  const strange = names.find((name) => !offer.models.some((known) => known.name === name));
  if (strange !== undefined) throw new Sentence(`This server has no model '${strange.slice(0, 100)}'.`);
  if (new Set(names).size > 1) throw new Sentence("The plan in this file is for another model than its link.");
  const { dim } = offer.models.find(({ name }) => name === given.model);
  if (Object.values(plans).some(({ states }) => states.some((row) => row.length !== dim))) throw new Sentence("The plan in this file is damaged.");
  await halt();
  undo.keep("import", now);
  restore(given);
  for (const [key, made] of Object.entries(plans)) panes[key].show(made);
  state.planned = Boolean(panes.a.plan);
  remember();
  refresh();
}

async function takeBack() {
  if (!undo.possible) return;
  await halt();
  hush();
  const { link, plans } = undo.take();
  restore({ axes: null, ...decode(link) });
  for (const [key, kept] of Object.entries(plans)) panes[key].bring(kept);
  state.planned = decode(link).planned;
  remember();
  refresh();
}

/** Take over what a link says, as far as this server has it. */
function restore(given) {
  const known = offer.models.some(({ name }) => name === given.model);
  if (given.model && !known) warn(`This server has no model '${given.model}'.`);
  if (known) state.model = given.model;
  const { example, dim, start_columns: starts, goal_columns: goals } = model();
  const fits = (values, columns) => (values?.length === columns.length ? values : null);
  Object.assign(state, { start: fits(given.start, starts) ?? example.start, goal: fits(given.goal, goals) ?? example.goal });
  state.axes = given.axes && given.axes.every((column) => column < dim) && dim > 2 ? given.axes : null;
  for (const key of ["a", "b"]) if (given[key]) state[key] = { ...given[key] };
  const steered = { via: given.via ?? [], avoid: (given.avoid ?? []).filter(parse), plans: given.plans ?? 1, way: given.way ?? 1 };
  Object.assign(state, { compare: Boolean(given.compare) }, steered);
  showModel();
  showEnds();
  showCompare();
}

/** A change of a kind that can be taken back, once nothing is under way. */
async function change(kind, task) {
  await halt();
  undo.keep(kind, now);
  task();
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
  $("undo").addEventListener("click", takeBack);
  $("space").addEventListener("click", () => showSpace(!deep));
  $("compare").addEventListener("click", () => change("compare", () => {
    state.compare = !state.compare;
    panes.b.forget();
    if (state.compare) state.planned = false;
    showCompare();
    remember();
  }));
  $("model").addEventListener("change", () => change("model", () => {
    restore({ ...state, model: $("model").value, start: null, goal: null, via: [], avoid: [], axes: null });
    forgetPlans();
  }));
  for (const id of ["axis-x", "axis-y"]) $(id).addEventListener("change", chooseAxes);
  for (const name of SETTINGS) {
    $(name).addEventListener("change", () => {
      const value = $(name).value;
      if (!$(name).checkValidity()) return;
      undo.keep(name, now);
      state[side][name] = name === "order" || value === "auto" ? value : Number(value);
      Object.assign(state, { planned: false, way: 1 });
      showTitles();
      remember();
      $("undo").disabled = running !== null;
      markStale();
    });
  }
  for (const button of document.querySelectorAll("[data-side]")) {
    button.addEventListener("click", () => {
      side = button.dataset.side;
      showSettings();
      refresh();
    });
  }
  addEventListener("hashchange", () => start(decode(location.hash)));
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input:not([type=range]), select, dialog");
    if (event.key === "3" && !typing && !event.ctrlKey && !event.metaKey && !$("space").disabled) showSpace(!deep);
    if (event.key === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !typing && !$("undo").disabled) {
      event.preventDefault();
      takeBack();
    }
  });
}

async function start(given) {
  await halt();
  restore(given);
  if (given.planned) plan();
  else forgetPlans();
}

async function begin() {
  api.onTokenAsked(askForToken);
  const offered = api.models(); // is on its way while the rest is set up
  offered.catch(() => {}); // told below
  setUpTheme($("theme"), () => { if (deep) showSpace(true); });
  setUpAbout($("about"), $("about-close"));
  setUpDock(document.querySelector(".dock"));
  setUpWords($("words"));
  for (const spot of document.querySelectorAll("[data-info]")) spot.replaceWith(info(spot.dataset.info));
  setUpSharing({ whole, takeOver, current: () => ({ pane: panes[side], name: `plan-${state.model}` }) });
  hush();
  try {
    offer = await offered;
  } catch (error) {
    warn(told(error));
    return;
  }
  $("model").replaceChildren(...offer.models.map(({ name, title }) => new Option(title, name)));
  $("order").replaceChildren(...offer.orders.map((name) => new Option(name, name)));
  state.model = offer.models.some(({ name }) => name === offer.default) ? offer.default : offer.models[0].name;
  listen();
  await start(decode(location.hash));
  document.documentElement.dataset.ready = "true";
  able = canDraw(); // after the page can be used: it takes a moment
  $("space").disabled = !able || !view?.flat;
}

begin();
