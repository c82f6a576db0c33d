"""Loading of results on disk: complete, in a journal, or of version 1."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cwnd.store import read, write
from cwnd.store.assembly import CellIndex, assemble, journal_frames
from cwnd.store.dataset import REWRITE_REMEDY, Dataset, Planned, is_packed
from cwnd.store.manifest import with_activity

if TYPE_CHECKING:
    import os

    from cwnd.results import Run


def load(directory: str | os.PathLike[str], *, samples_on_disk: bool = False) -> Run:
    """Reads a result of `cwnd run`, complete or not.

    Every file is compared with its checksum when it is read. A result older than checksums causes
    an `UncheckedWarning`.

    Of an incomplete sweep it reads the finished runs. Samples that `cwnd run` or `cwnd.sweep` wrote
    stay on disk until they are requested. `samples_on_disk` leaves those of `Run.save` there, too:
    it takes less memory, but the files must not change.

    Raises:
        InputError: There is no result of `cwnd run`, or no run is finished.
        DamageError: A file is missing or damaged.
    """
    path = Path(directory)
    if Dataset.is_at(path) and not is_packed(path):
        dataset = Dataset.open(path)
        if dataset.is_old:
            from cwnd.store import old_reading

            return old_reading.load(dataset)
        cells = CellIndex.of(journal_frames(path, strict=True), REWRITE_REMEDY.format(path))
        planned = Planned(dataset.info, dataset.plan(), dataset.source())
        run = assemble(planned, cells)
    else:
        on_disk = samples_on_disk or write.is_sweep(path)
        run = read.load(path, samples_on_disk=on_disk)
    if write.is_sweep(path):
        run.manifest = with_activity(run.manifest, path)
    return run
