"""Words that the glossary replaces: `python -m tools.words` warns of each, with what to write instead.

Warnings fail nothing: whether a word is right in its place is for the writer to say. Names that the field has fixed,
and words that belong to a file, are known with their reasons and are not reported.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FIXED_NAMES", "WORDS", "WORDS_OF_FILES", "Warned", "main", "warnings_of_file", "warnings_of_text"]

ROOT = Path(__file__).parents[1]
PLACES = ("src", "docs", "README.md", "CONTRIBUTING.md", "CHANGELOG.md")
ENDINGS = {".py", ".pyi", ".md", ".html", ".toml"}

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
    r"\brounds?\b(?!\()": "iteration",
    r"\btrails?\b": "history",
    r"\bsettled?\b|\bsettles\b": "converge",
    r"\brivals?\b": "baseline",
    r"\bcolours?\b": "autocorrelation, noise color; color",
    r"\bmemory\b": "autocorrelation (computer memory is meant otherwise)",
    r"\bunmodelled\b|\blacks?\b": "unmodeled; does not have",
    r"\bquestions?\b|\banswers?\b": "feasibility query, status, result",
    r"\bmachines?\b": "robot (computers are computers)",
}
# Names in which such a word is right, and why.
FIXED_NAMES = {
    r"standard deviations?": "statistics",
    r"(?:least|mean|median) absolute deviations?": "statistics: a norm, and measures of scale",
    r"allan deviations?": "the usual measure of the noise of inertial sensors",
    r"large deviations (?:theory|principle)": "a theory of probability",
    r"lack[-\s]of[-\s]fit": "a hypothesis test of regression",
    r"(?:one|two|three)-way (?:anova|analysis|layout|table)s?": "statistics",
    r"answer sets?(?: programming)?": "logic programming",
    r"speeds? of (?:sound|light)": "physics",
    r"(?:rated|no-load|synchronous|maximum motor) speeds?": "data sheets of motors",
    r"(?:torque-speed|speed-torque) (?:curve|line|limit)s?": "data sheets of motors",
    r"speed (?:reducer|ratio)s?": "gears",
    r"speed-?ups?": "how much faster a program is",
    r"swing[-\s](?:legs?|foot|feet|phases?|times?)": "gait",
    r"swing[-\s]up": "the pendulum that is brought upright",
    r"spread spectrum": "modulation of signals",
    r"machine (?:precision|epsilon|learning|translation)": "numerical mathematics, statistics",
    r"support vector machines?|boltzmann machines?": "methods of machine learning",
    r"(?:state|virtual|turing|milling|coordinate measuring) machines?": "computing, manufacturing",
    r"machine tools?": "manufacturing",
    r"limited[-\s]memory(?: BFGS)?|long short-term memory|fading memory": "names of methods",
    r"(?:computer|shared|video|virtual) memory|in memory|memory limits?|(?:MiB|GiB|MB|GB) of memory": "computers",
    r"memory \(MiB\)": "computers",
    r"round[-\s](?:trips?|off|robin|half)\b|(?:flat )?round dense": "rounding, protocols, a style of a library",
    r"audit trails?": "records of changes",
    r"(?:np|numpy|jnp|math)\.round|\.round\b|stroke-linecap[:=]\"?round": "names of other libraries",
    r"platform\.machine": "a name of the standard library",
}
# Words that belong to a file, and why.
WORDS_OF_FILES: dict[str, dict[str, str]] = {
    "src/dynid/recording/names.py": dict.fromkeys(("speed", "speeds"), "column names that logs have"),
    "src/dynid/child.py": {"memory": "what the allocator of Rust says at its end"},
    "src/dynid/robot/mjcf_compiled.py": {"memory": "a field of MuJoCo"},
    "src/dynid/robot/mjcf_files.py": {"memory": "an attribute of MJCF"},
    "docs/recordings.md": {"speed": "a column name that logs have"},
}
# Titles of papers and books in lists of sources, and addresses, keep their words.
_QUOTED = (r"^\s*- .*\((?:19|20)\d\d\).*(?:\n  +\S.*)*", r"https?://\S+", r"\]\([^)\s]+\)")


@dataclass(frozen=True, kw_only=True)
class Warned:
    """A word that is not used, where it stands, and what to write.

    Attributes
    ----------
    line : int
        Line of the text, from 1.
    word : str
        The word as it was found.
    instead : str
        What to write.
    """

    line: int
    word: str
    instead: str


def warnings_of_text(text: str, allowed: Sequence[str] = (), *, page: bool = False) -> Iterator[Warned]:
    """All words of a text that are not used, in the order of the text.

    Parameters
    ----------
    text : str
        Prose or code.
    allowed : sequence of str
        Words that belong to this text.
    page : bool
        Whether the text is Markdown, whose addresses and lists of sources are left out.

    Yields
    ------
    Warned
        One per place.
    """
    hidden = [(name, re.IGNORECASE) for name in FIXED_NAMES]
    hidden += [(quoted, re.MULTILINE) for quoted in _QUOTED if page]
    for pattern, flags in hidden:
        pattern = pattern.replace(" ", r"[ \n#]+") if flags == re.IGNORECASE else pattern
        text = re.sub(pattern, lambda m: re.sub(r"\S", "·", m.group()), text, flags=flags)
    found = []
    for pattern, instead in WORDS.items():
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if match.group().lower() not in allowed:
                line = text.count("\n", 0, match.start()) + 1
                found.append((match.start(), Warned(line=line, word=match.group(), instead=instead)))
    yield from (warned for _, warned in sorted(found, key=lambda x: x[0]))


def warnings_of_file(path: Path) -> Iterator[Warned]:
    """All words of a file that are not used, without those that belong to the file.

    Parameters
    ----------
    path : Path
        A text file.

    Yields
    ------
    Warned
        One per place.
    """
    own = path.resolve()
    allowed = WORDS_OF_FILES.get(own.relative_to(ROOT).as_posix() if own.is_relative_to(ROOT) else "", {})
    yield from warnings_of_text(path.read_text(encoding="utf-8"), tuple(allowed), page=path.suffix == ".md")


def _files(places: Sequence[Path]) -> list[Path]:
    """Text files of files and folders, without what a build of the documentation wrote."""
    found = [f for p in places for f in ([p] if p.is_file() else sorted(p.rglob("*"))) if f.suffix in ENDINGS]
    return [f for f in found if "generated" not in f.parts]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every finding as a warning; the exit status is 0 all the same.

    Parameters
    ----------
    arguments : sequence of str, optional
        Files and folders; by default the package and its documentation.

    Returns
    -------
    int
        0.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tools.words", description="Warn of words that the glossary replaces."
    )
    parser.add_argument("places", nargs="*", type=Path, default=[ROOT / place for place in PLACES])
    count = 0
    for path in _files(parser.parse_args(arguments).places):
        shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
        for warned in warnings_of_file(path):
            print(f"{shown}:{warned.line}: warning: '{warned.word}', write: {warned.instead}")
            count += 1
    print(f"words: {count or 'no'} warning{'' if count == 1 else 's'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
