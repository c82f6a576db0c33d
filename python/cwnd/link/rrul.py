"""RRUL (real-time response under load), Flent's test: four flows each way beside pings.

The load lasts from `LEAD_S` after the first ping to `LEAD_S` before the last one. A test measures
programs behind a link (`measuring`), or simulates the same flows (`responsiveness`); pings are
requests and responses on open connections then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cwnd.link.settings import Settings
    from cwnd.running import Scenario

#: DSCPs of the flows (RFC 2474, RFC 3246), by name; each has a download and an upload.
DSCPS = {"BK": 8, "BE": 0, "CS5": 40, "EF": 46}
#: Pings, by Flent's name.
PINGS = ("ICMP", "UDP BK", "UDP BE", "UDP EF")
#: Congestion controller of the flows.
CONTROLLER = "cubic"
#: Time of pings before the load and after it, in seconds, as Flent's DELAY.
LEAD_S = 5
#: Interval of pings and of goodputs in seconds, as Flent's STEP_SIZE.
STEP_S = 0.2
#: Time from the start of the servers to the first ping, in seconds; a busy machine needs more than
#: one.
START_S = 3
#: Clients of each simulated ping. They take turns, so that a request need not wait for the response
#: to the one before.
_CLIENTS = 10
#: Least time between a simulated response and the next request, in seconds.
_MIN_READING_S = 0.001
#: Chunks of the flows (TSO), as of Linux with its default settings.
_CHUNKS = {"tso": "65.536 kB", "tso_sizing": "rate-unpaced"}
#: Directions of the flows, and those of the link.
DIRECTIONS = {"download": "downlink", "upload": "uplink"}


def total_s(length_s: int) -> int:
    """Time from the first ping to the last one, in seconds."""
    return length_s + 2 * LEAD_S


def link_s(length_s: int) -> int:
    """Time for which programs use the link, in seconds."""
    return START_S + total_s(length_s)


def scenario(settings: Settings, length_s: int) -> Scenario:
    """Describes the test as a scenario; pings are requests and responses of one packet each."""
    endpoint: dict[str, object] = dict(_CHUNKS)
    if settings.ecn:
        endpoint["ecn"] = True
    load: dict[str, object] = {
        "count": len(DSCPS),
        "controller": CONTROLLER,
        "start": f"{LEAD_S} s",
        "stop": f"{LEAD_S + length_s} s",
        "endpoint": endpoint,
    }
    requests = {
        "kind": "web",
        "pages": "none",
        "objects": 1,
        "request": "64 B",
        "size": "64 B",
        "reading": f"{max(_CLIENTS * STEP_S - (settings.rtt_s or 0), _MIN_READING_S):.6f} s",
    }
    flow = {name: settings.group(link, **load) for name, link in DIRECTIONS.items()}
    flow["ping"] = settings.group(
        "downlink",
        count=_CLIENTS * len(PINGS),
        spacing=f"{STEP_S / len(PINGS)} s",
        workload=requests,
    )
    run = {
        "duration": f"{total_s(length_s)} s",
        "seed": settings.seed,
        "sample": f"{STEP_S} s",
    }
    return settings.scenario_with(flow, run, name="rrul")
