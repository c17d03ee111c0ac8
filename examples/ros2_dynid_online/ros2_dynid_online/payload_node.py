"""A node that weighs what a robot carries: joint states in; payload, events and diagnostics out.

Subscribes
    joint_states (sensor_msgs/JointState): positions and efforts of all joints of the estimate, in any order.
Publishes
    ~/payload (geometry_msgs/InertiaStamped): mass and centre in the frame of the link; the inertia is zero.
    ~/event (std_msgs/String): pick-up and release, as JSON.
    /diagnostics (diagnostic_msgs/DiagnosticArray): mass with standard deviation, samples, what was left out.
"""

from __future__ import annotations

import json
import math

import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dynid import Estimate
from dynid.online import PayloadMonitor

DEFAULTS = {
    "estimate": "",
    "link": "",
    "rate": 500.0,
    "cutoff": 16.0,
    "training": 5.0,
    "false_alarms": 0.1,
    "smallest": 0.1,
    "measured_velocity": False,
    "publish_period": 0.5,
}


class PayloadNode(Node):
    """Feeds a `PayloadMonitor` with every joint state; publishes what it knows from a slower timer."""

    def __init__(self) -> None:
        super().__init__("payload_node")
        given = {name: self.declare_parameter(name, value).value for name, value in DEFAULTS.items()}
        estimate = Estimate.load(given["estimate"])
        self._joints = estimate.robot.coordinates
        self._measured = bool(given["measured_velocity"])
        self._monitor = PayloadMonitor(
            estimate,
            given["link"],
            rate=given["rate"],
            cutoff=given["cutoff"],
            training=given["training"],
            false_alarms=given["false_alarms"],
            smallest=given["smallest"],
            measured_velocity=self._measured,
        )
        self._order: list[int] = []
        self._names: tuple[str, ...] = ()
        self._samples = self._unusable = 0
        self._payload = self.create_publisher(InertiaStamped, "~/payload", 10)
        self._events = self.create_publisher(String, "~/event", 10)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.create_subscription(JointState, "joint_states", self.take, qos_profile_sensor_data)
        self.create_timer(given["publish_period"], self.publish)

    def take(self, message: JointState) -> None:
        """Use one joint state; one that does not have all joints is counted and left out."""
        if tuple(message.name) != self._names:
            self._names = tuple(message.name)
            missing = [joint for joint in self._joints if joint not in self._names]
            if missing:
                self.get_logger().warning(f"joint states have no joint '{missing[0]}'")
            self._order = [] if missing else [self._names.index(joint) for joint in self._joints]
        count = len(self._names)
        needed = [message.position, message.effort] + ([message.velocity] if self._measured else [])
        if not self._order or any(len(values) != count for values in needed):
            self._unusable += 1
            return
        self._samples += 1
        stamp = message.header.stamp
        event = self._monitor.update(
            stamp.sec + 1e-9 * stamp.nanosec,
            [message.position[k] for k in self._order],
            [message.effort[k] for k in self._order],
            [message.velocity[k] for k in self._order] if self._measured else None,
        )
        if event is not None:
            self.get_logger().info(str(event))
            self._events.publish(String(data=json.dumps(event.to_dict())))

    def publish(self) -> None:
        """Publish the payload, as far as it is known, and the diagnostics."""
        now = self.get_clock().now().to_msg()
        state = self._monitor.payload()
        values = {
            "samples": self._samples,
            "unusable joint states": self._unusable,
            "events": len(self._monitor.events),
        }
        text = "learning the noise" if not self._monitor.trained else "watching"
        if state is not None:
            text = str(state)
            values |= {"mass [kg]": f"{state.mass:.4f}", "standard deviation [kg]": f"{state.mass_std:.4f}"}
            message = InertiaStamped()
            message.header.stamp, message.header.frame_id = now, state.link
            message.inertia.m = state.mass
            centre = [x if math.isfinite(x) else 0.0 for x in state.centre]
            message.inertia.com.x, message.inertia.com.y, message.inertia.com.z = centre
            self._payload.publish(message)
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if self._unusable else DiagnosticStatus.OK,
            name="dynid payload",
            message=text,
            hardware_id=self._monitor.link,
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()],
        )
        report = DiagnosticArray(status=[status])
        report.header.stamp = now
        self._diagnostics.publish(report)


def main() -> None:
    """Run the node until it is shut down."""
    rclpy.init()
    node = PayloadNode()
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
