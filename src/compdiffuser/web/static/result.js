// What is known of plans, side by side where there are two, and the candidates of one as a list to walk through.

import { choices } from "./pane.js";
import { ORIGINS, TESTS, info } from "./words.js";

const LONG = 34; // characters of a sentence

const number = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits));
const percent = (share) => (share === null || share === undefined ? "over" : `${Math.round(100 * share)}%`);

function make(name, text = "", className = "") {
  return Object.assign(document.createElement(name), { textContent: text, className });
}

/** Facts of one plan: [text, mood] by their terms. */
function facts({ plan, outcome }) {
  const measures = Object.entries(plan.candidates?.[0]?.measures ?? plan.verdict?.measures ?? {});
  const failed = plan.verdict?.failed ?? [];
  const compared = measures.filter(([test]) => (failed.length ? failed.includes(test) : test !== "steps" && test !== "ends"));
  const worst = compared.sort(([, a], [, b]) => (b ?? Infinity) - (a ?? Infinity))[0];
  const found = {
    Verdict: [plan.ok ? "certified" : "not certified", plan.ok ? "good" : "bad"],
    "Worst test": [worst ? `${TESTS[worst[0]]?.title ?? worst[0]}: ${percent(worst[1])}` : "–", failed.includes(worst?.[0]) ? "bad" : ""],
    "Chunks K": [String(plan.n_chunks)],
    Length: [`${number(plan.length, 1)} m`],
    "Planning time": [`${number(plan.seconds, 1)} s`],
    "Began from": [ORIGINS[plan.origin] ?? "–"],
  };
  if (plan.why) found.Chosen = [plan.why];
  if (plan.fault) found["In this maze"] = [`The plan ${plan.fault}.`, "bad"];
  const where = Object.entries(plan.verdict?.where ?? {}).map(([test, place]) => `${TESTS[test]?.title ?? test}: ${place}.`);
  if (where.length) found["Where it fails"] = [where.join(" "), "bad"];
  if (!plan.complete) found.Time = ["Time ran out before all candidates were made.", "bad"];
  if (outcome) found.Drive = [outcome.sentence, outcome.success ? "good" : "bad"];
  return found;
}

/** One table for all plans shown; `current` is the one whose candidates are listed. */
export function showResult(panes, current, root) {
  const planned = panes.filter(({ plan }) => plan);
  root.hidden = !planned.length;
  if (!planned.length) return;
  const all = panes.map((pane) => (pane.plan ? facts(pane) : {}));
  const terms = [...new Set(all.flatMap((found) => Object.keys(found)))];
  const names = panes.length > 1 ? panes.map(({ name }) => `${name}: `) : [""];
  const rows = terms.map((term) => row(term, all.map((found) => found[term] ?? ["–"]), term, names));
  const tests = Object.keys(TESTS).filter((test) => planned.some(({ plan }) => test in (plan.verdict?.measures ?? {})));
  if (tests.length) rows.push(part("Tests, each as a share of its limit", panes.length));
  rows.push(...tests.map((test) => row(test, panes.map(({ plan }) => measured(plan, test)), TESTS[test].title, names)));
  const head = make("tr");
  head.append(make("td"), ...panes.map((pane) => Object.assign(make("th", pane.name), { scope: "col" })));
  const table = root.querySelector("#facts");
  table.replaceChildren(...(panes.length > 1 ? [head] : []), ...rows);
  listCandidates(current, root.querySelector("#candidates-list"));
  root.querySelector(".list").hidden = !current.plan?.candidates?.length;
  listWays(current, root.querySelector("#ways-list"));
  root.querySelector(".ways").hidden = !current.plan?.others?.length;
}

/** Plans to choose from: pointing at one or focusing it shows it on the map, pressing chooses it. */
function listWays({ board, plan }, list) {
  const had = list.contains(document.activeElement) ? document.activeElement.dataset.way : null;
  const all = plan?.others?.length ? choices(plan) : [];
  list.replaceChildren(...all.map(({ way, n_chunks: k, length, ok }) => {
    const chosen = way === plan.way;
    const button = make("button", "", chosen ? "chosen" : "");
    button.type = "button";
    button.dataset.way = way;
    button.setAttribute("aria-pressed", String(chosen));
    button.append(...[`${way}.`, `K ${k}`, `${number(length, 1)} m`, ok ? "certified" : "not certified"].map((text) => make("span", text)));
    button.lastChild.className = `verdict ${ok ? "good" : ""}`;
    for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => board.lightWay(way));
    for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => board.lightWay(null));
    button.addEventListener("click", () => board.onWay(way));
    const item = make("li");
    item.append(button);
    return item;
  }));
  if (had) list.querySelector(`[data-way="${had}"]`)?.focus({ preventScroll: true });
}

function measured(plan, test) {
  if (!plan?.verdict?.measures || !(test in plan.verdict.measures)) return ["–"];
  const failed = plan.verdict.failed.includes(test);
  return [`${failed ? "✗" : "✓"} ${percent(plan.verdict.measures[test])}`, failed ? "bad" : "good"];
}

/** A row with a cell for each plan; sentences share one, each after the name of its plan. */
function row(key, cells, term, names) {
  const made = make("tr");
  const title = Object.assign(make("th"), { scope: "row" });
  title.append(make("span", term), info(key));
  if (cells.some(([text]) => text.length > LONG)) {
    const cell = Object.assign(make("td", "", "long"), { colSpan: cells.length });
    cell.append(...cells.map(([text, mood = ""], i) => make("p", names[i] + text, mood)));
    made.append(title, cell);
  } else made.append(title, ...cells.map(([text, mood = ""]) => make("td", text, mood)));
  return made;
}

function part(text, columns) {
  const made = make("tr", "", "part");
  made.append(Object.assign(make("th", text), { colSpan: columns + 1, scope: "rowgroup" }));
  return made;
}

/** A plan in one sentence. */
export function describe(name, { ok, n_chunks: k, length, seconds }) {
  const verdict = ok ? "certified" : "not certified";
  return `${name} has ${k} chunk${k > 1 ? "s" : ""}, is ${length.toFixed(0)} m long, ${verdict}, and took ${seconds.toFixed(1)} s.`;
}

function listCandidates(pane, list) {
  const { board, plan } = pane;
  const items = (plan?.candidates ?? []).map((candidate, rank) => {
    const button = make("button", "", rank ? "" : "chosen");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    const failed = (candidate.failed ?? []).map(({ test }) => TESTS[test]?.name ?? test);
    const verdict = candidate.certified ? "certified" : failed.join(", ") || "not certified";
    const cells = [`${rank + 1}.`, `K ${candidate.n_chunks}`, `score ${number(candidate.score, 2)}`, verdict];
    button.append(...cells.map((text) => make("span", text)));
    button.lastChild.className = `verdict ${candidate.certified ? "good" : ""}`;
    const begun = candidate.origin in ORIGINS ? `, began from ${ORIGINS[candidate.origin]}` : "";
    button.title = (rank ? "Show this candidate on the map" : "The chosen plan") + begun;
    const held = () => list.querySelector("[aria-pressed='true']");
    const look = (shown) => pane.lookAt(rank || shown !== candidate ? shown : null);
    button.addEventListener("pointerenter", () => look(candidate));
    button.addEventListener("pointerleave", () => pane.lookAt(held()?.candidate ?? null));
    button.addEventListener("click", () => {
      const pressed = button !== held();
      held()?.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", String(pressed));
      look(pressed ? candidate : null);
    });
    button.candidate = candidate;
    const item = make("li");
    item.append(button);
    return item;
  });
  list.replaceChildren(...items);
  board.lookAt?.(null);
}
