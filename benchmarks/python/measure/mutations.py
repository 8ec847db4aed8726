"""Textbook faults that are put into a program by its syntax tree, as mutation testing does.

The operators follow DeepCrime (Humbatova, Jahangirova, Tonella, ISSTA 2021) where it has them. Each
changes the text of a sound program in one respect: `mutated` returns the new text, or None where
the program has nothing that the operator could change. What comes out is a program that a person
could have written, and it may be no worse for it: an optimizer that adapts its steps does not mind
gradients that are cut to a millionth.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import NamedTuple

from measure.programs import CONSTANTS

_OPTIMIZERS = frozenset({"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "NAdam", "RAdam", "Adamax"})
_ADAMS = frozenset({"Adam", "AdamW"})
_CLASSES = frozenset({"cross_entropy"})
_BINARY = frozenset({"binary_cross_entropy_with_logits"})
_VALUES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_ACTIVATIONS = frozenset({"ReLU", "GELU", "Tanh", "SiLU", "ELU", "LeakyReLU"})

_ANYWHERE = ("*", "optimizer", "loop", "loader")  # places are not measured

Change = Callable[[ast.Module], int]  # in place; how many places were changed


class Operator(NamedTuple):
    """`accept`: other kinds of fault that are a right name."""

    change: Change
    accept: tuple[str, ...] = ()


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _called(node: ast.AST) -> str:
    """The last part of the name of what a call calls; empty for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


class _Rewriting(ast.NodeTransformer):
    def __init__(self, rewrite: Callable[[ast.AST], ast.AST | list[ast.stmt] | None]) -> None:
        self.rewrite = rewrite
        self.count = 0

    def generic_visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        super().generic_visit(node)
        new = self.rewrite(node)
        self.count += new is not None
        return node if new is None else new


def _rewritten(
    tree: ast.Module, rewrite: Callable[[ast.AST], ast.AST | list[ast.stmt] | None]
) -> int:
    rewriting = _Rewriting(rewrite)
    rewriting.visit(tree)
    return rewriting.count


class _Optimizer(NamedTuple):
    made: ast.Assign
    call: ast.Call
    name: str  # the variable's
    model: str  # whose parameters() it is given; empty where that is not plain


def _optimizer(tree: ast.Module) -> _Optimizer | None:
    """The only one of a program, where it is assigned to a variable."""
    calls = [node for node in ast.walk(tree) if _called(node) in _OPTIMIZERS]
    made = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _called(node.value) in _OPTIMIZERS
    ]
    if len(calls) != 1 or len(made) != 1:
        return None
    call = made[0].value
    assert isinstance(call, ast.Call)
    model = ""
    if call.args and isinstance(call.args[0], ast.Call) and _called(call.args[0]) == "parameters":
        of = call.args[0].func
        model = ast.unparse(of.value) if isinstance(of, ast.Attribute) else ""
    return _Optimizer(made[0], call, ast.unparse(made[0].targets[0]), model)


def _rate_times(factor: float) -> Change:
    def change(tree: ast.Module) -> int:
        optimizer = _optimizer(tree)
        if optimizer is None:
            return 0
        call = optimizer.call
        scaled = f"({{}}) * {factor!r}"
        for keyword in call.keywords:
            if keyword.arg == "lr":
                keyword.value = _expression(scaled.format(ast.unparse(keyword.value)))
                return 1
        if len(call.args) > 1:
            call.args[1] = _expression(scaled.format(ast.unparse(call.args[1])))
            return 1
        return 0

    return change


def _setting(name: str, value: str, types: frozenset[str]) -> Change:
    def change(tree: ast.Module) -> int:
        optimizer = _optimizer(tree)
        if (
            optimizer is None
            or _called(optimizer.call) not in types
            or len(optimizer.call.args) > 2
        ):
            return 0
        others = [keyword for keyword in optimizer.call.keywords if keyword.arg != name]
        optimizer.call.keywords = [*others, ast.keyword(name, _expression(value))]
        return 1

    return change


def _before_optimizer(text: str) -> Change:
    def change(tree: ast.Module) -> int:
        optimizer = _optimizer(tree)
        if optimizer is None or not optimizer.model:
            return 0
        more = ast.parse(text.format(model=optimizer.model)).body
        made = optimizer.made
        return _rewritten(tree, lambda node: [*more, made] if node is made else None)

    return change


