"""Meter and echo that each controller with router feedback requires; it is refused without."""

from __future__ import annotations

#: By controller: the meter of each link, and what ACKs echo.
NEEDED = {
    "xcp": ("xcp", "sum"),
    "rcp": ("rcp", "last"),
    "dctcp": ("step", "changes"),
    "vcp": ("vcp", "changes"),
    "mlcp": ("mlcp", "level"),
    "bmcc": ("adpm", "load"),
}
