// Regions to avoid on the map: drawn with a tool, dragged, made larger, moved with the arrow keys, deleted.

import { element } from "./board.js";
import { around, center, drawn, handle, moved, named, outline, parse, scaled, stretched, told, write } from "./shapes.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const GROW = { "+": 1, "=": 1, "-": -1 };

export class Regions {
  /** `change(avoid)` is told of the texts of all regions when one was drawn, moved or deleted; `done()` when a tool was used. */
  constructor(board, { change, done }) {
    Object.assign(this, { board, change, done, texts: [], drawn: [] });
    board.svg.addEventListener("pointerdown", (event) => this.#press(event));
  }

  /** Lengths in the ground's units: of a key press, the least and a usual size. */
  get #step() { return this.board.ground.unit * 0.25; }

  get #least() { return this.board.ground.unit * 0.08; }

  get usual() { return this.board.ground.unit * 0.3; }

  /** Draw the regions of some texts; elements stay, so that one that has the focus keeps it. */
  show(texts) {
    this.texts = [...texts];
    const { regions: layer } = this.board.layers;
    while (this.drawn.length > texts.length) this.drawn.pop().remove();
    while (this.drawn.length < texts.length) this.drawn.push(this.#make(layer));
    texts.forEach((text, index) => this.#draw(this.drawn[index], parse(text), index));
    this.board.resize();
  }

  #make(layer) {
    const made = element("g", { class: "region", tabindex: 0, role: "slider", "aria-roledescription": "region on the map" }, layer);
    made.addEventListener("keydown", (event) => this.#key(made, event));
    return made;
  }

  #draw(group, shape, index) {
    const { pen, left, right } = this.board.ground;
    group.shape = shape;
    group.replaceChildren();
    outline(shape, { class: "area", "stroke-width": pen * 0.035 }, group);
    const grip = handle(shape);
    if (grip) {
      element("circle", { class: "grip", cx: grip[0], cy: -grip[1], r: pen * 0.1, "stroke-width": pen * 0.03 }, group);
      element("circle", { class: "target grip-target", cx: grip[0], cy: -grip[1], r: pen * 0.2 }, group);
    }
    const [x] = center(shape);
    const said = { "aria-label": named(shape, index), "aria-valuemin": left, "aria-valuemax": right, "aria-valuenow": Math.round(100 * x) / 100, "aria-valuetext": told(shape) };
    for (const [key, value] of Object.entries(said)) group.setAttribute(key, value);
  }

  #set(index, shape) {
    this.change(this.texts.map((text, i) => (i === index ? write(shape) : text)));
  }

  /** A new one, which then has the focus. */
  add(shape) {
    this.change([...this.texts, write(shape)]);
    this.drawn.at(-1)?.focus({ preventScroll: true });
  }

  /** A region of a usual size at a point, for those who use no pointer. */
  place(kind, point) {
    this.add(around(kind, point, this.usual));
  }

  #key(group, event) {
    const index = this.drawn.indexOf(group);
    if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      this.change(this.texts.filter((_, i) => i !== index));
      (this.drawn[Math.min(index, this.drawn.length - 1)] ?? this.board.svg.querySelector(".mark"))?.focus({ preventScroll: true });
      return;
    }
    const [direction, grow] = [ARROWS[event.key], GROW[event.key]];
    if (!direction && !grow) return;
    event.preventDefault();
    const step = this.#step * (event.shiftKey && direction ? 4 : 1);
    this.#set(index, grow ? scaled(group.shape, (grow * step) / 2, this.#least) : moved(group.shape, direction.map((way) => way * step)));
  }

  #press(event) {
    if (event.button !== 0 || event.target.closest?.(".mark")) return;
    const { tool } = this.board;
    const from = this.board.point(event);
    if (tool === "disc" || tool === "box") {
      const preview = element("g", { class: "region drawing" }, this.board.layers.regions);
      const shape = (to) => drawn(tool, from, to, this.#least);
      const look = (to) => {
        preview.replaceChildren();
        const seen = shape(to);
        if (seen) outline(seen, { class: "area", "stroke-width": this.board.ground.pen * 0.035 }, preview);
      };
      this.#hold(event, look, (to) => {
        preview.remove();
        this.done();
        if (to) this.add(shape(to) ?? around(tool, from, this.usual));
      });
      return;
    }
    const group = event.target.closest?.(".region");
    if (!group || tool) return;
    const before = group.shape;
    const index = this.drawn.indexOf(group);
    const gripped = event.target.classList.contains("grip-target");
    const shape = (to) => (gripped ? stretched(before, to, this.#least) : moved(before, [to[0] - from[0], to[1] - from[1]]));
    group.focus({ preventScroll: true });
    let touched = false;
    this.#hold(event, (to) => {
      touched = true;
      this.#draw(group, shape(to), index);
    }, (to) => {
      if (to && touched) this.#set(index, shape(to));
      else this.#draw(group, before, index);
    });
  }

  /** Follow a pointer until it is lifted: `look(point)` on its way, `drop(point)` at its end, with null where it was taken away. */
  #hold(event, look, drop) {
    event.preventDefault();
    const { svg } = this.board;
    const over = new AbortController();
    const { signal } = over;
    let last = this.board.point(event);
    svg.setPointerCapture(event.pointerId);
    svg.addEventListener("pointermove", (move) => look(last = this.board.point(move)), { signal });
    svg.addEventListener("pointercancel", () => { over.abort(); drop(null); }, { signal });
    svg.addEventListener("lostpointercapture", () => { over.abort(); drop(last); }, { signal });
  }
}
