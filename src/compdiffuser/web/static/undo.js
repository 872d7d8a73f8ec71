// Undo: what the page was before each change, plans included, since they take longest to make again.

const MOST = 50;
const SAME_MS = 800; // changes of one kind that follow so soon are one

export class Undo {
  constructor() {
    this.kept = [];
    this.last = { kind: "", at: 0 };
  }

  /** Keep what `now()` gives, before a change of some kind. */
  keep(kind, now) {
    const at = performance.now();
    const same = kind === this.last.kind && at - this.last.at < SAME_MS;
    this.last = { kind, at };
    if (same) return;
    this.kept.push(now());
    if (this.kept.length > MOST) this.kept.shift();
  }

  get possible() { return this.kept.length > 0; }

  take() {
    this.last = { kind: "", at: 0 };
    return this.kept.pop();
  }
}
