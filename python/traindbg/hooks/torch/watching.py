"""`watch`, `log` and `save` for PyTorch, and what a process needs around them.

This is what `traindbg run` installs by itself and what `traindbg.watch` calls. The recording itself
is in `recording.recording`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from traindbg import _core, _plan
from traindbg._say import say
from traindbg.errors import InvalidArgument, TraindbgError
from traindbg.hooks import notebook
from traindbg.hooks.torch.base import ends
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.names import unwrap
from traindbg.hooks.torch.base.shards import agreed, rank_of_process
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.recording.collections import patterns_of
from traindbg.hooks.torch.recording.recording import Recording
from traindbg.hooks.torch.recording.watcher import Watcher
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.text.called import called

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Watcher", "is_watched", "log", "save", "watch"]

_process_prepared = False
_supervisors: list[subprocess.Popen[bytes]] = []
_runs_named = 0
_are_values_compiled = False  # calls of `log` or `save`, while there was no recording


def _after_fork_in_child() -> None:
    """The child of a fork shares no thread and no file with its parent's recording.

    One that trains begins a recording of its own under `traindbg run`.
    """
    recording, recordings.current = recordings.current, None
    patches.state.listen(None, None, None)
    patches.state.corrections = None
    _supervisors.clear()
    if recording is not None:
        recording.guard.dead = True
        recording.by_hand.close()
        recording.ends.close()
        recording.hot.disarm()
        recording.compilation.end()
        recording.session.abandon()
        guarded("forks", _say_if_it_trains)


def _say_if_it_trains() -> None:
    """Says once, at the first step of this child, that it is not recorded, if it is not."""

    def stepped(*_: Any) -> None:
        handle.remove()
        if recordings.current is None:
            say(
                f"process {os.getpid()} is a fork of one that is watched, and trains with its "
                "parent's optimizer: it is not recorded; make the optimizer in the child, or call "
                "traindbg.watch(model) there",
                is_error=True,
            )

    handle = register_optimizer_step_pre_hook(stepped)


def _at_exit() -> None:
    if recordings.current is not None:
        error = ends.raised()
        if error is not None and notebook.shell() is None:  # of any cell, there
            guarded("events", recordings.current.record_exception, error)
        recordings.current.close()


def _prepare_process() -> None:
    global _process_prepared
    if not _process_prepared:
        _process_prepared = True
        os.register_at_fork(after_in_child=_after_fork_in_child)
        atexit.register(_at_exit)
        guarded("notebook", notebook.prepare)
    ends.at_end_of_child(_at_exit)


def _new_run_directory() -> tuple[str, bool]:
    """A directory that nobody uses, the same for all ranks; whether this rank named it."""
    global _runs_named
    _runs_named += 1
    directory = _unused_directory()
    return guarded("ranks", agreed, f"run_dir/{_runs_named}", directory) or (directory, True)


def _unused_directory() -> str:
    root = Path(os.environ.get("TRAINDBG_RUNS") or "traindbg-runs")
    script = Path(sys.argv[0]).stem if sys.argv and sys.argv[0] not in ("", "-c") else "python"
    if notebook.is_notebook():
        script = notebook.name()
    script = "".join(c if c.isalnum() or c in "._-" else "_" for c in script)[:64] or "python"
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{script}"
    directory, number = root / name, 1
    while directory.exists():
        number += 1
        directory = root / f"{name}-{number}"
    return str(directory.absolute())


def _find_program() -> str | None:
    beside = Path(sysconfig.get_path("scripts")) / "traindbg"
    return str(beside) if beside.is_file() else shutil.which("traindbg")


def _supervise(run_dir: str, rules: list[_plan.Choice] | None, acts: list[str]) -> None:
    """Starts `traindbg watch` beside the training. It outlives it, to write the report."""
    _supervisors[:] = [child for child in _supervisors if child.poll() is None]
    program = _find_program()
    if program is None:
        say("the traindbg program was not found; recording without a supervisor", once="no program")
        return
    command = [program, "watch", run_dir, "--until-end", *acts]
    if rules is not None:
        command += ["--rules", ",".join(name for name, _ in rules)]
        for name, parameters in rules:
            for parameter, value in parameters.items():
                command += ["--rule", f"{name}.{parameter}={value}"]
    speaks = _has_descriptor(sys.__stderr__)
    # What it prints would come out in the middle of any cell; see hooks/notebook.py.
    silent = notebook.is_notebook()
    supervisor = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=sys.__stderr__ if speaks and not silent else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL if silent else None,
        start_new_session=True,
    )
    _supervisors.append(supervisor)
    notebook.run_begins(run_dir, supervisor)


def _has_descriptor(stream: Any) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):
        return False


def is_watched(parameters: Iterable[torch.Tensor]) -> bool:
    """Whether one of these belongs to a model that is being watched."""
    if recordings.current is None:
        return False
    return bool(recordings.current.watched.holders_of({id(p) for p in parameters}))


def log(name: str, value: float) -> None:
    """See `traindbg.log`."""
    if torch.compiler.is_compiling():
        _note_compiled_value()
    elif recordings.current is not None:
        recordings.current.user_values.metric(name, value)


def save(name: str, tensor: Any) -> None:
    """See `traindbg.save`."""
    if torch.compiler.is_compiling():
        _note_compiled_value()
    elif recordings.current is not None:
        recordings.current.user_values.save(name, tensor)


def _note_compiled_value() -> bool:
    """Something that calls `log` or `save` is being compiled: it will run without them."""
    global _are_values_compiled
    if recordings.current is not None:
        guarded("compiled values", recordings.current.unseen.compiled_values)
    else:  # as in a warm-up: the next recording is likely to be of this code
        _are_values_compiled = True
    return True


# What `torch.compiler.assume_constant_result` does, without its import of the compiler. That calls
# the function while it compiles and keeps the result: no graph is broken, and nothing called later.
vars(_note_compiled_value)["_dynamo_marked_constant"] = True


def watch(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    loss_fn: Any = None,
    *,
    run_dir: str | os.PathLike[str] | None = None,
    rules: _plan.Rules | None = None,
    no_rule: str | Iterable[str] | None = None,
    collect: _plan.Patterns | None = None,
    every: int | None = None,
    raw: _plan.Patterns | None = None,
    histograms: _plan.Patterns | None = None,
    collections: Mapping[str, Any] | None = None,
    capture: Iterable[Mapping[str, Any]] | None = None,
    store: Mapping[str, Any] | None = None,
    compiled: str | None = None,
    budget: float | None = None,
    flight_recorder: int | Mapping[str, Any] | None = None,
    micro_batches: str | None = None,
    corrections: Mapping[str, Any] | None = None,
    probe: bool | None = None,
    settings: str | os.PathLike[str] | None = None,
    supervise: bool = True,
) -> Watcher:
    """Watches a model while it is trained. Call it before the first step; once per model.

    Args:
        model: the root module; wrappers (DataParallel, DDP, torch.compile) are looked through.
        optimizer: found at its first step when not given.
        loss_fn: a loss module of your own; losses of `torch.nn` are found without it.
        run_dir: where to record; by default a new directory under `traindbg-runs`, the same for all
            ranks of a process group that was initialized before, or the run that `traindbg run`
            has begun. A second model joins the recording of the first, and what a call asks for is
            captured of all of them; in a notebook it begins a new one when the first has been
            trained.
        rules: the only rules to judge by: names, or {name: {parameter: value}}; None for the
            default ones, [] for none. Parameters are numbers, booleans, strings, lists of these, or
            None. Under `traindbg run` its own options decide.
        no_rule: names of rules that are left out, e.g. "overfit". To change a parameter of one and
            keep all others, use `settings`.
        collect: collections to record beside what the rules need, e.g. ("weights", "gradients").
        every: record those every so many steps (default 1); alone, it means weights, biases,
            gradients, inputs, outputs and activations.
        raw: collections of which whole tensors are kept, at the same steps.
        histograms: collections of which it is kept how their values are distributed, likewise.
        collections: your own, recorded too: {name: what is in it}, where that is a regular
            expression searched in tensor names, a module of the model (all tensors of it and of
            those inside), a parameter (all of it), or a list of these.
        capture: captures with schedules of their own, e.g. [{"collection": "gradients", "what":
            ["histogram"], "steps": [0, 100]}, {"collection": "outputs", "mode": "eval",
            "seconds": 60}]; the words of docs/settings.md. "what" may also name "raw", "channels"
            (the extremes and zeros of each channel) and "digest" (fingerprint and product).
        store: how the run is kept, e.g. {"overflow": "block_for", "block_for_ms": 200,
            "keep_last": 5000, "thin": 100, "keep_tensors": 50, "quota_bytes": 2 * 1024**3}; the
            words of `plan.json`. Under `traindbg run` its own options decide.
        compiled: what a model under torch.compile does at a step that needs inputs, outputs or
            activations. "eager" runs the step uncompiled, "skip" leaves it alone and does not
            capture them. By default, "auto": eager for what collect, raw, histograms and
            collections ask for, skip for what rules need. Under `traindbg run` its option decides.
        budget: the share of the training's time that capture may take, as 0.02: steps at which it
            would take more are left out, and that is told. Losses and metrics are not, nor what
            `capture` names by step. 0: no limit. By default, 0.02 once capture took three seconds,
            where the default rules' needs are all that is captured; where more is asked for, no
            limit. Under `traindbg run` its option decides.
        flight_recorder: so many last steps of which the statistics are at hand, and kept when a
            rule fires, a loss or a weight is not finite, or the training crashes; or, beside
            "steps", the collections "collect" and, of whole tensors, "raw". They are a run of
            their own then, `Run.flight`. Under `traindbg run` its options decide.
        micro_batches: "all" captures every forward and backward pass of a step (gradient
            accumulation), of the second one under names that end with `@2`, and so on; by default,
            "first", those of the first one. Under `traindbg run` its option decides.
        corrections: what traindbg may change in the training, e.g. {"skip_bad_steps": True,
            "snapshot_every": 100, "lr_factor": 0.5, "most": 10}; docs/corrections.md. Under
            `traindbg run` its options decide.
        probe: True has the batch of a few steps computed again in a child of the process, changed
            in part: whether samples see each other, and positions what comes later. The training
            stays the same bit for bit; docs/torch.md. Under `traindbg run` its option decides.
        settings: a file with all of this, as `traindbg run --config` takes it (docs/settings.md);
            by default the one that the variable TRAINDBG_CONFIG names; "none" for none. Arguments
            that are given here take the place of what stands in it. Under `traindbg run` only its
            collections and captures count, and the variable is for the program.
        supervise: judge the run while it grows, in a process beside the training.

    Returns:
        A `Watcher`. When nothing can be recorded (a read-only disk, say), that is said once on
        standard error, the training goes on, and `is_active` is False.

    Raises:
        InvalidArgument: an unknown collection, a bad regular expression, a module that is not in
            the model, an unknown key or a bad value in the settings file, or a second run directory
            while the first is open.
        NotFound: there is no such rule, or no such settings file.
    """
    if not isinstance(model, torch.nn.Module):
        raise InvalidArgument(f"watch: expected a torch.nn.Module, got {type(model).__name__}")
    root, is_compiled = unwrap(model)
    recording = recordings.current
    if recording is not None and run_dir is None and _is_another_training(recording, root):
        recording.close()
        recording = None
    began = os.environ.get("TRAINDBG_RUN_DIR")
    prefix = "" if recording is None else recording.watched.prefix_of(root)
    patterns = patterns_of(root, collections or {}, prefix)
    interval, file = every, None
    chosen = None if rules is None else _plan.rule_choices(rules)
    if settings is not None or not began:
        given = {"collect": collect, "raw": raw, "histograms": histograms}
        file = _plan.settings(settings, chosen, every, patterns, no_rule, **given)
    if file is None and no_rule is not None:
        chosen = _plan.without_rules(chosen, no_rule)
    if file is not None:
        named_here = bool(collect or raw or histograms or patterns)
        interval = _plan.interval(file, every, names_something=named_here)
        chosen = file.rules
    form = None if file is None else file.form
    requirements, named = _plan.wishes(collect, interval, raw, histograms, patterns, capture, form)
    if file is not None and file.left_out and not began:
        say(
            f"{file.path}: only `traindbg run` can follow {', '.join(file.left_out)}",
            once=f"settings {file.path}",
        )
    if recording is not None:
        options = {
            "compiled": compiled,
            "micro_batches": micro_batches,
            "corrections": corrections,
            "budget": budget,
            "flight_recorder": flight_recorder,
            "probe": probe,
        }
        _may_join(recording, run_dir)
        plan = recording.session.plan()
        if plan and file is not None:
            plan = _plan.with_wishes_of(file.plan, plan)
        if plan:  # not in a child of a fork
            plan = _plan.make_plan(plan, requirements, named)
        ignored = [name for name, value in options.items() if value is not None]
        watcher = _join(recording, root, optimizer, is_compiled, plan, ignored)
    else:
        directory, is_first = os.fspath(run_dir or began or ""), rank_of_process() == 0
        if not directory:
            directory, is_first = _new_run_directory()
        stored = _plan.stored_plan(Path(directory))
        if file is not None:
            base = _plan.with_wishes_of(file.plan, stored) if stored else file.plan
        else:
            base = stored or _core.plan_for_rules(
                _plan.rule_choices(None) if chosen is None else chosen
            )
        if store and not stored:
            base = _plan.with_store(base, store)
        choices = {"compiled": compiled, "micro_batches": micro_batches}
        if not stored:
            base = _plan.with_choices(base, choices)
            if corrections is not None:
                base = _plan.with_corrections(base, corrections)
            if budget is not None:
                base = _plan.with_budget(base, budget)
            if probe is not None:
                base = _plan.with_probe(base, probe)
            if flight_recorder is not None:
                base = _plan.with_flight(base, flight_recorder)
        plan = _plan.make_plan(base, requirements, named)
        try:
            watcher = _begin(os.path.abspath(directory), plan, root, optimizer, is_compiled)
        except InvalidArgument:
            raise
        except TraindbgError as error:
            say(f"cannot record: {error}; the training goes on without traindbg", is_error=True)
            return Watcher(root, "", None)
        if supervise and not began and chosen != [] and is_first:
            acts = [] if file is None else file.supervisor
            guarded("supervisor", _supervise, str(watcher.run_dir), chosen, acts)
    if isinstance(loss_fn, torch.nn.Module):
        guarded("losses", _hook_loss, watcher, loss_fn)
    return watcher


def _is_another_training(recording: Recording, root: torch.nn.Module) -> bool:
    """In a notebook a model that is watched after others were trained has a run of its own."""
    return (
        notebook.is_notebook()
        and not os.environ.get("TRAINDBG_RUN_DIR")
        and recording.hot.steps > 0
        and all(watcher.model is not root for watcher in recording.watched.every())
    )


def _may_join(recording: Recording, run_dir: str | os.PathLike[str] | None) -> None:
    if (
        run_dir is not None
        and Path(run_dir).resolve() != Path(recording.session.run_directory).resolve()
    ):
        raise InvalidArgument(
            f"watch: run_dir={os.fspath(run_dir)}: this process is recording into "
            f"{recording.session.run_directory}; detach from that first"
        )


def _join(
    recording: Recording,
    root: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None,
    compiled: bool,
    plan: str,
    ignored: list[str],
) -> Watcher:
    """Watches one more model, or asks for more of one that is watched."""
    if ignored:
        word = "is" if len(ignored) == 1 else "are"
        say(f"the recording has begun; {', '.join(ignored)} of this call {word} ignored")
    if plan:
        recording.ask_for(plan)
    for watcher in recording.watched.every():
        if watcher.model is root:
            return watcher
    return recording.add(root, optimizer, compiled)


def _begin(
    directory: str,
    plan: str,
    root: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None,
    compiled: bool,
) -> Watcher:
    global _are_values_compiled
    recording = Recording(directory, plan)
    _prepare_process()
    patches.acquire()
    recordings.current = recording
    sources.open()
    called.forget()
    recording.listen()
    recording.ends.listen()
    guarded("notebook", notebook.run_begins, recording.session.run_directory)
    if _are_values_compiled:
        _are_values_compiled = False
        guarded("compiled values", recording.unseen.compiled_values)
    return recording.add(root, optimizer, compiled)


def _hook_loss(watcher: Watcher, loss_fn: torch.nn.Module) -> None:
    """Records what a loss module of the user's returns. PyTorch's own are seen as functions."""
    if type(loss_fn).__module__.startswith("torch.nn.") or watcher._loss is not None:
        return
    watcher._loss = weakref.ref(loss_fn)
    if patches.listen_to_module(loss_fn):
        return
    name = type(unwrap(loss_fn)[0]).__name__

    def computed(module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if not torch.compiler.is_compiling():
            listener = patches.state.listener
            if listener is not None:
                listener.loss_computed(name, output, args, kwargs)

    try:
        watcher._loss_hook = loss_fn.register_forward_hook(computed, with_kwargs=True)
    except RuntimeError as error:  # of a scripted module
        recording = watcher._recording
        if recording is not None:
            recording.unseen.say("loss_fn", f"what {name} returns", str(error))
