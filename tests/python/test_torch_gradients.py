"""Gradients as backward left them, and as the optimizer uses them, compared with hand-made ones."""

from __future__ import annotations

import sys

import pytest
import torch
import trainings
from test_torch_values import check
from torch import nn
from torch.nn.utils import clip_grad_norm_ as imported_clip

import traindbg as td
from traindbg import _core, _plan
from traindbg.hooks.torch.base import guard as guards
from traindbg.hooks.torch.recording import recording as recordings

COLLECTIONS = ("gradients", "gradients_before")


@pytest.fixture(params=["cpu path", "device path"], autouse=True)
def path(request, monkeypatch):
    if request.param == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    return request.param


def small_model() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2))


def gradients(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def check_all(step, role: str, expected: dict[str, torch.Tensor]) -> None:
    assert expected
    for name, gradient in expected.items():
        check(step.tensors[f"{role}/{name}"].statistics, gradient)


def backward(model: nn.Module, scale: float = 1.0) -> None:
    (model(torch.randn(7, 6)).square().mean() * scale).backward()


def test_without_clipping_both_are_the_same(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        backward(model)
        seen = gradients(model)
        optimizer.step()
    step = td.Run(run_dir).step(0)
    check_all(step, "gradient", seen)
    check_all(step, "gradient_before", seen)
    assert not any(name.startswith("gradient_before/") for name in step.scalars)
    info = td.Run(run_dir)["gradient_before/2.weight"].info
    assert (info["role"], info["collection"]) == ("gradient_before", "gradients_before")
    assert (info["module"], info["module_type"], info["layer"]) == ("2", "Linear", 3)


@pytest.mark.parametrize(
    "clip",
    [
        lambda p: torch.nn.utils.clip_grad_norm_(p, 0.01),
        lambda p: imported_clip(p, max_norm=0.01),
        lambda p: torch.nn.utils.clip_grad_norm_(parameters=p, max_norm=0.01),
    ],
    ids=["attribute", "imported by name", "by keyword"],
)
def test_sgd_with_the_norm_clipped(run_dir, clip):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before, after, norms = [], [], []
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        for _ in range(3):
            optimizer.zero_grad()
            backward(model)
            before.append(gradients(model))
            norms.append(clip(model.parameters()).item())
            after.append(gradients(model))
            optimizer.step()
    run = td.Run(run_dir)
    for number in range(3):
        step = run.step(number)
        check_all(step, "gradient_before", before[number])
        check_all(step, "gradient", after[number])
        assert step.scalars["gradient_before/total_norm"] == pytest.approx(norms[number], rel=1e-6)
        assert norms[number] > 0.01


def test_the_first_of_several_calls_counts(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        backward(model)
        before = gradients(model)
        torch.nn.utils.clip_grad_value_(model.parameters(), 1e-3)
        torch.nn.utils.clip_grad_norm_(model[0].parameters(), 1e-4)
        torch.nn.utils.clip_grad_norm_(model[2].parameters(), 1e-4)
        after = gradients(model)
        optimizer.step()
    step = td.Run(run_dir).step(0)
    check_all(step, "gradient_before", before)
    check_all(step, "gradient", after)
    assert {"gradient_before/total_norm", "gradient_before/total_norm#2"} <= set(step.scalars)


def test_accumulation_of_four_micro_batches(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        for number in range(2):
            for micro in range(4):
                backward(model, 1 / 4)
                if number == 1 and micro == 1:
                    torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-9)  # and goes on
            if number == 0:
                first = gradients(model)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            else:
                second = gradients(model)
            optimizer.step()
            optimizer.zero_grad()
    run = td.Run(run_dir)
    check_all(run.step(0), "gradient_before", first)
    check_all(run.step(1), "gradient_before", second)
    check_all(run.step(1), "gradient", second)
    assert "gradient_before/total_norm" not in run.step(1).scalars


def scaled_step(model, optimizer, scaler, *, unscale: bool, factor: float = 1.0):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(7, 6)).square().mean() * factor).backward()
    before = gradients(model)
    if unscale:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    scale = scaler.get_scale()
    after = gradients(model) if unscale else {n: g / scale for n, g in before.items()}
    scaler.step(optimizer)
    scaler.update()
    return before, after, scale


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("unscale", [False, True])
def test_under_a_scaler(run_dir, unscale, fused):
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1)
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        seen = [scaled_step(model, optimizer, scaler, unscale=unscale) for _ in range(2)]
    run = td.Run(run_dir)
    for number, (before, after, scale) in enumerate(seen):
        step = run.step(number)
        check_all(step, "gradient_before", before)
        check_all(step, "gradient", after)
        assert step.scalars["gradient_before/loss_scale"] == scale
    assert seen[1][2] == 2048


