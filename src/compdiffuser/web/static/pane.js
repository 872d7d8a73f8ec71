// One map with its own plan: streams the denoising in, shows the result, drives along it, and plays all that again.

import * as api from "./api.js";
import { Board } from "./board.js";
import { Film } from "./film.js";
import { told } from "./hint.js";
import { Marks } from "./marks.js";
import { Regions } from "./regions.js";
import { Timeline } from "./timeline.js";

const OWN = ["way", "states", "n_chunks", "length", "score", "confidence", "verdict", "why", "origin", "candidates", "fault", "ok"]; // what plans to choose from have of their own
const TRIES = 5; // before a busy server is left alone
const REASONS = {
  closed: "a region is in the way, and the plan is repaired …",
  changed: "regions or waypoints have changed, and a new plan is made …",
  lost: "the agent is lost and gets a new plan …",
};

function wait(seconds, signal) {
  return new Promise((done, fail) => {
    signal.throwIfAborted();
    const timer = setTimeout(done, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); fail(signal.reason); }, { once: true });
  });
}

/** All plans to choose from, the chosen one among them, in the order in which they came. */
export function choices(plan) {
  const chosen = Object.fromEntries(OWN.map((key) => [key, plan[key]]));
  return [chosen, ...(plan.others ?? [])].sort((a, b) => a.way - b.way);
}

export class Pane {
  constructor(name, handlers) {
    this.name = name;
    this.root = document.createElement("article");
    this.root.className = "pane";
    this.root.innerHTML = `
      <header><h2></h2><span class='stale' hidden>settings changed since</span><span class='state'></span></header>
      <progress class='idle' value='0' max='1' aria-label='Denoising'></progress>
      <div class='stage'></div>
      <div class='below'><span class='scale'><i></i><b></b></span><output class='coords' aria-hidden='true'></output></div>`;
    const find = (selector) => this.root.querySelector(selector);
    [this.title, this.state, this.stale] = [find("h2"), find(".state"), find(".stale")];
    [this.progress, this.stage] = [find("progress"), find(".stage")];
    this.board = new Board(`Map ${name}`);
    this.stage.append(this.board.svg);
    this.marks = new Marks(this.board, handlers);
    this.regions = new Regions(this.board, handlers);
    this.board.onWay = (way) => handlers.choose(this, way);
    this.timeline = new Timeline(`plan ${name}`, (moment) => this.draw(moment));
    this.root.append(this.timeline.root);
    this.#measure(find(".coords"), find(".scale"));
    this.plan = null;
  }

