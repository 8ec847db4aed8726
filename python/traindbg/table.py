"""Tables of a run, for pandas, polars, DuckDB, pyarrow and whatever else reads Arrow.

A `Table` holds no data: it is read from the run each time somebody asks for its stream, batch by
batch and without a copy. None of these libraries is needed by traindbg.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindbg._damage import MetDamage
from traindbg.errors import TraindbgError, Unsupported

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg import _core


class Table:
    """One table of a run, or a part of it; see `Run.table`.

    Give it to `pyarrow.table`, `polars.from_arrow`, `pandas.DataFrame.from_arrow` (pandas 3),
    `duckdb.from_arrow` or anything else that knows `__arrow_c_stream__`. It may be read many
    times; each reading gives what is in the run by then. What is damaged is left out, with a
    `DamageWarning` for each place once it was read.
    """

    def __init__(
        self,
        name: str,
        run_name: str,
        make: Callable[[], _core.Table],
        met: MetDamage | None = None,
    ) -> None:
        self._name = name
        self._run_name = run_name
        self._make = make
        self._met = met or MetDamage()
        self._read: _core.Table | None = None  # whose stream was asked for last
        self._columns = list(make().columns)  # mistakes are told here

    @property
    def name(self) -> str:
        """Such as `statistics`."""
        return self._name

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def __arrow_c_schema__(self) -> Any:
        return self._make().schema()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self._read = self._make()
        return self._read.stream(requested_schema, self._met.number)

    def to_parquet(
        self,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Writes a Parquet file, batch by batch; needs pyarrow. Gives the number of rows.

        The file appears under its name when it is whole.

        Args:
            path: of the file.
            overwrite: whether a file of that name may be replaced.
            progress: called with the rows so far, now and then.

        Raises:
            Unsupported: pyarrow is not installed.
            FileExistsError: there is such a file, and `overwrite` was not given.
        """
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError:
            raise Unsupported("Parquet needs pyarrow: python -m pip install pyarrow") from None
        target = Path(path)
        if target.exists() and not overwrite:
            raise FileExistsError(f"{target}: exists already")
        partial = target.with_name(f".{target.name}.{os.getpid()}.part")
        rows = 0
        try:
            with (
                pa.RecordBatchReader.from_stream(self) as reader,
                pq.ParquetWriter(partial, reader.schema, compression="zstd") as writer,
            ):
                for batch in reader:
                    writer.write_batch(batch)
                    rows += batch.num_rows
                    if progress is not None:
                        progress(rows)
            with partial.open("rb") as written:
                os.fsync(written.fileno())
            if not overwrite and target.exists():  # somebody else was quicker
                raise FileExistsError(f"{target}: exists already")
            partial.replace(target)
        except pa.ArrowException as error:
            raise TraindbgError(f"{target}: {error}") from None
        finally:
            partial.unlink(missing_ok=True)
        self._met.tell(self.damage)
        return rows

    @property
    def damage(self) -> list[dict[str, Any]]:
        """Places that the last reading met and could not read; see `Run.damage`."""
        return [] if self._read is None else list(self._read.damage())

    def __repr__(self) -> str:
        return f"<traindbg.Table {self._name} of {self._run_name}: {', '.join(self._columns)}>"
