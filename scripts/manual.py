"""Hooks of MkDocs for the manual (`make site`): pages from outside `docs`, reference, gallery.

Links of pages lead through the source tree, as on a code host. A linked file outside `docs`
becomes part of the site: a page of its own, a listing of a text, or a copy of anything else.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from collections.abc import Callable

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
#: Places in the site of pages from outside `docs`.
PLACES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "crates/cc/README.md": "evidence/controllers.md",
    "crates/aqm/README.md": "evidence/queues.md",
    "crates/tcp/README.md": "project/tcp.md",
    "python/cwnd/topology/README.md": "project/topology.md",
    "python/cwnd/store/README.md": "project/store.md",
    "crates/linux/router/README.md": "project/router.md",
    "crates/infer/README.md": "project/infer.md",
    "crates/linux/kernel/README.md": "project/kernel.md",
    "crates/tcp/tests/packetdrill/README.md": "project/packetdrill.md",
    "vectors/README.md": "evidence/vectors.md",
    "benches/README.md": "evidence/performance.md",
    "crates/tcp/tests/scripts/README.md": "evidence/scripts.md",
    "python/cwnd/studies/peers/recorded/rows.md": "evidence/recorded.md",
}
#: Playground, which may not be built, its place in the site, and the comment that it replaces.
PLAYGROUND = ROOT / "python/cwnd/playground/playground.html"
PLAYGROUND_PLACE = "play.html"
PLAYGROUND_COMMENT = "<!-- playground -->"
PLAYGROUND_FRAME = (
    '<p><a href="{0}">Open it on a page of its own</a></p>\n'
    '<iframe class="playground" src="{0}" title="Playground"></iframe>'
)
#: Pages of studies.
STUDIES = "python/cwnd/studies/*/*/page.md"
#: Titles of their groups, which are folders; others have their folder's name, with a capital.
GROUPS = {"papers": "Papers", "worlds": "Simulator and Linux", "peers": "Other simulators"}
#: Languages of listings by suffix.
LISTED = {".toml": "toml", ".py": "python", ".rs": "rust", ".txt": "text"}

#: Code or an HTML comment, which have no links, or the target of a link.
_LINK = re.compile(
    r"^ *```.*?^ *```|``.+?``|`[^`\n]*`|<!--.*?-->|(?<=\]\()(?P<target>[^)\s]+)",
    re.MULTILINE | re.DOTALL,
)
_IMAGE = re.compile(r"!\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+\.(?:png|svg))\)")
_SCENARIO = re.compile(r"\]\(([^)\s#]+\.toml)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ITEM = re.compile(r" *(?:[-*]|\d+\.) ")


def place(path: str) -> str:
    """Returns the place in the site of a file of the tree."""
    if path in PLACES:
        return PLACES[path]
    study = re.fullmatch(r"python/cwnd/studies/([\w-]+/[\w-]+)/(.+)", path)
    if study and path.endswith((".md", ".png", ".svg")):
        name = "index.md" if study[2] == "page.md" else study[2]
        return f"studies/{study[1]}/{name}"
    if (ROOT / path).is_dir():
        return f"files/{path}/index.md"
    if Path(path).suffix in LISTED:
        return f"files/{path}.md"
    return path.removeprefix("docs/") if path.startswith("docs/") else f"files/{path}"


def studies() -> list[str]:
    """Returns the pages of all studies."""
    return sorted(str(page.relative_to(ROOT)) for page in ROOT.glob(STUDIES))


@cache
def text(path: str) -> str:
    """Returns the text of a file of the tree."""
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def data(path: str) -> dict[str, Any]:
    """Returns the contents of a TOML file of the tree; nothing if it does not exist."""
    return tomllib.loads(text(path)) if (ROOT / path).is_file() else {}


@cache
def links(path: str) -> dict[str, str]:
    """Maps the targets of a page's links to files of the tree, without anchors."""
    found = {}
    for match in _LINK.finditer(text(path)):
        name = (match["target"] or "").partition("#")[0]
        file = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if name and not re.match(r"[a-z]+:", name) and (ROOT / file).exists():
            found[name] = file
    return found


