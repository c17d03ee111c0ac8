"""The linter of words (`make words`): it finds what the glossary replaces, and knows the field's fixed names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.words import FIXED_NAMES, ROOT, WORDS, WORDS_OF_FILES, main, warnings_of_file, warnings_of_text

STEMS = ("speed", "swing", "deviation", "spread", "way", "round", "memory", "lack", "answer", "machine", "trail")


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("The speed of the first joint is limited.", "speed"),
        ("Speeds are limited.", "Speeds"),
        ("A large deviation of the torque.", "deviation"),
        ("There is one a joint.", "one a joint"),
        ("Two gains a motor are known.", "gains a motor"),
        ("No possible robot has these values.", "possible robot"),
        ("The method settles after three steps.", "settles"),
        ("The residual lacks a term.", "lacks"),
        ("The answer is infeasible.", "answer"),
        ("The machine has six joints.", "machine"),
    ],
)
def test_a_word_that_is_not_used_is_found(sentence: str, word: str) -> None:
    (found,) = warnings_of_text(f"Before.\n{sentence}\n")
    assert (found.line, found.word) == (2, word) and found.instead in WORDS.values()


@pytest.mark.parametrize(
    "sentence",
    [
        "One standard deviation per joint, the standard\n    # deviation of the torque.",
        "Least absolute deviations are robust; so is the median absolute deviation.",
        "The answer set of a logic program.",
        "The speed of sound, the no-load speed of a motor and its torque-speed curve.",
        "A lack-of-fit test beside a one-way analysis.",
        "Contacts of the swing leg; the swing-up of a pendulum.",
        "L-BFGS is a limited-memory method; logs larger than computer memory are read in pieces.",
        "A support vector machine to machine precision.",
        "np.round(x), a round trip, and a round-off error.",
        "There is one such a joint, like one a joint.",
    ],
)
def test_fixed_names_of_the_field_are_known(sentence: str) -> None:
    assert list(warnings_of_text(sentence)) == []


def test_sources_and_addresses_keep_their_words() -> None:
    """On pages: a title with its year, over two lines, and a link."""
    page = "- A. Author (2014), On the question of\n  speed.\n\nSee [the page](a-question.md), https://x.org/answer/.\n"
    assert list(warnings_of_text(page, page=True)) == []
    assert [x.word for x in warnings_of_text(page)] == ["question", "speed", "question", "answer"]


def test_every_name_and_every_word_of_a_file_is_needed() -> None:
    """A fixed name contains a word of the list, and a word of a file stands in that file; each has its reason."""
    for name, reason in FIXED_NAMES.items():
        assert reason and any(word in name.lower() for word in STEMS), name
    for path, words in WORDS_OF_FILES.items():
        text = (ROOT / path).read_text(encoding="utf-8").lower()
        assert all(reason and re.search(rf"\b{word}\b", text) for word, reason in words.items()), path


def test_warnings_have_file_line_and_advice_and_fail_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("Good.\n\nThe trail of the search.\n")
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{page}:3: warning: 'trail', write: history\nwords: 1 warning\n"
    page.write_text("Good.\n")
    assert main([str(page)]) == 0 and capsys.readouterr().out == "words: no warnings\n"


def test_words_of_a_file_are_allowed_there_only(tmp_path: Path) -> None:
    path = "docs/recordings.md"
    copy = tmp_path / "recordings.md"
    copy.write_text((ROOT / path).read_text(encoding="utf-8"))
    assert "speed" in {x.word for x in warnings_of_file(copy)} - {x.word for x in warnings_of_file(ROOT / path)}
