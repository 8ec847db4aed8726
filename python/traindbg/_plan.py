"""What is to be captured: rules' needs and the user's wishes, as the JSON of a `plan.json`."""

from __future__ import annotations

import difflib
import json
import numbers
import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from traindbg import _core
from traindbg.errors import InvalidArgument

if TYPE_CHECKING:
    from pathlib import Path

# What a rule's parameter may be set to; None stands for nothing.
Parameter = float | str | bool | Iterable[str | float] | None
Rules = Iterable[str] | Mapping[str, Mapping[str, Parameter]]
Choice = tuple[str, dict[str, float | str | bool]]
Patterns = str | Iterable[str]

# What `every=` alone means: what a forward and a backward pass leave.
_ALL = ("weights", "biases", "gradients", "inputs", "outputs", "activations")


def _plain(value: Parameter) -> float | str | bool:
    if value is None:
        return "none"
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, Iterable):
        return ",".join(str(each) for each in value)
    return float(value)


def rule_choices(rules: Rules | None) -> list[Choice]:
    """Rules as (name, parameters); None means the default ones."""
    if rules is None:
        return [(name, {}) for name in _core.default_rules()]
    if isinstance(rules, str):
        rules = [rules]
    if isinstance(rules, Mapping):
        return [
            (name, {parameter: _plain(value) for parameter, value in parameters.items()})
            for name, parameters in rules.items()
        ]
    return [(name, {}) for name in rules]


def without_rules(choices: list[Choice] | None, no_rule: str | Iterable[str]) -> list[Choice]:
    """These rules, None means the default ones, but for those that are named.

    Raises:
        NotFound: there is no such rule.
    """
    chosen = rule_choices(None) if choices is None else choices
    left_out = {no_rule} if isinstance(no_rule, str) else set(no_rule)
    # Raises of what is none, but not of a rule of one's own that is chosen.
    _core.plan_for_rules([(name, {}) for name in sorted(left_out - {name for name, _ in chosen})])
    return [choice for choice in chosen if choice[0] not in left_out]


def settings(
    config: str | os.PathLike[str] | None,
    rules: list[Choice] | None,
    every: int | None,
    patterns: Mapping[str, Patterns],
    no_rule: str | Iterable[str] | None = None,
    **named: Patterns | None,
) -> _core.WatchSettings | None:
    """A settings file beside these arguments of `watch`, which count first; None: there is none."""
    _check_every(every)

    def read(chosen: list[Choice] | None) -> _core.WatchSettings | None:
        return _core.watch_settings(
            b"" if config is None else os.fsencode(config),
            without=[option for option, value in named.items() if value is not None],
            every=every,
            collections=[(name, _words(value)) for name, value in patterns.items()],
            rules=chosen,
        )

    file = read(rules)
    if file is None or no_rule is None:
        return file
    return read(without_rules(file.rules, no_rule))  # of the rules that the file chooses


def interval(file: _core.WatchSettings, every: int | None, *, names_something: bool) -> int | None:
    """What `every` is for what `watch` was given beside `file`, which `names_something` or not.

    Where nothing says of what it is the interval, it is that of everything.
    """
    if names_something:
        return file.every or None
    return None if file.names_something else every


def _check_every(every: int | None) -> None:
    if every is not None and (not isinstance(every, numbers.Integral) or every < 1):
        raise InvalidArgument(
            f"every={every}: give the number of steps between two captures, from 1 on"
        )


