"""What surrounds the package: metadata, wheel, container, recipe, citation. No container tool is needed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

import dynid

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTRUCTIONS = {"FROM", "WORKDIR", "COPY", "RUN", "USER", "ENV", "ENTRYPOINT", "CMD"}
# Names of conda-forge that differ from those of PyPI.
CONDA = {"pin": "pinocchio"}


def test_metadata_is_complete() -> None:
    assert PROJECT["authors"] == [{"name": "dynid developers"}]
    assert PROJECT["version"] == dynid.__version__
    assert "Typing :: Typed" in PROJECT["classifiers"] and (ROOT / "src" / "dynid" / "py.typed").exists()
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} <= set(PROJECT["urls"])


def test_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == PROJECT["version"] and citation["license"] == PROJECT["license"]
    assert citation["authors"] == [{"name": "dynid developers"}] and citation["title"] and citation["message"]


def requirement(text: str) -> tuple[str, str]:
    """Name and bound of a requirement, with blanks or without."""
    found = re.fullmatch(r"([\w.-]+)\s*(>=[\d.]+)", text)
    assert found is not None, text
    return CONDA.get(found[1], found[1]), found[2]


def test_conda_recipe_has_the_same_requirements() -> None:
    text = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(jinja2.Template(text).render(PYTHON="python"))
    assert recipe["package"] == {"name": "dynid", "version": PROJECT["version"]}
    needed = dict(map(requirement, PROJECT["dependencies"])) | {"python": PROJECT["requires-python"]}
    assert dict(map(requirement, recipe["requirements"]["run"])) == needed
    assert recipe["build"]["entry_points"] == [f"dynid = {PROJECT['scripts']['dynid']}"]


def instructions(text: str) -> list[tuple[str, str]]:
    """Instructions of a Dockerfile with their arguments, continued lines joined."""
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in lines if line.strip()]


def test_dockerfile_is_sound() -> None:
    """It begins with an image of a Python that is supported, copies files that exist, and does not end as root."""
    found = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert {name for name, _ in found} <= INSTRUCTIONS and found[0][0] == "FROM"
    stages = [value for name, value in found if name == "FROM"]
    assert all(re.match(r"python:3\.\d+-slim( AS \w+)?$", stage) for stage in stages), "images have a version"
    for _, value in (x for x in found if x[0] == "COPY"):
        words = value.split()
        if words[0].startswith("--from="):
            assert words[0] == "--from=build" and stages[0].endswith("AS build")
        else:
            assert all((ROOT / source).exists() for source in words[:-1]), value
    extras = re.search(r'"\.\[([\w,]+)\]"', next(value for name, value in found if name == "RUN"))
    assert extras is not None and set(extras[1].split(",")) <= set(PROJECT["optional-dependencies"])
    assert [value for name, value in found if name == "USER"][-1] != "root"
    assert json.loads(dict(found)["ENTRYPOINT"]) == ["dynid"] and json.loads(dict(found)["CMD"]) == ["--help"]


def test_picture_of_the_front_page_is_small() -> None:
    picture = ROOT / "docs" / "figures" / "front.png"
    assert picture.stat().st_size < 300_000
    assert f"({picture.relative_to(ROOT)})" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert picture.name in (ROOT / "docs" / "front_picture.py").read_text(encoding="utf-8")


@pytest.mark.slow
def test_wheel(tmp_path: Path) -> None:
    """It is built, below 2 MB, holds the package alone, and passes the checks that a release runs."""
    tools = Path(sys.executable).parent
    for tool in ("twine", "check-wheel-contents"):
        if shutil.which(tool, path=tools) is None:
            pytest.skip(f"{tool} is not installed")
    pytest.importorskip("build")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "-o", tmp_path, ROOT], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.stat().st_size < 2_000_000
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"dynid", f"dynid-{PROJECT['version']}.dist-info"}
    assert "dynid/py.typed" in names
    subprocess.run([tools / "twine", "check", "--strict", wheel], check=True)
    subprocess.run([tools / "check-wheel-contents", wheel], check=True)
