// What is known of a plan, in words and numbers, and its candidates as a list one can walk through.

const number = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits));

// What a plan can begin from.
const ORIGINS = { noise: "noise", scaffold: "a scaffold", refined: "a candidate" };

export function showResult(pane, root) {
  const { plan, outcome } = pane;
  root.hidden = !plan;
  if (!plan) return;
  const facts = [
    ["Verdict", plan.ok ? "certified" : "uncertified", plan.ok ? "good" : "bad"],
    ["Chunks K", plan.n_chunks],
    ["Confidence", number(plan.confidence, 2)],
    ["Planning time", `${number(plan.seconds, 1)} s`],
    ["Length", `${number(plan.length, 1)} m`],
    ["Score", number(plan.score, 2)],
    ["Began from", ORIGINS[plan.origin] ?? "–"],
  ];
  if (plan.verdict && !plan.ok) facts.push(["Certificate", `${plan.verdict.told}.`, "bad wide"]);
  if (plan.fault) facts.push(["In this maze", `The plan ${plan.fault}.`, "bad wide"]);
  if (!plan.complete) facts.push(["Time", "Time ran out before all candidates were made.", "bad wide"]);
  if (outcome) facts.push(["Drive", outcome.sentence, `${outcome.success ? "good" : "bad"} wide`]);
  root.querySelector("dl").replaceChildren(...facts.map(fact));
  listCandidates(pane, root.querySelector("ol"));
}

/** A plan in one sentence. */
export function describe(name, { ok, n_chunks: k, length, seconds }) {
  const verdict = ok ? "certified" : "not certified";
  return `${name} has ${k} chunks, is ${length.toFixed(0)} m long, ${verdict}, and took ${seconds.toFixed(1)} s.`;
}

function fact([term, text, mood = ""]) {
  const box = document.createElement("div");
  const [title, value] = [document.createElement("dt"), document.createElement("dd")];
  title.textContent = term;
  value.textContent = text;
  value.className = mood.replace("wide", "").trim();
  box.className = mood.includes("wide") ? "wide" : "";
  box.append(title, value);
  return box;
}

function listCandidates({ board, plan }, list) {
  const items = (plan.candidates ?? []).map((candidate, rank) => {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
    const verdict = candidate.certified ? "certified" : "uncertified";
    const cells = [`${rank + 1}.`, `K ${candidate.n_chunks}`, `score ${number(candidate.score, 2)}`, verdict];
    button.append(...cells.map((text) => Object.assign(document.createElement("span"), { textContent: text })));
    button.lastChild.className = `verdict ${candidate.certified ? "good" : ""}`;
    const begun = candidate.origin in ORIGINS ? `, began from ${ORIGINS[candidate.origin]}` : "";
    button.title = (rank ? "Show this candidate on the map" : "The chosen plan") + begun;
    if (rank === 0) button.classList.add("chosen");
    const held = () => list.querySelector("[aria-pressed='true']");
    const look = (path) => board.lookAt(rank || path !== candidate.path ? path : null);
    button.addEventListener("pointerenter", () => look(candidate.path));
    button.addEventListener("pointerleave", () => board.lookAt(held()?.path ?? null));
    button.addEventListener("click", () => {
      const pressed = button !== held();
      held()?.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", String(pressed));
      look(pressed ? candidate.path : null);
    });
    button.path = candidate.path;
    const item = document.createElement("li");
    item.append(button);
    return item;
  });
  list.replaceChildren(...items);
}