def test_a_step_that_the_scaler_skips_leaves_nothing_of_its_own(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        scaled_step(model, optimizer, scaler, unscale=True, factor=float("inf"))
        before, after, scale = scaled_step(model, optimizer, scaler, unscale=True)
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0]
    check_all(run.step(0), "gradient_before", before)
    check_all(run.step(0), "gradient", after)
    assert run.step(0).scalars["gradient_before/loss_scale"] == scale == 512


def test_a_step_that_the_user_skips_leaves_nothing_of_its_own(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        backward(model, float("inf"))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.zero_grad()
        backward(model)
        before = gradients(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
        optimizer.step()
    step = td.Run(run_dir).step(0)
    check_all(step, "gradient_before", before)
    assert "gradient_before/total_norm#2" not in step.scalars


def test_two_optimizers_have_their_own(run_dir):
    torch.manual_seed(0)
    one, other = small_model(), nn.Linear(6, 5)
    first = torch.optim.SGD(one.parameters(), lr=0.1)
    second = torch.optim.SGD(other.parameters(), lr=0.1)
    expected: list[dict[str, torch.Tensor]] = []
    with (
        td.watch(one, first, run_dir=run_dir, collect=COLLECTIONS, supervise=False),
        td.watch(other, second),
    ):
        for _ in range(2):
            backward(one)
            seen = gradients(one)
            torch.nn.utils.clip_grad_norm_(one.parameters(), 0.01)
            first.step()  # ends the step: what follows is in the next one
            expected.append(seen)
            other(torch.randn(3, 6)).square().sum().backward()
            seen_other = gradients(other)
            torch.nn.utils.clip_grad_value_(other.parameters(), 0.01)
            second.step()
            first.zero_grad()
            second.zero_grad()
            expected.append({f"Linear.{name}": value for name, value in seen_other.items()})
    run = td.Run(run_dir)
    check_all(run.step(0), "gradient_before", expected[0])
    check_all(run.step(1), "gradient_before", expected[1] | expected[2])


def halves(run_dir, **wishes):
    """One model of two parts, each with an optimizer of its own."""
    torch.manual_seed(3)
    model = nn.ModuleDict({"a": nn.Linear(6, 5), "b": nn.Linear(6, 4)})
    first = torch.optim.SGD(model["a"].parameters(), lr=0.1)
    second = torch.optim.SGD(model["b"].parameters(), lr=0.1)
    wishes = {"collect": COLLECTIONS} | wishes
    return model, first, second, td.watch(model, run_dir=run_dir, supervise=False, **wishes)


def test_two_optimizers_that_share_a_model_and_a_clip(run_dir):
    model, first, second, watcher = halves(run_dir)
    seen = []
    with watcher:
        for _ in range(3):
            x = torch.randn(7, 6)
            (model["a"](x).square().sum() + model["b"](x).square().sum()).backward()
            seen.append(gradients(model))
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            first.step()
            second.step()
            model.zero_grad()
    run = td.Run(run_dir)
    for step in (0, 1, 2):
        check_all(run.step(step), "gradient_before", seen[step])
    assert "gradient_before/total_norm" in run.step(0).scalars


@pytest.mark.parametrize("to_none", [True, False])
def test_two_backward_passes_and_clips_before_the_steps(run_dir, to_none):
    model, first, second, watcher = halves(run_dir)
    seen = []
    with watcher:
        for _ in range(2):
            for part in (model["a"], model["b"]):
                part(torch.randn(7, 6)).square().sum().backward()
                before = {n: p.grad.clone() for n, p in part.named_parameters()}
                seen.append((before, torch.nn.utils.clip_grad_norm_(part.parameters(), 0.01)))
            first.step()
            second.step()
            model.zero_grad(set_to_none=to_none)
    run = td.Run(run_dir)
    for step in (0, 1):
        of_a, of_b = seen[2 * step][0], seen[2 * step + 1][0]
        check_all(run.step(step), "gradient_before", {f"a.{n}": v for n, v in of_a.items()})
        check_all(run.step(step), "gradient_before", {f"b.{n}": v for n, v in of_b.items()})
    norms = run.scalars("gradient_before/total_norm").values
    assert norms[0] == pytest.approx(seen[0][1].item(), rel=1e-6)


def kept_by(recording) -> int:
    observer = recording._gradients
    return len(observer._kept) + len(observer._norms)


def test_a_closure_that_is_called_again_leaves_no_copies(run_dir):
    model = small_model()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    calls = []
    capture = [{"collection": name, "steps": [0, 1]} for name in COLLECTIONS]
    with td.watch(model, optimizer, run_dir=run_dir, capture=capture, supervise=False):

        def closure():
            optimizer.zero_grad()
            loss = model(torch.ones(7, 6)).square().mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            calls.append(kept_by(recordings.current))
            return loss

        for _ in range(4):
            optimizer.step(closure)
            assert kept_by(recordings.current) == 0
    assert any(calls)
    assert len(calls) > 4


def test_copies_that_nothing_will_take_are_dropped(run_dir, monkeypatch):
    model, first, _, watcher = halves(run_dir)
    with watcher:
        recording = recordings.current
        for part in model.values():
            part(torch.randn(7, 6)).square().sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        assert kept_by(recording) == 5
        recording._begin_step(0, _core.PLAN_CHANGED)  # the collection may be gone
        assert kept_by(recording) == 0

        first.step()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        assert kept_by(recording) == 5
        monkeypatch.setitem(guards.failures, "gradients before", guards.STRIKES)
        first.step()
        assert kept_by(recording) == 0


def test_whole_values_are_kept(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, raw=["gradients_before"], supervise=False):
        backward(model)
        before = gradients(model)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        optimizer.step()
    run = td.Run(run_dir)
    if "gradient_before/0.weight" in run and len(run["gradient_before/0.weight"].raw_steps()):
        assert (run["gradient_before/0.weight"].value(0) == before["0.weight"].numpy()).all()


def test_an_empty_generator_is_warned_of_as_ever(run_dir):
    model = small_model()
    with (
        td.watch(model, run_dir=run_dir, collect=COLLECTIONS, supervise=False),
        pytest.warns(UserWarning, match="empty generator"),
    ):
        torch.nn.utils.clip_grad_norm_((p for p in ()), 1.0)


@pytest.mark.parametrize("kind", ["norm", "value", "scaler"])
def test_no_bit_changes(kind, run_dir):
    def train(watched: bool) -> str:
        model = small_model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=2)
        watcher = None
        if watched:
            watcher = td.watch(
                model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False
            )
        for number in range(6):
            if kind == "scaler":
                factor = float("inf") if number == 2 else 1.0
                scaled_step(model, optimizer, scaler, unscale=number % 2 == 0, factor=factor)
                continue
            optimizer.zero_grad()
            backward(model)
            if kind == "norm":
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            else:
                torch.nn.utils.clip_grad_value_(model.parameters(), 0.01)
            optimizer.step()
        if watcher:
            watcher.detach()
        return trainings.fingerprint(model, [scaler.get_scale()])

    assert train(True) == train(False)


def test_everything_is_put_back(run_dir):
    names = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_")
    owners = (torch.nn.utils, sys.modules["torch.nn.utils.clip_grad"])
    originals = {(o, n): getattr(o, n) for o in owners for n in names if hasattr(o, n)}
    unscale = torch.amp.GradScaler.unscale_
    codes = [function.__code__ for function in originals.values()]
    with td.watch(small_model(), run_dir=run_dir, collect=COLLECTIONS, supervise=False):
        assert codes != [function.__code__ for function in originals.values()]
    assert codes == [function.__code__ for function in originals.values()]
    assert all(getattr(o, n) is original for (o, n), original in originals.items())
    assert torch.amp.GradScaler.unscale_ is unscale


ZERO_CODE = """
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
torch.manual_seed(0)
model = nn.Linear(3, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for clip in (clip_grad_norm_, clip_grad_value_):
    optimizer.zero_grad()
    model(torch.ones(4, 3)).square().sum().backward()
    clip(model.parameters(), 1e-3)
    optimizer.step()
"""


def test_without_a_change_of_the_script_imports_by_name_are_heard(run_dir, python):
    requirements, _ = _plan.wishes(COLLECTIONS, None, None, None, None)
    run_dir.mkdir()
    plan = _plan.make_plan(_core.plan_for_rules([]), requirements, [])
    (run_dir / "plan.json").write_text(plan, encoding="utf-8")
    done = python(ZERO_CODE, recorded=run_dir, TRAINDBG_STRICT="1")
    assert done.returncode == 0, done.stderr
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 1]
    for step in run.iter_steps():
        assert step.tensors["gradient/weight"].statistics.max <= 1e-3
        assert step.tensors["gradient_before/weight"].statistics.l2 > 0.1


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sparse_gradients_are_those_of_the_whole_tensor(run_dir, momentum):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    collect = (*COLLECTIONS, "optimizer_state")
    expected = []
    with td.watch(model, optimizer, run_dir=run_dir, collect=collect, supervise=False):
        for words in ([1, 2, 2], [1, 1, 7], range(10)):
            optimizer.zero_grad()
            model(torch.tensor(list(words))).square().sum().backward()
            gradient = model[0].weight.grad
            assert gradient.is_sparse
            was_coalesced = gradient.is_coalesced()
            expected.append({n: g.to_dense() for n, g in gradients(model).items()})
            optimizer.step()
            assert model[0].weight.grad.is_coalesced() == was_coalesced
    run = td.Run(run_dir)
    for number, seen in enumerate(expected):
        check_all(run.step(number), "gradient", seen)
        check_all(run.step(number), "gradient_before", seen)
    if momentum:
        assert len(run["optimizer_state/0.weight.momentum_buffer"].steps()) == 3


