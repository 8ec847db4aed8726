"""Reading runs: `Run` and what it hands out. NumPy arrays in, NumPy arrays out; no framework."""

from __future__ import annotations

import contextlib
import html
import json
import os
import re
import shutil
import sys
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg import _core
from traindbg._damage import MetDamage
from traindbg.errors import InvalidArgument, NotFound, RunNotFound, TraindbgError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from traindbg.table import Table

Step = _core.Step


def _is_remote(path: str) -> bool:
    return path.startswith("s3://")


def _program(path: str) -> str:
    """The native program, where it is needed: it reads runs in buckets. Empty: there is none."""
    if not _is_remote(path):
        return ""
    places = [
        os.environ.get("TRAINDBG_PROGRAM", ""),
        os.path.join(os.path.dirname(sys.executable), "traindbg"),
        os.path.join(sysconfig.get_path("scripts"), "traindbg"),
        shutil.which("traindbg") or "",
    ]
    return next((p for p in places if p and os.access(p, os.X_OK)), "")


class Series(NamedTuple):
    """One number over steps: `steps` uint64 [n], `values` float64 [n]."""

    steps: NDArray[np.uint64]
    values: NDArray[np.float64]


class MergedSeries(NamedTuple):
    """One number of a tensor over all workers: `steps` uint64 [n], `values` float64 [n].

    `left_out`, uint64: the steps at which a worker or a part of the tensor is missing.
    """

    steps: NDArray[np.uint64]
    values: NDArray[np.float64]
    left_out: NDArray[np.uint64]


class RawSeries(NamedTuple):
    """A whole tensor over steps: `steps` uint64 [n], `values` [n, *shape]."""

    steps: NDArray[np.uint64]
    values: NDArray[Any]


class Channels(NamedTuple):
    """What each channel of a tensor holds: float32 [channels] each.

    `min` and `max` are over the finite elements (0 where there is none), `zero` is the share of
    elements that are 0. Which dimension counts the channels, docs/torch.md says.
    """

    min: NDArray[np.float32]
    max: NDArray[np.float32]
    zero: NDArray[np.float32]


class Digest(NamedTuple):
    """What tells a tensor apart: equal tensors have equal fingerprints, in any run.

    `fingerprint` is 16 hexadecimal digits, of type, shape and every bit; `product` that of the
    finite elements.
    """

    fingerprint: str
    product: float


