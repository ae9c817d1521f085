"""The report as a page: well-formed, closed to whatever the text is, and usable without sight, mouse or network."""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import unicodedata
from html.parser import HTMLParser
from importlib import metadata
from itertools import pairwise

import pytest
from cli.report_homes import HOSTILE, rich_report, with_text
from conftest import memory_home
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel.test_first_scores import prepared

from spl.cli.render.report.charts import Point, Words, scatter_chart
from spl.cli.render.report.page import render_page
from spl.cli.render.report.readings import MINUS
from spl.cli.sanitize import visible
from spl.kernel.report import actor_report

VOID = {"meta", "br", "img", "link", "input", "hr", "path", "circle", "line", "rect"}
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class Page(HTMLParser):
    """Reads a page and holds every element to what HTML demands of nesting."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.inside: list[tuple[str, ...]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tuple(self.open))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tuple(self.open))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} ends and is not open"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every element with the names of its attributes: what no text may change."""
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]


@pytest.fixture(scope="module")
def html() -> str:
    return render_page(rich_report())


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_nothing_is_loaded_and_nothing_runs(page: Page) -> None:
    assert not {"script", "link", "img", "iframe", "object", "embed", "form", "base", "use", "image"} & {
        tag for tag, _ in page.elements
    }
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), tag
            assert name not in {"style", "src", "srcset", "xlink:href"}, tag
            if name == "href":
                assert (value or "").startswith("#")
    style = next(text for tag, text in page.texts if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_the_policy_allows_the_one_style_sheet_and_nothing_else(page: Page) -> None:
    policy = next(meta["content"] for meta in page.all("meta") if "http-equiv" in meta)
    assert len(page.all("style")) == 1
    style = "".join(text for tag, text in page.texts if tag == "style")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    order = [tag for tag, _ in page.elements]
    assert order.index("meta") < order.index("style")
    assert page.elements[order.index("meta") + 1][1].get("http-equiv") == "Content-Security-Policy"


def test_every_picture_has_a_name_and_every_table_its_headers(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    charts = page.all("svg")
    assert len(charts) >= 3
    for chart in charts:
        assert chart["role"] == "img"
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            for target in (attributes.get(name) or "").split():
                assert target in ids
        if (attributes.get("href") or "").startswith("#"):
            assert (attributes["href"] or "")[1:] in ids
    assert len(page.all("caption")) == len(page.all("table")) > 5
    for header in page.all("th"):
        assert header.get("scope") in {"col", "row"}
    for attributes in page.all("div"):
        if attributes.get("class") == "scroll":
            assert (attributes["tabindex"], attributes["role"]) == ("0", "region")
            assert attributes.get("aria-labelledby") or attributes.get("aria-label")


def test_headings_follow_each_other_and_the_language_is_said(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert page.all("html")[0]["lang"] == "en"
    assert page.all("a")[0] == {"class": "skip", "href": "#main"}
    assert len(page.all("main")) == 1


def test_the_figures_are_those_of_the_document(html: str) -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).replace(MINUS, "-")
    assert "5/6 83.3% 43.6% to 97.0%" in text  # substance of the first
    assert "2/6 33.3% 9.7% to 70.0% -50.0" in text  # of the second, against it
    assert "3 of 6, 3 without a run" in text
    assert "different cases covered" in text
    assert "-50.0 -85.7 to +10.7 0 3 6 0.500" in text  # the step from the first to the second
    assert "rename-field 3 s 3 substance 2/3 66.7%" in text
    assert "at least $0.0000003 at least $0.000000043" in text
    assert "partial: 6 of 12 requests priced" in text
    assert "Verdicts that do not count: 1 retracted" in text
    assert "A cycle: each of" in text
    assert "Without any score: 4 s 4" in text


def test_an_empty_history_says_what_to_do() -> None:
    page = Page(render_page(actor_report(prepared(memory_home()), "coder")))
    assert any("No scores yet" in text for _, text in page.texts)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_shown_as_text(text: str, page: Page) -> None:
    assert_closed(text, page)


@settings(max_examples=25, deadline=None)
@given(text=st.text(st.characters() | st.sampled_from("<>&\"'{}%\\/=-!`\u202e\u200d\x00\x1b"), min_size=1))
def test_no_text_changes_the_page(text: str) -> None:
    assert_closed(text, Page(render_page(rich_report())))


def assert_closed(text: str, plain: Page) -> None:
    html = render_page(with_text(rich_report(), text))
    read = Page(html)
    assert read.shape == plain.shape
    assert all(character == "\n" or unicodedata.category(character) not in HIDDEN for character in html)
    shown = visible(text)[:20].strip()
    assert any(shown in content for tag, content in read.texts if tag == "bdi")


def test_the_same_document_gives_the_same_bytes(html: str) -> None:
    assert render_page(rich_report()) == html


def test_amounts_that_lie_far_apart_stand_on_a_logarithmic_scale() -> None:
    words = Words("c", "title", "about")
    far = scatter_chart(
        [Point(label="1", x=0.01, y=0.5), Point(label="2", x=3.0, y=0.6)], words, "cost", "rate"
    )
    near = scatter_chart(
        [Point(label="1", x=1.0, y=0.5), Point(label="2", x=3.0, y=0.6)], words, "cost", "rate"
    )
    assert "logarithmic" in far
    assert "$0.02" in far
    assert "logarithmic" not in near
    assert "$0" in near


def test_drawing_charts_leaves_the_way_python_imports_as_it_was() -> None:
    scatter_chart([Point(label="1", x=1.0, y=0.5)], Words("c", "Cost", "Cost against passes"), "cost", "rate")
    assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("pygal")]
    assert metadata.version("google-re2")  # pygal's own dependencies replace what finds it
