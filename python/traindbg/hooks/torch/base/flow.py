"""Where the values of given parameters go in one step, and where their gradients become zero.

A parameter without a gradient may be one that nobody uses, or one whose values are used and whose
graph is cut on the way; only the values tell which. `Flow` follows them through the operations of
one forward pass, below autograd, by the memory that they lie in; where a model's parts are called
and never itself, from the first of them on until the backward pass begins. One that became a number
of Python's is known again where an operation is given the number, or a simple function of it.
`Zeros` listens at the nodes that lead to given parameters in one backward pass. No tensor and no
node is kept beyond that.
"""

from __future__ import annotations

import ctypes
import math
import threading
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils import _python_dispatch

from traindbg.hooks.torch.base.compiled import our_hooks
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.names import tensors_in
from traindbg.hooks.torch.base.nodes import next_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_NODES = 30_000
_MOST_LISTENED = 512
_MOST_CALLS = 256  # of parts, until a backward pass begins
_KEY = "traindbg.flow"  # in a node's metadata
# What they return has the shape of what they are given, and nothing of its values.
_OF_SHAPE_ALONE = frozenset(
    {
        *("empty_like", "full_like", "ones_like", "zeros_like"),
        *("rand_like", "randint_like", "randn_like"),
        *("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros"),
    }
)
# Nodes at which a factor of 0 or a mask ends a gradient; those of dead units have other names.
_BY_ZERO = frozenset(
    {"MaskedFillBackward0", "MaskedFillBackward1", "MulBackward0", "MulBackward1", "WhereBackward0"}
)
_AS_NUMBER = "_local_scalar_dense"  # .item(), float(...)
_OF_NUMBERS = "lift_fresh"  # torch.tensor(...)
_MOST_READ = 256  # numbers that are known again
_MOST_GIVEN = 16  # numbers in a list that an operation is given, or that a tensor is made of
# Where 64 times a number is whole, as of 1 and 0.5, it may as well be a constant of the code.
_PLAIN = 64
_NONE: frozenset[str] = frozenset()

_is_compiling = torch.compiler.is_compiling
_graph_task = getattr(torch._C, "_current_graph_task_id", None)


def _tensors(value: Any, depth: int = 2) -> Iterator[torch.Tensor]:
    """Plain ones, of arguments or results of an operation."""
    if isinstance(value, torch.Tensor):
        if type(value) in (torch.Tensor, nn.Parameter) and value.layout == torch.strided:
            yield value
    elif depth > 0 and isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item, depth - 1)


def _key(number: float) -> float:
    """Equal of numbers that differ by rounding and by their sign."""
    return float(f"{abs(number):.11e}")


def _made_of(number: float) -> set[float]:
    """Keys of a number and of what is usually made of one that shall be positive, or a share."""
    made = [number, 1 - number, 1 + number, number * number]
    if number > 0:
        made += [math.log(number), math.sqrt(number)]
    if abs(number) < 80:
        power = math.exp(number)
        share = power / (1 + power)
        made += [power, math.log1p(power), math.tanh(number), share, 1 - share]
    made += [1 / one for one in made if one != 0]
    made += [ctypes.c_float(one).value for one in made]
    return {_key(one) for one in made if math.isfinite(one) and not (_PLAIN * one).is_integer()}


def _numbers_in(value: Any) -> Iterator[float]:
    """Of an operation's arguments."""
    if type(value) is float:
        yield value
    elif isinstance(value, (list, tuple)):
        yield from (item for item in value[:_MOST_GIVEN] if type(item) is float)


def _numbers_of(tensor: torch.Tensor) -> list[float]:
    """What a small tensor was just made of."""
    if not (tensor.is_cpu and tensor.is_floating_point() and tensor.numel() <= _MOST_GIVEN):
        return []
    with own_operations():
        return [float(number) for number in tensor.detach().reshape(-1).tolist()]


