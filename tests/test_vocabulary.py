"""One word per concept: what the glossary replaces does not come back into the package or its documentation.

`python tests/test_vocabulary.py PATH...` lists what is found in files or folders.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dynid.identification.estimators.method import described

ROOT = Path(__file__).parents[1]
_ONE = r"joint|sample|parameter|channel|row|core|signal|link|run|fit|revolution|period|method|robot|pair|turn|column"
_ONE += r"|motor|second|frame|body|file|entry|combination|base parameter|axis|pose|posture|step|iteration|segment|part"
_MANY = r"one|numbers?|rows?|samples?|values?|columns?|figures?|gains?|factors?|limits?|lists?"
_BODY = r"robots?|bodies|body|parameters|sets?|ones?|values"
# What is not written, and what is written instead.
WORDS = {
    r"\bspeeds?\b": "velocity (speed is the magnitude of a vector, or how fast a program runs)",
    r"\bswings?\b": "motion, velocity",
    r"\bdeviations?\b": "standard deviation, std; error, difference",
    r"\bspreads?\b": "standard deviation, scatter, range",
    rf"(?<!such )(?<!like )\b(?:{_MANY}) an? (?:{_ONE})\b": "per joint",
    rf"\bimpossible\b|\bpossible (?:{_BODY})\b|\bcan exist\b": "physically consistent, feasible",
    r"\bways?\b": "trajectory, motion; method, form",
    r"\brounds?\b(?!\(|-trip| trip| off)": "iteration",
    r"\btrails?\b": "history",
    r"\bsettled?\b|\bsettles\b": "converge",
    r"\brivals?\b": "baseline",
    r"\bcolours?\b": "autocorrelation, noise color; color",
    r"\bmemory\b": "autocorrelation (computer memory is meant otherwise)",
    r"\b[Uu]nmodelled\b|\blacks?\b": "unmodeled; does not have",
    r"\bquestions?\b|\banswers?\b": "feasibility query, status, result",
    r"\bmachines?\b": "robot (computers are computers)",
}
# Phrases in which a word means something else.
PHRASES = (
    r"[Ss]tandard[ \n#]+deviations?",
    r"speed-?ups?\b",
    r"machine (?:precision|epsilon|learning)",
    r"np\.round|\.round\b|\bround half",
    r"round trips?",
    r"platform\.machine|stroke-linecap[:=]\"?round|(?:flat )?round dense",  # names of other libraries
    r"[Ll]east[ \n#]+absolute[ \n#]+deviations?",  # what textbooks call a method
    *(rf"\b{re.escape(name)}\b" for name in described()),  # what the record of a method calls it
    r"computer memory|in memory|shared memory|memory limit|MiB of memory|GB of memory",
)
# Files in which a word stays, with the reason.
ALLOWED: dict[str, dict[str, str]] = {
    "src/dynid/recording/names.py": dict.fromkeys(("speed", "speeds"), "column names that logs have"),
    "src/dynid/child.py": {"memory": "what the allocator of Rust says at its end"},
    "src/dynid/robot/mjcf_compiled.py": {"memory": "a field of MuJoCo"},
    "src/dynid/robot/mjcf_files.py": {"memory": "an attribute of MJCF"},
    "docs/recordings.md": {"speed": "a column name that logs have"},
}


def found_in(path: Path) -> Iterator[str]:
    """Every place of a file in which a word of the list stands, with what to write instead."""
    text = path.read_text(encoding="utf-8")
    for phrase in PHRASES:
        text = re.sub(phrase, lambda m: re.sub(r"\S", " ", m.group()), text)
    allowed = ALLOWED.get(str(path.resolve().relative_to(ROOT)) if path.resolve().is_relative_to(ROOT) else "", {})
    for pattern, instead in WORDS.items():
        for match in re.finditer(pattern, text):
            if match.group() not in allowed:
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: '{match.group()}' ({instead})"


def files(*places: Path) -> list[Path]:
    endings = {".py", ".pyi", ".md", ".html", ".toml"}
    found = [f for p in places for f in ([p] if p.is_file() else sorted(p.rglob("*"))) if f.suffix in endings]
    return [f for f in found if "generated" not in f.parts]  # written by a build of the documentation


@pytest.mark.parametrize("path", files(ROOT / "src", ROOT / "docs", ROOT / "README.md"), ids=lambda p: p.name)
def test_words_of_the_field(path: Path) -> None:
    assert not list(found_in(path))


if __name__ == "__main__":
    for file in files(*(Path(a) for a in sys.argv[1:])):
        print(*found_in(file), sep="\n", end="\n" if any(found_in(file)) else "")