def _is_step_of(node: ast.AST, optimizer: _Optimizer) -> bool:
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    function = node.value.func
    is_step = isinstance(function, ast.Attribute) and function.attr == "step"
    return is_step and ast.unparse(function.value) == optimizer.name  # type: ignore[attr-defined]


def _around_step(before: str = "", after: str = "", made: str = "", keep: bool = True) -> Change:
    """`made`: what stands behind the optimizer."""

    def change(tree: ast.Module) -> int:
        optimizer = _optimizer(tree)
        if optimizer is None:
            return 0

        def statements(text: str) -> list[ast.stmt]:
            return ast.parse(text.format(optimizer=optimizer.name)).body

        def rewrite(node: ast.AST) -> list[ast.stmt] | None:
            if node is optimizer.made and made:
                return [optimizer.made, *statements(made)]
            if not _is_step_of(node, optimizer):
                return None
            assert isinstance(node, ast.Expr)
            return [
                *statements(before),
                *([node] if keep else statements("pass")),
                *statements(after),
            ]

        count = _rewritten(tree, rewrite)
        return count if not made else max(0, count - 1)

    return change


def _without(method: str, needs: tuple[str, ...] = ()) -> Change:
    """No statement calls this any more; `needs`: one of these words is in the program."""

    def change(tree: ast.Module) -> int:
        if needs and not any(word in ast.unparse(tree) for word in needs):
            return 0

        def rewrite(node: ast.AST) -> list[ast.stmt] | None:
            is_call = isinstance(node, ast.Expr) and _called(node.value) == method
            return ast.parse("pass").body if is_call else None

        return _rewritten(tree, rewrite)

    return change


def _eval_for_train(tree: ast.Module) -> int:
    if not any(word in ast.unparse(tree) for word in ("Dropout", "BatchNorm")):
        return 0

    def rewrite(node: ast.AST) -> ast.AST | None:
        if not isinstance(node, ast.Expr) or _called(node.value) != "train":
            return None
        call = node.value
        if not isinstance(call, ast.Call) or call.args or call.keywords:
            return None
        new = copy.deepcopy(node)
        new.value.func.attr = "eval"  # type: ignore[attr-defined]
        return new

    return _rewritten(tree, rewrite)


def _loss_given(functions: frozenset[str], place: int, text: str) -> Change:
    """What a loss function of torch.nn.functional is given at a place, in another form."""

    def change(tree: ast.Module) -> int:
        def rewrite(node: ast.AST) -> ast.AST | None:
            if _called(node) not in functions or not isinstance(node, ast.Call):
                return None
            if any(isinstance(argument, ast.Starred) for argument in node.args):
                return None
            if len(node.args) < 2 or not isinstance(node.func, ast.Attribute):
                return None
            new = copy.copy(node)
            new.args = list(node.args)
            new.args[place] = _expression(text.format(f"({ast.unparse(node.args[place])})"))
            return new

        return _rewritten(tree, rewrite)

    return change


def _model_given(text: str) -> Change:
    """A model of numbers, in another form; none of ids, which would no longer be any."""

    def change(tree: ast.Module) -> int:
        optimizer = _optimizer(tree)
        if "Embedding" in ast.unparse(tree):
            return 0
        if optimizer is None or not optimizer.model.isidentifier():
            return 0

        def rewrite(node: ast.AST) -> ast.AST | None:
            if not isinstance(node, ast.Call) or len(node.args) != 1:
                return None
            if ast.unparse(node.func) != optimizer.model or isinstance(node.args[0], ast.Starred):
                return None
            new = copy.copy(node)
            new.args = [_expression(text.format(f"({ast.unparse(node.args[0])})"))]
            return new

        return _rewritten(tree, rewrite)

    return change


def _layers(names: frozenset[str], text: str, takes: int = 0) -> Change:
    """Layers that are made with so many arguments, replaced; `{}`: as they were."""

    def change(tree: ast.Module) -> int:
        def rewrite(node: ast.AST) -> ast.AST | None:
            if _called(node) not in names or not isinstance(node, ast.Call):
                return None
            if not isinstance(node.func, ast.Attribute) or node.keywords or len(node.args) != takes:
                return None
            arguments = ", ".join(map(ast.unparse, node.args))
            return _expression(text.format(ast.unparse(node.func), arguments))

        return _rewritten(tree, rewrite)

    return change


