"""An arm with visual shapes, and cubes in the formats of meshes."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

__all__ = ["CUBE_DAE", "CUBE_OBJ", "SHAPED_ARM", "SHAPED_MJCF", "SHAPED_SDF", "cube"]

_INERTIAL = (
    '<inertial><origin xyz="0 0 0.25"/><mass value="2"/>'
    '<inertia ixx="0.05" iyy="0.05" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>'
)

SHAPED_ARM = f"""<robot name="arm">
<material name="blue"><color rgba="0.2 0.4 0.6 1"/></material>
<link name="base"><visual><geometry><mesh filename="package://arm/meshes/base.stl" scale="0.3 0.3 0.3"/></geometry>
  <material name="orange"><color rgba="1 0.5 0 1"/></material></visual></link>
<link name="upper">{_INERTIAL}<visual><origin xyz="0 0 0.25"/><geometry>
  <mesh filename="meshes/upper.obj" scale="0.5 -0.5 0.5"/></geometry><material name="blue"/></visual></link>
<link name="tool"><visual><origin xyz="0 0.1 0.1"/><geometry><box size="0.1 0.2 0.3"/></geometry></visual></link>
<link name="fore">{_INERTIAL}<visual><origin xyz="0 0 0.15"/><geometry>
  <cylinder radius="0.05" length="0.3"/></geometry></visual></link>
<joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.15"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="2" effort="50"/></joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 0.5"/>
  <axis xyz="0 1 0"/><limit lower="-2" upper="2" velocity="2" effort="50"/></joint>
<joint name="flange" type="fixed"><parent link="fore"/><child link="tool"/><origin xyz="0 0 0.3"/></joint>
</robot>
"""

# The same arm in MuJoCo's format, with what its viewer does not show: a ground, a shape for collisions, a clear one.
SHAPED_MJCF = """<mujoco model="arm">
<compiler meshdir="meshes" angle="radian"/>
<default><geom group="2"/>
  <default class="collision"><geom group="3" type="capsule" size="0.05 0.1"/></default></default>
<asset><mesh file="base.stl" scale="0.3 0.3 0.3"/><mesh name="upper" file="upper.obj" scale="0.5 -0.5 0.5"/>
  <material name="blue" rgba="0.2 0.4 0.6 1"/></asset>
<worldbody>
  <geom type="plane" size="5 5 0.1"/>
  <geom type="mesh" mesh="base" rgba="1 0.5 0 1"/>
  <body name="upper" pos="0 0 0.15"><joint name="shoulder" axis="0 1 0" range="-2 2"/>
    <inertial pos="0 0 0.25" mass="2" diaginertia="0.05 0.05 0.01"/>
    <frame pos="0 0 0.25"><geom type="mesh" mesh="upper" material="blue"/></frame>
    <geom class="collision"/>
    <body name="fore" pos="0 0 0.5"><joint name="elbow" axis="0 1 0" range="-2 2"/>
      <inertial pos="0 0 0.25" mass="2" diaginertia="0.05 0.05 0.01"/>
      <geom type="cylinder" fromto="0 0 0.3 0 0 0" size="0.05"/>
      <geom type="sphere" size="0.5" rgba="1 0 0 0"/>
      <body name="tool" pos="0 0 0.3"><geom type="box" pos="0 0.1 0.1" size="0.05 0.1 0.15"/></body>
    </body>
  </body>
</worldbody>
</mujoco>
"""

_SDF_INERTIAL = (
    "<inertial><pose>0 0 0.25 0 0 0</pose><mass>2</mass>"
    "<inertia><ixx>0.05</ixx><iyy>0.05</iyy><izz>0.01</izz></inertia></inertial>"
)
_SDF_LIMIT = "<limit><lower>-2</lower><upper>2</upper><velocity>2</velocity><effort>50</effort></limit>"

# The same arm in Gazebo's format, on a ground.
SHAPED_SDF = f"""<sdf version="1.9"><model name="arm">
<link name="base"><visual name="v"><geometry>
  <mesh><uri>model://arm/meshes/base.stl</uri><scale>0.3 0.3 0.3</scale></mesh>
  </geometry><material><diffuse>1 0.5 0</diffuse></material></visual>
  <visual name="ground"><geometry><plane><normal>0 0 1</normal><size>5 5</size></plane></geometry></visual></link>
<link name="upper"><pose relative_to="shoulder"/>{_SDF_INERTIAL}<visual name="v"><pose>0 0 0.25 0 0 0</pose><geometry>
  <mesh><uri>meshes/upper.obj</uri><scale>0.5 -0.5 0.5</scale></mesh></geometry>
  <material><diffuse>0.2 0.4 0.6 1</diffuse></material></visual></link>
<link name="fore"><pose relative_to="elbow"/>{_SDF_INERTIAL}
  <visual name="v"><pose relative_to="elbow">0 0 0.15 0 0 0</pose>
  <geometry><cylinder><radius>0.05</radius><length>0.3</length></cylinder></geometry></visual></link>
<link name="tool"><pose relative_to="fore">0 0 0.3 0 0 0</pose><visual name="v"><pose>0 0.1 0.1 0 0 0</pose>
  <geometry><box><size>0.1 0.2 0.3</size></box></geometry></visual></link>
<joint name="ground" type="fixed"><parent>world</parent><child>base</child></joint>
<joint name="shoulder" type="revolute"><pose relative_to="base">0 0 0.15 0 0 0</pose><parent>base</parent>
  <child>upper</child><axis><xyz>0 1 0</xyz>{_SDF_LIMIT}</axis></joint>
<joint name="elbow" type="revolute"><pose relative_to="upper">0 0 0.5 0 0 0</pose><parent>upper</parent>
  <child>fore</child><axis><xyz>0 1 0</xyz>{_SDF_LIMIT}</axis></joint>
<joint name="flange" type="fixed"><parent>fore</parent><child>tool</child></joint>
</model></sdf>
"""


def cube() -> NDArray[np.float64]:
    """The twelve triangles (12, 3, 3) of a cube with edges of 1 about the origin, counterclockwise from outside."""
    out = []
    for axis, side in product(range(3), (-0.5, 0.5)):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        corners = np.zeros((4, 3))
        corners[:, axis] = side
        corners[:, u], corners[:, v] = [-0.5, 0.5, 0.5, -0.5], [-0.5, -0.5, 0.5, 0.5]
        if side < 0:
            corners = corners[::-1]
        out += [corners[[0, 1, 2]], corners[[0, 2, 3]]]
    return np.array(out)


def _listed() -> tuple[NDArray[np.float64], NDArray[np.int_]]:
    corners, index = np.unique(cube().reshape(-1, 3), axis=0, return_inverse=True)
    return corners, index.reshape(-1, 3)


def _obj() -> bytes:
    corners, triangles = _listed()
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in triangles + 1]
    return "\n".join(lines).encode()


def _dae() -> bytes:
    corners, triangles = _listed()
    values = " ".join(f"{x:g}" for x in corners.ravel())
    index = " ".join(str(x) for x in triangles.ravel())
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<asset><unit meter="1"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="cube"><mesh>
<source id="p"><float_array id="a" count="{corners.size}">{values}</float_array>
<technique_common><accessor source="#a" count="{len(corners)}" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="{len(triangles)}"><input semantic="VERTEX" source="#v" offset="0"/><p>{index}</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n"><instance_geometry url="#cube"/></node></visual_scene>
</library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>""".encode()


CUBE_OBJ, CUBE_DAE = _obj(), _dae()
