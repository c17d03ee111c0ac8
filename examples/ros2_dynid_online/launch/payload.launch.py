"""Start the payload node with the parameters of config/payload.yaml."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node


def generate_launch_description() -> LaunchDescription:
    """One node; `parameters:=FILE` and `joint_states:=TOPIC` override the defaults."""
    share = Path(get_package_share_directory("ros2_dynid_online"))
    return LaunchDescription(
        [
            DeclareLaunchArgument("parameters", default_value=str(share / "config" / "payload.yaml")),
            DeclareLaunchArgument("joint_states", default_value="/joint_states"),
            Node(
                package="ros2_dynid_online",
                executable="payload_node",
                name="payload_node",
                output="screen",
                parameters=[LaunchConfiguration("parameters")],
                remappings=[("joint_states", LaunchConfiguration("joint_states"))],
            ),
        ]
    )
