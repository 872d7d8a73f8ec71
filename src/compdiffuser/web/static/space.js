// The same film in three dimensions: walls, the plan as a ribbon, bodies as their simulator has them.

import { span, tone } from "./board.js";
import { Body } from "./body.js";
import * as three from "./three.js";
import { parse } from "./shapes.js";
import { paths } from "./view.js";

const WALL = 0.3; // height in cells
const TILT = 0.85; // radians above the ground from which the camera looks when it follows
const STEEP = 1.56; // the same from above
const SLOW_MS = 34; // a picture that takes longer is less than 30 a second
const REST_MS = 400; // after which a picture counts as standing still
const JUDGED = 45; // pictures after which the pace is judged

const mix = (a, b, share) => a.map((value, i) => value + (b[i] - value) * share);

/** Colours of the page: what light-dark() says now. */
function paint(name) {
  const probe = Object.assign(document.createElement("i"), { className: "hidden" });
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const colour = new three.Color(getComputedStyle(probe).color);
  probe.remove();
  return colour;
}

const night = () => paint("--sheet").getHSL({}).l < 0.5;

function chunkColour(k, count, dark) {
  const { hue, light } = tone(k, count, dark);
  return new three.Color(`hsl(${hue}, 70%, ${light}%)`);
}

/** Whether the browser draws without a graphics card. */
function inSoftware() {
  const gl = document.createElement("canvas").getContext("webgl2");
  const about = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = about ? gl.getParameter(about.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|software/i.test(name);
}

export class Space {
  /** `failed()` is called where pictures come too slowly even when they are coarse. */
  constructor(failed) {
    this.failed = failed;
    this.root = document.createElement("div");
    this.root.className = "space";
    const quick = !inSoftware();
    this.renderer = new three.WebGLRenderer({ antialias: quick, powerPreference: "high-performance" });
    this.renderer.domElement.setAttribute("role", "img");
    this.renderer.domElement.setAttribute("aria-label", "The plan in three dimensions");
    this.frame = Object.assign(document.createElement("div"), { className: "picture" });
    this.frame.append(this.renderer.domElement);
    this.root.append(this.#buttons(), this.frame);
    this.camera = new three.PerspectiveCamera(40, 1, 0.1, 1000);
    this.camera.up.set(0, 0, 1);
    this.fine = true;
    this.scale = quick ? 1 : 0.6; // pixels drawn for each of the screen, along a side: coarser pictures are quicker
    this.paces = [];
    this.#steer(this.renderer.domElement);
    new ResizeObserver(() => this.#resize()).observe(this.frame);
  }

  #buttons() {
    const box = document.createElement("div");
    box.className = "cameras";
    this.cameras = ["follow", "above"].map((name) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: name === "follow" ? "Follow" : "From above" });
      button.addEventListener("click", () => this.look(name));
      button.dataset.camera = name;
      return button;
    });
    box.append(...this.cameras);
    return box;
  }

  /** Follow the agent, or look at everything from above. */
  look(name) {
    this.mode = name;
    this.turn = { around: -Math.PI / 2, up: name === "follow" ? TILT : STEEP, zoom: 1 };
    for (const button of this.cameras) button.setAttribute("aria-pressed", String(button.dataset.camera === name));
    this.render();
  }

  /** Dragging turns the camera, a wheel brings it closer. */
  #steer(canvas) {
    canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointermove", (event) => {
      if (!canvas.hasPointerCapture(event.pointerId)) return;
      this.turn.around -= event.movementX / 150;
      this.turn.up = Math.min(STEEP, Math.max(0.15, this.turn.up + event.movementY / 150));
      this.render();
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.turn.zoom = Math.min(4, Math.max(0.2, this.turn.zoom * 1.001 ** event.deltaY));
      this.render();
    }, { passive: false });
  }

  /** The world of a view; `described` is what its server says of bodies, null where it says nothing. */
  setWorld(view, described) {
    Object.assign(this, { view, described });
    const { ground } = view;
    this.scene = new three.Scene();
    this.scene.background = paint("--ground");
    const sun = new three.DirectionalLight(0xffffff, 1.6);
    sun.position.set(-0.4, -0.7, 1.5);
    this.scene.add(new three.AmbientLight(0xffffff, 1.5), sun);
    const floor = new three.Mesh(new three.PlaneGeometry(ground.width, ground.height), new three.MeshLambertMaterial({ color: paint("--floor") }));
    floor.position.set((ground.left + ground.right) / 2, (ground.bottom + ground.top) / 2, 0);
    this.scene.add(floor);
    const walls = ground.walls();
    const { unit } = ground;
    const blocks = new three.InstancedMesh(new three.BoxGeometry(unit, unit, WALL * unit), new three.MeshLambertMaterial({ color: paint("--wall") }), walls.length);
    walls.forEach(([x, y], i) => blocks.setMatrixAt(i, new three.Matrix4().makeTranslation(x, y, (WALL * unit) / 2)));
    this.picture = new three.Group(); // what changes with the plan
    this.rounds = new three.Group(); // a round of denoising
    this.renewed = new three.Group(); // a plan made on the way
    this.bodies = new three.Group();
    this.again = null;
    this.scene.add(blocks, this.picture, this.rounds, this.renewed, this.bodies);
    this.body = described ? new Body(described) : null;
    this.balls = view.things.map((_, thing) => new three.Mesh(new three.SphereGeometry(ground.pen * (thing ? 0.12 : 0.16), 16, 16), new three.MeshLambertMaterial({ color: paint(thing ? "--accent" : "--ink") })));
    this.bodies.add(...(this.body ? [this.body.root] : this.balls));
    this.target = floor.position.clone();
    this.clear();
    this.look(this.mode ?? "follow");
  }

  clear() {
    this.shown = null;
    this.moment = null;
    this.#empty(this.picture);
    this.#empty(this.rounds);
    this.#drawAgain(null);
    if (this.ends) this.setEnds(this.ends);
  }

  #empty(group) {
    group?.traverse((node) => { node.geometry?.dispose(); node.material?.dispose(); });
    group?.clear();
  }

  /** Discs where things start and should end; bodies wait at the start. */
  setEnds(ends) {
    this.ends = ends;
    this.#empty(this.discs);
    this.scene.remove(this.discs);
    this.discs = new three.Group();
    const { pen } = this.view.ground;
    for (const { end, at, thing } of this.view.marks) {
      const [inner, outer] = thing ? [0.22, 0.27] : [0.3, 0.35];
      const ring = new three.Mesh(new three.RingGeometry(pen * inner, pen * outer, 40), new three.MeshBasicMaterial({ color: paint(`--${end}`) }));
      ring.position.set(ends[end][at[0]], ends[end][at[1]], 0.03 * pen);
      this.discs.add(ring);
    }
    for (const shape of ends.avoid.map(parse)) this.#raise(shape);
    for (const [x, y] of ends.via) {
      const ring = new three.Mesh(new three.RingGeometry(pen * 0.2, pen * 0.25, 40), new three.MeshBasicMaterial({ color: paint("--via") }));
      ring.position.set(x, y, 0.03 * pen);
      this.discs.add(ring);
    }
    this.scene.add(this.discs);
    if (!this.moment?.driving) this.#stand(this.#waiting());
    this.render();
  }

  /** A region as a block that shows through. */
  #raise({ kind, numbers: [a, b, c, d] }) {
    if (kind === "polygon") return;
    const high = 0.5 * WALL * this.view.ground.unit;
    const block = kind === "disc" ? new three.CylinderGeometry(c, c, high, 48).rotateX(Math.PI / 2) : new three.BoxGeometry(c - a, d - b, high);
    const mesh = new three.Mesh(block, new three.MeshLambertMaterial({ color: paint("--bad"), transparent: true, opacity: 0.45 }));
    mesh.position.set(...(kind === "disc" ? [a, b] : [(a + c) / 2, (b + d) / 2]), high / 2);
    this.discs.add(mesh);
  }

  /** The planned state in which things wait at the start; what nobody gave is left out. */
  #waiting() {
    const state = new Array(this.view.model.dim).fill(null);
    this.view.model.start_columns.forEach((column, i) => { state[column] = this.ends.start[i]; });
    return state;
  }

  /** qpos of a planned state; what it does not say is as at the beginning of an episode. */
  #qpos(state) {
    const qpos = [...this.described.qpos];
    for (const [column, at] of this.described.pose) if (state[column] !== null) qpos[at] = state[column];
    return qpos;
  }

  /** Put bodies where a planned state, or qpos, says. */
  #stand(state, qpos = null) {
    if (this.body) {
      this.body.pose(qpos ?? this.#qpos(state));
      this.target.copy(this.body.places()[0] ?? this.target).setZ(0);
    } else {
      this.view.things.forEach(({ columns: [x, y] }, thing) => {
        const radius = this.view.ground.pen * (thing ? 0.12 : 0.16);
        this.balls[thing].position.set(state[x], state[y], radius);
      });
      this.target.copy(this.balls[0].position).setZ(0);
    }
  }

  /** A moment of a pane's film. */
  draw(pane, moment) {
    this.moment = moment;
    const { film, plan } = pane;
    if (moment.frame) this.#drawRound(moment.frame);
    else this.#empty(this.rounds);
    if (moment.driving || moment.plan) this.#drawPlan(plan);
    else this.#drawPlan(null);
    this.#drawAgain(moment.driving ? film.replans[moment.replans - 1] : null);
    if (moment.driving) {
      const now = Math.max(moment.step - 1, 0);
      const before = Math.max(now - 1, 0);
      const [a, b] = [film.qpos[before], film.qpos[now]];
      const state = mix(film.states[before], film.states[now], moment.share);
      this.#stand(state, a && b ? mix(a, b, moment.share) : b);
    } else if (this.ends) this.#stand(this.#waiting());
    this.#sharpen(false);
    this.render();
    this.#judge();
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.#sharpen(true), REST_MS);
  }

  /** A picture that stands still is drawn with all its pixels. */
  #sharpen(fine) {
    if (this.fine === fine) return;
    this.fine = fine;
    this.#resize();
  }

  #drawRound({ wave, rows, points: flat }) {
    this.#empty(this.rounds);
    const { columns, points: perChunk, scale, candidates } = wave;
    const owners = candidates.flatMap(({ n_chunks: count }) => Array.from({ length: count }, (_, k) => chunkColour(k, count, night())));
    const [places, colours] = [[], []];
    rows.forEach((which, row) => this.view.pick(columns).forEach((at) => {
      if (!at) return;
      for (let i = 0; i < perChunk; i += 1) {
        const from = columns.length * (row * perChunk + i);
        places.push(flat[from + at[0]] / scale, flat[from + at[1]] / scale, 0.1 * this.view.ground.pen);
        colours.push(...owners[which].toArray());
      }
    }));
    const geometry = new three.BufferGeometry();
    geometry.setAttribute("position", new three.BufferAttribute(new Float32Array(places), 3));
    geometry.setAttribute("color", new three.BufferAttribute(new Float32Array(colours), 3));
    this.rounds.add(new three.Points(geometry, new three.PointsMaterial({ size: 0.13 * this.view.ground.pen, vertexColors: true })));
  }

  /** The plan as a ribbon, chunk by chunk, and other candidates as lines; poses where postures are planned. */
  #drawPlan(plan) {
    if (this.shown === plan) return;
    this.shown = plan;
    this.#empty(this.picture);
    if (!plan) return;
    const { ground } = this.view;
    const ways = paths(plan.states, this.view.pick(this.view.whole));
    ways.forEach((way, thing) => {
      for (let k = 0; k < plan.n_chunks; k += 1) {
        const [from, to] = span(k, plan);
        const ribbon = this.#ribbon(way.slice(from, to + 1), ground.pen * (thing ? 0.05 : 0.1), 0.03 * ground.pen * (1 + thing));
        ribbon.material.color = chunkColour(k, plan.n_chunks, night());
        this.picture.add(ribbon);
      }
    });
    for (const { path } of (plan.candidates ?? []).slice(1, 40)) {
      const line = new three.BufferGeometry().setFromPoints(path.map(([x, y]) => new three.Vector3(x, y, 0.02 * ground.pen)));
      this.picture.add(new three.Line(line, new three.LineBasicMaterial({ color: paint("--soft"), transparent: true, opacity: 0.35 })));
    }
    const placed = this.view.model.groups.flatMap(({ columns }) => columns);
    if (this.described?.pose.some(([column]) => !placed.includes(column))) this.#drawPoses(plan);
  }

  /** The plan that the agent got last on its way. */
  #drawAgain(again = null) {
    if (this.again === again) return;
    this.again = again;
    this.#empty(this.renewed);
    if (!again) return;
    const { pen } = this.view.ground;
    for (const way of paths(again.states, this.view.pick(this.view.whole))) {
      const ribbon = this.#ribbon(way, 0.12 * pen, 0.06 * pen);
      ribbon.material.color = paint("--accent");
      this.renewed.add(ribbon);
    }
  }

  #drawPoses(plan) {
    const count = 2 * plan.n_chunks + 1;
    for (let i = 0; i < count; i += 1) {
      const ghost = new Body(this.described, true);
      ghost.pose(this.#qpos(plan.states[Math.round((i * (plan.states.length - 1)) / (count - 1))]));
      this.picture.add(ghost.root);
    }
  }

  #ribbon(way, width, height) {
    const corners = new Float32Array(way.length * 6);
    way.forEach(([x, y], i) => {
      const [before, after] = [way[Math.max(i - 1, 0)], way[Math.min(i + 1, way.length - 1)]];
      const [dx, dy] = [after[0] - before[0], after[1] - before[1]];
      const long = Math.hypot(dx, dy) || 1;
      const [nx, ny] = [(-dy / long) * width * 0.5, (dx / long) * width * 0.5];
      corners.set([x + nx, y + ny, height, x - nx, y - ny, height], i * 6);
    });
    const index = way.slice(1).flatMap((_, i) => [2 * i, 2 * i + 1, 2 * i + 2, 2 * i + 2, 2 * i + 1, 2 * i + 3]);
    const geometry = new three.BufferGeometry();
    geometry.setAttribute("position", new three.BufferAttribute(corners, 3));
    geometry.setIndex(index);
    return new three.Mesh(geometry, new three.MeshBasicMaterial({ side: three.DoubleSide }));
  }

  render() {
    if (!this.scene || !this.root.clientWidth) return;
    const { ground } = this.view;
    const all = this.mode === "above";
    const middle = new three.Vector3((ground.left + ground.right) / 2, (ground.bottom + ground.top) / 2, 0);
    const target = all ? middle : this.target;
    const height = Math.max(ground.height, ground.width / this.camera.aspect);
    const far = this.turn.zoom * (all ? (1.04 * height) / (2 * Math.tan((this.camera.fov * Math.PI) / 360)) : Math.min(3.2 * ground.unit, height));
    const { around, up } = this.turn;
    this.camera.position.set(target.x + far * Math.cos(up) * Math.cos(around), target.y + far * Math.cos(up) * Math.sin(around), far * Math.sin(up));
    this.camera.lookAt(target);
    this.renderer.render(this.scene, this.camera);
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.frame;
    if (!width || !height) return;
    this.renderer.setPixelRatio((this.fine ? 1 : this.scale) * Math.min(devicePixelRatio, 2));
    this.renderer.setSize(width, height, false);
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.render();
  }

  /** Where pictures come too slowly one after another, make them coarser; then give up. */
  #judge() {
    const now = performance.now();
    const passed = now - (this.last ?? 0);
    this.last = now;
    if (passed > 500) return; // nothing was playing
    this.paces.push(passed);
    if (this.paces.length < JUDGED) return;
    const median = this.paces.sort((a, b) => a - b)[JUDGED >> 1];
    this.paces = [];
    this.root.dataset.pace = median.toFixed(1);
    if (median <= SLOW_MS) return;
    if (this.scale > 0.4) {
      this.scale *= 0.6;
      this.#resize();
    } else this.failed();
  }

  /** Give the graphics memory back. */
  close() {
    clearTimeout(this.rest);
    this.renderer.dispose();
    this.renderer.forceContextLoss();
    this.root.remove();
  }
}