@pytest.mark.parametrize(
    "tensor",
    [
        torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), (3, 4)),
        torch.sparse_coo_tensor([[1, 1], [2, 2]], [2.0, 3.0], (3, 4)),
        torch.sparse_coo_tensor([[0, 1, 2]], [float("nan"), -1.0, float("inf")], (5,)),
        torch.sparse_coo_tensor([[0, 1]], [3, -4], (2,)),
        torch.sparse_coo_tensor([[0]], [[1.0, 2.0]], (1, 2)),
    ],
)
def test_sparse_tensors_that_are_saved(run_dir, tensor):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        td.save("sparse", tensor)
        backward(model)
        optimizer.step()
    found = td.Run(run_dir).step(0).tensors["custom/sparse"].statistics
    dense = tensor.to_dense().double()
    finite = dense[dense.isfinite()]
    assert found.count == dense.numel()
    assert found.nan == dense.isnan().sum()
    assert (found.zero, found.positive_infinite) == ((dense == 0).sum(), dense.isposinf().sum())
    assert (found.min, found.max) == (finite.min(), finite.max())
    assert found.mean == pytest.approx(finite.mean().item(), rel=1e-6)
    assert found.std == pytest.approx(finite.std(unbiased=False).item(), rel=1e-6)
    assert found.l1 == pytest.approx(finite.abs().sum().item(), rel=1e-6)
    assert found.l2 == pytest.approx(finite.norm().item(), rel=1e-6)


