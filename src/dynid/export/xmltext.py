"""Change the text of an XML file in place: what is not changed stays as it is, byte by byte.

Comments, order, quotes, indentation, line ends, byte order mark and encoding are kept. The text must be well-formed,
which is for an XML parser to say beforehand; here it is only cut into its elements.
"""

from __future__ import annotations

import codecs
import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

from dynid.errors import ModelError
from dynid.quoting import one_line
from dynid.reading import read_regular

__all__ = ["Element", "XmlText", "comment_text", "decode_xml", "document", "marked", "open_tag", "unmarked"]

_MARKUP = re.compile(
    r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>"
    r"|</(?P<close>[^\s>]+)\s*>"
    r"|<(?P<open>[^\s/>!?]+)(?P<inside>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>",
    re.DOTALL,
)
_OWN = "dynid: "  # start of our comments
_OWN_COMMENT = re.compile(rf"(?:\r?\n[ \t]*)?<!-- {_OWN}.*?-->", re.DOTALL)
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_DECLARED = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode_xml(data: bytes) -> tuple[str, bytes, str]:
    """Text of an XML file, its byte order mark and its encoding."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding), mark, encoding
    declared = _DECLARED.match(data)
    encoding = declared[1].decode("ascii") if declared else "utf-8"
    return data.decode(encoding), b"", encoding


def open_tag(tag: str, attributes: Mapping[str, str], closed: bool = True) -> str:
    """The text of a tag with its attributes."""
    return f"<{tag}{''.join(f' {k}={quoteattr(v)}' for k, v in attributes.items())}{'/' if closed else ''}>"


def document(root: ET.Element) -> bytes:
    """A new file of a tree, indented."""
    ET.indent(root, "  ")
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="utf-8") + b"\n"


def marked(content: bytes, tag: str, remarks: Mapping[str, str], head: Sequence[str] = ()) -> bytes:
    """A file with a comment in every element `tag` whose name has a remark; earlier comments of this kind are removed.

    The lines of the head stand at the top of the file, after them remarks whose element has another name in the file.
    """
    file = XmlText(unmarked(content))
    left = dict(remarks)
    for element in list(file.root.iter(tag)):
        name = element.get("name") or ""
        if name in left:
            file.insert(element, [_comment(f"{name}: {left.pop(name)}")], first=True)
    rest = [f"{name}: {words}" for name, words in left.items()]
    file.insert(file.root, [_comment(line) for line in (*head, *rest)], first=True)
    return file.to_bytes()


def unmarked(content: bytes, template: str | Path | None = None) -> bytes:
    """A file without our comments; the template itself, which did not change, keeps them."""
    if template is not None and content == read_regular(Path(template)):
        return content
    text, mark, encoding = decode_xml(content)
    return mark + _OWN_COMMENT.sub("", text).encode(encoding)


def comment_text(text: str) -> str:
    """Text inside a comment; two hyphens in a row would end it early."""
    while "--" in text:
        text = text.replace("--", "- -")
    return text


def _comment(line: str) -> str:
    """A comment of ours, on one line."""
    return f"<!-- {_OWN}{comment_text(one_line(line))} -->"


@dataclass(eq=False)
class Element:
    """An element and where it stands in the text: its tag from `start` to `inner`, its content up to `stop`."""

    tag: str
    start: int
    inner: int
    places: dict[str, tuple[int, int, int]]  # attribute -> where it starts, its value starts and ends
    attributes: dict[str, str]
    closed: bool
    stop: int = 0
    end: int = 0
    children: list[Element] = field(default_factory=list)

    def get(self, key: str, default: str | None = None) -> str | None:
        return self.attributes.get(key, default)

    def find(self, tag: str) -> Element | None:
        return next((e for e in self.children if e.tag == tag), None)

    def findall(self, tag: str) -> list[Element]:
        return [e for e in self.children if e.tag == tag]

    def iter(self, tag: str | None = None) -> Iterator[Element]:
        """The element and all inside it, in the order of the file."""
        if tag is None or self.tag == tag:
            yield self
        for child in self.children:
            yield from child.iter(tag)


class XmlText:
    """The text of a file, its elements, and the changes asked for so far; `text()` makes them."""

    def __init__(self, data: str | bytes, mark: bytes = b"", encoding: str = "utf-8") -> None:
        if isinstance(data, bytes):
            data, mark, encoding = decode_xml(data)
        self.source, self.mark, self.encoding = data, mark, encoding
        self.newline = "\r\n" if "\r\n" in data else "\n"
        self.root = _elements(data)
        self._edits: list[tuple[int, int, str]] = []

    @staticmethod
    def read(path: Path) -> XmlText:
        """The text of a file that is well-formed."""
        try:
            return XmlText(read_regular(path))
        except OSError as error:
            raise ModelError(f"{path.name} cannot be read: {error.strerror}", code="file_missing") from None
        except (UnicodeError, LookupError) as error:
            raise ModelError(f"{path.name} is not well-formed XML: {error}", code="file_damaged") from None

    @property
    def changed(self) -> bool:
        return bool(self._edits)

    def text(self) -> str:
        """The text with all changes made."""
        out, at = [], 0
        for start, end, new in sorted(self._edits, key=lambda e: (e[0], e[1])):
            if start < at:
                raise RuntimeError("two changes of one place in an XML text")
            out += [self.source[at:start], new]
            at = end
        return "".join([*out, self.source[at:]])

    def to_bytes(self) -> bytes:
        """The changed file; signs its encoding does not have are written as character references."""
        return self.mark + self.text().encode(self.encoding, "xmlcharrefreplace")

    # -- changes -----------------------------------------------------------------------------------

    def replace(self, start: int, end: int, new: str) -> None:
        if self.source[start:end] != new:
            self._edits.append((start, end, new))

    def set(self, element: Element, values: Mapping[str, str], drop: Sequence[str] = ()) -> None:
        """Give attributes new values where they stand, add those that are missing, take out those in `drop`."""
        for key, value in values.items():
            if key in element.places:
                _, start, end = element.places[key]
                self.replace(start, end, value)
        added = "".join(f" {k}={quoteattr(v)}" for k, v in values.items() if k not in element.places)
        if added:
            at = element.inner - (2 if element.closed else 1)
            while self.source[at - 1].isspace():
                at -= 1
            self.replace(at, at, added)
        for key in drop:
            if key in element.places:
                start, _, end = element.places[key]
                while self.source[start - 1].isspace():
                    start -= 1
                self.replace(start, end + 1, "")

    def set_content(self, element: Element, content: str) -> None:
        """Give an element that holds text alone another text."""
        if element.closed:
            name = self.source[element.start + 1 :].split(None, 1)[0].rstrip("/>")
            self.replace(element.inner - 2, element.inner, f">{content}</{name}>")
        else:
            self.replace(element.inner, element.stop, content)

    def insert(self, element: Element, blocks: Sequence[str], first: bool = False) -> None:
        """Put new children into an element, on lines of their own where it has its children so; once an element."""
        if not blocks:
            return
        outer = self._indent(element)
        inside = next((i for i in map(self._indent, element.children) if i is not None), None)
        if element.children and inside is None:
            lead, body = "", "".join(" ".join(line.strip() for line in b.split("\n")) for b in blocks)
        else:
            unit = "\t" if outer and outer.startswith("\t") else "  "
            lead = self.newline + (inside if inside is not None else (outer or "") + unit)
            body = lead + lead.join(b.replace("\n", lead) for b in blocks)
        after = self.newline + (outer or "") if lead else ""
        if element.closed:
            name = re.split(r"[\s/>]", self.source[element.start + 1 : element.inner], maxsplit=1)[0]
            at = element.inner - 2
            while self.source[at - 1].isspace():
                at -= 1
            self.replace(at, element.inner, f">{body}{after}</{name}>")
        elif not element.children:
            bare = not self.source[element.inner : element.stop].strip()
            at = element.stop if bare else element.inner
            self.replace(element.inner, at, body + (after if bare else ""))
        elif first:
            self.replace(element.inner, element.inner, body)
        else:
            at = element.children[-1].end
            self.replace(at, at, body)

    def remove(self, element: Element) -> None:
        """Take an element out, and its line where it has one of its own."""
        start, end = element.start, element.end
        line = self.source.rfind("\n", 0, start)
        rest = re.compile(r"[ \t]*(?=\r?\n)").match(self.source, end)
        if line >= 0 and not self.source[line:start].strip() and rest:
            start = line - (self.source[line - 1] == "\r")
            end = rest.end()
        self.replace(start, end, "")

    def _indent(self, element: Element) -> str | None:
        """The blanks before an element that begins its line; None for one in the middle of a line."""
        line = self.source.rfind("\n", 0, element.start) + 1
        before = self.source[line : element.start]
        return before if not before.strip() and line > 0 else None


def _elements(text: str) -> Element:
    """The tree of a well-formed text, tags without their namespaces."""
    open_now: list[Element] = []
    root: Element | None = None
    for found in _MARKUP.finditer(text):
        if found["close"] is not None:
            done = open_now.pop()
            done.stop, done.end = found.span()
        elif found["open"] is not None:
            inside, offset = found["inside"], found.start("inside")
            places, values = {}, {}
            for a in _ATTRIBUTE.finditer(inside):
                group = 2 if a[2] is not None else 3
                key = a[1]
                places[key] = (offset + a.start(), offset + a.start(group), offset + a.end(group))
                values[key] = html.unescape(a[group])
            closed = inside.endswith("/")
            element = Element(found["open"].rpartition(":")[2], found.start(), found.end(), places, values, closed)
            if open_now:
                open_now[-1].children.append(element)
            root = root or element
            if closed:
                element.stop = element.end = element.inner
            else:
                open_now.append(element)
    if root is None:
        raise ModelError("the file holds no XML element", code="file_damaged")
    return root
