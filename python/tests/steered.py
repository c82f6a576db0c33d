"""Meter and echo that each controller with router feedback requires; it is refused without."""

from __future__ import annotations

#: Controller → the meter of each link, and the echo of ACKs.
NEEDED = {
    "xcp": ("xcp", "sum"),
    "rcp": ("rcp", "last"),
    "dctcp": ("step", "changes"),
    "vcp": ("vcp", "changes"),
    "mlcp": ("mlcp", "level"),
    "bmcc": ("adpm", "load"),
}
