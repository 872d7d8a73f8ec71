// The map: walls, candidates, chunks in colours, the agent. Drawn as SVG in the maze's own metres, with y upwards.

const SVG = "http://www.w3.org/2000/svg";

export function element(name, attributes = {}, parent = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

/** Colour of chunk k of K: from indigo over green to orange, darker on light ground. */
export function colour(k, count) {
  const share = count > 1 ? k / (count - 1) : 0;
  const hue = Math.round(245 - 225 * share);
  const dim = Math.round(48 - 14 * Math.min(1, 2.5 * Math.sin(share * Math.PI)));
  return `light-dark(hsl(${hue} 72% ${dim}%), hsl(${hue} 68% ${Math.round(60 - 8 * Math.sin(share * Math.PI))}%))`;
}

const line = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)} ${(-y).toFixed(2)}`).join("");
const dots = (points) => points.map(([x, y]) => `M${x.toFixed(2)} ${(-y).toFixed(2)}h0`).join("");

export class Board {
  constructor(label) {
    this.svg = element("svg", { class: "board", role: "group", "aria-label": label });
    this.layers = {};
    for (const name of ["ground", "others", "chunks", "trail", "marks", "agent"]) this.layers[name] = element("g", {}, this.svg);
  }

  setMaze(maze) {
    this.maze = maze;
    const { left, bottom, width, height, unit } = maze;
    this.svg.setAttribute("viewBox", `${left} ${-(bottom + height)} ${width} ${height}`);
    this.svg.style.setProperty("--shape", width / height);
    this.layers.ground.replaceChildren();
    element("rect", { class: "floor", x: left, y: -(bottom + height), width, height }, this.layers.ground);
    // All walls are one shape, so that no seams show between them.
    const walls = maze.rows.flatMap((row, i) => [...row].map((mark, j) => {
      if (mark !== "#") return "";
      const [x, y] = maze.center([i, j]);
      return `M${x - unit / 2} ${-y - unit / 2}h${unit}v${unit}h${-unit}z`;
    }));
    element("path", { class: "wall", d: walls.join("") }, this.layers.ground);
    this.clear();
  }

  clear() {
    for (const name of ["others", "chunks", "trail", "agent"]) this.layers[name].replaceChildren();
    this.pool = null;
  }

  /** A wave begins: one path for every chunk of every candidate. */
  beginWave(candidates, perChunk, scale) {
    this.clear();
    const width = this.maze.pen * 0.09;
    this.pool = candidates.flatMap(({ n_chunks: count }) =>
      Array.from({ length: count }, (_, k) => {
        const path = element("path", { "stroke-width": width }, this.layers.chunks);
        path.style.stroke = colour(k, count);
        path.style.opacity = Math.max(0.4, 0.9 - 0.05 * candidates.length);
        return path;
      }),
    );
    Object.assign(this, { perChunk, scale });
  }

  /** Noise is drawn as dots; a chunk becomes a line when its states have come to follow each other. */
  drawFrame(rows, flat) {
    if (!this.pool) return;
    const { perChunk, scale } = this;
    rows.forEach((which, row) => {
      const path = this.pool[which];
      const points = [];
      for (let i = 0; i < perChunk; i += 1) {
        const at = 2 * (row * perChunk + i);
        points.push([flat[at] / scale, flat[at + 1] / scale]);
      }
      let way = 0;
      for (let i = 1; i < perChunk; i += 1) way += Math.hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]);
      path.setAttribute("d", way / (perChunk - 1) > 0.7 * this.maze.unit ? dots(points) : line(points));
    });
  }

  /** The finished candidates in grey, and the chosen plan bold, its chunks in colours joined in mid-overlap. */
  drawPlan(plan) {
    this.clear();
    const { pen } = this.maze;
    const others = (plan.candidates ?? []).slice(1);
    // Many of them must not hide the plan.
    this.layers.others.setAttribute("opacity", Math.min(1, 12 / Math.max(others.length, 1)));
    for (const { path } of others) element("path", { class: "other", d: line(path), "stroke-width": pen * 0.04 }, this.layers.others);
    const { states, n_chunks: count, horizon, overlap } = plan;
    const stride = horizon - overlap;
    for (let k = 0; k < count; k += 1) {
      const from = k === 0 ? 0 : k * stride + Math.floor(overlap / 2);
      const to = k === count - 1 ? states.length - 1 : (k + 1) * stride + Math.floor(overlap / 2);
      const path = element("path", { class: "chunk", d: line(states.slice(from, to + 1)), "stroke-width": pen * 0.13 }, this.layers.chunks);
      path.style.stroke = colour(k, count);
    }
  }

  /** Show one of the other candidates; null ends that. */
  lookAt(path) {
    this.layers.chunks.querySelector(".looked-at")?.remove();
    if (path) element("path", { class: "looked-at", d: line(path), "stroke-width": this.maze.pen * 0.09 }, this.layers.chunks);
  }

  beginDrive([x, y]) {
    for (const name of ["trail", "agent"]) this.layers[name].replaceChildren();
    const { pen } = this.maze;
    this.way = [[x, y]];
    this.driven = element("path", { class: "driven", "stroke-width": pen * 0.06 }, this.layers.trail);
    this.agent = element("circle", { class: "agent", r: pen * 0.14, "stroke-width": pen * 0.04, cx: x, cy: -y }, this.layers.agent);
  }

  moveAgent(points) {
    this.way.push(...points);
    const [x, y] = this.way.at(-1);
    this.driven.setAttribute("d", line(this.way));
    this.agent.setAttribute("cx", x);
    this.agent.setAttribute("cy", -y);
  }

  drawReplan(states) {
    const dashes = `${this.maze.pen * 0.12} ${this.maze.pen * 0.12}`;
    element("path", { class: "replan", d: line(states), "stroke-width": this.maze.pen * 0.05, "stroke-dasharray": dashes }, this.layers.trail);
  }

  /** Where on the map a pointer is, in metres. */
  point({ clientX, clientY }) {
    const at = new DOMPoint(clientX, clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [at.x, -at.y];
  }
}