class Tensor:
    """One tensor of a run: who it is, and its numbers over the steps."""

    def __init__(self, run: Run, worker: int, info: dict[str, Any]) -> None:
        self._run = run
        self.worker = worker
        self.info = info

    @property
    def name(self) -> str:
        """Such as `gradient/conv1.weight`."""
        return str(self.info["name"])

    @property
    def role(self) -> str:
        """Such as `gradient`."""
        return str(self.info["role"])

    @property
    def shape(self) -> tuple[int, ...]:
        """As first seen."""
        return tuple(self.info["shape"])

    def series(self, statistic: str = "", mode: str = "train") -> Series:
        """A statistic over the steps; by default `value` of a number (a loss, say), else `l2`."""
        chosen = statistic or ("value" if self.info["is_number"] else "l2")
        steps, values = self._run._reader.series(self.worker, self.name, chosen, mode)
        self._run._tell_damage()
        return Series(steps, values)

    def values(self, statistic: str = "", mode: str = "train") -> NDArray[np.float64]:
        """The values of `series`: float64 [n]."""
        return self.series(statistic, mode).values

    def steps(self, mode: str = "train") -> NDArray[np.uint64]:
        """The steps at which it was recorded: uint64 [n]."""
        counted = "labels" if self.role == "classes" else ""
        if counted:
            found = [
                s.step
                for s in self._run.iter_steps(mode, worker=self.worker)
                if self.name in s.classes
            ]
            import numpy as np

            return np.array(found, dtype=np.uint64)
        return self.series("", mode).steps

    def value(self, step: int, mode: str = "train", *, copy: bool = True) -> NDArray[Any]:
        """The whole tensor at a step, where it was kept (`raw=`). bfloat16 and float8 as float32.

        With `copy=False` the array is read-only and lies in the run's file itself, so that a tensor
        of any size costs no memory (bfloat16 and float8 are copied all the same).

        Raises NotFound when it was not kept at that step.
        """
        kept = self._run._reader.raw(self.worker, mode, step, self.name)
        self._run._tell_damage()
        if kept is None:
            raise NotFound(
                f"{self.name}: not kept as a whole at {mode} step {step}; "
                "ask for it with watch(raw=...), and see raw_steps()"
            )
        dtype, shape, data = kept
        values = _array(dtype, shape, data)
        return values.copy() if copy and not values.flags.owndata else values

    def channels(self, step: int, mode: str = "train") -> Channels:
        """The extremes and the share of zeros of each channel at a step, where asked for.

        Raises NotFound when they were not recorded at that step.
        """
        kept = self._run._reader.channels(self.worker, mode, step, self.name)
        self._run._tell_damage()
        if kept is None:
            raise NotFound(
                f"{self.name}: no channels at {mode} step {step}; ask for them with "
                'watch(capture=[{"collection": ..., "what": ["channels"]}])'
            )
        return Channels(*kept)

    def digest(self, step: int, mode: str = "train") -> Digest:
        """The fingerprint and the product of the tensor at a step, where asked for.

        Raises NotFound when they were not recorded at that step.
        """
        kept = self._run._reader.digest(self.worker, mode, step, self.name)
        self._run._tell_damage()
        if kept is None:
            raise NotFound(
                f"{self.name}: no digest at {mode} step {step}; ask for it with "
                'watch(capture=[{"collection": ..., "what": ["digest"]}])'
            )
        fingerprint, product = kept
        return Digest(f"{fingerprint:016x}", product)

    def raw_series(self, mode: str = "train") -> RawSeries:
        """The whole tensor at all steps at which it was kept, as one array [n, *shape].

        Raises InvalidArgument when its shape or type changes on the way.
        """
        dtype, shape, steps, data = self._run._reader.raw_series(self.worker, mode, self.name)
        self._run._tell_damage()
        return RawSeries(steps, _array(dtype, (len(steps), *shape), data))

    def raw_steps(self, mode: str = "train") -> NDArray[np.uint64]:
        """The steps at which the whole tensor was kept: uint64 [n]."""
        steps = self._run._reader.raw_steps(self.worker, mode, self.name)
        self._run._tell_damage()
        return steps

    def __repr__(self) -> str:
        return f"<traindbg.Tensor {self.name} {list(self.shape)} {self.info['dtype']}>"


def _array(dtype: str, shape: tuple[int, ...], data: NDArray[np.uint8]) -> NDArray[Any]:
    import numpy as np

    if dtype == "bfloat16":
        wide = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        values: NDArray[Any] = wide.view(np.float32).reshape(shape)
        return values
    if dtype.startswith("float8_"):
        return _float8(np.frombuffer(data, np.uint8), dtype).reshape(shape)
    if dtype == "unknown":
        dtype = "uint8"  # only where nothing was kept
    plain: NDArray[Any] = np.frombuffer(data, np.dtype(dtype)).reshape(shape)
    return plain


def _float8(bits: NDArray[np.uint8], dtype: str) -> NDArray[np.float32]:
    import numpy as np

    if dtype == "float8_e5m2":  # the upper half of a float16
        half: NDArray[np.float16] = (bits.astype(np.uint16) << 8).view(np.float16)
        return half.astype(np.float32)
    if dtype == "float8_e8m0fnu":  # powers of two
        value = np.ldexp(1.0, bits.astype(np.int32) - 127)
        is_nan = bits == 0xFF
    else:
        width = 2 if "e5m2" in dtype else 3  # of the mantissa
        has_negative_zero = not dtype.endswith("fnuz")  # whose pattern is NaN otherwise
        bias = (1 << (6 - width)) - has_negative_zero
        exponent = ((bits & 0x7F) >> width).astype(np.int32)
        mantissa = (bits & ((1 << width) - 1)).astype(np.float64) / (1 << width)
        normal = np.ldexp(1 + mantissa, exponent - bias)
        value = np.where(exponent == 0, np.ldexp(mantissa, 1 - bias), normal)
        value *= np.where(bits & 0x80, -1.0, 1.0)
        is_nan = (bits & 0x7F) == 0x7F if has_negative_zero else bits == 0x80
    out: NDArray[np.float32] = np.where(is_nan, np.nan, value).astype(np.float32)
    return out