def _minus_loss(tree: ast.Module) -> int:
    def rewrite(node: ast.AST) -> ast.AST | None:
        if _called(node) != "backward" or not isinstance(node, ast.Call) or node.args:
            return None
        assert isinstance(node.func, ast.Attribute)
        new = copy.copy(node)
        minus = ast.UnaryOp(ast.USub(), node.func.value)
        new.func = ast.Attribute(minus, "backward", ast.Load())
        return new

    return _rewritten(tree, rewrite)


def _last_two(tree: ast.Module) -> int:
    optimizer = _optimizer(tree)
    if optimizer is None or not optimizer.model:
        return 0
    optimizer.call.args[0] = _expression(f"list({optimizer.model}.parameters())[-2:]")
    return 1


_EACH = "for _p in {model}.parameters():\n    "
_EACH_MATRIX = _EACH + "if _p.ndim > 1:\n        "
_ALL_BUT_LAST = "for _p in list({model}.parameters())[:-2]:\n    "
_CUT = (
    "torch.nn.utils.clip_grad_norm_("
    "[_p for _g in {optimizer}.param_groups for _p in _g['params']], 1e-6)"
)
_TOO_HIGH = ("exploding_gradient", "dead_relu", "loss_spike")
_NO_SIGNAL = (
    "label_misalignment",
    "underfit",
    "loss_not_decreasing",
    "plateau",
    "no_learning_signal",
)
_MODES = ("Dropout", "BatchNorm")

# By the kind of fault, and which form of it.
OPERATORS: dict[str, Operator] = {
    "bad_optimizer_settings/betas_swapped": Operator(_setting("betas", "(0.999, 0.9)", _ADAMS)),
    "bad_optimizer_settings/eps_1": Operator(
        _setting("eps", "1.0", _ADAMS | {"RMSprop"}), ("learning_rate_too_low",)
    ),
    "bad_optimizer_settings/momentum_09999": Operator(
        _setting("momentum", "0.9999", frozenset({"SGD"})), ("learning_rate_too_high",)
    ),
    "batchnorm_momentum/a_thousandth": Operator(
        _layers(frozenset({"BatchNorm1d", "BatchNorm2d"}), "{}({}, momentum=0.001)", takes=1)
    ),
    "dead_relu/biases_of_minus_20": Operator(
        _before_optimizer(
            "for _m in {model}.modules():\n"
            "    if isinstance(_m, (nn.Linear, nn.Conv1d, nn.Conv2d)) and _m.bias is not None:\n"
            "        nn.init.constant_(_m.bias, -20.0)"
        ),
        ("poor_weight_init", "vanishing_gradient", "saturated_activation"),
    ),
    "eval_mode_while_training/eval_for_train": Operator(_eval_for_train),
    "frozen_parameters/all_but_the_last": Operator(
        _before_optimizer(_ALL_BUT_LAST + "_p.requires_grad_(False)"),
        ("parameters_not_in_optimizer", "low_capacity"),
    ),
    "gradient_clipped_to_nothing/a_millionth": Operator(
        _around_step(before=_CUT), ("learning_rate_too_low",)
    ),
    "gradients_not_cleared/no_zero_grad": Operator(
        _without("zero_grad"), ("accumulation_not_averaged", "learning_rate_too_high")
    ),
    "input_not_normalized/times_100_and_300": Operator(
        _model_given("{} * 100 + 300"), ("dead_relu",)
    ),
    "label_noise/labels_shuffled": Operator(
        _loss_given(_CLASSES | _BINARY | _VALUES, 1, "{0}[torch.randperm(len({0}))]"), _NO_SIGNAL
    ),
    "label_misalignment/off_by_one": Operator(
        _loss_given(_CLASSES | _VALUES, 1, "{}.roll(1, 0)"),
        # Of the next character in a row it is the present one.
        ("label_noise", "target_leak", "future_leak", *_NO_SIGNAL[1:]),
    ),
    "learning_rate_too_high/times_100": Operator(_rate_times(100.0), _TOO_HIGH),
    "learning_rate_too_high/times_1000": Operator(_rate_times(1000.0), _TOO_HIGH),
    "learning_rate_too_low/a_thousandth": Operator(
        _rate_times(1e-3), ("stopped_too_early", "underfit")
    ),
    "learning_rate_too_low/a_ten_thousandth": Operator(
        _rate_times(1e-4), ("stopped_too_early", "underfit")
    ),
    "loss_shape_broadcast/unsqueezed": Operator(_loss_given(_VALUES, 0, "{}.unsqueeze(1)")),
    "loss_sign_flipped/minus_loss": Operator(_minus_loss),
    "nan_input/first_row": Operator(
        _model_given("{}.index_fill(0, torch.tensor([0]), float('nan'))"),
        ("division_by_zero_norm",),
    ),
    "no_nonlinearity/identities": Operator(
        _layers(_ACTIVATIONS, "nn.Identity()"), ("low_capacity", "underfit")
    ),
    "optimizer_never_steps/no_step": Operator(_around_step(keep=False)),
    "output_activation_range/sigmoid": Operator(
        _loss_given(_VALUES, 0, "{}.sigmoid()"), ("redundant_sigmoid", "saturated_activation")
    ),
    "over_regularized/decay_of_1": Operator(
        _setting("weight_decay", "1.0", frozenset({"SGD", "Adam"}))
    ),
    "over_regularized/dropout_of_095": Operator(
        _layers(frozenset({"Dropout", "Dropout1d", "Dropout2d"}), "nn.Dropout(0.95)", takes=1),
        ("underfit",),
    ),
    "parameters_not_in_optimizer/last_two_alone": Operator(_last_two, ("frozen_parameters",)),
    "poor_weight_init/zeros": Operator(
        _before_optimizer(_EACH + "nn.init.zeros_(_p)"),
        ("constant_output", "vanishing_gradient", "dead_relu"),
    ),
    "poor_weight_init/constant": Operator(_before_optimizer(_EACH + "nn.init.constant_(_p, 0.1)")),
    "poor_weight_init/large": Operator(
        _before_optimizer(_EACH_MATRIX + "nn.init.normal_(_p, 0, 3.0)"),
        ("saturated_activation", "exploding_gradient"),
    ),
    "poor_weight_init/tiny": Operator(
        _before_optimizer(_EACH + "nn.init.normal_(_p, 0, 1e-4)"), ("vanishing_gradient",)
    ),
    "redundant_sigmoid/before_logits": Operator(_loss_given(_BINARY, 0, "{}.sigmoid()")),
    "redundant_softmax/before_cross_entropy": Operator(_loss_given(_CLASSES, 0, "{}.softmax(1)")),
    "schedule_collapsed/at_each_step": Operator(
        _around_step(
            after="_schedule.step()",
            made="_schedule = torch.optim.lr_scheduler.ExponentialLR({optimizer}, 0.8)",
        )
    ),
    "step_without_gradient/cleared_before_step": Operator(
        _around_step(before="{optimizer}.zero_grad()")
    ),
    "target_not_normalized/times_1000_and_5000": Operator(
        _loss_given(_VALUES, 1, "({} * 1000 + 5000)")
    ),
    "train_mode_in_validation/no_eval": Operator(_without("eval", _MODES)),
}


