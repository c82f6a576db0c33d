"""The manual as a site: it builds without a warning, works without a network and lacks nothing."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import chromium
import pytest
from conftest import ROOT

import cwnd

#: Attributes that load something when a page is opened; links to follow are none of them.
LOADED = re.compile(r"<(?:script|img|iframe)[^>]*? src=\"([^\"]+)|<link[^>]*? href=\"([^\"]+)")
#: `true` once each table is in a frame within which it scrolls.
FRAMED = """[...document.querySelectorAll('.md-content table:not([class])')]
    .every((each) => each.closest('.md-typeset__scrollwrap'))"""
#: What is wider than the page and does not scroll.
WIDE = """[...document.querySelectorAll('.md-content :is(.md-typeset__scrollwrap, img, pre)')]
    .filter((each) => each.getBoundingClientRect().right > innerWidth)
    .map((each) => each.outerHTML)"""
SEARCH = """(() => {
    const query = document.querySelector('[data-md-component=search-query]');
    query.focus();
    query.value = 'delayed ACK';
    query.dispatchEvent(new KeyboardEvent('keyup', { bubbles: true }));
})()"""
FOUND = "document.querySelectorAll('.md-search-result__item').length"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material")
    there = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", there]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return there


def test_no_page_loads_from_the_network(site: Path):
    pages = list(site.rglob("*.html"))
    loaded = {
        (page.name, url)
        for page in pages
        for found in LOADED.findall(page.read_text(encoding="utf-8"))
        for url in found
        if re.match(r"(?:\w+:)?//", url)
    }
    assert len(pages) > 50
    assert not loaded


def test_the_python_api_has_all_public_names(site: Path):
    page = next(site.rglob("python.html")).read_text(encoding="utf-8")
    assert [name for name in cwnd.__all__ if f'id="cwnd.{name}"' not in page] == ["__version__"]


def test_the_gallery_shows_every_figure_that_pages_show(site: Path):
    shown = re.compile(r"<img[^>]* src=\"([^\"]+)\"")
    gallery = site / "gallery.html"
    figures = {
        (page.parent / html.unescape(name)).resolve()
        for page in site.rglob("*.html")
        for name in shown.findall(page.read_text(encoding="utf-8"))
        if page != gallery and page.name != "404.html" and not name.startswith("data:")
    }
    there = shown.findall(gallery.read_text(encoding="utf-8"))
    assert figures <= {(site / html.unescape(name)).resolve() for name in there}
    assert all(figure.exists() for figure in figures)


@pytest.mark.skipif(chromium.find() is None, reason="Chromium is not installed")
def test_pages_fit_and_can_be_searched_without_a_server(site: Path, tmp_path: Path):
    with chromium.Chromium(tmp_path) as browser:
        for width in (400, 1400):
            browser.show_as(width, 1200)
            for page in ("index.html", "gallery.html", "metrics.html"):
                browser.open(next(site.rglob(page)))
                browser.until(FRAMED)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
                assert browser.evaluate(WIDE) == []
        browser.evaluate(SEARCH)
        assert browser.until(FOUND) > 0
        assert browser.complaints() == []