def _words(value: str | Iterable[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def _step_bounds(steps: range | tuple[int | None, int | None] | None) -> tuple[int, int]:
    if steps is None:
        return 0, 2**64 - 1
    if isinstance(steps, range):
        if steps.step != 1:
            raise InvalidArgument(f"steps={steps}: only ranges of consecutive steps can be taken")
        low, high = steps.start, steps.stop
    else:
        low, high = steps[0] or 0, 2**64 - 1 if steps[1] is None else steps[1]
    if low < 0 or high < 0:
        raise InvalidArgument(f"steps={steps}: steps are counted from 0")
    return low, high


class Run:
    """A run, opened for reading: while it grows, after it ended, or after it was cut off.

    `path` is its directory, or its `s3://` URL: then the native program, found beside Python,
    in PATH or by TRAINDBG_PROGRAM, reads for us, with the credentials of the environment.

    Several threads may use one: they take turns. While one waits for a disk or a bucket, all
    other threads of Python go on.

    Raises RunNotFound when `path` is no run directory.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self._reader = _core.RunReader(os.fspath(path), _program(os.fspath(path)))
        except RunNotFound:
            raise
        except NotFound as error:
            raise RunNotFound(str(error)) from None
        self._infos: dict[int, dict[str, dict[str, Any]]] = {}
        self._met = MetDamage()

    def _tell_damage(self) -> None:
        self._met.tell(self._reader.damage(), stacklevel=4)

    # What it is.

    @property
    def flight(self) -> Run | None:
        """What the flight recorder kept: the last steps before something went wrong, as a run.

        `events` of kind "flight_recorder" say why; None where nothing was kept. In a training that
        still runs it holds the latest steps.
        """
        if _is_remote(self.location):
            return None
        try:
            return Run(self.path / "flight")
        except RunNotFound:
            return None

    @property
    def location(self) -> str:
        """The run directory's path, or the `s3://` URL of a run in a bucket."""
        return str(self._reader.path)

    @property
    def path(self) -> Path:
        """The run directory. A run in a bucket has none (`InvalidArgument`); see `location`."""
        if _is_remote(self.location):
            raise InvalidArgument(f"{self.location}: lies in a bucket; use Run.location")
        return Path(self.location)

    @property
    def name(self) -> str:
        """The run directory's name."""
        return self.location.rstrip("/").rpartition("/")[2]

    @property
    def meta(self) -> dict[str, Any]:
        """Who made the run: command, host, platform, time."""
        return dict(json.loads(self._reader.meta()))

    @property
    def workers(self) -> list[int]:
        """The processes that recorded, by rank."""
        return list(self._reader.workers())

    def worker_meta(self, worker: int = 0) -> dict[str, Any]:
        """What a process said of itself: framework, model, optimizer, environment."""
        return dict(json.loads(self._reader.worker_meta(worker)))

    @property
    def end(self) -> dict[str, Any] | None:
        """How the training ended, as its supervisor saw it; None while it runs."""
        text = self._reader.end()
        return None if text is None else dict(json.loads(text))

    @property
    def is_complete(self) -> bool:
        """Whether every process ended its recording: no more will come."""
        return self._reader.is_complete

    @property
    def totals(self) -> dict[str, int]:
        """Steps, bytes, time spent in steps and in capture (ns), and what was dropped."""
        return dict(self._reader.totals())

    @property
    def damage(self) -> list[dict[str, Any]]:
        """Places that could not be read so far; what a crash leaves behind has `tail` set.

        `newer`: no damage, but written by a newer version, so that this one cannot read it.
        Values are read when they are asked for, and damage is found then: with a `DamageWarning`
        for each place, once. `verify` looks for all of it.
        """
        return self._met.beside(list(self._reader.damage()))

    @property
    def events(self) -> list[dict[str, Any]]:
        """What is worth knowing and no measurement: `worker`, `kind`, `data`, `wall_nanos`."""
        out = []
        for event in self._reader.events():
            try:
                data = json.loads(event["json"])
            except ValueError:
                data = {"text": event["json"]}
            out.append(
                {
                    "worker": event["worker"],
                    "wall_nanos": event["wall_nanos"],
                    "kind": event["kind"],
                    "data": data,
                }
            )
        return out

    @property
    def missing_workers(self) -> list[int]:
        """Ranks that the others expect (their WORLD_SIZE) and that have recorded nothing."""
        return list(self._reader.missing_workers())

    def verify(self) -> list[dict[str, Any]]:
        """Reads every byte of the record and gives all that is damaged or missing.

        See `damage`. What has no checksum, and workers whose record was not closed, are no damage:
        `traindbg verify` names them.
        """
        self._reader.verify()
        return list(self._reader.damage())

    # While it grows.

    @property
    def loaded_all_steps(self) -> bool:
        """Whether all steps are here that will ever be: nobody records any more.

        Looks for new ones first.
        """
        ended = self.end is not None
        self.refresh()
        return ended or self.is_complete

    def refresh(self) -> bool:
        """Reads what was appended since; whether there was anything."""
        new = self._reader.refresh()
        if new:
            self._infos = {}
        return new

    def wait(self, timeout: float = 60.0) -> bool:
        """Waits until something new is recorded, for `timeout` seconds at most, and reads it.

        Woken by the file system. False: nothing came.
        """
        new = self._reader.wait(timeout)
        if new:
            self._infos = {}
        return new

    # What was found.

    @property
    def verdict(self) -> dict[str, Any]:
        """The supervisor's verdict: `findings`, `rules`, `causes`. Empty when there is none."""
        verdict: dict[str, Any] = {"findings": [], "rules": [], "causes": []}
        with contextlib.suppress(OSError, ValueError, TraindbgError):
            verdict.update(json.loads(self._reader.file("verdict.json") or b"{}"))
            verdict.pop("crc32c", None)  # of the file
        return verdict

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What the rules found, in the order in which they fired, pending findings among them."""
        return list(self.verdict["findings"])

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        """What became of each rule: `fired`, `clean`, or `not_checked` and why."""
        return list(self.verdict["rules"])

    @property
    def causes(self) -> list[dict[str, Any]]:
        """Likely causes of all findings together, the likeliest first.

        `evidence_for` and `evidence_against` say why; where `sure` is false, none is more likely
        than not.
        """
        return list(self.verdict["causes"])

    # Tensors.

    def _tensors(self, worker: int) -> dict[str, dict[str, Any]]:
        infos = self._infos  # another thread's refresh replaces it
        found = infos.get(worker)
        if found is None:
            found = infos[worker] = {info["name"]: info for info in self._reader.tensors(worker)}
        return found

    def names(
        self,
        match: str | None = None,
        *,
        collection: str | None = None,
        role: str | None = None,
        worker: int | None = None,
        mode: str | None = None,
        step: int | None = None,
    ) -> list[str]:
        """Names of tensors, all of them or those that fit every condition.

        Args:
            match: a regular expression, searched in the name.
            collection: such as `gradients`, or one of the user's.
            role: such as `gradient`.
            worker: of this process only.
            mode: recorded in this mode; with `step` alone, `train`.
            step: recorded at this step.
        """
        try:
            pattern = re.compile(match) if match is not None else None
        except re.error as error:
            raise InvalidArgument(
                f"names: match={match!r}: not a regular expression: {error}"
            ) from None
        out: dict[str, None] = {}
        for number in self.workers if worker is None else [worker]:
            for name, info in self._tensors(number).items():
                if pattern is not None and not pattern.search(name):
                    continue
                if role is not None and info["role"] != role:
                    continue
                if (
                    collection not in (None, info["collection"])
                    and collection not in info["collections"]
                ):
                    continue
                if (step is not None or mode is not None) and not self._is_recorded(
                    number, name, mode or "train", step
                ):
                    continue
                out[name] = None
        return list(out)

    def _is_recorded(self, worker: int, name: str, mode: str, step: int | None) -> bool:
        if step is None:
            tensor = self.tensor(name, worker)
            return bool(tensor.steps(mode).size or tensor.raw_steps(mode).size)
        found = self.step(step, mode, worker)
        if found is None:
            return False
        if name in found.tensors or name in found.scalars or name in found.classes:
            return True
        return step in self._reader.raw_steps(worker, mode, name)

    def tensor(self, name: str, worker: int = 0) -> Tensor:
        """One tensor. Raises NotFound, naming the nearest, when there is none of that name."""
        info = self._tensors(worker).get(name)
        if info is None:
            import difflib

            near = difflib.get_close_matches(name, self._tensors(worker), 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise NotFound(f"{name}: {self.name} has no tensor of that name{hint}")
        return Tensor(self, worker, info)

    def __getitem__(self, name: str) -> Tensor:
        return self.tensor(name)

    def __contains__(self, name: object) -> bool:
        return any(name in self._tensors(worker) for worker in self.workers)

    def scalars(self, name: str = "loss", mode: str = "train", worker: int = 0) -> Series:
        """A loss or metric over the steps: (steps uint64 [n], values float64 [n])."""
        return self.tensor(name, worker).series("value", mode)

    def merged_series(self, name: str, statistic: str = "", mode: str = "train") -> MergedSeries:
        """A statistic of a tensor over the steps as one process alone would have recorded it.

        The statistics of the parts of a distributed tensor (FSDP, tensor parallel), each part
        once, and of the parts of a batch (inputs, outputs, activations) are merged; parameters and
        gradients that every worker holds are the first worker's; of losses and metrics it is the
        mean over the workers. By default `value` of a loss, metric or other number, `l2` of others.

        Raises NotFound when no worker has the tensor, InvalidArgument where something would have
        to be merged that cannot be: statistics of units, the product, and tensors that were
        recorded before their parts were reduced.
        """
        infos = [self._tensors(worker).get(name) for worker in self.workers]
        is_scalar = any(info and info["is_number"] for info in infos)
        chosen = statistic or ("value" if is_scalar else "l2")
        series = MergedSeries(*self._reader.merged_series(name, chosen, mode))
        self._tell_damage()
        return series

    def table(
        self,
        name: str = "statistics",
        *,
        names: str | None = None,
        collection: str | Iterable[str] | None = None,
        mode: str | None = None,
        steps: range | tuple[int | None, int | None] | None = None,
        worker: int | None = None,
        statistics: str | Iterable[str] | None = None,
    ) -> Table:
        """A table of the run, for pandas, polars, DuckDB, pyarrow: all that reads Arrow.

        Nothing is read before one of these asks for it, and then batch by batch.

        Args:
            name: `scalars`, `statistics`, `histograms`, `channels`, `digests`, `classes`, `steps`,
                `tensors`, `events` or `findings`.
            names: a regular expression, searched in the names of tensors.
            collection: one or more, such as `gradients`.
            mode: such as `eval`; None for all.
            steps: from, and up to but not with: `range(10, 20)` or `(10, None)`.
            worker: of this process only.
            statistics: which columns of `statistics`, such as `("l2", "nan")`; None for all.
        """
        from traindbg.table import Table

        first, end = _step_bounds(steps)
        if worker is not None and worker not in self.workers:
            raise NotFound(f"{self.name}: worker {worker} has recorded nothing")

        def make() -> _core.Table:
            wanted = None
            if names is not None:
                self.refresh()  # tensors that came since must be judged, too
                wanted = self.names(names)
            return _core.Table(
                self._reader.files,
                self._reader.path,
                name,
                wanted,
                _words(collection),
                mode,
                first,
                end,
                worker,
                _words(statistics),
            )

        return Table(name, self.name, make, self._met)

    # Steps.

    def steps(self, mode: str = "train") -> NDArray[np.uint64]:
        """The recorded steps of a mode: uint64 [n], ascending."""
        steps = self._reader.steps(mode)
        self._tell_damage()
        return steps

    def step(self, step: int, mode: str = "train", worker: int = 0) -> Step | None:
        """All that was recorded about one step; None when it was not recorded."""
        found = self._reader.step(worker, mode, step)
        self._tell_damage()
        return found

    def step_of_workers(self, step: int, mode: str = "train") -> dict[int, Step]:
        """What each worker recorded about one step; workers that did not are not in it."""
        found = {worker: self._reader.step(worker, mode, step) for worker in self.workers}
        self._tell_damage()
        return {worker: record for worker, record in found.items() if record is not None}

    def iter_steps(self, mode: str = "train", worker: int = 0) -> Iterator[Step]:
        """All steps of a mode that are recorded so far."""
        try:
            for number in self.steps(mode):
                found = self._reader.step(worker, mode, int(number))
                if found is not None:
                    yield found
        finally:
            self._tell_damage()

    def follow(self, timeout: float | None = None) -> Iterator[Step]:
        """The steps of all workers and modes, those recorded and those to come.

        Ends when the recording was closed, when the supervisor wrote how the training ended, or
        when no step came for `timeout` seconds (None: wait for ever).
        """
        tail = _core.Tail(self._reader)
        last = time.monotonic()
        while True:
            if self.end is not None:
                tail.finish_when_idle()
            step = tail.next(0.5 if timeout is None else min(0.5, timeout))
            if step is not None:
                last = time.monotonic()
                yield step
                continue
            self._met.tell(tail.damage(), keeps=True)
            self.refresh()
            if tail.ended or (self.is_complete and bool(self.workers)):
                while (step := tail.next(0)) is not None:
                    yield step
                self._met.tell(tail.damage(), keeps=True)
                return
            if timeout is not None and time.monotonic() - last >= timeout:
                return

    def wait_for_steps(self, count: int, mode: str = "train", timeout: float = 60.0) -> bool:
        """Waits until at least `count` steps of a mode are recorded. False: not in `timeout` s."""
        deadline = time.monotonic() + timeout
        while True:
            self.refresh()
            if len(self.steps(mode)) >= count:
                return True
            if self.is_complete or time.monotonic() >= deadline:
                return False
            self.wait(min(1.0, max(0.0, deadline - time.monotonic())))

    # For people.

    def to_dict(self) -> dict[str, Any]:
        """The run's facts, totals and verdict as plain values, ready for JSON."""
        return {
            "name": self.name,
            "path": self.location,
            "meta": self.meta,
            "workers": [self.worker_meta(worker) for worker in self.workers],
            "end": self.end,
            "complete": self.is_complete,
            "totals": self.totals,
            "tensors": self.names(),
            "verdict": self.verdict,
        }

    def _state(self) -> str:
        end = self.end
        if end is not None:
            return (
                "stopped by a rule"
                if end.get("stopped_by_rule")
                else f"exit code {end['exit_code']}"
            )
        return "ended" if self.is_complete else "not ended"

    def __repr__(self) -> str:
        counts = f"{len(self.steps())} train steps, {len(self.names())} tensors"
        return (
            f"<traindbg.Run {self.name}: {counts}, {len(self.findings)} findings, {self._state()}>"
        )

    def _repr_html_(self) -> str:
        """In a notebook: the facts, what was found and why. Everything in it is escaped."""
        text = html.escape
        verdict = self.verdict
        facts = [("path", self.location), ("state", self._state())]
        for worker in self.workers[:1]:
            known = self.worker_meta(worker)
            facts.append(("model", f"{known['model_type']}, {known['parameters']:,} parameters"))
        steps = [f"{len(self.steps(mode))} {mode}" for mode in ("train", "eval")]
        facts += [("steps", ", ".join(steps)), ("tensors", str(len(self.names())))]
        facts.append(("verdict", _verdict_words(verdict)))
        for cause in verdict["causes"][:1]:
            facts.append(("likely cause", f"{cause.get('title', '')}. {cause.get('fix', '')}"))
        if not _is_remote(self.location) and (self.path / "report.html").is_file():
            facts.append(("report", str(self.path / "report.html")))
        cell = "text-align:left;vertical-align:top"
        rows = "".join(
            f'<tr><th style="{cell}">{text(name)}</th><td style="{cell}">{text(value)}</td></tr>'
            for name, value in facts
        )
        out = f"<table><caption>traindbg run {text(self.name)}</caption>{rows}</table>"
        if not verdict["findings"]:
            return out
        head = "".join(
            f'<th style="{cell}">{name}</th>'
            for name in ("severity", "rule", "step", "what", "fix")
        )
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="{cell}">{text(str(finding.get(key, "")))}</td>'
                for key in ("severity", "rule", "first_step", "message", "fix")
            )
            + "</tr>"
            for finding in verdict["findings"]
        )
        return f"{out}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


_OUTCOMES = (("clean", "clean"), ("not_checked", "not checked"))


def _verdict_words(verdict: dict[str, Any]) -> str:
    if not verdict["rules"]:
        return "none yet"
    states = [str(rule.get("state", "")) for rule in verdict["rules"]]
    found = sum(finding.get("times", 1) > 0 for finding in verdict["findings"])
    words = [f"{found} {'finding' if found == 1 else 'findings'}"]
    words += [f"{name}: {states.count(state)}" for state, name in _OUTCOMES if state in states]
    return ", ".join(words)


def runs(root: str | os.PathLike[str] = "traindbg-runs") -> list[Run]:
    """The runs in a directory, oldest first; see `traindbg.runs`."""
    try:
        places = sorted(entry for entry in Path(root).iterdir() if (entry / "RUN.json").is_file())
    except FileNotFoundError:
        return []
    found = [Run(place) for place in places]
    return sorted(found, key=_began)


def _began(run: Run) -> int:
    """When a run began, in nanoseconds; 0 where its description is damaged."""
    try:
        return int(run.meta["started_wall_nanos"])
    except (TraindbgError, KeyError, TypeError, ValueError):
        return 0