@pytest.fixture
def one_process(tmp_path):
    """A process group of this process alone."""
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("made_first", [True, False])
@pytest.mark.parametrize("unscale", [False, True])
def test_under_the_scaler_of_fsdp1(run_dir, one_process, unscale, made_first):
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

    originals = {name: vars(ShardedGradScaler)[name] for name in ("scale", "unscale_")}
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []

    def scaled(factor: float) -> torch.Tensor:
        loss = model(torch.randn(7, 6)).square().mean() * factor
        losses.append(loss.item())
        return scaler.scale(loss)

    def new_scaler():
        return ShardedGradScaler("cpu", init_scale=1024.0)

    scaler = new_scaler() if made_first else None
    expected = []
    with td.watch(
        model,
        optimizer,
        run_dir=run_dir,
        collect=COLLECTIONS,
        micro_batches="all",
        supervise=False,
    ):
        scaler = scaler or new_scaler()
        for factor in (1.0, float("inf"), 2.0):
            optimizer.zero_grad()
            scaled(factor).backward()
            before, scale = gradients(model), scaler.get_scale()
            if unscale:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            after = gradients(model) if unscale else {n: g / scale for n, g in before.items()}
            scaler.step(optimizer)
            scaler.update()
            expected.append((before, after, scale))
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 1]  # one was skipped, and is no micro-batch of the next one
    assert "loop/micro_batches" not in run.names()
    for number, (before, after, scale) in enumerate((expected[0], expected[2])):
        step = run.step(number)
        check_all(step, "gradient_before", before)
        check_all(step, "gradient", after)
        assert step.scalars["gradient_before/loss_scale"] == scale
    assert expected[2][2] == 512
    assert run.scalars("loss").values[0] == pytest.approx(losses[0])
    assert {name: vars(ShardedGradScaler)[name] for name in originals} == originals


