// The ground under a plan: a maze as the server describes it, or the plain that its data covers.

/** What both have in common: a rectangle in the data's units, and room for marks. */
class Ground {
  constructor(left, bottom, width, height, unit, clearance) {
    Object.assign(this, { left, bottom, width, height, unit, clearance });
    this.pen = Math.max(Math.min(unit, 0.11 * width), 0.02 * width); // what marks and lines are measured in: small mazes need no giant marks
  }

  get right() { return this.left + this.width; }

  get top() { return this.bottom + this.height; }
}

export class Maze extends Ground {
  constructor({ rows, unit, origin, row_sign: rowSign, clearance }) {
    const last = origin[1] + (rows.length - 1) * unit * rowSign;
    super(origin[0] - unit / 2, Math.min(origin[1], last) - unit / 2, rows[0].length * unit, rows.length * unit, unit, clearance);
    Object.assign(this, { rows, origin, rowSign, metres: true });
  }

  /** Row and column of the cell in which a point lies. */
  cell([x, y]) {
    const row = Math.floor(((y - this.origin[1]) / this.unit) * this.rowSign + 0.5);
    return [row, Math.floor((x - this.origin[0]) / this.unit + 0.5)];
  }

  /** Centre of a cell. */
  center([row, column]) {
    return [this.origin[0] + column * this.unit, this.origin[1] + row * this.unit * this.rowSign];
  }

  /** Centres of all walls. */
  walls() {
    return this.rows.flatMap((row, i) => [...row].flatMap((mark, j) => (mark === "#" ? [this.center([i, j])] : [])));
  }

  isWall([row, column]) {
    return (this.rows[row]?.[column] ?? "#") === "#";
  }

  isOutside([row, column]) {
    return this.rows[row]?.[column] === undefined;
  }

  /** Why a mark cannot stand at a point, or null where it can. */
  refusal([x, y]) {
    if (!Number.isFinite(x) || !Number.isFinite(y)) return "needs numbers for x and y";
    if (this.isOutside(this.cell([x, y]))) return "lies outside the maze";
    if (this.isWall(this.cell([x, y]))) return "cannot stand in a wall";
    const near = this.clearance;
    const corners = [[-near, -near], [-near, near], [near, -near], [near, near]];
    const touches = corners.some(([dx, dy]) => this.isWall(this.cell([x + dx, y + dy])));
    return touches ? "is too close to a wall" : null;
  }

  /** The allowed point nearest to an unallowed one in the same free cell; null inside a wall. */
  nudged([x, y]) {
    const cell = this.cell([x, y]);
    if (this.isWall(cell)) return null;
    const [cx, cy] = this.center(cell);
    const room = this.unit / 2 - this.clearance;
    const clamp = (value, middle) => Math.min(Math.max(value, middle - room), middle + room);
    const [xx, yy] = [clamp(x, cx), clamp(y, cy)];
    for (const point of [[x, yy], [xx, y], [xx, yy]]) if (!this.refusal(point)) return point;
    return [cx, cy];
  }
}

/** Two dimensions of a planned state, with recorded points where they are known. */
export class Plain extends Ground {
  constructor(low, high, points = [], metres = false) {
    const [width, height] = [0, 1].map((axis) => Math.max(high[axis] - low[axis], 1e-6));
    const edge = 0.06 * Math.max(width, height);
    super(low[0] - edge, low[1] - edge, width + 2 * edge, height + 2 * edge, Math.max(width, height) / 12, 0);
    Object.assign(this, { low, high, points, metres });
  }

  walls() {
    return [];
  }

  refusal(point) {
    if (!point.every(Number.isFinite)) return "needs numbers for both dimensions";
    return point.some((value, axis) => value < this.low[axis] || value > this.high[axis]) ? "lies outside the data" : null;
  }

  nudged(point) {
    return point.map((value, axis) => Math.min(Math.max(value, this.low[axis]), this.high[axis]));
  }
}

/** Round numbers from low to high, about so many. */
export function ticks(low, high, count) {
  const rough = (high - low) / count;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 5, 10].find((factor) => factor * size >= rough);
  const first = Math.ceil(low / step);
  const found = Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => Number(((first + i) * step).toFixed(6)));
  return { step, found };
}

/** Two decimals are a centimetre, finer than anybody points. */
export const rounded = (point) => point.map((value) => Math.round(value * 100) / 100);
