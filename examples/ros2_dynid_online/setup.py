"""Build file of the ROS 2 package (ament_python)."""

from setuptools import setup

NAME = "ros2_dynid_online"

setup(
    name=NAME,
    version="0.1.0",
    packages=[NAME],
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", ["launch/payload.launch.py"]),
        (f"share/{NAME}/config", ["config/payload.yaml"]),
    ],
    install_requires=["setuptools", "dynid"],
    zip_safe=True,
    description="Payload of a robot while it runs, from joint states, by dynid.",
    license="BSD-3-Clause",
    entry_points={"console_scripts": [f"payload_node = {NAME}.payload_node:main"]},
)
