// What the page says of itself: one sentence for every setting, result and test.

/** Tests of the judge: a short name for the map, and what it asks. */
export const TESTS = {
  steps: { name: "jumps", title: "No jumps", asks: "No step is longer than steps in the recorded data." },
  ends: { name: "misses an end", title: "Both ends met", asks: "The plan begins at its start and ends at its goal." },
  reconstruction: { name: "unlike the data", title: "Like the data", asks: "The model, asked to denoise each chunk again, changes it no more than recorded motion." },
  support: { name: "unknown ground", title: "Known ground", asks: "Recorded episodes have been wherever the plan goes; walls are places where none has been." },
  passage: { name: "no passage", title: "Known passages", asks: "Recorded episodes have passed wherever the plan does, also between places they know; thin walls are where none has." },
  contact: { name: "moves alone", title: "Nothing moves alone", asks: "Whatever only the agent can move, such as a ball, moves only while the agent is near." },
  dynamics: { name: "moves oddly", title: "Moves like a body", asks: "From one state to the next, the planned posture changes as recorded ones do." },
  avoid: { name: "enters a region", title: "Regions avoided", asks: "The plan keeps out of every region that it was told to avoid." },
  valid: { name: "not valid", title: "Valid everywhere", asks: "The plan keeps to what is known of the map." },
  via: { name: "misses a waypoint", title: "Waypoints passed", asks: "The plan passes every waypoint, in order." },
};

/** One sentence for each (i). */
export const ABOUT = {
  chunks: "K is how many short pieces (chunks) the plan is composed of; automatic tries several and keeps the best.",
  candidates: "At most so many plans are made from fresh noise; the best of them may be refined on top.",
  order: "Autoregressive denoises each chunk given its neighbour before it, parallel all at once; gsc averages where they overlap.",
  steps: "How many noise levels each chunk is taken through, from pure noise to a clean path.",
  repeats: "How often the middle noise levels are repeated, so that neighbouring chunks can agree.",
  seed: "Decides the noise: the same seed gives the same plan, the next one another.",
  regions: "Discs and boxes are places that the plan must keep out of; changed during a drive, they give the agent a repaired or new plan.",
  waypoints: "The plan passes every waypoint, in the order of their numbers; changed during a drive, they give the agent a new plan.",
  plans: "Asks for so many plans that take different ways, as far as the data knows them; point at one to compare it, click it to choose it.",
  "Where it fails": "What the tests that failed say about the place.",
  axes: "Which two numbers of a planned state are drawn; all of them are planned.",
  Verdict: "Certified means that the plan passed every test below: each asks whether recorded data would look like this.",
  "Worst test": "The test that comes nearest to failing, as a share of its limit: below 100% passes, lower is better.",
  "Chunks K": "How many chunks the plan was composed of.",
  Length: "How far the agent goes along the plan.",
  "Planning time": "Seconds that the server took, without waiting in its queue.",
  "Began from": "A candidate begins from pure noise, from a noised path through recorded segments (a scaffold), or from another candidate.",
  Chosen: "Candidates are compared by their worst test; those that pass every test come first.",
  Drive: "The plan is followed in the real simulator; an agent that is lost gets a new plan.",
  "In this maze": "What the known walls say of the plan; the planner has never seen them.",
  Time: "The server stops looking when its time for a request is over.",
};

export const ORIGINS = { noise: "noise", scaffold: "a scaffold", refined: "a candidate" };

/** A button that opens the sentence about something. */
export function info(key) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "info";
  button.textContent = "i";
  button.setAttribute("aria-label", `About: ${key}`);
  button.dataset.about = key;
  return button;
}

/** One box for all sentences, beside the button that was pressed. */
export function setUpWords(box) {
  let owner = null;
  const close = () => {
    owner?.setAttribute("aria-expanded", "false");
    owner = null;
    box.hidden = true;
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.(".info");
    if (!button || button === owner) {
      if (!box.contains(event.target)) close();
      return;
    }
    event.preventDefault();
    close();
    owner = button;
    button.setAttribute("aria-expanded", "true");
    box.textContent = ABOUT[button.dataset.about] ?? TESTS[button.dataset.about]?.asks ?? "";
    box.hidden = false;
    const at = button.getBoundingClientRect();
    box.style.left = `${Math.min(Math.max(8, at.left - 40), innerWidth - box.offsetWidth - 8)}px`;
    const below = at.bottom + 6 + box.offsetHeight < innerHeight;
    box.style.top = `${below ? at.bottom + 6 : at.top - box.offsetHeight - 6}px`;
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && owner) { const back = owner; close(); back.focus(); } });
  document.addEventListener("scroll", close, { capture: true, passive: true });
}
