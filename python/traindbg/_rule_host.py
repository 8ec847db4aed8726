"""The process in which rules of a user run: `python _rule_host.py`, started by the native program.

Reads requests from descriptor 3 and answers them there, one frame each (the form is that of
src/traindbg/extend/protocol.h). What a rule prints goes where the program reads it, and harms
nothing. Memory is limited before this starts; time by the program, which ends the process.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import math
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

_DESCRIPTOR = 3
_GROUP = "traindbg.rules"


def _read(count: int) -> bytearray:
    """So many bytes; ends the process where the program has gone."""
    data = bytearray(count)
    view = memoryview(data)
    at = 0
    while at < count:
        got = os.readv(_DESCRIPTOR, [view[at : at + (1 << 20)]])
        if got == 0:
            os._exit(0)
        at += got
    return data


def _request() -> tuple[dict[str, Any], memoryview]:
    head = _read(8)
    sizes = int.from_bytes(head[:4], "little"), int.from_bytes(head[4:], "little")
    text = _read(sizes[0])
    return json.loads(text), memoryview(_read(sizes[1]))


def _plain(value: Any) -> Any:
    """What JSON cannot say: numbers of NumPy, and those that are not finite."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    number = float(value)
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number


def _answer(answer: dict[str, Any]) -> None:
    text = json.dumps(_plain(answer), allow_nan=False).encode()
    data = len(text).to_bytes(4, "little") + bytes(4) + text
    while data:
        data = data[os.write(_DESCRIPTOR, data) :]


def _text(value: Any) -> str:
    """Text that can be sent: without halves of surrogates."""
    return str(value).encode("utf-8", "replace").decode()


# Finding the rules.


