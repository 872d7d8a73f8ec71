// One map with its own plan: streams the denoising in, shows the result, drives along it.

import * as api from "./api.js";
import { Board } from "./board.js";
import { told } from "./hint.js";
import { Marks } from "./marks.js";

const STEPS_PER_FRAME = 4; // environment steps that the agent moves per picture
const TRIES = 5; // before a busy server is left alone

function wait(seconds, signal) {
  return new Promise((done, fail) => {
    signal.throwIfAborted();
    const timer = setTimeout(done, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); fail(signal.reason); }, { once: true });
  });
}

export class Pane {
  constructor(name, handlers) {
    this.name = name;
    this.root = document.createElement("article");
    this.root.className = "pane";
    this.root.innerHTML = "<header><strong></strong><span class='state'></span></header><progress class='idle' value='0' max='1' aria-label='Denoising'></progress>";
    [this.title, this.state] = this.root.querySelectorAll("strong, .state");
    this.progress = this.root.querySelector("progress");
    this.board = new Board(`Map ${name}`);
    this.root.append(this.board.svg);
    this.marks = new Marks(this.board, handlers);
    this.plan = null;
  }

  setMaze(maze) {
    this.board.setMaze(maze);
    this.marks.setMaze(maze);
    this.forget();
  }

  forget() {
    this.plan = null;
    this.outcome = null;
    this.board.clear();
    this.say("");
  }

  say(sentence, mood = "") {
    this.state.textContent = sentence;
    this.state.className = `state ${mood}`;
  }

  /** Plan a problem; resolves with the plan, or null when it was stopped. */
  async run(problem, signal) {
    this.forget();
    this.say("waiting …");
    this.frames = 0;
    let doing = "";
    const listeners = {
      wave: (data) => {
        doing = `${data.refined ? "refining" : "denoising"}${data.wave > 1 ? `, wave ${data.wave}` : ""}`;
        this.board.beginWave(data.candidates, data.points, data.scale);
      },
      frame: ({ round, rounds, rows, points }) => {
        this.frames += 1;
        this.root.dataset.frames = this.frames;
        this.progress.className = "";
        this.progress.value = round / rounds;
        this.say(`${doing}: ${round ? `round ${round} of ${rounds}` : "noise"}`);
        this.board.drawFrame(rows, points);
      },
    };
    try {
      this.show(await this.#patiently(() => api.plan(problem, listeners, signal), signal));
    } catch (error) {
      this.board.clear();
      const stopped = error.name === "AbortError";
      this.say(stopped ? "stopped" : told(error), stopped ? "" : "bad");
      if (!stopped) throw error;
    } finally {
      this.progress.className = "idle";
    }
    return this.plan;
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
    this.plan = plan;
    this.board.drawPlan(plan);
    const facts = [`K ${plan.n_chunks}`, `${plan.length.toFixed(0)} m`, `${plan.seconds.toFixed(1)} s`].join(" · ");
    this.say(`${plan.ok ? "certified" : "not certified"} · ${facts}`, plan.ok ? "good" : "bad");
  }

  /** Follow the plan in the real environment, the agent moving as it goes. */
  async drive(signal) {
    const { model, start, goal, states } = this.plan;
    this.board.beginDrive(start);
    this.say("driving …");
    const coming = [];
    let ended = false;
    const listeners = {
      moved: ({ path }) => coming.push(...path),
      replanning: () => this.say("the agent is lost and gets a new plan …"),
      replanned: ({ states: again }) => {
        this.board.drawReplan(again);
        this.say("driving on …");
      },
    };
    const arrival = this.#animate(coming, () => signal.aborted || (ended && !coming.length));
    try {
      const outcome = await api.drive({ model, start, goal, states }, listeners, signal);
      ended = true;
      await arrival;
      signal.throwIfAborted();
      this.outcome = outcome;
      this.say(outcome.sentence, outcome.success ? "good" : "bad");
      return outcome;
    } catch (error) {
      ended = true;
      coming.length = 0;
      await arrival;
      if (this.plan) this.say(error.name === "AbortError" ? "the drive was stopped" : told(error), "bad");
      throw error;
    }
  }

  async #animate(coming, over) {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    while (!over()) {
      await new Promise((next) => requestAnimationFrame(next));
      // A page in the background gets few pictures; it catches up instead of falling behind.
      const count = still ? coming.length : Math.max(STEPS_PER_FRAME, Math.ceil(coming.length / 120));
      if (coming.length) this.board.moveAgent(coming.splice(0, count));
    }
  }
}
