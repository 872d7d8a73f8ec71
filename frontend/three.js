// The parts of three.js that the page draws with; the bundler leaves out the rest.

export {
  AmbientLight, BoxGeometry, BufferAttribute, BufferGeometry, CapsuleGeometry, CircleGeometry, Color, CylinderGeometry,
  DirectionalLight, DoubleSide, DynamicDrawUsage, Group, InstancedMesh, Line, LineBasicMaterial, Matrix4, Mesh, MeshBasicMaterial,
  MeshLambertMaterial, PerspectiveCamera, PlaneGeometry, Points, PointsMaterial, Quaternion, RingGeometry, Scene, SphereGeometry, Vector3,
  WebGLRenderer,
} from "three";
