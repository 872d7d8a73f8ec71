// Plans as files: JSON that can be read back, CSV, and the picture as SVG or PNG.

const FORMAT = "compdiffuser-plan";
// What the page's style sheet says of the picture, for a file that stands alone.
const PAINT = ["fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin", "stroke-dasharray", "opacity",
  "font-weight", "text-anchor", "dominant-baseline"];

function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const anchor = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10_000);
}

/** One entry per button: what it saves of a pane. `whole()` is the link and all plans. */
export const exporters = {
  json: (pane, name, whole) => save(`${name}.json`, toJson(...whole()), "application/json"),
  csv: (pane, name) => save(`${name}.csv`, toCsv(pane.plan), "text/csv"),
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
    throw new Error("This file is not JSON.");
  }
  if (content?.format !== FORMAT || typeof content.link !== "string") throw new Error("This file is not an exported plan.");
  const point = (state) => Array.isArray(state) && state.length >= 2 && state.every(Number.isFinite);
  for (const plan of Object.values(content.plans ?? {})) {
    const sound = ["n_chunks", "horizon", "overlap", "length", "confidence", "seconds"].every((key) => Number.isFinite(plan?.[key]))
      && Array.isArray(plan.states) && plan.states.length > 1 && plan.states.every(point) && point(plan.start) && point(plan.goal)
      && [plan.candidates ?? []].flat().every((candidate) => Number.isFinite(candidate?.n_chunks) && Array.isArray(candidate.path) && candidate.path.every(point));
    if (!sound) throw new Error("The plan in this file is damaged.");
  }
  return content;
}

const toCsv = (plan) => ["x,y", ...plan.states.map((state) => state.join(","))].join("\n") + "\n";

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