def _module_of(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise FileNotFoundError("there is no such file")
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("traindbg_custom_rules", path)
    if spec is None or spec.loader is None:
        raise ImportError("is no Python file: its name does not end with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _is_rule(thing: Any) -> bool:
    from traindbg import original_rules, rules

    if not isinstance(thing, type) or thing in {rules.Rule, original_rules.Rule}:
        return False
    if inspect.isabstract(thing):  # a base of rules
        return False
    return issubclass(thing, rules.Rule) or hasattr(thing, "invoke_at_step")


def _classes(source: str) -> dict[str, type[Any]]:
    """The rules of a source, by the names of their classes."""
    from traindbg import _original_modules

    _original_modules.lend()
    path, _, wanted = source.partition(".py:")
    if wanted or source.endswith(".py") or os.sep in source:
        found: Any = _module_of(path + ".py" if wanted else source)
    else:
        from importlib.metadata import entry_points

        named = [each for each in entry_points(group=_GROUP) if each.name == source]
        if not named:
            raise LookupError(
                "is no .py file, and no installed package has an entry point of that name "
                f"in the group {_GROUP!r}"
            )
        found = named[0].load()
    if isinstance(found, type):
        return {found.__name__: found}
    home = found.__name__
    classes = {
        name: thing
        for name, thing in vars(found).items()
        if _is_rule(thing) and (name == wanted if wanted else thing.__module__ == home)
    }
    if wanted and not classes:
        raise LookupError(f"has no rule {wanted}")
    return classes


def _is_ours(rule: type[Any]) -> bool:
    from traindbg.rules import Rule

    return issubclass(rule, Rule)


def _parameters(rule: type[Any]) -> list[Any]:
    from traindbg import original_rules

    return list(rule.parameters if _is_ours(rule) else original_rules.parameters_of(rule))


def _typed(rule: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """A whole number is a float on the way here.

    The arguments of rules of the original have no types: of `limit=10` it may become 0.5.
    """
    out = {}
    for parameter in _parameters(rule):
        value = values.get(parameter.name, parameter.default)
        is_whole = isinstance(parameter.default, int) and not isinstance(parameter.default, bool)
        if is_whole and (_is_ours(rule) or float(value).is_integer()):
            value = int(value)
        out[parameter.name] = value
    return out


def _make(rule: type[Any], values: Mapping[str, Any]) -> Any:
    typed = _typed(rule, values)
    if not _is_ours(rule):
        from traindbg.original_rules import Invoker

        return Invoker(rule, typed)
    made: Any = object.__new__(rule)  # `__init__` may ask for parameters
    made._values = typed
    made.__init__()
    return made


# Describing them.


def _parameter(parameter: Any, *, is_ours: bool = True) -> dict[str, Any]:
    default = parameter.default
    if not is_ours and isinstance(default, int) and not isinstance(default, bool):
        default = float(default)
    kinds: tuple[tuple[type, str], ...] = (
        (bool, "flag"), (int, "whole number"), (float, "number"), (str, "text"),
    )  # fmt: skip
    kind = next((word for kind, word in kinds if isinstance(default, kind)), None)
    if kind is None:
        raise TypeError(
            f"parameter {parameter.name}: its default is neither a number nor a flag nor a text"
        )
    return {
        "name": parameter.name, "type": kind, "default": default, "unit": parameter.unit,
        "meaning": parameter.meaning, "min": parameter.minimum, "max": parameter.maximum,
    }  # fmt: skip


def _needs(rule: Any) -> list[dict[str, Any]]:
    from traindbg.rules import Need

    out = []
    asked = rule.needs()
    for each in [asked] if isinstance(asked, (str, Need)) else asked:
        need = Need(each) if isinstance(each, str) else each
        what = [need.what] if isinstance(need.what, str) else list(need.what)
        one = {
            "collection": need.collection,
            "mode": need.mode,
            "what": what,
            "every": int(need.every),
            "dense_until": int(need.dense_until),
            "start": int(need.start),
        }
        if need.end is not None:
            one["end"] = int(need.end)
        out.append(one)
    return out


def _describe(rule: type[Any], class_name: str) -> dict[str, Any]:
    from traindbg.original_rules import collections_of
    from traindbg.rules import rule_name

    name = rule_name(rule)
    summary = str(getattr(rule, "summary", "") or "")
    if not summary and rule.__doc__:
        summary = inspect.cleandoc(rule.__doc__).split("\n", 1)[0]
    description: dict[str, Any] = {
        "class": class_name,
        "name": name,
        "title": str(getattr(rule, "title", "") or name.replace("_", " ").capitalize()),
        "summary": summary or "A rule of your own.",
        "severity": str(getattr(rule, "severity", "warning")),
        "parameters": [_parameter(each, is_ours=_is_ours(rule)) for each in _parameters(rule)],
        "everything": not _is_ours(rule) and not collections_of(rule),
    }
    for section in ("when", "why", "fix", "healthy"):
        description[section] = str(getattr(rule, section, "") or "")
    return description


# Judging.


class _Steps:
    """The steps of one worker, as the program sends them: what a tensor is, is told once."""

    def __init__(self) -> None:
        self._tensors: dict[int, dict[str, Any]] = {}
        self._training: dict[str, Any] = {}

    def take(self, sent: dict[str, Any], blob: memoryview) -> Any:
        """The step as a rule is shown it."""
        from traindbg import rules

        self._training = sent.get("training", self._training)
        tensors = []
        for each in sent["tensors"]:
            if "new" in each:
                new = each["new"]
                new["shape"] = tuple(new["shape"])
                new["collections"] = tuple(new.get("collections", ()))
                new["original_collections"] = tuple(new.get("original_collections", ()))
                self._tensors[each["id"]] = new
            tensor = rules.Tensor(**self._tensors[each["id"]])
            if "statistics" in each:
                numbers = each["statistics"]
                tensor.statistics = rules.Statistics(*numbers[:5], *map(float, numbers[5:]))
            if "value" in each:
                tensor.value = float(each["value"])
            if "units" in each:
                tensor.units = rules.Units(*each["units"])
            if "classes" in each:
                tensor.classes = rules.ClassCounts(*each["classes"])
            if "histogram" in each:
                tensor.histogram = [
                    rules.HistogramBin(float(a), float(b), n) for a, b, n in each["histogram"]
                ]
            if "channels" in each:
                tensor.channels = rules.ChannelStatistics(*each["channels"])
            if "digest" in each:
                tensor.digest = rules.Digest(each["digest"][0], float(each["digest"][1]))
            if "raw" in each:
                dtype, shape, at, size = each["raw"]
                tensor.raw = _array(dtype, shape, blob[at : at + size])
            tensors.append(tensor)
        return rules.Step(
            sent["worker"], sent["mode"], sent["step"], sent["wall_nanos"], tensors, self._training
        )


def _array(dtype: str, shape: list[int], data: memoryview) -> Any:
    """A whole tensor; bfloat16 as float32, float8 as its bytes."""
    import numpy as np

    if dtype == "bfloat16":
        wide = np.frombuffer(data, np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32).reshape(shape)
    if dtype.startswith("float8_") or dtype == "unknown":
        return np.frombuffer(data, np.uint8).reshape(shape)
    return np.frombuffer(data, np.dtype(dtype)).reshape(shape)


def _event(event: Any) -> dict[str, Any]:
    if isinstance(event, str):
        return {"clear": _text(event)}
    fired = {
        "key": _text(event.key), "kind": _text(event.kind), "severity": _text(event.severity),
        "message": _text(event.message), "fix": _text(event.fix), "tensor": _text(event.tensor),
        "layer": _text(event.layer), "places": int(event.places),
    }  # fmt: skip
    if event.first_step is not None:
        fired["first_step"] = int(event.first_step)
    names = ("name", "value", "relation", "reference")
    fired["evidence"] = [
        {
            name: float(part) if name in {"value", "reference"} else _text(part)
            for name, part in zip(names, each, strict=False)
        }
        for each in event.evidence
    ]
    fired["plots"] = [{"tensor": _text(t), "statistic": _text(s)} for t, s in event.plots]
    return {"fire": fired}


class _Host:
    """What the program asks for, by the word that it uses."""

    def __init__(self) -> None:
        self._described: dict[str, type[Any]] = {}
        self._class: type[Any] | None = None
        self._values: dict[str, Any] = {}
        self._tried: Any = None
        self._rules: dict[int, tuple[Any, _Steps]] = {}

    def describe(self, asked: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        """All rules of a source, without running any code of theirs but what importing runs."""
        self._described = _classes(asked["source"])
        return {"rules": [_describe(rule, name) for name, rule in self._described.items()]}

    def try_(self, asked: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        """Makes an object: of a described rule with its defaults, or of the one that was loaded."""
        if "class" in asked:
            self._tried = _make(self._described[asked["class"]], {})
        else:
            assert self._class is not None
            self._tried = _make(self._class, self._values)
        return {}

    def needs(self, asked: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        """What the object that was tried needs."""
        return {"needs": _needs(self._tried)}

    def load(self, asked: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        """The one rule that this process judges by, and its parameters."""
        self._class = _classes(asked["source"])[asked["class"]]
        self._values = asked["parameters"]
        return {}

    def make(self, asked: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        """An object of it, for one worker."""
        assert self._class is not None
        made = _make(self._class, self._values)
        if not _is_ours(self._class):
            made.begin(asked["worker"])
        self._rules[asked["rule"]] = (made, _Steps())
        return {}

    def step(self, asked: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        """Judges a step."""
        from traindbg.rules import Sink

        rule, steps = self._rules[asked["rule"]]
        sink = Sink()
        judged = rule.on_step(steps.take(asked["step"], blob), sink)
        return {
            "judged": judged is not False,
            "why_not": _text(rule.why_not_judged),
            "events": [_event(each) for each in sink.events],
        }

    def end(self, asked: dict[str, Any], blob: memoryview) -> dict[str, Any]:
        """The last word of a rule, which is let go: others may still need the memory."""
        from traindbg.rules import Sink

        rule = self._rules.pop(asked["rule"])[0]
        sink = Sink()
        judged = rule.on_end(sink)
        return {
            "judged": judged is True,
            "why_not": _text(rule.why_not_judged),
            "events": [_event(each) for each in sink.events],
        }


def _words(error: BaseException) -> str:
    """What went wrong and where, in a line: the last place that is not ours."""
    here = os.path.dirname(os.path.realpath(__file__))  # lib64 may be a link to lib
    where = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if not os.path.realpath(frame.filename).startswith(here) and frame.filename[:1] != "<":
            where = f" ({os.path.basename(frame.filename)}, line {frame.lineno})"
    if isinstance(error, SyntaxError) and error.lineno:
        where = f" ({os.path.basename(error.filename or '')}, line {error.lineno})"
        return _text(f"{type(error).__name__}: {error.msg}{where}")
    text = str(error)
    if isinstance(error, ImportError):
        from traindbg import _original_modules

        text = _original_modules.words_of(error)
    text = " ".join(text.split())
    if isinstance(error, MemoryError):
        text = text or "it may have no more; see --rule-memory"
    return _text(
        f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"
    )


def main() -> None:
    """Answers until the program has gone."""
    # The folder of this file holds modules of the package, which are not to be found by bare names.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != here]
    try:
        import traindbg.rules
    except ImportError:
        sys.path.append(os.path.dirname(here))
        import traindbg.rules  # noqa: F401
    # The training has the other cores, and memory for their threads would count.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    host = _Host()
    words: dict[str, Callable[[dict[str, Any], memoryview], dict[str, Any]]] = {
        "describe": host.describe,
        "load": host.load,
        "try": host.try_,
        "needs": host.needs,
        "make": host.make,
        "step": host.step,
        "end": host.end,
    }
    while True:
        asked, blob = _request()
        try:
            answer = words[asked["do"]](asked, blob)
        except (Exception, SystemExit) as error:  # of somebody else's code
            answer = {"error": _words(error)}
            if isinstance(error, MemoryError):
                answer["out_of_memory"] = True
        del asked, blob
        _answer(answer)


if __name__ == "__main__":
    main()
