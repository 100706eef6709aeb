"""The page: one file, nothing fetched, all text escaped."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from sweep_jax.report import Section, format_number, write_report

SVG = b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"></svg>'
PNG = b"\x89PNG\r\n\x1a\n"


def make_page(path, **changes):
    frame = pd.DataFrame(
        {"name": ["<b>", None], "count": [1, 20], "mean": [1 / 3, np.nan], "good": [True, False]}
    )
    arguments = {
        "title": "A & B",
        "lead": "First\nline.\n\nSecond <i>paragraph</i>.",
        "sections": [Section("One", "Text.", [("A table", frame)], [("A figure", SVG)])],
        "provenance": {"versions": {"jax": "1", "numpy": "2"}, "platform": "cpu"},
    }
    write_report(path, **(arguments | changes))
    return path.read_text()


def test_the_page_is_well_formed_and_self_contained(tmp_path):
    page = make_page(tmp_path / "report.html")
    opened = []

    class Checker(HTMLParser):
        def handle_starttag(self, tag, attrs):
            for name, value in attrs:
                if name in ("src", "href"):
                    assert value.startswith(("data:", "#"))
            if tag not in ("meta", "img"):
                opened.append(tag)

        def handle_endtag(self, tag):
            assert opened.pop() == tag

    Checker().feed(page)
    assert opened == []
    assert "http" not in page
    assert "url(" not in page
    assert "<h1>A &amp; B</h1>" in page
    assert page.count('class="lead"') == 2
    assert "&lt;i&gt;paragraph" in page
    assert "jax 1, numpy 2" in page


def test_numbers_stand_right_and_text_left(tmp_path):
    page = make_page(tmp_path / "report.html")
    cells = re.findall(r"<td(.*?)>(.*?)</td>", page)
    number = ' class="number"'
    assert cells == [
        ("", "&lt;b&gt;"),
        (number, "1"),
        (number, "0.3333"),
        ("", "True"),
        ("", "–"),
        (number, "20"),
        (number, "–"),
        ("", "False"),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12.345678, "12.35"),
        (3.0, "3"),
        (123456, "123456"),
        (1.5e-9, "1.5e-09"),
        (float("nan"), "–"),
        (float("inf"), "inf"),
        (-0.5, "-0.5"),
        ("a", "a"),
        (True, "True"),
        (np.float64(0.25), "0.25"),
    ],
)
def test_format_number(value, text):
    assert format_number(value) == text


def test_figures_come_from_bytes_or_files(tmp_path):
    (tmp_path / "figure.png").write_bytes(PNG)
    figures = [("one", tmp_path / "figure.png"), ("two", SVG)]
    page = make_page(tmp_path / "report.html", sections=[Section("One", figures=figures)])
    assert "data:image/png;base64," in page
    assert "data:image/svg+xml;base64," in page
    with pytest.raises(ValueError, match="figure 'bad' = b'GIF89a'"):
        make_page(tmp_path / "x", sections=[Section("One", figures=[("bad", b"GIF89a")])])
