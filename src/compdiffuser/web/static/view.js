// What of a planner is drawn and can be moved: the things that have a place, or any two numbers of its states.

import { Maze, Plain } from "./ground.js";

const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** Whether anything of a planner can be drawn. */
export const drawable = ({ dim }) => dim >= 2;

export class View {
  /** `axes` are two columns of a planned state; null: everything that has a place, from above. */
  constructor(model, axes = null) {
    const flat = model.groups.filter(({ columns }) => columns.length >= 2);
    const chosen = axes ?? (flat.length ? null : [0, 1]);
    this.model = model;
    this.axes = chosen;
    this.things = chosen
      ? [{ name: "state", columns: chosen }]
      : flat.map(({ name, columns }) => ({ name, columns: columns.slice(0, 2) }));
    this.columns = this.things.flatMap(({ columns }) => columns);
    this.ground = this.#ground();
    this.labels = chosen ? chosen.map((column) => model.names[column]) : ["x", "y"];
    this.marks = [...this.#marks("start", model.start_columns), ...this.#marks("goal", model.goal_columns)];
    this.flat = !chosen; // as seen from above
  }

  #ground() {
    const { maze, low, high, recorded, groups } = this.model;
    if (!this.axes && maze) return new Maze(maze);
    const [x, y] = this.things[0].columns;
    const order = groups.flatMap(({ columns }) => columns);
    const [i, j] = [order.indexOf(x), order.indexOf(y)];
    const points = recorded && i >= 0 && j >= 0 ? recorded.map((place) => [place[i], place[j]]) : [];
    const all = (numbers, best) => [0, 1].map((axis) => best(...this.things.map(({ columns }) => numbers[columns[axis]])));
    return new Plain(all(low, Math.min), all(high, Math.max), points, !this.axes);
  }

  #marks(end, given) {
    const shown = this.things
      .map((thing, index) => ({ thing, index, at: thing.columns.map((column) => given.indexOf(column)) }))
      .filter(({ at }) => at.every((place) => place >= 0));
    const several = this.things.length > 1;
    return shown.map(({ thing, index, at }, number) => ({
      id: number ? `${end}-${thing.name}` : end,
      end,
      at, // where its two numbers stand in the given start or goal
      thing: index,
      label: several ? `${capital(end)} of the ${thing.name}` : capital(end),
      name: several ? `${end} of the ${thing.name}` : end,
      letter: (index && end === "start" ? thing.name : end)[0].toUpperCase(),
    }));
  }

  /** For each thing, where its x and y stand among columns that were sent; null where they were not. */
  pick(columns) {
    return this.things.map((thing) => {
      const at = thing.columns.map((column) => columns.indexOf(column));
      return at.every((place) => place >= 0) ? at : null;
    });
  }

  /** The columns of a whole planned state. */
  get whole() {
    return Array.from({ length: this.model.dim }, (_, column) => column);
  }
}

/** Paths of each thing from rows of numbers whose columns are known: a list of [x, y] for each; null where unknown. */
export const paths = (rows, picked) => picked.map((at) => at && rows.map((row) => [row[at[0]], row[at[1]]]));
