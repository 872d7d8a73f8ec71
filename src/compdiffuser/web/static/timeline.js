// Play, pause, scrub and speed for one film. While something is under way it follows the newest moment, until someone
// pauses or scrubs. Times are ticks of the film.

import { RATE } from "./film.js";

const SPEEDS = [0.1, 0.25, 0.5, 1, 2, 4];
const BEHIND = 3; // seconds that a live film may lag before it is played faster

export const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export class Timeline {
  /** `show(moment)` draws what is shown at a time. */
  constructor(name, show) {
    this.show = show;
    this.root = document.createElement("div");
    this.root.className = "timeline";
    this.root.innerHTML = `
      <button type="button" class="play" aria-label="Play">▶</button>
      <span class="track"><input type="range" min="0" max="0" value="0" step="1" aria-label="Time in ${name}" /></span>
      <output class="when"></output>
      <label class="speed"><span class="hidden">Speed</span><select>${SPEEDS.map((speed) => `<option value="${speed}" ${speed === 1 ? "selected" : ""}>${speed}×</option>`).join("")}</select></label>`;
    [this.button, this.range, this.when, this.speed] = this.root.querySelectorAll(".play, input, .when, select");
    this.button.addEventListener("click", () => (this.playing ? this.pause() : this.play()));
    this.range.addEventListener("input", () => {
      const to = this.range.valueAsNumber;
      this.pause();
      this.seek(to);
    });
    this.clear();
  }

  clear() {
    this.film = null;
    this.time = 0;
    this.live = false;
    this.pause();
    this.refresh();
  }

  /** A film that may still grow; `live` follows it. */
  load(film, live = false) {
    this.film = film;
    this.live = live;
    this.held = false;
    this.time = live ? 0 : film.ticks;
    this.refresh();
  }

  /** Something was added. The newest round of denoising is shown at once, steps of a drive at their own pace. */
  grown(driving) {
    if (this.live && !this.held) {
      if (!driving || still()) this.seek(this.film.ticks);
      else if (!this.playing) this.play();
    }
    this.refresh();
  }

  /** Nothing will be added any more. */
  async close(signal) {
    while (!signal.aborted && this.live && this.playing && this.time < this.film.ticks) await new Promise((next) => requestAnimationFrame(next));
    this.live = this.held = false;
    this.refresh();
  }

  seek(time) {
    this.time = Math.min(Math.max(time, 0), this.film?.ticks ?? 0);
    const moment = this.film?.at(this.time);
    if (moment) this.show(moment);
    this.refresh();
  }

  play() {
    if (!this.film) return;
    this.held = false;
    if (!this.live && this.time >= this.film.ticks) this.time = 0;
    this.playing = true;
    this.refresh();
    this.last = performance.now();
    const tick = (now) => {
      if (!this.playing) return;
      const passed = ((now - this.last) / 1000) * RATE * Number(this.speed.value);
      this.last = now;
      // A page in the background gets few pictures; a live film catches up instead of falling behind.
      const behind = this.live && this.speed.value >= 1 ? this.film.ticks - this.time : 0;
      this.seek(this.time + passed * Math.max(1, behind / (RATE * BEHIND)));
      if (this.time >= this.film.ticks && !this.live) this.pause();
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  pause() {
    this.held = Boolean(this.live);
    this.playing = false;
    this.refresh();
  }

  refresh() {
    const ticks = this.film?.ticks ?? 0;
    this.root.classList.toggle("empty", ticks === 0);
    this.button.disabled = this.range.disabled = ticks === 0;
    this.button.textContent = this.playing ? "❚❚" : "▶";
    this.button.setAttribute("aria-label", this.playing ? "Pause" : "Play");
    this.range.max = ticks;
    this.range.value = Math.round(this.time);
    const moment = this.film?.at(this.time);
    const text = moment ? `${moment.driving ? "drive" : "denoising"}: ${moment.text}` : "";
    this.when.textContent = text;
    this.range.setAttribute("aria-valuetext", text);
    this.root.style.setProperty("--cut", ticks && this.film.steps.length ? `${(100 * this.film.cut) / ticks}%` : "100%");
  }
}
