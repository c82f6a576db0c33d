"""Runs ours of the recorded settings: `cwnd study run peers/recorded --record ours-web.csv`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.studies.peers.recorded import endless, ours, rows, steered, transfers, trends, web
from cwnd.studies.peers.recorded.endless_tables import EXPLANATIONS
from cwnd.studies.peers.recorded.setting_tables import OF_STEERED, OF_TRANSFERS, OF_WEB

if TYPE_CHECKING:
    from cwnd.studies.peers.recorded.ours import Job, Overrides


def of_endless() -> list[Job]:
    """Jobs of flows without end, and of the experiments on them."""
    every = rows.load_all()
    by_key = {row.key: row for row in every}
    experiments = [
        endless.job(by_key[explanation.rows[0]], overrides)
        for explanation in EXPLANATIONS.values()
        for overrides in explanation.experiments
    ]
    return [*endless.jobs(every), *experiments, *trends.jobs(every)]


def of_transfers() -> list[Job]:
    """Jobs of transfers, and of the experiments on them."""
    every = {setting.key: setting for setting in transfers.settings()}
    asked = [(every[key], overrides) for key, of in OF_TRANSFERS.values() for overrides in of]
    return [*map(transfers.job, every.values()), *(transfers.job(*each) for each in asked)]


def of_web() -> list[Job]:
    """Jobs of web users, and of the experiments on those beside most bulk flows."""
    every = web.settings()
    experiments = [
        web.job(setting, changed, change(web.scenario(setting)))
        for setting in every
        if setting.row.cells["n_ftp"] == web.MOST_BULK_FLOWS
        for changed, change in OF_WEB
    ]
    return [*map(web.job, every), *experiments]


def of_steered() -> list[Job]:
    """Jobs of steered senders, and of the experiments on them."""
    every = {setting.key: setting for setting in steered.settings()}
    asked: list[tuple[steered.Setting, Overrides]] = [(each, ()) for each in every.values()]
    asked += [(every[key], overrides) for key, of in OF_STEERED.values() for overrides in of]
    return [job for setting, overrides in asked for job in steered.jobs(setting, overrides)]


JOBS = {
    "ours-endless.csv": of_endless,
    "ours-transfers.csv": of_transfers,
    "ours-web.csv": of_web,
    "ours-steered.csv": of_steered,
}


def main(file: Path) -> None:
    """Runs all jobs of a file, and writes it."""
    found = ours.run(JOBS[file.name]())
    if file.name == "ours-endless.csv":
        found = endless.means(found)
    ours.table(found).write_csv(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