class _Twin(ast.NodeTransformer):
    """Has a program of the gallery run without the fault that it has itself."""

    is_done = False

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        target = node.targets[0]
        if _called(node.value) != "arguments" or not isinstance(target, ast.Tuple):
            return node
        if not isinstance(target.elts[0], ast.Name):
            return node
        self.is_done = True
        return [node, *ast.parse(f"{target.elts[0].id} = True").body]


def mutated(source: str, name: str) -> str | None:
    """The twin in the text of a program of the gallery, with the fault of an operator put in."""
    operator = OPERATORS[name]
    tree = ast.parse(source)
    twin = _Twin()
    twin.visit(tree)
    ours = [
        node
        for node in tree.body
        if not isinstance(node, ast.Assign)
        or not isinstance(node.targets[0], ast.Name)
        or node.targets[0].id not in CONSTANTS
    ]
    tree.body = ours
    ast.fix_missing_locations(tree)
    if not twin.is_done or operator.change(tree) == 0:
        return None
    told = {
        "KIND": name.partition("/")[0],
        "ACCEPT": operator.accept,
        "PLACE": _ANYWHERE,
        "SILENT": False,
        "EXACT": False,
        "EARLY": False,
    }
    lines = ["import torch", "from torch import nn", *(f"{k} = {v!r}" for k, v in told.items())]
    imports = [i for i, n in enumerate(tree.body) if isinstance(n, (ast.Import, ast.ImportFrom))]
    at = imports[-1] + 1 if imports else 1
    tree.body[at:at] = ast.parse("\n".join(lines)).body
    ast.fix_missing_locations(tree)
    return ast.unparse(tree) + "\n"