def relinked(path: str) -> str:
    """Returns the text of a page with links that lead through the site."""
    known = links(path)
    here = posixpath.dirname(place(path))

    def moved(match: re.Match[str]) -> str:
        name, mark, anchor = (match["target"] or "").partition("#")
        if name not in known:
            return match[0]
        return posixpath.relpath(place(known[name]), here) + mark + anchor

    return _LINK.sub(moved, text(path))


def python_markdown(markdown: str) -> str:
    """Adapts lists to Python-Markdown: a blank line before them, contents indented by four."""
    lines: list[str] = []
    fence = listed = False
    for line in markdown.splitlines():
        item = _ITEM.match(line)
        if not fence and line.strip() and not line.startswith(" "):
            if item and not listed and lines and lines[-1].strip():
                lines.append("")
            # Text without a blank line before it continues the item above.
            listed = bool(item) or (listed and bool(lines[-1].strip()))
        if line.lstrip().startswith("```"):
            fence = not fence
        depth = (len(line) - len(line.lstrip()) + 1) // 2 if listed else 0
        lines.append("  " * depth + line)
    return "\n".join(lines)


def listing(path: str) -> str:
    """Returns the page of a text, or of a folder, of the tree."""
    hidden = f"---\nsearch: {{ exclude: true }}\n---\n# {Path(path).name}\n\n`{path}`\n\n"
    if (ROOT / path).is_dir():
        names = sorted(each.name for each in (ROOT / path).iterdir() if each.name[0] not in "_.")
        return hidden + "\n".join(f"- `{name}`" for name in names)
    return f"{hidden}````{LISTED[Path(path).suffix]}\n{text(path)}\n````\n"


def command_line() -> str:
    """Returns the reference of the command line, from the commands themselves."""
    from cwnd.cli import app

    generated = app.generate_docs(output_format="markdown", recursive=True)
    commands = generated[generated.index("## cwnd run") :]
    about = f"{app.help_epilogue} `cwnd COMMAND --help` prints the same as this page."
    return f"# Command line\n\n{about}\n\n{commands}"


def scenario_of(page: str, image: str, section: str, above: str) -> str | None:
    """Returns the scenario that made a figure, if it is known.

    That is the scenario that the study names for the figure, else one of the figure's name, else
    the first that the section links to, else the last that the page links to above the figure.
    """
    # A study's images stand in its folder; other pages may show them, too.
    folder = image.partition("/images/")[0]
    stem = Path(image).stem
    names = [stem]
    study = data(f"{folder}/study.toml")
    if study:
        runs = study.get("figure", {}).get(stem, {}).get("runs", [stem])
        about = [study.get("experiment", {}).get(each, {}) for each in runs]
        files = [each.get("scenario", name) for each, name in zip(about, runs, strict=True)]
        names = [re.sub(r"\.(?:toml|csv)$", "", each) for each in files] + names
    for name in names:
        for where in (f"{folder}/linux" if "/linux/" in image else folder, folder, "scenarios"):
            if (ROOT / where / f"{name}.toml").is_file():
                return f"{where}/{name}.toml"
    known = links(page)
    near = [*_SCENARIO.findall(section), *reversed(_SCENARIO.findall(above))]
    return next((known[each] for each in near if each in known), None)


