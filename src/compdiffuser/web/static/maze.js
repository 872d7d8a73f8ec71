// A maze as the server describes it: where its walls are, and where an agent has room.

export class Maze {
  constructor({ rows, unit, origin, row_sign: rowSign, clearance }) {
    Object.assign(this, { rows, unit, origin, rowSign, clearance });
    const last = origin[1] + (rows.length - 1) * unit * rowSign;
    this.left = origin[0] - unit / 2;
    this.bottom = Math.min(origin[1], last) - unit / 2;
    this.width = rows[0].length * unit;
    this.height = rows.length * unit;
    this.pen = Math.max(Math.min(unit, 0.11 * this.width), 0.02 * this.width); // what marks and lines are measured in: small mazes need no giant marks
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

/** Two decimals are a centimetre, finer than anybody points. */
export const rounded = (point) => point.map((value) => Math.round(value * 100) / 100);
