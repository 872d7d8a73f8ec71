// The map: ground, candidates, chunks in colours, what moves. Drawn as SVG in the ground's own units, with y upwards.

import { ticks } from "./ground.js";
import { paths } from "./view.js";
import { TESTS } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";
const LAYERS = ["ground", "regions", "others", "ways", "chunks", "faults", "trail", "movers", "marks"];
const PICTURE = ["others", "ways", "chunks", "faults", "trail", "movers"];
const LABEL_PIXELS = 11;
const TARGET_PIXELS = 13; // half of the smallest thing a finger is asked to hit

export function element(name, attributes = {}, parent = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent?.append(made);
  return made;
}

/** Hue and lightness of chunk k of K: from indigo over green to orange, darker on light ground. */
export function tone(k, count, dark) {
  const share = count > 1 ? k / (count - 1) : 0;
  const bend = Math.sin(share * Math.PI);
  return { hue: Math.round(245 - 225 * share), light: dark ? Math.round(60 - 8 * bend) : Math.round(48 - 14 * Math.min(1, 2.5 * bend)) };
}

export function colour(k, count) {
  const [day, night] = [tone(k, count, false), tone(k, count, true)];
  return `light-dark(hsl(${day.hue} 72% ${day.light}%), hsl(${night.hue} 68% ${night.light}%))`;
}

/** First and last state of chunk k in the merged plan, neighbours joined in mid-overlap. */
export function span(k, { n_chunks: count, horizon, overlap, states }) {
  const stride = horizon - overlap;
  const from = k === 0 ? 0 : k * stride + Math.floor(overlap / 2);
  return [from, k === count - 1 ? states.length - 1 : (k + 1) * stride + Math.floor(overlap / 2)];
}

