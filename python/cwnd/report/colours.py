"""Colours of pages, light and dark. It imports nothing that has to be built."""

from __future__ import annotations

from cwnd.figures import line_style

#: Colours of lines on a dark page, in the order of `line_style.COLOURS`: the same hues, lighter.
_DARK_COLOURS = ("#56A9E8", "#F0B23C", "#2CC295", "#F58447", "#A5D8F7", "#E6A6CB", "#F2F2F2")
_CHROME = {
    "light": {"paper": "#ffffff", "ink": "#1b1f24", "muted": "#59636e", "rule": "#d5dae0"},
    "dark": {"paper": "#14181d", "ink": "#e8ebee", "muted": "#a3adb8", "rule": "#39424c"},
}


def palettes() -> dict[str, dict[str, str]]:
    """Colours of pages by scheme and name; those of lines have numbers."""
    return {name: page_colours(name) for name in _CHROME}


def page_colours(name: str) -> dict[str, str]:
    """Colours of a page that is `light` or `dark`: by name, and of lines by number."""
    lines = line_style.COLOURS if name == "light" else _DARK_COLOURS
    return {**_CHROME[name], **{str(index): colour for index, colour in enumerate(lines)}}
