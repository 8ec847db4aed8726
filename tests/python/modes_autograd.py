"""Modes of training that differ in how gradients are computed."""

from __future__ import annotations

import warnings

import torch
from modes_models import sgd
from modes_optimizers import CLASSES, batches, perceptron
from same import USUAL, Training, mode
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


class Recomputed(nn.Module):
    def __init__(self, *, use_reentrant: bool) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Dropout(0.3)) for _ in range(2)
        )
        self.tail = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 8))
        self.head = nn.Linear(8, CLASSES)
        self.use_reentrant = use_reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.use_reentrant)
        x = checkpoint_sequential(self.tail, 2, x, use_reentrant=self.use_reentrant)
        return self.head(F.relu(x))


@mode()
def checkpoints(t: Training) -> None:
    model = Recomputed(use_reentrant=False)
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())


@mode()
def reentrant_checkpoints(t: Training) -> None:
    model = Recomputed(use_reentrant=True)
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())


@mode()
def functional_calls(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)

    def called(x: torch.Tensor) -> torch.Tensor:
        parameters = dict(model.named_parameters())
        return torch.func.functional_call(model, parameters, (x,))

    t.fit(called, optimizer, batches())


@mode(
    holds=("weights", "gradients"),
    steps=4,
    said=("what is computed inside of torch.func",),
)
def gradients_of_torch_func(t: Training) -> None:
    """Of every row, and of an ensemble: `grad`, `vmap`, `jvp`, `stack_module_state`."""
    model = perceptron(0).eval()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    others = [perceptron(0).eval() for _ in range(3)]
    parameters, buffers = torch.func.stack_module_state(others)
    held = {name: value.detach() for name, value in model.named_parameters()}
    state = dict(model.named_buffers())

    def loss_of(weights, x, y):
        output = torch.func.functional_call(model, (weights, state), (x.unsqueeze(0),))
        return F.cross_entropy(output, y.unsqueeze(0))

    def one_of(weights, state, x):
        return torch.func.functional_call(model, (weights, state), (x,))

    for x, y in batches():
        optimizer.zero_grad()
        each = torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0))(held, x, y)
        t.left(
            each=each,
            ensemble=torch.func.vmap(one_of, in_dims=(0, 0, None))(parameters, buffers, x),
            jvp=torch.func.jvp(model, (x,), (torch.ones_like(x),)),
            hessian=torch.func.hessian(lambda z: model(z).square().sum())(x[:1]),
        )
        for name, parameter in model.named_parameters():
            parameter.grad = each[name].mean(0)
        optimizer.step()


@mode()
def penalties_on_gradients(t: Training) -> None:
    """Double backward: the loss has gradients in it."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, CLASSES))
    optimizer = sgd(model)
    t.watch(model, optimizer)
    for x, y in batches():
        optimizer.zero_grad()
        x.requires_grad_()
        output = model(x)
        (slopes,) = torch.autograd.grad(output.sum(), x, create_graph=True)
        penalty = (slopes.norm(dim=1) - 1).square().mean()
        loss = t.loss(F.cross_entropy(output, y) + penalty, slopes, x, output)
        loss.backward()
        optimizer.step()
        del x, y, output, slopes, penalty, loss
        t.stepped()


@mode()
def slopes_without_a_graph(t: Training) -> None:
    """The loss is made of numbers that its weights led to, whose way is followed."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Linear(8, CLASSES))
    optimizer = sgd(model)
    t.watch(model, optimizer)
    for x, y in batches():
        optimizer.zero_grad()
        x.requires_grad_()
        output = model(x)
        (slopes,) = torch.autograd.grad(output.sum(), x, retain_graph=True)
        penalty = (slopes.norm(dim=1) - 1).square().mean()
        loss = t.loss(F.cross_entropy(output, y) + penalty, slopes, x, output)
        loss.backward()
        optimizer.step()
        del x, y, output, slopes, penalty, loss
        t.stepped()


@mode(holds=("weights", "losses", "inputs", "outputs"))
def gradients_that_are_asked_for(t: Training) -> None:
    """`torch.autograd.grad` in the place of `backward`, which is never called."""
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    for x, y in batches():
        loss = t.loss(F.cross_entropy(model(x), y))
        parameters = list(model.parameters())
        for parameter, slope in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = slope
        optimizer.step()


