// Plans as files: JSON that can be read back, CSV, and the picture as SVG or PNG.

import { sound } from "./checked.js";
import { Sentence } from "./hint.js";

const FORMAT = "compdiffuser-plan";
// What the page's style sheet says of the picture, for a file that stands alone.
const PAINT = ["fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray", "opacity",
  "font-weight", "font-size", "paint-order", "text-anchor", "dominant-baseline"];

function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const anchor = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

/** One entry per button: what it saves of a pane. `whole()` is the link and all plans. */
export const exporters = {
  json: (pane, name, whole) => save(`${name}.json`, toJson(...whole()), "application/json"),
  csv: (pane, name) => save(`${name}.csv`, toCsv(pane.plan, pane.view.model.names), "text/csv"),
  svg: (pane, name) => save(`${name}.svg`, toSvg(pane.board.svg), "image/svg+xml"),
  png: async (pane, name) => save(`${name}.png`, await toPng(pane.board.svg), "image/png"),
};

const toJson = (link, plans) => JSON.stringify({ format: FORMAT, version: 1, link, plans }, null, 1);

/** The link and plans of an exported file, or an error that says what is wrong with it. */
export function fromJson(text) {
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Sentence("This file is not JSON.");
  }
  const { format, link, plans = {} } = content ?? {};
  const known = typeof plans === "object" && plans !== null && Object.keys(plans).every((key) => key === "a" || key === "b");
  if (format !== FORMAT || typeof link !== "string" || link.length > 10_000 || !known) throw new Sentence("This file is not an exported plan.");
  if (!Object.values(plans).every(sound)) throw new Sentence("The plan in this file is damaged.");
  return { link, plans };
}

/** A column for every number of a state; the agent's alone are called x and y. */
const toCsv = (plan, names) => [names.map((name) => (names.length === 2 ? name.replace("agent ", "") : name)).join(","), ...plan.states.map((state) => state.join(","))].join("\n") + "\n";

function toSvg(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [[svg, ...svg.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((shown, i) => {
    const style = getComputedStyle(shown);
    for (const name of PAINT) to[i].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["style", "class", "tabindex", "role", "aria-roledescription", "aria-valuenow", "aria-valuetext"]) to[i].removeAttribute(name);
  });
  const { width, height } = svg.viewBox.baseVal;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", "sans-serif");
  copy.setAttribute("width", 1200);
  copy.setAttribute("height", Math.round((1200 * height) / width));
  return new XMLSerializer().serializeToString(copy);
}

async function toPng(svg) {
  const picture = new Image();
  const source = URL.createObjectURL(new Blob([toSvg(svg)], { type: "image/svg+xml" }));
  picture.src = source;
  await picture.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
  canvas.getContext("2d").drawImage(picture, 0, 0);
  URL.revokeObjectURL(source);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
