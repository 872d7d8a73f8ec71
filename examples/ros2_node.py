"""A ROS 2 node that plans: a pose and a goal come in, a path goes out.

    compdiffuser serve --models runs/my-robot &
    python3 examples/ros2_node.py --ros-args -p model:=my-robot -p address:=http://127.0.0.1:8000

It subscribes to `pose` (geometry_msgs/PoseStamped, where the robot is) and `goal` (geometry_msgs/PoseStamped), and
publishes `plan` (nav_msgs/Path) whenever a goal comes, and again when the robot is further from its plan than `lost`
metres. A plan that is not certified is not published. It needs rclpy and `compdiffuser.client`, and no PyTorch: a
server plans. Everything but the shell at the end of this file runs without ROS.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from compdiffuser.client import Broken, Client, Refused

Place = tuple[float, float]


@dataclass
class Pilot:
    """What the node knows: where the robot is, where it has to go, and its plan."""

    client: Client
    model: str
    lost: float = 1.0
    """Metres from the plan after which a new one is asked for."""
    options: dict[str, Any] = field(default_factory=dict)
    """Passed on to `Client.plan`, such as avoid=["disc:4,4,1"]."""
    place: Place | None = None
    goal: Place | None = None
    path: list[Place] = field(default_factory=list)
    """The certified plan in use; empty where there is none."""
    said: str = ""
    """Why the last request gave no plan."""

    def moved(self, place: Place) -> list[Place] | None:
        """The robot is here; a new path where it needs one."""
        first, self.place = self.place is None, place
        if self.goal is None or not (first or (self.path and off(self.path, place) > self.lost)):
            return None
        return self._planned()

    def sent(self, goal: Place) -> list[Place] | None:
        """The robot has to go there; its path, where its place is known and a plan is certified."""
        self.goal, self.path = goal, []
        return None if self.place is None else self._planned()

    def _planned(self) -> list[Place] | None:
        assert self.place is not None
        assert self.goal is not None
        self.path, self.said = [], ""
        try:
            plan = self.client.plan(self.model, self.place, self.goal, **self.options)
        except (Refused, Broken, OSError) as error:
            self.said = f"no plan: {error}"
            return None
        if not plan["ok"]:
            self.said = "no plan: none was certified"
            return None
        self.path = [(float(state[0]), float(state[1])) for state in plan["states"]]
        return self.path


def off(path: Sequence[Place], place: Place) -> float:
    """Metres from a place to the nearest state of a path."""
    return min(math.dist(state, place) for state in path)


def headings(path: Sequence[Place]) -> list[tuple[float, float]]:
    """z and w of the quaternion that looks along the path, for each of its states; the last looks as the one before."""
    angles = [math.atan2(b[1] - a[1], b[0] - a[0]) for a, b in pairwise(path)]
    angles.append(angles[-1] if angles else 0.0)
    return [(math.sin(angle / 2), math.cos(angle / 2)) for angle in angles]


def main() -> None:
    """The shell: messages in, messages out."""
    import rclpy
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path
    from rclpy.node import Node

    class PlannerNode(Node):
        def __init__(self) -> None:
            super().__init__("compdiffuser")
            given = {
                name: self.declare_parameter(name, value).value
                for name, value in (
                    ("address", "http://127.0.0.1:8000"), ("model", "pointmaze-medium-stitch-v0"), ("lost", 1.0),
                    ("frame", "map"),
                )
            }  # fmt: skip
            self.frame = given["frame"]
            self.pilot = Pilot(
                Client(given["address"], os.environ.get("COMPDIFFUSER_TOKEN")), given["model"], given["lost"]
            )
            self.paths = self.create_publisher(Path, "plan", 1)
            self.create_subscription(PoseStamped, "pose", lambda message: self.heard(message, self.pilot.moved), 1)
            self.create_subscription(PoseStamped, "goal", lambda message: self.heard(message, self.pilot.sent), 1)

        def heard(self, message: PoseStamped, tell) -> None:
            position = message.pose.position
            path = tell((position.x, position.y))
            if path is not None:
                self.paths.publish(self.message(path))
            elif self.pilot.said:
                self.get_logger().warning(self.pilot.said)
                self.pilot.said = ""

        def message(self, path: list[Place]) -> Path:
            out = Path()
            out.header.frame_id = self.frame
            out.header.stamp = self.get_clock().now().to_msg()
            for (x, y), (z, w) in zip(path, headings(path), strict=True):
                pose = PoseStamped(header=out.header)
                pose.pose.position.x, pose.pose.position.y = x, y
                pose.pose.orientation.z, pose.pose.orientation.w = z, w
                out.poses.append(pose)
            return out

    rclpy.init()
    node = PlannerNode()
    try:
        rclpy.spin(node)
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
