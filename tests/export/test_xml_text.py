"""Texts of XML files cut into elements and changed, against Python's own parser."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from xml.sax.saxutils import quoteattr

from hypothesis import given
from hypothesis import strategies as st

from dynid.errors import ModelError
from dynid.export.xmltext import Element, XmlText
from tests.support.errors import expect_error

NAMES = st.sampled_from(["a", "link", "joint", "x:frame", "b-c", "d.e"])
BLANKS = st.sampled_from(
    ["", " ", "\n  ", "\r\n\t", "<!-- <a> > ' -->", "<?p <b ?>", "<![CDATA[<a x=']]>", "text &lt; more"]
)
VALUES = st.text("a1 <>&/='\"é\u0436", max_size=6)


@st.composite
def elements(draw: st.DrawFn, depth: int = 3) -> str:
    """The text of an element with attributes, blanks, comments and children."""
    name = draw(NAMES)
    attributes = ""
    for i in range(draw(st.integers(0, 3))):
        before, equals = draw(st.sampled_from([" ", "  ", "\n"])), draw(st.sampled_from(["=", " = "]))
        attributes += f"{before}k{i}{equals}{quoteattr(draw(VALUES))}"
    if depth == 0 or draw(st.booleans()):
        return f"<{name}{attributes}{draw(st.sampled_from(['/>', ' />', f'></{name}>', f'></{name} >']))}"
    inside = [draw(BLANKS)]
    for child in draw(st.lists(elements(depth - 1), max_size=3)):
        inside += [child, draw(BLANKS)]
    return f"<{name}{attributes}>{''.join(inside)}</{name}>"


def documents() -> st.SearchStrategy[str]:
    head = st.sampled_from(["", '<?xml version="1.0"?>\n', "<!-- a -->", '<!DOCTYPE r [<!ENTITY e "v">]>\r\n'])
    return st.builds(lambda h, e, t: f'{h}<r xmlns:x="y">{e}</r>{t}', head, elements(), st.sampled_from(["", "\n"]))


def shape(element: ET.Element | Element) -> tuple[object, ...]:
    """Tag, attributes and children, from either parser."""
    if isinstance(element, Element):
        given = {k: v for k, v in element.attributes.items() if not k.startswith("xmlns")}
        return (element.tag, given, [shape(e) for e in element.children])
    return (element.tag.rpartition("}")[2], dict(element.attrib), [shape(e) for e in element])


@given(documents())
def test_elements_are_those_of_a_real_parser(text: str) -> None:
    """Comments, quotes and sections of raw text are no elements."""
    assert shape(XmlText(text).root) == shape(ET.fromstring(text))


@given(documents(), st.data())
def test_changes_do_what_they_say_and_nothing_else(text: str, data: st.DataObject) -> None:
    """The changed text parses to the tree with the same change made."""
    file, tree = XmlText(text), ET.fromstring(text)
    at = data.draw(st.integers(0, len(list(file.root.iter())) - 1))
    ours, theirs = list(file.root.iter())[at], list(tree.iter())[at]
    what = data.draw(st.sampled_from(["set", "insert", "first", "remove", "drop", "nothing"]))
    if what == "set":
        file.set(ours, {"k1": "1 2", "new": "3"})
        theirs.attrib |= {"k1": "1 2", "new": "3"}
    elif what == "drop":
        file.set(ours, {"new": "3"}, drop=["k0", "k2"])
        theirs.attrib.pop("k0", None), theirs.attrib.pop("k2", None)
        theirs.set("new", "3")
    elif what in ("insert", "first"):
        file.insert(ours, ["<n>\n  <m/>\n</n>", '<o p="q"/>'], first=what == "first")
        new = list(ET.fromstring('<r><n><m/></n><o p="q"/></r>'))
        theirs[:] = [*new, *theirs] if what == "first" else [*theirs, *new]
    elif what == "remove" and at:
        file.remove(ours)
        next(e for e in tree.iter() if theirs in list(e)).remove(theirs)
    assert shape(ET.fromstring(file.text())) == shape(tree)
    if what == "nothing":
        assert file.text() == text


def test_children_are_put_on_lines_of_their_own() -> None:
    """With the indentation and the line ends of the file."""
    for before, after in (
        ("<r>\n  <a/>\n</r>", "<r>\n  <a>\n    <n/>\n  </a>\n</r>"),
        ("<r>\r\n\t<a />\r\n</r>", "<r>\r\n\t<a>\r\n\t\t<n/>\r\n\t</a>\r\n</r>"),
        ("<r>\n  <a>\n      <b/>\n  </a>\n</r>", "<r>\n  <a>\n      <b/>\n      <n/>\n  </a>\n</r>"),
        ("<r><a><b/></a></r>", "<r><a><b/><n/></a></r>"),
        ("<r>\n  <a></a>\n</r>", "<r>\n  <a>\n    <n/>\n  </a>\n</r>"),
    ):
        file = XmlText(before)
        file.insert(file.root.children[0], ["<n/>"])
        assert file.text() == after


def test_an_element_leaves_with_its_line() -> None:
    """But not with what else stands there."""
    for before, after in (
        ("<r>\n  <a/>\n  <b/>\n</r>", "<r>\n  <b/>\n</r>"),
        ("<r>\r\n  <a>\r\n</a>  \r\n</r>", "<r>\r\n</r>"),
        ("<r>\n  <a/><!-- c -->\n</r>", "<r>\n  <!-- c -->\n</r>"),
        ("<r><a/><b/></r>", "<r><b/></r>"),
    ):
        file = XmlText(before)
        file.remove(file.root.children[0])
        assert file.text() == after


def test_signs_an_encoding_lacks_become_references() -> None:
    """A name added to a Latin file is still that name."""
    file = XmlText('<?xml version="1.0" encoding="iso-8859-1"?><r a="é"/>'.encode("iso-8859-1"))
    file.set(file.root, {"b": "ж"})
    assert ET.fromstring(file.to_bytes()).attrib == {"a": "é", "b": "ж"}


def test_a_file_without_elements_is_an_error() -> None:
    """Not a crash further on."""
    with expect_error(ModelError, code="file_damaged"):
        XmlText("just words")