  /** Coordinates at the pointer, and a length to compare with. */
  #measure(coords, scale) {
    this.board.svg.addEventListener("pointermove", (event) => {
      const { ground, view } = this.board;
      const [x, y] = this.board.point(event);
      const inside = x >= ground.left && x <= ground.right && y >= ground.bottom && y <= ground.top;
      coords.textContent = inside ? `${view.labels[0]} ${x.toFixed(2)}, ${view.labels[1]} ${y.toFixed(2)}` : "";
    });
    this.board.svg.addEventListener("pointerleave", () => { coords.textContent = ""; });
    this.board.onScale = ({ length, pixels }) => {
      scale.querySelector("i").style.width = `${pixels}px`;
      scale.querySelector("b").textContent = `${length}${this.board.ground.metres ? " m" : ""}`;
    };
  }

  setView(view) {
    this.setSpace(null);
    this.view = view;
    this.board.setView(view);
    this.marks.setView(view);
    this.forget();
  }

  forget() {
    this.plan = null;
    this.failed = false;
    this.outcome = null;
    this.film = null;
    this.timeline.clear();
    this.board.clear();
    this.space?.clear();
    this.stale.hidden = true;
    this.say("");
  }

  /** Draw in three dimensions with `space`; null: on the map. */
  setSpace(space, described = null) {
    if (!space && !this.space) return;
    this.space?.close();
    this.space = space;
    this.stage.classList.toggle("deep", Boolean(space));
    if (space) {
      this.stage.append(space.root);
      space.setWorld(this.view, described);
    }
    const moment = this.film?.at(this.timeline.time);
    if (moment) this.draw(moment);
  }

  say(sentence, mood = "") {
    this.state.textContent = sentence;
    this.state.className = `state ${mood}`;
  }

  /** Draw a moment of the film. */
  draw(moment) {
    if (this.space) this.space.draw(this, moment);
    else this.#drawMap(moment);
  }

  #drawMap(moment) {
    if (!moment.driving) {
      if (moment.frame) this.board.showFrame(moment.frame);
      else if (this.plan) {
        this.board.showPlan(this.plan);
        this.board.endDrive();
      }
    } else {
      this.board.showPlan(this.plan);
      const { states, replans } = this.film;
      this.board.showDrive({ states: states.slice(0, Math.max(1, moment.step)), replans: replans.slice(0, moment.replans), frame: moment.frame });
    }
  }

  /** Plan a problem; resolves with the plan, or null when it was stopped. */
  async run(problem, signal) {
    this.forget();
    this.say("waiting …");
    this.film = new Film();
    this.timeline.load(this.film, true);
    const listeners = this.#denoising((frame) => {
      this.root.dataset.frames = Number(this.root.dataset.frames ?? 0) + 1;
      this.film.addFrame(frame);
      this.timeline.grown(false);
    }, (text) => this.say(text));
    try {
      this.show(await this.#patiently(() => api.plan(problem, listeners, signal), signal));
    } catch (error) {
      this.timeline.clear();
      this.board.clear();
      const stopped = error.name === "AbortError";
      this.say(stopped ? "stopped" : told(error), stopped ? "" : "bad");
      if (!stopped) throw error;
    } finally {
      this.progress.className = "idle";
    }
    return this.plan;
  }

  /** Listeners that turn the server's waves and rounds into frames of a film. */
  #denoising(add, say) {
    let [wave, doing] = [null, ""];
    return {
      wave: (data) => {
        wave = data;
        doing = `${data.refined ? "refining" : "denoising"}${data.wave > 1 ? `, wave ${data.wave}` : ""}`;
      },
      frame: ({ round, rounds, rows, points }) => {
        this.progress.className = "";
        this.progress.value = round / rounds;
        const when = round ? `round ${round} of ${rounds}` : "noise";
        say(`${doing}: ${when}`);
        add({ wave, rows, points, text: `${wave.wave > 1 ? `wave ${wave.wave}, ` : ""}${wave.refined ? "refined, " : ""}${when}` });
      },
    };
  }

  async #patiently(attempt, signal) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await attempt();
      } catch (error) {
        if (error.status !== 429 || tries === TRIES) throw error;
        this.say(`the server is busy, trying again in ${error.retryAfter} s`);
        await wait(Math.min(error.retryAfter, 10), signal);
      }
    }
  }

  show(plan) {
    this.film ??= new Film();
    this.film.addPlan("the plan");
    const others = (plan.others ?? []).map((other, i) => ({ way: i + 2, ok: true, ...other }));
    this.bring({ plan: { way: 1, ...plan, others }, film: this.film, outcome: null });
  }

  /** Take another one of the plans to choose from. */
  choose(way) {
    const all = choices(this.plan);
    const picked = all.find((each) => each.way === way);
    if (!picked || way === this.plan.way) return;
    const told = { why: `You chose it among ${all.length} plans that take different ways.`, origin: null, candidates: null, fault: null, ...picked };
    this.bring({ plan: { ...this.plan, ...told, others: all.filter((each) => each !== picked) }, film: this.film.until(), outcome: null });
  }

  /** What was shown before, with its film. */
  bring({ plan, film, outcome }) {
    Object.assign(this, { plan, film, outcome });
    this.timeline.load(film);
    this.timeline.seek(film.ticks);
    const facts = [`K ${plan.n_chunks}`, `${plan.length.toFixed(0)} m`, `${plan.seconds.toFixed(1)} s`].join(" · ");
    this.say(`${plan.ok ? "certified" : "not certified"} · ${facts}`, plan.ok ? "good" : "bad");
  }

  /** Show one of the other candidates beside the plan; null ends that. */
  lookAt(candidate) {
    if (candidate && !this.board.shown) this.timeline.seek(this.film.cut);
    this.board.lookAt(candidate);
  }

  /** The step of a drive that is shown while the agent is on its way; null otherwise. */
  get step() {
    const moment = this.plan && this.film?.at(this.timeline.time);
    const underWay = moment?.driving && (this.timeline.live || this.failed || moment.step < this.film.states.length);
    return underWay ? Math.max(moment.step - 1, 0) : null;
  }

  /** Whether the plan was made for these regions and waypoints. */
  madeFor({ avoid, via }) {
    const { avoid: kept = [], via: passed = [] } = this.plan;
    return kept.join() === avoid.join() && passed.join() === via.join();
  }

  /** Follow the plan in the real environment, the agent moving as it goes; `steering` is what is drawn by now. */
  async drive(steering, signal) {
    this.film = this.film.until();
    this.film.addSteps([this.#begin(this.plan.states[0])]);
    if (!this.madeFor(steering)) this.film.changes.push({ step: 0, ...steering });
    this.say("driving …");
    return this.#follow(signal);
  }

  /** Regions or waypoints change at a step of the drive: it goes on from there with a plan that fits them. */
  async steer(steering, step, signal) {
    this.film = this.film.until(step);
    this.film.changes.push({ step, ...steering });
    this.outcome = null;
    this.say("regions or waypoints have changed …");
    return this.#follow(signal);
  }

  /** Drive on where the film ends: the server drives the same up to there, with the plans that it made. */
  async #follow(signal) {
    const { film, timeline } = this;
    this.failed = false;
    this.board.endDrive();
    timeline.load(film, true);
    timeline.seek(film.ticks);
    let known = film.states.length - 1;
    let why = "";
    const listeners = {
      ...this.#denoising((frame) => { film.addFrame(frame, true); timeline.grown(true); }, () => this.say(why)),
      moved: ({ path, qpos = [] }) => {
        const again = Math.min(known, path.length);
        known -= again;
        film.addSteps(path.slice(again), qpos.slice(again));
        timeline.grown(true);
      },
      replanning: ({ reason }) => {
        why = REASONS[reason];
        this.say(why);
      },
      replanned: ({ states: again, via, ok }) => {
        film.addReplan({ states: again, via, repaired: why !== REASONS.lost, certified: ok });
        this.say(ok ? "driving on …" : "driving on, along a plan that is not certified …");
      },
    };
    try {
      const outcome = await api.drive(this.#request(film), listeners, signal);
      await timeline.close(signal);
      signal.throwIfAborted();
      this.outcome = outcome;
      this.say(outcome.sentence, outcome.success ? "good" : "bad");
      return outcome;
    } catch (error) {
      timeline.pause();
      timeline.live = false;
      this.failed = error.name !== "AbortError"; // other regions may lead on
      if (this.plan) this.say(error.name === "AbortError" ? "the drive was stopped" : told(error), "bad");
      throw error;
    } finally {
      this.progress.className = "idle";
    }
  }

  #request({ replans, changes }) {
    const { model, start, goal, states, via = [], avoid = [] } = this.plan;
    const round = (state) => state.map((value) => Math.round(value * 1000) / 1000);
    const made = replans.map(({ states: again, via: stops }) => ({ states: again, via: stops }));
    return { model, start, goal, states: states.map(round), via, avoid, changes, made };
  }

  /** Where a drive begins: as the plan does, in the places that were given. */
  #begin(first) {
    const { start_columns: columns } = this.view.model;
    const state = [...first];
    const given = this.plan.start;
    if (given.length === state.length) return [...given];
    columns.forEach((column, i) => { state[column] = given[i]; });
    return state;
  }
}
