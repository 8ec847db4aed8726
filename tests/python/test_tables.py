"""Tables of a run, as the real pyarrow, pandas, polars and DuckDB read them."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import traindbg as td
from traindbg.errors import InvalidArgument, NotFound, TraindbgError

STEPS = 20


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("tables") / "run"
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_fn = torch.nn.CrossEntropyLoss()
    with td.watch(
        model,
        optimizer,
        run_dir=path,
        collect=("weights", "gradients"),
        histograms=("weights", "gradients"),
        every=2,
        supervise=False,
    ):
        for step in range(STEPS):
            inputs = torch.randn(32, 8)
            optimizer.zero_grad()
            loss_fn(model(inputs), (inputs.sum(1) > 0).long()).backward()
            td.log("accuracy", step / STEPS)
            optimizer.step()
    return td.Run(path)


def test_a_table_is_what_the_series_are(run):
    frame = pa.table(run.table("statistics", names="^weight/2.weight$")).to_pandas()
    assert set(frame["name"]) == {"weight/2.weight"}
    for statistic in ("l2", "min", "mean", "zero"):
        series = run["weight/2.weight"].series(statistic)
        assert frame["step"].tolist() == series.steps.tolist()
        assert frame[statistic].tolist() == series.values.tolist()
    scalars = pa.table(run.table("scalars")).to_pandas()
    loss = scalars[scalars["name"] == "loss"]
    assert loss["value"].tolist() == run.scalars("loss").values.tolist()
    assert loss["step"].tolist() == list(range(STEPS))
    assert str(scalars["wall_time"].dtype) == "datetime64[ns, UTC]"


def test_every_library_reads_the_same(run):
    table = run.table("statistics")
    by_arrow = pa.table(table)
    rows = by_arrow.num_rows
    assert rows > 100
    total = sum(by_arrow["l2"].to_pylist())
    by_polars = pl.DataFrame(table)
    assert by_polars.height == rows
    assert by_polars["l2"].sum() == pytest.approx(total)
    assert by_polars["name"].cast(pl.String).to_list() == by_arrow["name"].to_pylist()
    by_pandas = pd.DataFrame.from_arrow(table)
    assert by_pandas["l2"].sum() == pytest.approx(total)
    assert by_pandas["name"].tolist() == by_arrow["name"].to_pylist()
    numbers = table  # DuckDB finds it by the name of the variable
    found = duckdb.sql("select count(*), sum(l2), count(distinct name) from numbers").fetchall()[0]
    assert numbers is table
    assert found[0] == rows
    assert found[1] == pytest.approx(total)
    assert found[2] == len(set(by_arrow["name"].to_pylist()))


@pytest.mark.parametrize(
    "name",
    ["scalars", "statistics", "histograms", "classes", "steps", "tensors", "events", "findings"],
)
def test_every_table_validates(run, name):
    table = run.table(name)
    read = pa.table(table)
    read.validate(full=True)
    assert read.column_names == table.columns
    assert pa.schema(table) == read.schema
    assert read.num_rows > 0 or name in ("findings", "events")
    assert pl.DataFrame(table).columns == table.columns


def test_histograms_hold_every_element(run):
    frame = pa.table(run.table("histograms", names="gradient/0.weight")).to_pandas()
    assert set(frame.groupby("step")["count"].sum()) == {8 * 16}
    assert (frame["lower"] <= frame["upper"]).all()
    statistics = pa.table(run.table("statistics", names="gradient/0.weight")).to_pandas()
    first = frame[frame["step"] == 0]
    row = statistics[statistics["step"] == 0].iloc[0]
    assert first["lower"].min() <= row["min"] <= first["upper"].min()
    assert first["lower"].max() <= row["max"] <= first["upper"].max()


def test_tensors_have_shapes_and_collections(run):
    rows = {row["name"]: row for row in pa.table(run.table("tensors")).to_pylist()}
    assert rows["weight/0.weight"]["shape"] == [16, 8]
    assert rows["weight/0.weight"]["role"] == "weight"
    assert rows["loss"]["layer"] is None
    assert rows["loss"]["collections"] == []


def test_a_selection(run):
    steps = pa.table(run.table("statistics", steps=range(4, 9), mode="train"))["step"].to_pylist()
    assert set(steps) <= set(range(4, 9))
    assert steps
    assert pa.table(run.table("statistics", steps=(None, 2)))["step"].to_pylist()[-1] < 2
    assert pa.table(run.table("statistics", mode="eval")).num_rows == 0
    assert run.table("statistics", statistics="l2").columns[-1] == "l2"
    collected = pa.table(run.table("statistics", collection="gradients"))["name"].to_pylist()
    assert collected
    assert all(name.startswith("gradient/") for name in collected)


def test_mistakes_are_told_at_once_and_name_the_nearest(run):
    with pytest.raises(InvalidArgument, match="statistics"):
        run.table("statistic")
    with pytest.raises(InvalidArgument, match="mean"):
        run.table("statistics", statistics="maen")
    with pytest.raises(InvalidArgument, match="gradients"):
        run.table("statistics", collection="gradient")
    with pytest.raises(InvalidArgument, match="not a regular expression"):
        run.table("statistics", names="(")
    with pytest.raises(InvalidArgument, match="mode"):
        run.table("statistics", mode="training")
    with pytest.raises(InvalidArgument, match="consecutive"):
        run.table("statistics", steps=range(0, 10, 2))
    with pytest.raises(NotFound, match="worker 7"):
        run.table("statistics", worker=7)


def test_a_table_has_no_length_and_can_be_read_again(run):
    table = run.table("scalars")
    assert not hasattr(table, "__len__")
    assert pa.table(table).equals(pa.table(table))
    assert "scalars" in repr(table)


def test_a_stream_dropped_unread_half_read_or_kept_beyond_everything(run):
    table = run.table("histograms")
    capsule = table.__arrow_c_stream__()
    del capsule
    reader = pa.RecordBatchReader.from_stream(table)
    batch = reader.read_next_batch()
    expected = batch.to_pylist()
    reader.close()
    del reader, table
    gc.collect()
    assert batch.to_pylist() == expected
    column = batch.column(0)
    del batch
    gc.collect()
    assert len(column) == len(expected)
    # A stream that was given away cannot be read twice.
    capsule = run.table("scalars").__arrow_c_stream__()
    holder = type("Holder", (), {"__arrow_c_stream__": lambda _self, _schema=None: capsule})()
    assert pa.table(holder).num_rows > 0
    with pytest.raises((pa.ArrowInvalid, ValueError)):
        pa.table(holder)


def test_a_requested_schema_must_have_the_same_columns(run):
    table = run.table("scalars")
    schema = pa.schema(table)
    assert pa.RecordBatchReader.from_stream(table, schema=schema).read_all().num_rows > 0
    other = pa.schema([("other", pa.int64())])
    with pytest.raises(InvalidArgument, match="columns of this table"):
        table.__arrow_c_stream__(other.__arrow_c_schema__())


def test_many_threads_read_at_once(run):
    table = run.table("statistics")
    expected = pa.table(table)
    results: list[bool] = []

    def read() -> None:
        results.append(pa.table(table).equals(expected))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8


def test_reading_again_and_again_keeps_no_memory(run):
    table = run.table("histograms")

    def bytes_in_use() -> int:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * 4096

    def read(times: int) -> None:
        for _ in range(times):
            stream = pa.RecordBatchReader.from_stream(table)
            stream.read_next_batch()
            del stream
        gc.collect()

    read(100)
    before = bytes_in_use()
    read(500)
    rows = pa.table(table).nbytes
    assert bytes_in_use() - before < 100 * rows  # a leak would be 500 of them


def test_a_run_that_vanishes_is_an_error_and_not_a_crash(run, tmp_path):
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(run.path, copy)
    table = td.Run(copy).table("scalars")
    shutil.rmtree(copy)
    with pytest.raises(TraindbgError):
        pa.table(table)


def test_parquet(run, tmp_path):
    path = tmp_path / "run.parquet"
    table = run.table("statistics")
    seen: list[int] = []
    rows = table.to_parquet(path, progress=seen.append)
    read = pq.read_table(path)
    assert read.num_rows == rows == seen[-1]
    assert read.column_names == table.columns
    assert read["l2"].to_pylist() == pa.table(table)["l2"].to_pylist()
    assert read["name"].to_pylist() == pa.table(table)["name"].to_pylist()
    with pytest.raises(FileExistsError):
        table.to_parquet(path)
    table.to_parquet(path, overwrite=True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.parquet"]


def test_none_of_the_libraries_is_loaded(run):
    program = (
        "import sys, traindbg as td\n"
        f"td.Run({str(run.path)!r}).table('scalars').__arrow_c_stream__()\n"
        "print([m for m in ('pyarrow', 'pandas', 'polars', 'duckdb', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_numbers_are_numpy_numbers(run):
    frame = pa.table(run.table("steps")).to_pandas()
    assert frame["step_nanos"].dtype == np.uint64
    assert (frame["sequence"].diff().dropna() > 0).all()
