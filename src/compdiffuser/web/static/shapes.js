// Regions as the server writes them, such as disc:x,y,r and box:x0,y0,x1,y1: read, drawn, moved and made larger.

import { element } from "./board.js";
import { rounded } from "./ground.js";

const SIZES = { disc: (count) => count === 3, box: (count) => count === 4, polygon: (count) => count >= 6 && count % 2 === 0 };
const MOST_NUMBERS = 200;
const NAMES = { disc: "Disc", box: "Box", polygon: "Polygon" };

/** The shape of a text; null where it is none that can be drawn. */
export function parse(text) {
  const [, kind, written, of = ""] = /^(\w+):([^@~]+)(@\w+)?$/.exec(text) ?? [];
  const numbers = (written ?? "").split(",").map((part) => (part.trim() ? Number(part) : NaN));
  const sound = SIZES[kind]?.(numbers.length) && numbers.length <= MOST_NUMBERS && numbers.every(Number.isFinite);
  if (!sound || (kind === "disc" && !(numbers[2] > 0))) return null;
  const [x, y, u, v] = numbers; // any two opposite corners are a box
  return { kind, numbers: kind === "box" ? [Math.min(x, u), Math.min(y, v), Math.max(x, u), Math.max(y, v)] : numbers, of };
}

export const write = ({ kind, numbers, of = "" }) => `${kind}:${rounded(numbers).join(",")}${of}`;

/** What a pointer draws from one point to another; null where that is too small to be meant. */
export function drawn(kind, [x, y], [u, v], least) {
  const far = Math.hypot(u - x, v - y);
  if (far < least) return null;
  if (kind === "disc") return { kind, numbers: [x, y, far] };
  const away = (from, to) => (Math.abs(to - from) < least ? from + Math.sign(to - from || 1) * least : to);
  const [p, q] = [away(x, u), away(y, v)];
  return { kind, numbers: [Math.min(x, p), Math.min(y, q), Math.max(x, p), Math.max(y, q)] };
}

/** A shape of a usual size around a point. */
export function around(kind, [x, y], size) {
  return { kind, numbers: kind === "disc" ? [x, y, size] : [x - size, y - size, x + size, y + size] };
}

/** Numbers that are coordinates move, a radius does not. */
export function moved(shape, [dx, dy]) {
  const last = shape.kind === "disc" ? 2 : shape.numbers.length;
  return { ...shape, numbers: shape.numbers.map((value, i) => (i >= last ? value : value + (i % 2 ? dy : dx))) };
}

/** Larger or smaller by so much on every side, but never smaller than `least`. */
export function scaled(shape, by, least) {
  const [a, b, c, d] = shape.numbers;
  if (shape.kind === "disc") return { ...shape, numbers: [a, b, Math.max(least, c + by)] };
  if (shape.kind !== "box" || Math.min(c - a, d - b) + 2 * by < 2 * least) return shape;
  return { ...shape, numbers: [a - by, b - by, c + by, d + by] };
}

/** With its handle drawn to a point. */
export function stretched(shape, [x, y], least) {
  const [a, b] = shape.numbers;
  if (shape.kind === "disc") return { ...shape, numbers: [a, b, Math.max(least, Math.hypot(x - a, y - b))] };
  return { ...shape, numbers: [a, b, Math.max(a + least, x), Math.max(b + least, y)] };
}

/** Where the handle is that makes it larger; null where it has none. */
export function handle({ kind, numbers: [a, b, c, d] }) {
  if (kind === "disc") return [a + c * Math.SQRT1_2, b + c * Math.SQRT1_2];
  return kind === "box" ? [c, d] : null;
}

export function center({ kind, numbers }) {
  if (kind === "disc") return numbers.slice(0, 2);
  const [x, y] = [0, 1].map((axis) => numbers.filter((_, i) => i % 2 === axis));
  return [x, y].map((values) => (Math.min(...values) + Math.max(...values)) / 2);
}

/** In words, for screen readers. */
export function told({ kind, numbers }) {
  const [a, b, c, d] = rounded(numbers);
  if (kind === "disc") return `centre x ${a}, y ${b}, radius ${c}`;
  return kind === "box" ? `x from ${a} to ${c}, y from ${b} to ${d}` : `${numbers.length / 2} corners`;
}

export const named = ({ kind }, index) => `${NAMES[kind]} to avoid, region ${index + 1}`;

/** Its outline as an SVG element. */
export function outline({ kind, numbers }, attributes, parent) {
  const [a, b, c, d] = numbers;
  if (kind === "disc") return element("circle", { ...attributes, cx: a, cy: -b, r: c }, parent);
  if (kind === "box") return element("rect", { ...attributes, x: a, y: -d, width: c - a, height: d - b }, parent);
  const corners = Array.from({ length: numbers.length / 2 }, (_, i) => `${numbers[2 * i]},${-numbers[2 * i + 1]}`);
  return element("polygon", { ...attributes, points: corners.join(" ") }, parent);
}
