"""The modules that rules of the SageMaker Debugger client import, in the process of a rule.

`from smdebug.rules.rule import Rule` and the like get what traindbg has of it, also where the
original is installed. What has no meaning in a rule's process is there, too, so that the file can
be imported, and raises when it is used; a module or name that is not lent says so, and what is.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import logging
import re
import sys
import types
from typing import TYPE_CHECKING, Any

from traindbg import original_errors as errors
from traindbg import original_rules as rules
from traindbg import original_trials as trials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_SEE = "see docs/custom-rules.md"


def _unusable(name: str, instead: str) -> type[Any]:
    """A class that cannot be made here, and says what to use instead."""

    def refuse(self: Any, *arguments: Any, **more: Any) -> None:
        raise errors.SMDebugNotImplementedError(
            f"{name}: has no meaning in a rule of traindbg; {instead}"
        )

    return type(name, (), {"__init__": refuse, "__doc__": f"Not here: {instead}."})


def _refusing(name: str, instead: str) -> Callable[..., Any]:
    """A function that cannot be called here, and says what to use instead."""

    def refuse(*arguments: Any, **more: Any) -> Any:
        raise errors.SMDebugNotImplementedError(
            f"{name}: has no meaning in a rule of traindbg; {instead}"
        )

    refuse.__name__ = name
    return refuse


class Actions:
    """Actions of a rule: none. Those of traindbg are its options."""

    def __init__(self, actions_str: str = "", rule_name: str = "") -> None:
        if actions_str and actions_str.strip() not in {"{}", "[]"}:
            raise errors.SMDebugNotImplementedError(
                "Actions: a rule of traindbg has none; say what a finding does with --on-finding "
                "and --notify"
            )

    def invoke(self, rule_name: str = "") -> None:
        """Nothing."""


def get_logger(name: str = "smdebug") -> logging.Logger:
    """A logger; what it prints is told where the rule fails."""
    return logging.getLogger(name)


def get_hook(*arguments: Any, **more: Any) -> None:
    """None: no training runs in the process of a rule."""


@contextlib.contextmanager
def _refreshing(of: Iterable[trials.Trial] | trials.Trial, whether: bool) -> Iterator[None]:
    found = [of] if isinstance(of, trials.Trial) else list(of)
    before = [trial.dynamic_refresh for trial in found]
    for trial in found:
        trial.dynamic_refresh = whether
    try:
        yield
    finally:
        for trial, was in zip(found, before, strict=True):
            trial.dynamic_refresh = was


def no_refresh(of: Iterable[trials.Trial] | trials.Trial) -> Any:
    """A context in which a trial does not change: here it never does while a rule is invoked."""
    return _refreshing(of, whether=False)


def refresh(of: Iterable[trials.Trial] | trials.Trial) -> Any:
    """The opposite of `no_refresh`."""
    return _refreshing(of, whether=True)


def parse_bool(value: Any, default: bool = False) -> bool:
    """Of the text of a parameter: "True", "true", "1" and "yes" are true."""
    if value is None or value == "":
        return default
    return value if isinstance(value, bool) else str(value).strip().lower() in {"true", "1", "yes"}


def parse_list_from_str(value: Any, delimiter: str = ",") -> list[str]:
    """Of the text of a parameter: "a,b" is ["a", "b"]; a list stays one."""
    if value is None or value == "":
        return []
    if isinstance(value, (list, tuple)):
        return list(value)
    return [each.strip() for each in str(value).split(delimiter)]


def str_to_mode_keys(text: str) -> errors.ModeKeys:
    """ModeKeys.EVAL of `EVAL` and `eval`; KeyError: there is no such mode."""
    return errors.ModeKeys[text.rpartition(".")[2].upper()]


def flatten(nested: Iterable[Sequence[Any]]) -> list[Any]:
    """A list of what is in some lists."""
    return [each for part in nested for each in part]


def is_s3(path: str) -> tuple[bool, str | None, str | None]:
    """Whether a path is of S3, with its bucket and key."""
    if not path.startswith("s3://"):
        return False, None, None
    bucket, _, key = path[len("s3://") :].partition("/")
    return True, bucket, key


_CAPTURE = (
    "what is captured is said with --collect, --every and --raw, or by the class: `collections`, "
    "`every`, `raw`"
)
_TRIALS = (
    "a rule is given its `base_trial`; another run is compared with by the rule SimilarAcrossRuns, "
    "and read with traindbg.Run(PATH)"
)
_ENDED = "ask the trial: `loaded_all_steps`"
_HOOK = "a training is recorded with `traindbg run`, and its script needs no hook"

_ERRORS = {
    name: thing
    for name, thing in vars(errors).items()
    if isinstance(thing, type) and issubclass(thing, errors.SMDebugError)
}
_MODES = {"ModeKeys": errors.ModeKeys, "modes": errors.ModeKeys}
_CONFIGURATIONS = {
    name: _unusable(name, _CAPTURE) for name in ("SaveConfig", "SaveConfigMode", "ReductionConfig")
}
_COLLECTIONS = {"Collection": trials.Collection, "CollectionKeys": trials.CollectionKeys}
_CREATE = {"create_trial": _refusing("create_trial", _TRIALS)}
_OF_TRIALS = {
    **_CREATE,
    "Trial": trials.Trial,
    "LocalTrial": _unusable("LocalTrial", _TRIALS),
    "S3Trial": _unusable("S3Trial", _TRIALS),
}
_REQUIRED = {
    "RequiredTensors": rules.RequiredTensors,
    "RequiredTensorsForTrial": rules.RequiredTensorsForTrial,
}
_ACTIONS = {
    "Actions": Actions,
    "MessageAction": _unusable("MessageAction", "use --notify"),
    "StopTrainingAction": _unusable("StopTrainingAction", "use --on-finding NAME=stop"),
}
_FRAMEWORK = {
    **_MODES, **_CONFIGURATIONS, **_COLLECTIONS, **_CREATE,
    "Hook": _unusable("Hook", _HOOK),
    "KerasHook": _unusable("KerasHook", _HOOK),
    "SessionHook": _unusable("SessionHook", _HOOK),
    "EstimatorHook": _unusable("EstimatorHook", _HOOK),
    "get_hook": get_hook,
    "set_hook": _refusing("set_hook", _HOOK),
    "del_hook": get_hook,
}  # fmt: skip

# By name: what is in it. A package comes before what is in it.
MODULES: dict[str, dict[str, Any]] = {
    "smdebug": {**_MODES, **_CONFIGURATIONS, **_COLLECTIONS, "__version__": "1.0.34"},
    "smdebug.analysis": {},
    "smdebug.analysis.utils": {
        "no_refresh": no_refresh,
        "refresh": refresh,
        "parse_bool": parse_bool,
        "parse_list_from_str": parse_list_from_str,
    },
    "smdebug.core": {},
    "smdebug.core.access_layer": {
        "has_training_ended": trials.has_training_ended,
        "training_has_ended": _refusing("training_has_ended", _ENDED),
    },
    "smdebug.core.access_layer.utils": {
        "has_training_ended": trials.has_training_ended,
        "training_has_ended": _refusing("training_has_ended", _ENDED),
    },
    "smdebug.core.collection": _COLLECTIONS,
    "smdebug.core.logger": {"get_logger": get_logger},
    "smdebug.core.modes": {
        **_MODES,
        "ALLOWED_MODES": list(errors.ModeKeys),
        "ALLOWED_MODE_NAMES": [mode.name for mode in errors.ModeKeys],
        "MODE_STEP_PLUGIN_NAME": "mode_step",
        "MODE_PLUGIN_NAME": "mode",
        "str_to_mode_keys": str_to_mode_keys,
    },
    "smdebug.core.reduction_config": {"ReductionConfig": _CONFIGURATIONS["ReductionConfig"]},
    "smdebug.core.save_config": {
        name: _CONFIGURATIONS[name] for name in ("SaveConfig", "SaveConfigMode")
    },
    "smdebug.core.tensor": {"StepState": errors.StepState, "Tensor": trials.TrialTensor},
    "smdebug.core.utils": {
        "flatten": flatten,
        "is_s3": is_s3,
        "get_path_to_collections": _refusing(
            "get_path_to_collections", "use `trial.collections()`"
        ),
        "has_training_ended": trials.has_training_ended,
    },
    "smdebug.exceptions": _ERRORS,
    "smdebug.rules": {
        **_REQUIRED,
        "Rule": rules.Rule,
        "invoke_rule": rules.invoke_rule,
    },
    "smdebug.rules.action": _ACTIONS,
    "smdebug.rules.action.action": {"Actions": Actions},
    "smdebug.rules.action.message_action": {"MessageAction": _ACTIONS["MessageAction"]},
    "smdebug.rules.action.stop_training_action": {
        "StopTrainingAction": _ACTIONS["StopTrainingAction"]
    },
    "smdebug.rules.req_tensors": _REQUIRED,
    "smdebug.rules.rule": {**_REQUIRED, "Rule": rules.Rule, "get_logger": get_logger},
    "smdebug.rules.rule_invoker": {"invoke_rule": rules.invoke_rule},
    "smdebug.trials": {**_OF_TRIALS, **_MODES},
    "smdebug.trials.local_trial": {"LocalTrial": _OF_TRIALS["LocalTrial"]},
    "smdebug.trials.s3_trial": {"S3Trial": _OF_TRIALS["S3Trial"]},
    "smdebug.trials.trial": {"Trial": trials.Trial},
    "smdebug.trials.utils": _CREATE,
    "smdebug.mxnet": _FRAMEWORK,
    "smdebug.pytorch": _FRAMEWORK,
    "smdebug.tensorflow": _FRAMEWORK,
    "smdebug.xgboost": _FRAMEWORK,
}


def _not_lent(module: str, name: str) -> str:
    things = vars(sys.modules[module])
    there = ", ".join(sorted(each for each in things if not each.startswith("_")))
    return (
        f"{module}.{name} is not there for rules of traindbg: {module} has "
        f"{there or 'nothing'}; {_SEE}"
    )


class _Lent(types.ModuleType):
    """A module that says what is in it where something else is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name if name.startswith("_") else _not_lent(self.__name__, name))


def words_of(error: ImportError) -> str:
    """What an error says; of `from smdebug... import name` also what is there instead."""
    text = str(error)
    asked = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", text)
    if asked and asked[2] in MODULES:
        return _not_lent(asked[2], asked[1])
    return text


class _Refuser:
    """Finds no module of the original's beside those that are lent."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        """Raises for modules of the original's, of which those that are lent are there already."""
        if name.partition(".")[0] == "smdebug":
            there = ", ".join(MODULES)
            raise ModuleNotFoundError(
                f"{name} is not there for rules of traindbg: there are {there}; {_SEE}", name=name
            )


def lend() -> None:
    """Puts them in place of the original's, in this process."""
    for name, things in MODULES.items():
        module = _Lent(name)
        module.__dict__.update(things)
        module.__path__ = []
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    sys.meta_path.insert(0, _Refuser())
