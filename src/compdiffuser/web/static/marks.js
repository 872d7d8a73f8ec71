// Start and goal of everything that moves, and waypoints with their numbers: marks that are dragged, placed by a click, or
// moved with the arrow keys. Walls refuse them.

import { element } from "./board.js";
import { rounded } from "./ground.js";

const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
const REFUSED_MS = 900; // that a mark shows that it was refused

export class Marks {
  /** `move(mark, point)` is told of every allowed move, `hint(sentence)` of every refused one; `add(point)` and `remove(mark)` of waypoints. */
  constructor(board, { move, hint, add, remove }) {
    Object.assign(this, { board, move, hint, add, remove, next: 0, drawn: [], stops: [] });
    board.svg.addEventListener("pointerdown", (event) => this.#press(event));
  }

  setView({ marks }) {
    this.board.layers.marks.replaceChildren();
    this.next = 0;
    this.stops = [];
    this.drawn = marks.map((mark) => this.#make(mark));
    this.board.resize();
  }

  #make(mark) {
    const { pen, left, width } = this.board.ground;
    const drawn = element("g", {
      class: `mark ${mark.end} ${mark.id} ${mark.thing ? "second" : ""}`, tabindex: 0, role: "slider", "aria-roledescription": "mark on the map",
      "aria-label": mark.label, "aria-valuemin": left, "aria-valuemax": left + width,
    }, this.board.layers.marks);
    drawn.mark = mark;
    element("circle", { class: "target", r: pen * 0.4 }, drawn);
    element("circle", { class: "halo", r: pen * 0.4, "stroke-width": pen * 0.08 }, drawn);
    element("circle", { class: "disc", r: pen * (mark.thing ? 0.22 : 0.27), "stroke-width": pen * 0.05 }, drawn);
    element("text", { "font-size": pen * (mark.thing ? 0.24 : 0.3) }, drawn).textContent = mark.letter;
    drawn.addEventListener("keydown", (event) => this.#key(drawn, event));
    drawn.addEventListener("blur", () => drawn.classList.remove("refused"));
    return drawn;
  }

  /** Put all marks where start, goal and waypoints say. */
  show(ends) {
    for (const drawn of this.drawn) this.#put(drawn, drawn.mark.at.map((place) => ends[drawn.mark.end][place]));
    while (this.stops.length > ends.via.length) this.stops.pop().remove();
    while (this.stops.length < ends.via.length) {
      const stop = this.stops.length;
      this.stops.push(this.#make({ id: `via-${stop + 1}`, end: "via", stop, thing: 0, label: `Waypoint ${stop + 1}`, name: `waypoint ${stop + 1}`, letter: stop + 1 }));
      this.board.resize();
    }
    this.stops.forEach((drawn, stop) => this.#put(drawn, ends.via[stop]));
  }

  #put(drawn, [x, y]) {
    drawn.setAttribute("transform", `translate(${x} ${-y})`);
    drawn.setAttribute("aria-valuenow", x);
    drawn.setAttribute("aria-valuetext", `x ${x}, y ${y}`);
    drawn.point = [x, y];
  }

  /** Move to a point, or say why not. */
  #try(drawn, point, slide) {
    const { ground } = this.board;
    const reason = ground.refusal(point);
    const allowed = reason && slide ? ground.nudged(point) : point;
    const refused = Boolean(reason) && !(slide && allowed);
    drawn.classList.toggle("refused", refused);
    clearTimeout(drawn.timer);
    if (refused) {
      drawn.timer = setTimeout(() => drawn.classList.remove("refused"), REFUSED_MS);
      this.hint(`The ${drawn.mark.name} ${reason}. Choose another place.`);
      return false;
    }
    this.move(drawn.mark, rounded(allowed));
    return true;
  }

  #key(drawn, event) {
    if (drawn.mark.end === "via" && (event.key === "Delete" || event.key === "Backspace")) {
      event.preventDefault();
      this.remove(drawn.mark);
      (this.stops[Math.min(drawn.mark.stop, this.stops.length - 1)] ?? this.drawn[0]).focus({ preventScroll: true });
      return;
    }
    const direction = ARROWS[event.key];
    if (!direction) return;
    event.preventDefault();
    const step = this.board.ground.unit * (event.shiftKey ? 1 : 0.25);
    const [x, y] = drawn.point;
    this.#try(drawn, [x + direction[0] * step, y + direction[1] * step], false);
  }

  #press(event) {
    if (event.button !== 0 || !this.drawn.length) return;
    const held = event.target.closest?.(".mark");
    if (this.board.tool && !held) {
      if (this.board.tool === "waypoint") this.place(this.board.point(event), event);
      return;
    }
    const drawn = held ?? this.drawn[this.next % this.drawn.length];
    if (!held && !event.target.closest?.(".layer-ground")) return;
    if (!held && event.pointerType === "touch") {
      this.#tap(drawn);
      return;
    }
    event.preventDefault();
    drawn.focus({ preventScroll: true });
    if (!held && !this.#try(drawn, this.board.point(event), true)) return;
    const drag = (move) => this.#try(drawn, this.board.point(move), true);
    const drop = () => {
      drawn.classList.remove("held", "refused");
      this.board.svg.removeEventListener("pointermove", drag);
      this.#alternate(drawn);
    };
    drawn.classList.add("held");
    this.board.svg.setPointerCapture(event.pointerId);
    this.board.svg.addEventListener("pointermove", drag);
    this.board.svg.addEventListener("lostpointercapture", drop, { once: true });
  }

  /** A new waypoint at a point or as near as a wall allows, which then has the focus. */
  place(point, event = null) {
    event?.preventDefault();
    const { ground } = this.board;
    const allowed = ground.refusal(point) ? ground.nudged(point) : point;
    if (!allowed) {
      this.hint(`A waypoint ${ground.refusal(point)}. Choose another place.`);
      return;
    }
    this.add(rounded(allowed));
    this.stops.at(-1)?.focus({ preventScroll: true });
  }

  /** A finger on the floor places a mark when it is lifted; until then it may be scrolling. */
  #tap(drawn) {
    const over = new AbortController();
    const { signal } = over;
    this.board.svg.addEventListener("pointerup", (event) => {
      over.abort();
      if (this.#try(drawn, this.board.point(event), true)) this.#alternate(drawn);
    }, { signal });
    this.board.svg.addEventListener("pointercancel", () => over.abort(), { signal });
  }

  /** After the start, a click places the goal, and so on in turn. */
  #alternate(drawn) {
    if (drawn.mark.end !== "via") this.next = (this.drawn.indexOf(drawn) + 1) % this.drawn.length;
  }
}
