// A body that can be posed: limbs and shapes as MuJoCo describes them, turned by qpos.

import * as three from "./three.js";

const quaternion = ([w, x, y, z]) => new three.Quaternion(x, y, z, w);
const vector = ([x, y, z]) => new three.Vector3(x, y, z);
const ROUND = 14; // sides of what is round

function geometry({ kind, size }) {
  if (kind === "sphere") return new three.SphereGeometry(size[0], ROUND, ROUND);
  if (kind === "box") return new three.BoxGeometry(2 * size[0], 2 * size[1], 2 * size[2]);
  if (kind === "ellipsoid") return new three.SphereGeometry(1, ROUND, ROUND).scale(...size);
  // MuJoCo's lie along z, three's along y.
  const along = kind === "capsule" ? new three.CapsuleGeometry(size[0], 2 * size[1], 4, ROUND) : new three.CylinderGeometry(size[0], size[0], 2 * size[1], ROUND);
  return along.rotateX(Math.PI / 2);
}

export class Body {
  /** `limbs` from the server; a `ghost` shows through. */
  constructor({ limbs, qpos }, ghost = false) {
    this.root = new three.Group();
    this.zero = qpos;
    this.limbs = limbs.map((limb) => {
      const group = new three.Group();
      for (const shape of limb.shapes) {
        const [r, g, b] = shape.rgba;
        const paint = new three.MeshLambertMaterial({ color: new three.Color(r, g, b), transparent: ghost, opacity: ghost ? 0.3 : 1 });
        const mesh = new three.Mesh(geometry(shape), paint);
        mesh.position.copy(vector(shape.pos));
        mesh.quaternion.copy(quaternion(shape.quat));
        group.add(mesh);
      }
      return { ...limb, group };
    });
    for (const { parent, group } of this.limbs) (parent < 0 ? this.root : this.limbs[parent].group).add(group);
    this.pose(qpos);
  }

  /** Put every limb where qpos says, joint after joint. */
  pose(qpos) {
    for (const { group, pos, quat, joints } of this.limbs) {
      group.position.copy(vector(pos));
      group.quaternion.copy(quaternion(quat));
      for (const { kind, at, axis, pos: anchor, zero } of joints) {
        if (kind === "free") {
          group.position.set(qpos[at], qpos[at + 1], qpos[at + 2]);
          group.quaternion.copy(quaternion(qpos.slice(at + 3, at + 7))).normalize();
        } else if (kind === "slide") {
          group.position.add(vector(axis).applyQuaternion(group.quaternion).multiplyScalar(qpos[at] - zero));
        } else {
          const turn = kind === "ball" ? quaternion(qpos.slice(at, at + 4)).normalize() : new three.Quaternion().setFromAxisAngle(vector(axis), qpos[at] - zero);
          const fixed = vector(anchor).applyQuaternion(group.quaternion).add(group.position);
          group.quaternion.multiply(turn);
          group.position.copy(fixed.sub(vector(anchor).applyQuaternion(group.quaternion)));
        }
      }
    }
  }

  /** Where the limbs that stand in the world by themselves are, such as a torso or a ball. */
  places() {
    return this.limbs.filter(({ parent, joints }) => parent < 0 && joints.length).map(({ group }) => group.position);
  }
}