class Follower(_python_dispatch.TorchDispatchMode):  # type: ignore[misc]
    """Knows of which parameters the values in a storage were computed, by the storage.

    Of those named in `numbers` also by way of a number of Python's.
    """

    def __init__(
        self, sources: dict[str, list[nn.Parameter]], numbers: frozenset[str] = _NONE
    ) -> None:
        super().__init__()
        self.is_on = True
        self.read: frozenset[str] = _NONE  # those that became such numbers
        self._numbers = numbers
        self._times_read = 0
        self._made: dict[float, frozenset[str]] = {}  # what may be made of these, by their keys
        # A weak reference keeps the address, not the memory: no other storage is taken for it.
        self._known: dict[int, tuple[frozenset[str], StorageWeakRef]] = {}
        for name, parameters in sources.items():
            for parameter in _tensors(parameters):
                self._add(parameter, frozenset({name}))

    def add(self, name: str, tensors: Iterable[torch.Tensor]) -> None:
        """One more source, from now on."""
        for tensor in _tensors(tuple(tensors)):
            self._add(tensor, frozenset({name}))

    def of(self, tensor: torch.Tensor) -> frozenset[str]:
        """The names of the sources of a tensor."""
        found = self._known.get(tensor.untyped_storage()._cdata)
        return _NONE if found is None else found[0]

    def _add(self, tensor: torch.Tensor, names: frozenset[str]) -> None:
        storage = tensor.untyped_storage()
        before = self._known.get(storage._cdata)
        if before is None:
            self._known[storage._cdata] = names, StorageWeakRef(storage)
        elif not names <= before[0]:
            self._known[storage._cdata] = names | before[0], before[1]

    def _follow(self, operation: Any, args: Any, kwargs: Any, result: Any) -> None:
        name = operation.overloadpacket.__name__
        given = [*_tensors(args), *_tensors(tuple(kwargs.values()))]
        names = _NONE.union(*map(self.of, given))
        if name == _AS_NUMBER:
            self._read_as_number(names & self._numbers, result)
        if name in _OF_SHAPE_ALONE:
            names = _NONE
        if self._made:
            numbers = [n for value in (*args, *kwargs.values()) for n in _numbers_in(value)]
            if name == _OF_NUMBERS:
                numbers += [n for tensor in given for n in _numbers_of(tensor)]
            names = names.union(*(self._made.get(_key(number), _NONE) for number in numbers))
        if names:
            for tensor in _tensors(result):  # what is written in place is returned, too
                self._add(tensor, names)

    def _read_as_number(self, names: frozenset[str], number: Any) -> None:
        # Of what is true or false, as an assertion asks, nothing is computed.
        if not names or type(number) is not float:
            return
        self.read |= names
        self._times_read += 1
        if self._times_read <= _MOST_READ:
            for key in _made_of(number):
                self._made[key] = self._made.get(key, _NONE) | names

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs) if kwargs else func(*args)
        if self.is_on:
            guarded("flow", self._follow, func, args, kwargs or {}, result)
        return result


class Flow:
    """Follows parameters through the first training pass of a watched model in one step."""

    def __init__(
        self,
        models: Iterable[tuple[nn.Module, str]],
        sources: dict[str, list[nn.Parameter]],
        numbers: Iterable[str] = (),
        parts: Iterable[nn.Module] = (),
    ) -> None:
        """`sources`: by the name that is told of them. `numbers`: see `Follower`.

        `parts`: of models that are never called themselves.
        """
        self.was_followed = False  # a pass was, and what it gave a loss is known
        self.found: frozenset[str] = _NONE  # what a loss depends on without a graph that says so
        self.read: frozenset[str] = _NONE  # what became a number, whatever that is for
        self._roots = {id(model) for model, _ in models}
        self._parts = {id(part) for part in parts}
        self._sources = sources
        self._numbers = frozenset(numbers)
        self._follower: Follower | None = None
        self._inside = 0  # calls of the root that is followed, which may call itself
        self._root = 0
        self._is_marked = False
        self._thread = threading.get_ident()
        self._handles = [
            register_module_forward_pre_hook(self._begins),
            register_module_forward_hook(self._ends, always_call=True),
        ]
        our_hooks.update(handle.id for handle in self._handles)

    def _begins(self, module: nn.Module, args: Any) -> None:
        if _is_compiling() or not (id(module) in self._roots or id(module) in self._parts):
            return
        if threading.get_ident() != self._thread or self._is_marked:
            return
        if self._follower is not None:
            self._inside += id(module) == self._root
            if self._root == 0:
                self._inside += 1
                if self._inside > _MOST_CALLS:  # batch after batch, and no backward pass
                    self._is_marked = True
                    self._leave()
            return
        is_part = id(module) in self._parts and module.training
        if not (torch.is_grad_enabled() or is_part) or torch.jit.is_tracing():
            return
        if _graph_task is not None and _graph_task() != -1:
            return
        if torch._C._len_torch_dispatch_stack() == 0:
            # A part has no end: the loss does.
            self._root, self._inside = 0 if is_part else id(module), 1
            guarded("flow", self._enter)

    def _enter(self) -> None:
        follower = Follower(self._sources, self._numbers)
        follower.__enter__()
        self._follower = follower

    def _ends(self, module: nn.Module, args: Any, output: Any) -> None:
        if _is_compiling() or self._follower is None or id(module) != self._root:
            return
        if threading.get_ident() != self._thread:
            return
        self._inside -= 1
        if self._inside == 0:
            guarded("flow", self._mark, self._follower, output)
            self._leave()

    def _mark(self, follower: Follower, output: Any) -> None:
        """Leaves the sources of what the model returned at its nodes."""
        self._is_marked = True
        self.read = follower.read
        for _, tensor in tensors_in(output):
            if type(tensor) is torch.Tensor and tensor.grad_fn is not None:
                names = follower.of(tensor)
                if names:
                    tensor.grad_fn.metadata[_KEY] = names

    def _leave(self) -> None:
        """Ends the mode; out of order (after Ctrl-C inside a forward pass) it only falls silent."""
        follower = self._follower
        if follower is None:
            return
        follower.is_on = False
        if _python_dispatch._get_current_dispatch_mode() is follower:
            follower.__exit__(None, None, None)
            self._follower = None

    def backward_begins(self, root: Any) -> None:
        """Of a loss: which sources are in what it was computed from."""
        follower = self._follower
        if follower is not None and self._root == 0 and not self._is_marked:
            self._is_marked = self.was_followed = True
            self.read = follower.read
            self.found = _NONE.union(*map(follower.of, _tensors(root)))
            self._leave()
            return
        if not self._is_marked or not isinstance(root, torch.Tensor):
            return
        nodes = nodes_of(root)
        if nodes is not None:
            self.was_followed = True
            self.found = self.found.union(*(node.metadata.get(_KEY, _NONE) for node in nodes))

    def end(self) -> None:
        self._leave()
        for handle in self._handles:
            handle.remove()
            our_hooks.discard(handle.id)
        self._handles = []