const line = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(2)} ${(-y).toFixed(2)}`).join("");
const dots = (points) => points.map(([x, y]) => `M${x.toFixed(2)} ${(-y).toFixed(2)}h0`).join("");

export class Board {
  constructor(label) {
    this.svg = element("svg", { class: "board", role: "group", "aria-label": label });
    this.layers = {};
    for (const name of LAYERS) this.layers[name] = element("g", { class: `layer-${name}` }, this.svg);
    new ResizeObserver(() => this.resize()).observe(this.svg);
  }

  setView(view) {
    this.view = view;
    this.ground = view.ground;
    const { left, bottom, width, height, top } = this.ground;
    const [side, foot] = [0.05 * Math.max(width, height), 0.04 * Math.max(width, height)];
    this.svg.setAttribute("viewBox", `${left - side} ${-top - 0.2 * foot} ${width + 1.2 * side} ${height + 1.2 * foot}`);
    this.svg.style.setProperty("--shape", (width + 1.2 * side) / (height + 1.2 * foot));
    this.#drawGround();
    this.#drawAxes(side, foot);
    this.clear();
    this.resize();
  }

  #drawGround() {
    const { ground, layers: { ground: layer } } = this;
    const { left, top, width, height, unit } = ground;
    layer.replaceChildren();
    element("rect", { class: "floor", x: left, y: -top, width, height }, layer);
    // All walls are one shape, so that no seams show between them.
    const walls = ground.walls().map(([x, y]) => `M${x - unit / 2} ${-y - unit / 2}h${unit}v${unit}h${-unit}z`);
    if (walls.length) element("path", { class: "wall", d: walls.join("") }, layer);
    if (ground.points?.length) element("path", { class: "recorded", d: dots(ground.points), "stroke-width": ground.pen * 0.12 }, layer);
  }

  #drawAxes(side, foot) {
    const { left, right, bottom, top } = this.ground;
    const axes = element("g", { class: "axes", "aria-hidden": "true" }, this.layers.ground);
    for (const x of ticks(left, right, 8).found) {
      element("path", { class: "tick", d: `M${x} ${-bottom}v${0.2 * foot}` }, axes);
      element("text", { x, y: -bottom + 0.68 * foot, "text-anchor": "middle" }, axes).textContent = x;
    }
    for (const y of ticks(bottom, top, 6).found) {
      element("path", { class: "tick", d: `M${left} ${-y}h${-0.15 * side}` }, axes);
      element("text", { x: left - 0.25 * side, y: -y, "text-anchor": "end" }, axes).textContent = y;
    }
  }

  /** What keeps its size on the screen: labels, and what fingers have to hit. */
  resize() {
    if (!this.ground || !this.svg.clientWidth) return;
    const units = this.svg.viewBox.baseVal.width / this.svg.clientWidth; // of the map in a pixel
    this.units = units;
    this.svg.style.setProperty("--label", `${LABEL_PIXELS * units}px`);
    this.svg.style.setProperty("--hair", `${units}px`);
    for (const target of this.svg.querySelectorAll(".target")) target.setAttribute("r", Math.max(this.ground.pen * (target.classList.contains("grip-target") ? 0.12 : 0.4), TARGET_PIXELS * units));
    this.onScale?.(this.scale());
  }

  /** A round length, and how many pixels it has on the screen. */
  scale() {
    const { step } = ticks(0, this.ground.width, 6);
    return { length: step, pixels: step / this.units };
  }

  clear() {
    for (const name of PICTURE) this.layers[name].replaceChildren();
    this.wave = this.shown = this.movers = null;
    this.svg.classList.remove("driving", "repaired", "comparing");
  }

  /** What a pointer draws next: "disc", "box", "waypoint", or null. */
  setTool(tool) {
    this.tool = tool;
    this.svg.classList.toggle("drawing", Boolean(tool));
  }

  /** One round of denoising. Noise is drawn as dots; a chunk becomes a line when its states follow each other. */
  showFrame({ wave, rows, points: flat }, layer = this.layers.chunks) {
    if (this.wave !== wave || this.waveLayer !== layer) this.#beginWave(wave, layer);
    const { points: perChunk, columns, scale } = wave;
    const picked = this.view.pick(columns);
    rows.forEach((which, row) => picked.forEach((at, thing) => {
      if (!at) return;
      const points = [];
      for (let i = 0; i < perChunk; i += 1) {
        const from = columns.length * (row * perChunk + i);
        points.push([flat[from + at[0]] / scale, flat[from + at[1]] / scale]);
      }
      let way = 0;
      for (let i = 1; i < perChunk; i += 1) way += Math.hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]);
      const noisy = way / (perChunk - 1) > 0.7 * this.ground.unit;
      this.pool[which][thing].setAttribute("d", noisy ? dots(points) : line(points));
    }));
    // A frame leaves out what has not moved yet.
    const moved = new Set(rows);
    this.pool.forEach((drawn, which) => { if (!moved.has(which)) for (const path of drawn) path.setAttribute("d", ""); });
  }

  /** A wave begins: one path for every thing of every chunk of every candidate. */
  #beginWave(wave, layer) {
    if (layer === this.layers.chunks) this.clear();
    else layer.querySelector(".wave")?.remove();
    Object.assign(this, { wave, waveLayer: layer });
    const group = element("g", { class: "wave" }, layer);
    const width = this.ground.pen * 0.09;
    this.pool = wave.candidates.flatMap(({ n_chunks: count }) => Array.from({ length: count }, (_, k) => this.view.things.map((_thing, index) => {
      const path = element("path", { class: index ? "second" : "", "stroke-width": width }, group);
      path.style.stroke = colour(k, count);
      path.style.opacity = Math.max(0.4, 0.9 - 0.05 * wave.candidates.length);
      return path;
    })));
  }

  /** The finished candidates in grey, and the chosen plan bold, its chunks in colours. */
  showPlan(plan) {
    if (this.shown === plan && !this.wave) return;
    this.clear();
    this.shown = plan;
    const { pen } = this.ground;
    const others = (plan.candidates ?? []).slice(1);
    // Many of them must not hide the plan.
    this.layers.others.setAttribute("opacity", Math.min(1, Math.max(0.35, 12 / Math.max(others.length, 1))));
    for (const { path } of others) this.#draw(path, { class: "other", "stroke-width": pen * 0.045 }, this.layers.others);
    this.#drawWays(plan.others ?? []);
    const ways = paths(plan.states, this.view.pick(this.view.whole));
    for (let k = 0; k < plan.n_chunks; k += 1) {
      const [from, to] = span(k, plan);
      ways.forEach((way, thing) => {
        const d = line(way.slice(from, to + 1));
        if (!thing) element("path", { class: "casing", d, "stroke-width": pen * 0.2 }, this.layers.chunks);
        element("path", { class: `chunk ${thing ? "second" : ""}`, d, "stroke-width": pen * (thing ? 0.09 : 0.13) }, this.layers.chunks).style.stroke = colour(k, plan.n_chunks);
      });
    }
    this.#fail(plan.candidates?.[0]);
  }

  /** Plans that take other ways: faint, until someone points at one. */
  #drawWays(others) {
    for (const { states, way } of others) {
      const group = element("g", { class: "way", "data-way": way }, this.layers.ways);
      const [d] = paths(states, this.view.pick(this.view.whole)).map(line);
      element("path", { class: "way-line", d, "stroke-width": this.ground.pen * 0.1 }, group);
      element("path", { class: "way-hit", d, "stroke-width": this.ground.pen * 0.35 }, group);
      group.addEventListener("pointerenter", () => this.lightWay(way));
      group.addEventListener("pointerleave", () => this.lightWay(null));
      group.addEventListener("click", () => this.onWay?.(way));
    }
  }

  /** Draw one of the other plans strong and the chosen one faint; null ends that. */
  lightWay(way) {
    const lit = [...this.layers.ways.children].find((group) => group.dataset.way === String(way));
    for (const group of this.layers.ways.children) group.classList.toggle("lit", group === lit);
    this.svg.classList.toggle("comparing", Boolean(lit));
  }

  /** A path of candidates, whose columns are those that were asked for. */
  #draw(rows, attributes, layer) {
    const known = rows[0].length === this.view.columns.length;
    const picked = known ? this.view.pick(this.view.columns) : [[0, 1]]; // files of older pages hold the agent alone
    paths(rows, picked).forEach((way, thing) => element("path", { ...attributes, class: `${attributes.class} ${thing ? "second" : ""}`, d: line(way) }, layer));
  }

  /** Pieces of a candidate that failed a test, each with its name for those who point at it. */
  #fail(candidate) {
    this.layers.faults.replaceChildren();
    for (const { test, path } of candidate?.failed ?? []) {
      this.#draw(path, { class: "fault", "data-test": test, "stroke-width": this.ground.pen * 0.3 }, this.layers.faults);
      const [x, y] = path[Math.floor(path.length / 2)];
      element("text", { class: "fault-name", x, y: -y - this.ground.pen * 0.3 }, this.layers.faults).textContent = TESTS[test]?.name ?? test;
    }
  }

  /** Show one of the other candidates; null ends that. */
  lookAt(candidate) {
    for (const old of this.layers.chunks.querySelectorAll(".looked-at")) old.remove();
    this.svg.classList.toggle("looking", Boolean(candidate));
    if (candidate) this.#draw(candidate.path, { class: "looked-at", "stroke-width": this.ground.pen * 0.1 }, this.layers.chunks);
    this.#fail(candidate ?? this.shown?.candidates?.[0]);
  }

  /** A drive: the states [n, D] so far, new plans made on the way, and perhaps a round of the denoising of another. */
  showDrive({ states, replans, frame }) {
    const { trail, movers } = this.layers;
    const { pen } = this.ground;
    const picked = this.view.pick(this.view.whole);
    if (!this.movers) {
      trail.replaceChildren();
      movers.replaceChildren();
      this.replans = element("g", {}, trail);
      this.drawn = [];
      this.driven = picked.map((_, thing) => element("path", { class: `driven ${thing ? "second" : ""}`, "stroke-width": pen * 0.06 }, trail));
      this.movers = picked.map((_, thing) => element("circle", { class: thing ? "agent ball" : "agent", r: pen * (thing ? 0.12 : 0.14), "stroke-width": pen * 0.04 }, movers));
      this.svg.classList.add("driving");
    }
    if (this.drawn.length !== replans.length || this.drawn.some((each, i) => each !== replans[i])) {
      this.drawn = replans;
      this.replans.replaceChildren();
      replans.forEach(({ states: again, repaired, certified }, i) => {
        const last = i === replans.length - 1;
        const kind = `replan ${repaired ? "repair" : ""} ${certified ? "" : "uncertified"} ${last ? "" : "past"}`;
        for (const way of paths(again, picked)) element("path", { class: kind, d: line(way), "stroke-width": pen * (repaired && last ? 0.1 : 0.05), "stroke-dasharray": `${pen * 0.12} ${pen * 0.12}` }, this.replans);
      });
      this.svg.classList.toggle("repaired", replans.some(({ repaired }) => repaired));
    }
    paths(states, picked).forEach((way, thing) => {
      this.driven[thing].setAttribute("d", line(way));
      const [x, y] = way.at(-1);
      this.movers[thing].setAttribute("cx", x);
      this.movers[thing].setAttribute("cy", -y);
    });
    if (frame) this.showFrame(frame, trail);
    else {
      trail.querySelector(".wave")?.remove();
      this.wave = null;
    }
  }

  endDrive() {
    for (const name of ["trail", "movers"]) this.layers[name].replaceChildren();
    this.movers = null;
    this.svg.classList.remove("driving", "repaired");
  }

  /** Where on the map a pointer is, in the ground's units. */
  point({ clientX, clientY }) {
    const at = new DOMPoint(clientX, clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [at.x, -at.y];
  }
}