def test_a_scaler_of_the_users_own_whose_class_is_younger_than_the_recording(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, collect=COLLECTIONS, supervise=False):

        class Own(torch.amp.GradScaler):
            def unscale_(self, optimizer, *, halve=False):
                with torch.no_grad():
                    for parameter in model.parameters():
                        parameter.grad *= 0.5 if halve else 1.0
                super().unscale_(optimizer)

        scaler, original = Own("cpu", init_scale=1024.0), Own.unscale_
        Own("cpu")
        assert Own.unscale_ is original
        scaler.scale(model(torch.randn(7, 6)).square().mean()).backward()
        before = gradients(model)
        scaler.unscale_(optimizer, halve=True)
        after = gradients(model)
        scaler.step(optimizer)
    step = td.Run(run_dir).step(0)
    check_all(step, "gradient_before", before)
    check_all(step, "gradient", after)
    assert step.scalars["gradient_before/loss_scale"] == 1024
    assert not hasattr(Own.unscale_, "__wrapped__")


def test_who_asks_for_more_between_clipping_and_the_step_changes_nothing(run_dir):
    model = small_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    largest = []
    with td.watch(model, run_dir=run_dir, rules=[], collect=COLLECTIONS, every=1, supervise=False):
        for step in range(3):
            optimizer.zero_grad()
            model(torch.ones(4, 6)).square().sum().backward()
            largest.append(max(p.grad.abs().max().item() for p in model.parameters()))
            torch.nn.utils.clip_grad_value_(model.parameters(), 1e-4)
            if step == 1:
                td.watch(model, collect="losses", every=1)
            optimizer.step()
    run = td.Run(run_dir)
    for step in range(3):
        found = [
            max(abs(sample.statistics.min), abs(sample.statistics.max))
            for name, sample in run.step(step).tensors.items()
            if name.startswith("gradient_before/")
        ]
        assert max(found) == pytest.approx(largest[step])