def nodes_of(root: torch.Tensor) -> dict[Any, list[Any]] | None:
    """The nodes of a graph, each with those that it leads on to. None: they are too many."""
    waiting = [root.grad_fn] if root.grad_fn is not None else []
    nodes: dict[Any, list[Any]] = {}
    while waiting:
        node = waiting.pop()
        if node in nodes:
            continue
        if len(nodes) >= _MOST_NODES:
            return None
        nodes[node] = next_nodes(node)
        waiting.extend(nodes[node])
    return nodes


def _above(nodes: Iterable[Any], users: dict[Any, list[Any]]) -> set[Any]:
    """These nodes, and all that lead to them."""
    waiting = list(nodes)
    found: set[Any] = set()
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting.extend(users.get(node, ()))
    return found


class Zeros:
    """Finds in one backward pass what makes the gradients of some parameters zero."""

    def __init__(self, root: torch.Tensor, parameters: dict[int, str], trained: set[int]) -> None:
        """`parameters`: ids, with the name that is told of them; `trained`: ids of others."""
        self._handles: list[Any] = []
        self._any: list[torch.Tensor | None] = []  # of the nodes that are listened to
        # By the name: at which nodes a gradient may end, and those after each of them.
        self._ways: dict[str, list[tuple[int, list[int], bool]]] = {}
        nodes = nodes_of(root)
        if nodes is None:
            return
        users: dict[Any, list[Any]] = {}
        leaves: dict[str, list[Any]] = {}
        is_trained: set[Any] = set()
        for node, after in nodes.items():
            for other in after:
                users.setdefault(other, []).append(node)
            leaf = getattr(node, "variable", None)
            if id(leaf) in parameters:
                leaves.setdefault(parameters[id(leaf)], []).append(node)
            elif id(leaf) in trained:
                is_trained.add(node)
        beside = {user for node in same_elements(is_trained, users) for user in users.get(node, ())}
        numbers: dict[Any, int] = {}
        for name, ends in leaves.items():
            way = _above(ends, users)
            if len(way) + len(numbers) > _MOST_LISTENED:
                continue
            for node in way:
                if node not in numbers:
                    numbers[node] = len(self._any)
                    self._any.append(None)
                    self._listen(node, numbers[node])
            self._ways[name] = [
                (
                    numbers[node],
                    [numbers[other] for other in nodes[node] if other in way],
                    # By a constant, inside of what is trained: as a whole loss, it may be a weight.
                    node.name() in _BY_ZERO
                    and len(nodes[node]) == 1
                    and not beside.isdisjoint(_above([node], users) - {node}),
                )
                for node in way
            ]

    def _listen(self, node: Any, number: int) -> None:
        def take(gradients: Any) -> None:
            with own_operations():
                for gradient in _tensors(gradients):
                    if gradient.numel() > 0 and not capturing_graph(gradient):
                        before = self._any[number]
                        now = gradient.detach().any()
                        self._any[number] = now if before is None else before | now

        def heard(gradients: Any) -> None:
            guarded("flow", take, gradients)

        self._handles.append(node.register_prehook(heard))

    def end(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @property
    def asked(self) -> list[float | torch.Tensor]:
        """Of each node that was listened to, whether its gradient is not zero."""
        return [0.0 if known is None else known for known in self._any]

    def found(self, is_any: list[float]) -> set[str]:
        """Those whose gradients all end at a factor of 0 or a mask. `is_any`: what was asked."""
        found: set[str] = set()
        for name, way in self._ways.items():
            ends = [
                by_zero
                for number, after, by_zero in way
                if is_any[number] and after and not any(is_any[other] for other in after)
            ]
            if ends and all(ends):
                found.add(name)
        return found


def same_elements(leaves: set[Any], users: dict[Any, list[Any]]) -> set[Any]:
    """Leaves, and the nodes that only give them another shape."""
    found = set(leaves)
    for leaf in leaves:
        found.update(user for user in users.get(leaf, ()) if user.name() == "TBackward0")
    return found
