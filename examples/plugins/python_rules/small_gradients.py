"""Two rules that judge the same: one of traindbg's form, one of the SageMaker Debugger client's.

traindbg run --rule-python examples/plugins/python_rules/small_gradients.py -- python train.py
"""

from __future__ import annotations

from smdebug.rules.rule import Rule as OriginalRule  # traindbg's own, when it runs this file

from traindbg.rules import Finding, Need, Parameter, Rule, Sink, Step


class SmallGradients(Rule):
    """The mean of a gradient's absolute values is below a limit."""

    parameters = (
        Parameter("limit", 1e-7, "of the mean of absolute values", minimum=0.0, maximum=1e30),
    )
    when = "The mean of the absolute values of some gradient is below `limit`."
    fix = "Raise the learning rate, or look for what stops the gradient."

    def needs(self) -> list[Need]:
        return [Need("gradients", every=10)]

    def on_step(self, step: Step, sink: Sink) -> bool:
        small = []
        for gradient in step.of("gradients"):
            if gradient.statistics is not None and gradient.statistics.count > 0:
                mean = gradient.statistics.l1 / gradient.statistics.count
                if mean < self.parameter("limit"):
                    small.append((mean, gradient))
        if not small:
            sink.clear()
            return True
        mean, worst = min(small, key=lambda each: each[0])
        sink.fire(
            Finding(
                message=f"The gradient of {worst.module} is {mean:.3g} on average.",
                fix=self.fix,
                tensor=worst.name,
                layer=worst.module,
                places=len(small),
                evidence=[("mean of absolute values", mean, "limit", self.parameter("limit"))],
                plots=[(worst.name, "l1")],
            )
        )
        return True


class OriginalSmallGradients(OriginalRule):
    """The same as somebody wrote it for the original: nothing in it is traindbg's."""

    collections = ("gradients",)  # the original has this in the job's configuration
    every = 10

    def __init__(self, base_trial, limit=1e-7):
        super().__init__(base_trial, action_str="")
        self.limit = float(limit)

    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            self.req_tensors.add(name, steps=[step])

    def invoke_at_step(self, step):
        for tensor in self.req_tensors.get():
            if tensor.reduction_value(step, "mean", abs=True) < self.limit:
                return True
        return False
