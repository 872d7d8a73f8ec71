// Start and goal: two marks that are dragged, placed by a click, or moved with the arrow keys. Walls refuse them.

import { element } from "./board.js";
import { rounded } from "./maze.js";

const NAMES = { start: "Start", goal: "Goal" };
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export class Marks {
  /** `move(end, point)` is told of every allowed move, `hint(sentence)` of every refused one. */
  constructor(board, { move, hint }) {
    Object.assign(this, { board, move, hint, next: "start" });
    this.marks = {};
    for (const end of ["start", "goal"]) this.marks[end] = this.#make(end);
    board.svg.addEventListener("pointerdown", (event) => this.#press(event));
  }

  setMaze({ pen, left, width }) {
    for (const [end, mark] of Object.entries(this.marks)) {
      mark.setAttribute("aria-valuemin", left);
      mark.setAttribute("aria-valuemax", left + width);
      mark.replaceChildren();
      element("circle", { class: "halo", r: pen * 0.4, "stroke-width": pen * 0.08 }, mark);
      element("circle", { class: "disc", r: pen * 0.27, "stroke-width": pen * 0.05 }, mark);
      element("text", { "font-size": pen * 0.3 }, mark).textContent = NAMES[end][0];
    }
  }

  show(end, [x, y]) {
    const mark = this.marks[end];
    mark.setAttribute("transform", `translate(${x} ${-y})`);
    mark.setAttribute("aria-valuenow", x);
    mark.setAttribute("aria-valuetext", `x ${x}, y ${y}`);
    mark.at = [x, y];
  }

  #make(end) {
    const mark = element("g", {
      class: `mark ${end}`, tabindex: 0, role: "slider", "aria-roledescription": "mark on the map", "aria-label": NAMES[end],
    }, this.board.layers.marks);
    mark.addEventListener("keydown", (event) => this.#key(end, event));
    return mark;
  }

  /** Move to a point, or say why not. */
  #try(end, point, slide) {
    const { maze } = this.board;
    const reason = maze.refusal(point);
    const allowed = reason && slide ? maze.nudged(point) : point;
    this.marks[end].classList.toggle("refused", Boolean(reason) && !(slide && allowed));
    if (reason && !(slide && allowed)) {
      this.hint(`The ${end} ${reason}. Choose a place on open floor.`);
      return false;
    }
    this.move(end, rounded(allowed));
    return true;
  }

  #key(end, event) {
    const direction = ARROWS[event.key];
    if (!direction) return;
    event.preventDefault();
    const step = this.board.maze.unit * (event.shiftKey ? 1 : 0.25);
    const [x, y] = this.marks[end].at;
    this.#try(end, [x + direction[0] * step, y + direction[1] * step], false);
  }

  #press(event) {
    if (event.button !== 0) return;
    const held = event.target.closest?.(".mark");
    const end = held ? (held.classList.contains("start") ? "start" : "goal") : this.next;
    if (!held && event.pointerType === "touch") {
      this.#tap(end);
      return;
    }
    event.preventDefault();
    const mark = this.marks[end];
    mark.focus({ preventScroll: true });
    if (!held && !this.#try(end, this.board.point(event), true)) {
      setTimeout(() => mark.classList.remove("refused"), 700);
      return;
    }
    const drag = (move) => this.#try(end, this.board.point(move), true);
    const drop = () => {
      mark.classList.remove("held", "refused");
      this.board.svg.removeEventListener("pointermove", drag);
      this.#alternate(end);
    };
    mark.classList.add("held");
    this.board.svg.setPointerCapture(event.pointerId);
    this.board.svg.addEventListener("pointermove", drag);
    this.board.svg.addEventListener("lostpointercapture", drop, { once: true });
  }

  /** A finger on the floor places a mark when it is lifted; until then it may be scrolling. */
  #tap(end) {
    const over = new AbortController();
    const { signal } = over;
    this.board.svg.addEventListener("pointerup", (event) => {
      over.abort();
      if (this.#try(end, this.board.point(event), true)) this.#alternate(end);
      else setTimeout(() => this.marks[end].classList.remove("refused"), 700);
    }, { signal });
    this.board.svg.addEventListener("pointercancel", () => over.abort(), { signal });
  }

  /** After the start, a click places the goal, and the other way round. */
  #alternate(end) {
    this.next = end === "start" ? "goal" : "start";
  }
}
