// The toolbar over the map: what a pointer draws next, and how many plans to ask for.

import { info } from "./words.js";

const TOOLS = { disc: "Disc", box: "Box", waypoint: "Waypoint" };
const HINTS = {
  disc: "Draw a disc on the map, from its centre outwards. Escape leaves it.",
  box: "Draw a box on the map, from corner to corner. Escape leaves it.",
  waypoint: "Click where the plan should pass. Escape leaves it.",
};
const MOST_PLANS = 4;

export class Tools {
  /** `choose(tool)` is told of the tool in hand, null for none; `place(tool)` of one that was chosen by key; `plans(n)`, `clear()`. */
  constructor({ choose, place, plans, clear, hint }) {
    Object.assign(this, { choose, hint, tool: null });
    this.root = Object.assign(document.createElement("div"), { className: "tools" });
    this.root.setAttribute("role", "toolbar");
    this.root.setAttribute("aria-label", "Steering");
    this.buttons = Object.entries(TOOLS).map(([tool, text]) => {
      const button = this.#button(text, `tool-${tool}`, (event) => (event.detail === 0 ? place(tool) : this.take(this.tool === tool ? null : tool)));
      button.dataset.tool = tool;
      return button;
    });
    this.select = document.createElement("select");
    this.select.id = "plans";
    this.select.append(...Array.from({ length: MOST_PLANS }, (_, i) => new Option(i + 1, i + 1)));
    this.select.addEventListener("change", () => plans(Number(this.select.value)));
    const label = Object.assign(document.createElement("label"), { textContent: "Plans" });
    label.append(this.select);
    this.clear = this.#button("Clear", "tool-clear", clear);
    this.clear.title = "Take all regions and waypoints away";
    const [disc, box, waypoint] = this.buttons;
    this.root.append(disc, box, info("regions"), waypoint, info("waypoints"), label, info("plans"), this.clear);
    this.take(null);
    document.addEventListener("keydown", (event) => { if (event.key === "Escape" && this.tool) this.take(null); });
  }

  #button(text, id, listener) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: text, id });
    button.addEventListener("click", listener);
    return button;
  }

  /** Take a tool in hand, or none. */
  take(tool) {
    this.tool = tool;
    for (const button of this.buttons) button.setAttribute("aria-pressed", String(button.dataset.tool === tool));
    this.choose(tool);
    if (tool) this.hint(HINTS[tool]);
  }

  /** Bring the bar in line with a state; waypoints are for what has a place in the plane. */
  show({ avoid, via, plans }, flat) {
    this.select.value = plans;
    this.clear.disabled = !avoid.length && !via.length;
    this.buttons[2].disabled = !flat;
  }
}
