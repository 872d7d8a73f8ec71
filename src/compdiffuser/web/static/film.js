// What happened, kept: every round of denoising and every step of a drive, to be looked at again at any speed.

export const RATE = 120; // ticks in a second; moments last whole ticks, so that sums of them are exact
const FRAME_TICKS = 12; // that a round of denoising is shown
const STEP_TICKS = 1; // that a step of a drive is shown
const MOST_FRAMES = 2000; // later ones are shown but not kept

export class Film {
  constructor() {
    this.frames = []; // rounds of denoising, then the plan
    this.steps = []; // rounds and steps of the drive
    this.states = []; // of the drive, [n, D]
    this.qpos = [];
    this.replans = []; // new plans on the way: states, the waypoints that they have still to pass, whether they are repairs, and certified
    this.changes = []; // regions and waypoints that were changed on the way: all that hold from a step on
  }

  /** The same up to a step of the drive; without one, all but the drive. */
  until(step = -1) {
    const film = new Film();
    const last = this.steps.findIndex((moment) => !moment.frame && moment.step > step);
    const cut = Object.assign(film, { frames: this.frames, states: this.states.slice(0, step + 1), qpos: this.qpos.slice(0, step + 1) });
    cut.steps = step < 0 ? [] : this.steps.slice(0, last < 0 ? undefined : last + 1);
    cut.replans = this.replans.slice(0, cut.steps.at(-1)?.replans ?? 0);
    cut.changes = this.changes.filter((change) => change.step <= step);
    return cut;
  }

  /** A moment is what is shown at some time: `end` is when it ends, in ticks of its part. */
  #add(list, moment, ticks) {
    list.push({ ...moment, end: (list.at(-1)?.end ?? 0) + ticks });
  }

  addFrame(frame, driving = false) {
    const list = driving ? this.steps : this.frames;
    if (list.length >= MOST_FRAMES && !driving) return;
    const packed = { ...frame, rows: Uint16Array.from(frame.rows), points: Int32Array.from(frame.points) };
    this.#add(list, { frame: packed, text: frame.text, step: this.states.length, replans: this.replans.length }, FRAME_TICKS);
  }

  addPlan(text) {
    this.#add(this.frames, { plan: true, text }, 4 * FRAME_TICKS);
  }

  addSteps(states, qpos = []) {
    states.forEach((state, i) => {
      this.states.push(state);
      this.qpos.push(qpos[i] ?? null);
      this.#add(this.steps, { step: this.states.length, replans: this.replans.length, text: `step ${this.states.length - 1}` }, STEP_TICKS);
    });
  }

  addReplan(replan) {
    this.replans.push(replan);
  }

  /** Ticks until the drive begins, and altogether. */
  get cut() { return this.frames.at(-1)?.end ?? 0; }

  get ticks() { return this.cut + (this.steps.at(-1)?.end ?? 0); }

  /** What is shown at a time; `share` says how much of a step of the drive has passed. */
  at(ticks) {
    const driving = this.steps.length > 0 && ticks > this.cut;
    const list = driving ? this.steps : this.frames;
    const time = driving ? ticks - this.cut : ticks;
    let [low, high] = [0, list.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle].end < time) low = middle + 1;
      else high = middle;
    }
    const moment = list[low];
    if (!moment) return null;
    const share = moment.frame ? 1 : Math.min(1, Math.max(0, 1 - (moment.end - time) / STEP_TICKS));
    return { ...moment, driving, share };
  }
}