@mode()
def graphs_that_are_kept(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    for x, y in batches():
        optimizer.zero_grad()
        output = model(x)
        loss = t.loss(F.cross_entropy(output, y), output)
        loss.backward(retain_graph=True)
        other = t.loss(F.mse_loss(output, torch.zeros_like(output)))
        other.backward(inputs=list(model[4].parameters()))
        optimizer.step()
        del output, loss, other
        t.stepped()


@mode()
def anomalies_are_detected(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    with warnings.catch_warnings(), torch.autograd.detect_anomaly():
        warnings.simplefilter("ignore")
        t.fit(model, optimizer, batches(3))
        output = model(next(iter(batches(1)))[0])
        torch.sqrt(output - output).sum()
        try:
            torch.sqrt(-output.abs()).sum().backward()
        except RuntimeError as error:
            t.left(told=str(error))
    t.fit(model, optimizer, batches(1))


@mode()
def saved_tensors_that_are_packed(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    packed: list[tuple[int, ...]] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        packed.append(tuple(tensor.shape))
        return tensor.detach().clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        t.fit(model, optimizer, batches(2))
    with torch.autograd.graph.save_on_cpu():
        t.fit(model, optimizer, batches(2))
    t.left(packed=packed)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() < 1)


class Binary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.last = nn.Linear(8, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = Sign.apply(self.first(x))
        x.retain_grad()
        return self.last(x)


@mode()
def functions_of_ones_own(t: Training) -> None:
    model = Binary()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())


@mode()
def forward_mode(t: Training) -> None:
    """Gradients along one direction, by dual numbers."""
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, CLASSES))
    optimizer = sgd(model)
    t.watch(model, optimizer)
    ad = torch.autograd.forward_ad
    for x, y in batches():
        with ad.dual_level():
            output = model(ad.make_dual(x, torch.ones_like(x)))
            loss = F.cross_entropy(output, y)
            t.left(along=ad.unpack_dual(loss).tangent)
        del output, loss
        t.fit(model, optimizer, [(x, y)])


@mode()
def deterministic_algorithms(t: Training) -> None:
    torch.use_deterministic_algorithms(True)
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, batches())
    t.left(filled=torch.utils.deterministic.fill_uninitialized_memory)
    torch.use_deterministic_algorithms(False)


@mode()
def another_default_type_and_device(t: Training) -> None:
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("cpu")
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    t.fit(model, optimizer, ((x.double(), y) for x, y in batches()))
    torch.set_default_device(None)
    torch.set_default_dtype(torch.float32)


@mode()
def a_default_device_that_has_no_values(t: Training) -> None:
    """Whatever of ours makes a tensor must say where."""
    model = perceptron()
    optimizer = sgd(model)
    made = list(batches())
    t.watch(model, optimizer)
    for batch in made:
        with torch.device("meta"):
            t.fit(model, optimizer, [batch])
            t.left(shape=tuple(nn.Linear(3, 4)(torch.ones(2, 3)).shape))


@mode(holds=USUAL)
def inference_between_steps(t: Training) -> None:
    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    for batch in batches():
        t.fit(model, optimizer, [batch])
        model.eval()
        with torch.inference_mode():
            output = model(batch[0])
            t.left(output=output, is_inference=output.is_inference())
            F.cross_entropy(output, batch[1])
        model.train()


@mode()
def other_modes_of_functions(t: Training) -> None:
    """A function mode and a dispatch mode of the user's see the same calls."""
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    functions: list[str] = []
    operators: list[str] = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            functions.append(getattr(func, "__name__", "?"))
            return func(*args, **(kwargs or {}))

    class Operators(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            operators.append(str(func))
            return func(*args, **(kwargs or {}))

    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    x, y = next(iter(batches(1)))
    for inside in (Functions(), Operators()):
        for _ in range(2):
            optimizer.zero_grad()
            with inside:
                output = model(x)
            t.loss(F.cross_entropy(output, y)).backward()
            optimizer.step()
    t.left(functions=functions, operators=operators)


@mode(steps=4)
def counted_operations(t: Training) -> None:
    """A profiler and a counter of operations around the steps."""
    from torch.utils.flop_counter import FlopCounterMode

    model = perceptron()
    optimizer = sgd(model)
    t.watch(model, optimizer)
    counter = FlopCounterMode(display=False)
    with counter:
        t.fit(model, optimizer, batches(2))
    t.left(operations=counter.get_total_flops())
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        t.fit(model, optimizer, batches(2))