def _words(value: Patterns | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def wishes(
    collect: Patterns | None,
    every: int | None,
    raw: Patterns | None,
    histograms: Patterns | None,
    collections: Mapping[str, Patterns] | None,
    captures: Iterable[Mapping[str, Any]] | None = None,
    form: str | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The requirements and the collections that arguments of `watch` stand for.

    `form`: JSON of a requirement whose mode and schedule hold, but for `every`.
    """
    _check_every(every)
    named = [
        {"name": name, "include": _words(patterns), "exclude": []}
        for name, patterns in (collections or {}).items()
    ]
    kept = _words(collect)
    if not kept and every is not None:
        kept = list(_ALL)
    kept += [str(entry["name"]) for entry in named if entry["name"] not in kept]
    like: dict[str, Any] = {"mode": "train"} if form is None else json.loads(form)
    schedule = dict(like.get("schedule", {}))
    schedule["every"] = every or (0 if schedule.keys() & {"steps", "every_ms"} else 1)
    if kept or _words(raw) or _words(histograms):
        _check_due(schedule, f"every={schedule['every']}")

    def requirement(collection: str, what: str) -> dict[str, Any]:
        return {
            "collection": collection,
            "mode": like["mode"],
            "what": [what],
            "schedule": schedule,
            "for": "user",
        }

    requirements = [requirement(name, "statistics") for name in kept]
    requirements += [requirement(name, "raw") for name in _words(raw)]
    requirements += [requirement(name, "histogram") for name in _words(histograms)]
    for capture in captures or ():
        requirements += _requirements_of(capture)
    return requirements, named


def _check_due(schedule: Mapping[str, Any], what: str) -> None:
    """Raises where no step is due, by interval, by number or by time."""
    if "every_ms" in schedule:
        return
    start, end = schedule.get("start", 0), schedule.get("end")
    every, steps = schedule["every"], schedule.get("steps", ())
    first = [step for step in steps if step >= start]
    if every:
        first.append(-(-start // every) * every)
    if not any(end is None or step < end for step in first):
        given = f"start={start}, end={end}, every={every}" + (f", steps={steps}" if steps else "")
        raise InvalidArgument(f"{what}: no step is due by {given}; change one of them")


_CAPTURE = ("collection", "what", "mode", "every", "start", "end", "steps", "seconds")


def _step(key: str, value: Any, least: int) -> int:
    if not isinstance(value, numbers.Integral) or value < least:
        raise InvalidArgument(f"capture: {key}={value!r} is no whole number from {least} up")
    return int(value)


def _requirements_of(capture: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What one entry of `capture=` asks for: the words of `[[capture]]` in a settings file."""
    for key in capture:
        if key not in _CAPTURE:
            near = difflib.get_close_matches(key, _CAPTURE, 1)
            hint = f"did you mean '{near[0]}'?" if near else "there are " + ", ".join(_CAPTURE)
            raise InvalidArgument(f"capture: unknown key '{key}'; {hint}")
    names = _words(capture.get("collection"))
    if not names:
        raise InvalidArgument("capture: 'collection' is missing")
    what = {"statistics", *_words(capture.get("what"))}
    mode = capture.get("mode", "train")
    if mode not in ("train", "eval", "every"):
        raise InvalidArgument(f"capture: mode '{mode}' is not one of train, eval, every")
    other = "steps" in capture or "seconds" in capture
    schedule: dict[str, Any] = {"every": 0 if other else 1}
    for key, least in (("every", 1), ("start", 0), ("end", 0)):
        if key in capture:
            schedule[key] = _step(key, capture[key], least)
    if "end" in schedule and schedule["end"] <= schedule.get("start", 0):
        raise InvalidArgument(f"capture: end={schedule['end']} is not after the start")
    if "steps" in capture:
        steps = capture["steps"]
        if isinstance(steps, (str, bytes)) or not isinstance(steps, Iterable):
            raise InvalidArgument(f"capture: steps={steps!r} is no list of steps")
        schedule["steps"] = sorted(_step("steps", step, 0) for step in steps)
    if "seconds" in capture:
        seconds = capture["seconds"]
        if not isinstance(seconds, (int, float)) or not 0.001 <= seconds <= 1e9:
            raise InvalidArgument(f"capture: seconds={seconds!r} is no time")
        schedule["every_ms"] = int(seconds * 1000)
    _check_due(schedule, "capture")
    return [
        {
            "collection": name,
            "mode": "global" if mode == "every" else mode,
            "what": sorted(what),
            "schedule": schedule,
            "for": "user",
        }
        for name in names
    ]


_FORWARD = ("inputs", "outputs", "activations", "attention_maps", "block_outputs")


def wants_evaluations(plan: str) -> bool:
    """Whether the user asked for what evaluations compute (JSON of a plan)."""
    builtin = set(_core.COLLECTION_OF_ROLE.values())
    return any(
        requirement.get("for") == "user"
        and requirement.get("mode") in ("eval", "global")
        and (requirement["collection"] in _FORWARD or requirement["collection"] not in builtin)
        for requirement in json.loads(plan).get("requirements", ())
    )


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two requirements, or two collections, are the same."""

    def sorted_what(entry: Mapping[str, Any]) -> dict[str, Any]:
        return {**entry, "what": sorted(entry.get("what", ()))}

    return sorted_what(one) == sorted_what(other)


def make_plan(
    base: str,
    requirements: list[dict[str, Any]],
    collections: list[dict[str, Any]],
) -> str:
    """`base` (JSON of a plan) with more; raises InvalidArgument when the result is not valid.

    What is in it already is not put there twice: another rank of the same script may have done so.
    """
    plan = json.loads(base)
    for key, entries in (("requirements", requirements), ("collections", collections)):
        known = plan.setdefault(key, [])
        known += [entry for entry in entries if not any(_same(entry, other) for other in known)]
    text = json.dumps(plan)
    _core.check_plan(text)
    return text


def with_wishes_of(plan: str, base: str) -> str:
    """`base` with what the user asked for in `plan`, and the collections (JSON of plans)."""
    other = json.loads(plan)
    asked = [each for each in other["requirements"] if each["for"] == "user"]
    return make_plan(base, asked, other["collections"])


# What `store=` of `watch` may say, and where it stands in a plan.
_RETENTION = ("quota_bytes", "keep_last", "thin", "keep_tensors")
_STORE = ("overflow", "block_for_ms", "queue_bytes", "arena_bytes", "part_bytes", *_RETENTION)


def with_store(base: str, store: Mapping[str, Any]) -> str:
    """`base` (JSON of a plan) with how the run is kept; InvalidArgument for an unknown word."""
    plan = json.loads(base)
    for key, value in store.items():
        if key not in _STORE:
            near = difflib.get_close_matches(key, _STORE, 1)
            known = ", ".join(_STORE)
            hint = f"; there are {known}"
            if near:
                hint = f" (did you mean '{near[0]}'?)"
            raise InvalidArgument(f"store: unknown key '{key}'{hint}")
        (plan.setdefault("retention", {}) if key in _RETENTION else plan)[key] = value
    text = json.dumps(plan)
    _core.check_plan(text)
    return text


def with_choices(base: str, choices: Mapping[str, str | None]) -> str:
    """`base` (JSON of a plan) with other words (None: as it is); InvalidArgument if unknown."""
    plan = json.loads(base)
    plan |= {key: word for key, word in choices.items() if word is not None}
    text = json.dumps(plan)
    _core.check_plan(text)
    return text


def with_budget(base: str, budget: float) -> str:
    """`base` (JSON of a plan) with a share of the time; InvalidArgument when it is none."""
    if isinstance(budget, bool) or not isinstance(budget, numbers.Real) or not 0 <= budget < 1:
        raise InvalidArgument(f"budget={budget!r} is no share from 0 to below 1, as 0.02")
    plan = json.loads(base)
    plan["budget"] = float(budget)
    return json.dumps(plan)


def with_probe(base: str, probe: bool) -> str:
    """`base` (JSON of a plan) with probes or without; InvalidArgument for anything else."""
    if not isinstance(probe, bool):
        raise InvalidArgument(f"probe={probe!r}: give True or False")
    plan = json.loads(base)
    plan["probe"] = probe
    return json.dumps(plan)


def with_corrections(base: str, corrections: Mapping[str, Any]) -> str:
    """`base` (JSON of a plan) with what may be changed; InvalidArgument for an unknown word."""
    plan = json.loads(base)
    known = {"dry_run": False, **plan.get("corrections", {})}  # a plan has that only where it is
    for key in corrections:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else "there are " + ", ".join(known)
            raise InvalidArgument(f"corrections: unknown key '{key}'; {hint}")
    plan["corrections"] = {**known, **corrections}
    text = json.dumps(plan)
    _core.check_plan(text)
    return text


_FLIGHT = ("steps", "collect", "raw")


def with_flight(base: str, flight: int | Mapping[str, Any]) -> str:
    """`base` (JSON of a plan) with a flight recorder: a number of steps, or a mapping."""
    words = {"steps": flight} if isinstance(flight, numbers.Integral) else flight
    if not isinstance(words, Mapping):
        raise InvalidArgument(f"flight_recorder={flight!r}: give a number of steps, or a mapping")
    for key in words:
        if key not in _FLIGHT:
            near = difflib.get_close_matches(key, _FLIGHT, 1)
            hint = f"did you mean '{near[0]}'?" if near else "there are " + ", ".join(_FLIGHT)
            raise InvalidArgument(f"flight_recorder: unknown key '{key}'; {hint}")
    steps = words.get("steps")
    if isinstance(steps, bool) or not isinstance(steps, numbers.Integral) or steps < 1:
        raise InvalidArgument(f"flight_recorder: steps={steps!r} is no whole number from 1 up")
    plan = json.loads(base)
    plan["flight"] = {
        "steps": int(steps),
        "collect": _words(words.get("collect")),
        "raw": _words(words.get("raw")),
    }
    return json.dumps(plan)


def stored_plan(run_dir: Path) -> str | None:
    """The plan that holds in a run directory: the newest; None when there is none."""
    changes = {
        int(match[1]): file
        for file in run_dir.glob("plan-*.json")
        if (match := re.fullmatch(r"plan-(\d{6,9})\.json", file.name))
    }
    newest = changes[max(changes)] if changes else run_dir / "plan.json"
    try:
        return newest.read_text(encoding="utf-8")
    except OSError:
        return None