class Site:
    """The files of the tree that the site shows, and the figures of its pages."""

    def __init__(self, pages: list[str]) -> None:
        #: Files of the tree by their place in the site.
        self.source: dict[str, str] = {}
        #: Figures: page, section, text, image, scenario.
        self.figures: list[tuple[str, str, str, str, str | None]] = []
        waiting = list(pages)
        while waiting:
            path = waiting.pop(0)
            if place(path) in self.source:
                continue
            self.source[place(path)] = path
            if path.endswith(".md"):
                waiting += links(path).values()
                self._find_figures(path)
        for *_, scenario in self.figures:
            if scenario:
                self.source[place(scenario)] = scenario

    def _find_figures(self, page: str) -> None:
        known = links(page)
        whole = text(page)
        heads = list(_HEADING.finditer(whole))
        for match in _IMAGE.finditer(whole):
            if match["target"] not in known:
                continue
            above = [each for each in heads if each.start() < match.start()]
            below = next((each.start() for each in heads if each.start() > match.end()), None)
            section = whole[above[-1].start() if above else 0 : below]
            image = known[match["target"]]
            scenario = scenario_of(page, image, section, whole[: match.start()])
            title = re.sub(r"[*`\\]|\]\([^)]*\)|\[", "", above[-1][1] if above else "")
            self.figures.append((page, title, match["text"], image, scenario))

    def gallery(self) -> str:
        """Returns the page of all figures, by the pages that show them."""
        parts = [f"# Gallery\n\n{len(self.figures)} figures, by the pages that show them."]
        shown = ""
        for page, section, about, image, scenario in sorted(
            self.figures, key=lambda each: list(self.source.values()).index(each[0])
        ):
            if page != shown:
                title = _HEADING.search(text(page))
                name = title[1] if title else page
                parts.append("</div>" if shown else "")
                parts.append(f"## [{name}]({place(page)})\n\n<div class='gallery' markdown>")
                shown = page
            made = f" · [scenario]({place(scenario)})" if scenario else ""
            anchor = place(page)
            parts.append(
                f"<div markdown>\n[![{about}]({place(image)}){{ loading=lazy }}]({anchor})\n\n"
                f"{about or section}{made}\n</div>"
            )
        return "\n\n".join([*parts, "</div>" if shown else ""])


def on_config(config: MkDocsConfig) -> None:
    """Adds the pages of the studies to the navigation, by group."""
    groups: dict[str, list[str]] = {}
    for page in studies():
        group = place(page).split("/")[1]
        groups.setdefault(group, []).append(place(page))
    for part in config.nav or []:
        if isinstance(part, dict) and "Evidence" in part:
            part["Evidence"] += [
                {GROUPS.get(group, group.capitalize()): pages} for group, pages in groups.items()
            ]


def on_files(files: Files, *, config: MkDocsConfig) -> None:
    """Adds the files from outside `docs`, the reference of commands and the gallery."""
    pages = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    config.extra["tree"] = site = Site([*pages, *PLACES, *studies()])
    for where, path in site.source.items():
        if files.get_file_from_path(where):
            continue
        if where.startswith("files/") and where.endswith(".md"):
            files.append(File.generated(config, where, content=listing(path)))
        else:
            files.append(File.generated(config, where, abs_src_path=str(ROOT / path)))
    if PLAYGROUND.exists():
        files.append(File.generated(config, PLAYGROUND_PLACE, abs_src_path=str(PLAYGROUND)))
    made: dict[str, Callable[[], str]] = {
        "reference/cli.md": command_line,
        "gallery.md": site.gallery,
    }
    for where, write in made.items():
        files.append(File.generated(config, where, content=write()))


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, **_: Files) -> str:
    """Leads a page's links through the site."""
    path = config.extra["tree"].source.get(page.file.src_uri, "")
    if not path.endswith(".md"):
        return markdown
    # The title is looked for in the first line.
    found = re.sub(r"\A(?:<!--.*?-->\s*)+", "", relinked(path), flags=re.DOTALL)
    if PLAYGROUND.exists():
        its = posixpath.relpath(PLAYGROUND_PLACE, posixpath.dirname(page.file.src_uri))
        found = found.replace(PLAYGROUND_COMMENT, PLAYGROUND_FRAME.format(its))
    return python_markdown(found)
