"""What of a training cannot be seen, and why: said once, to the user and in the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from traindbg._say import say
from traindbg.hooks.torch.base.micro_batches import MOST

if TYPE_CHECKING:
    import torch

    from traindbg import _core

_HOW_EAGER = (
    '`traindbg run --compiled eager`, or watch(compiled="eager"), runs the steps that need it '
    "uncompiled"
)


class Unseen:
    """The sentences, each said once in a recording."""

    def __init__(self, session: _core.Session) -> None:
        self.choice = "auto"  # what compiled models do
        self._session = session
        self._said: set[str] = set()

    def say(self, key: str, what: str, why: str) -> None:
        """Says what is not captured, unless something of that key was said before."""
        if key in self._said:
            return
        self._said.add(key)
        self._session.event("not_captured", json.dumps({"what": what, "reason": why}))
        say(f"{what}: not captured: {why}", once=f"not captured {key}")

    def compiled(self, model: torch.nn.Module) -> None:
        only = ", at steps where only rules need it" if self.choice == "auto" else ""
        self.say(
            "compiled",
            f"what the modules of {type(model).__name__} return{only}",
            f"torch.compile is in use, and compiled code shows nothing of it; {_HOW_EAGER}; "
            "weights, gradients and losses are recorded",
        )

    def compiled_values(self) -> None:
        self.say(
            "compiled values",
            "what traindbg.log and traindbg.save are given inside of compiled code",
            "torch.compile leaves these calls out; make them outside, of what the compiled code "
            "returns, or in a function under torch.compiler.disable (not with fullgraph=True); "
            f"steps that run uncompiled do record it: {_HOW_EAGER}",
        )

    def modules(self, unseen: list[str], seen: int, is_eager: bool) -> None:
        """`unseen` are names, `seen` is how many others there are."""
        first = ", ".join(unseen[:3]) + (", ..." if len(unseen) > 3 else "")
        why = "they were not called in Python, at least not in the first step that was looked at"
        if not is_eager:
            why += f"; torch.compile is in use; {_HOW_EAGER}"
        what = f"what {len(unseen)} of {len(unseen) + seen} modules return ({first})"
        self.say("unseen", what, why)

    def functions(self) -> None:
        self.say(
            "functions",
            "attention maps, and what activation functions that are called as functions return",
            "torch.compile is in use, and listening to them would compile again what is "
            f"compiled; {_HOW_EAGER}",
        )

    def attention(self) -> None:
        why = (
            "no call of scaled_dot_product_attention or torch.nn.MultiheadAttention was seen; "
            "attention that is written out in a forward, or in another library, is not found"
        )
        self.say("attention", "attention maps", why)

    def attention_without_call(self) -> None:
        why = (
            "the model itself is not called in training, only parts of it; attention is looked for "
            "from the model's call to its return"
        )
        self.say("attention", "attention maps", why)

    def arguments(self) -> None:
        why = (
            "no call of a loss function of torch.nn.functional was heard; it is compiled, or your "
            "own; name a loss module of your own by watch(loss_fn=...)"
        )
        self.say("arguments", "what loss functions are given", why)

    def transformed(self) -> None:
        why = "values are wrapped there (torch.func.grad, vmap, ...), and stand for many or none"
        self.say("transformed", "what is computed inside of torch.func", why)

    def threads(self) -> None:
        why = (
            "a run is of one training, whose steps follow one another; train in processes of their "
            "own to have them all recorded"
        )
        self.say("threads", "what other threads train at the same time", why)

    def steps(self) -> None:
        why = (
            "a compiled optimizer.step() is not seen, and a step ends with one; leave it uncompiled"
        )
        self.say("steps", "training steps that end in compiled code", why)

    def calls(self, name: str, most: int) -> None:
        what = f"{name} of calls in one pass after the {most}th, and maybe those of other modules"
        self.say("calls", what, "there are too many of them")

    def calls_of_a_loss(self, function: str, most: int) -> None:
        what = f"calls of {function} in one pass after the {most}th"
        self.say("calls_of_a_loss", what, "there are too many of them")

    def micro_batches(self) -> None:
        what = f"micro-batches of a step after the {MOST}th"
        self.say("micro_batches", what, "there are too many of them")
