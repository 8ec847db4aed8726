"""Probes: what they find, and that a training with them is the same bit for bit."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import traindbg as td
from traindbg.errors import InvalidArgument
from traindbg.hooks.torch.probes import apart as probe_children
from traindbg.hooks.torch.probes import probe as probes
from traindbg.hooks.torch.probes.apart import NotProbedError, apart
from traindbg.hooks.torch.probes.forward_pass import Passes, given, look_at
from traindbg.hooks.torch.probes.samples import Dealt, samples_of

FEATURES, CLASSES, BATCH = 12, 3, 6
calls_of_forward = 0
values_seen: dict[str, list[float]] = {"means": []}
generator_of_file = np.random.default_rng(3)


def table(n=48, *shape):
    g = torch.Generator().manual_seed(1)
    x = torch.randn(n, *(shape or (FEATURES,)), generator=g)
    return x, torch.randint(0, CLASSES, (n,), generator=g)


def loader(*tensors, **settings):
    return DataLoader(TensorDataset(*tensors), **{"batch_size": BATCH, "shuffle": True} | settings)


def mlp():
    return nn.Sequential(
        nn.Linear(FEATURES, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, CLASSES)
    )


class Counting(nn.Module):
    """Draws from every generator that there is, and counts in every place."""

    calls_of_class = 0

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(FEATURES, CLASSES)
        self.calls = 0
        self.seen: list[int] = []
        self.own = torch.Generator().manual_seed(5)
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        global calls_of_forward
        calls_of_forward += 1
        Counting.calls_of_class += 1
        self.calls += 1
        self.seen.append(len(x))
        self.steps += 1
        values_seen["means"].append(float(x.mean()))
        noise = random.random() + np.random.rand() + generator_of_file.random()
        noise += float(torch.rand(1)) + float(torch.rand(1, generator=self.own))
        td.log("noise", noise)
        return self.layer(x * (1 + 0.1 * noise))


class Letters(nn.Module):
    """Scores of the next letter by attention that is written out."""

    def __init__(self, is_causal=True, is_flat=False):
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.mix = nn.Linear(8, 24)
        self.head = nn.Linear(8, 9)
        self.is_causal, self.is_flat = is_causal, is_flat

    def forward(self, ids):
        q, k, v = self.mix(self.embed(ids)).chunk(3, -1)
        scores = torch.einsum("bqd,bkd->bqk", q, k)
        if self.is_causal:
            hidden = torch.ones(scores.shape[1:], dtype=torch.bool).triu(1)
            scores = torch.where(hidden, torch.full_like(scores, -1e9), scores)
        weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
        out = self.head(weights @ v)
        return out.flatten(0, 1) if self.is_flat else out


def letters(batch=BATCH, length=10):
    while True:
        ids = torch.randint(0, 9, (batch, length + 1))
        yield ids[:, :-1], ids[:, 1:]


class Training:
    """A training of one model, with all that it leaves."""

    def __init__(self, model, batches, loss=F.cross_entropy, *, steps=12, autocast=False, turns=1):
        self.model, self.batches, self.loss = model, batches, loss
        self.steps, self.autocast, self.turns = steps, autocast, turns
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        self.losses = []
        self.threads_before = set(threading.enumerate())

    def endless(self):
        while True:
            yield from self.batches

    def run(self):
        rows = self.endless()
        for _ in range(self.steps):
            self.optimizer.zero_grad()
            for _ in range(self.turns):
                x, y = next(rows)
                with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
                    loss = self.loss(self.model(x), y)
                loss.backward()
                self.losses.append(loss.item())
            self.optimizer.step()

    def left(self):
        return {
            "losses": self.losses,
            "model": {k: v.tolist() for k, v in self.model.state_dict().items()},
            "optimizer": repr(self.optimizer.state_dict()),
            "torch": torch.get_rng_state().tolist(),
            "random": random.getstate(),
            "numpy": repr(np.random.get_state()),
            "file": repr(generator_of_file.bit_generator.state),
            "modes": [module.training for module in self.model.modules()],
            "counts": (calls_of_forward, Counting.calls_of_class, dict(values_seen)),
            "own": [
                (module.calls, list(module.seen), module.own.get_state().tolist())
                for module in self.model.modules()
                if isinstance(module, Counting)
            ],
            "gradients": [p.grad.tolist() for p in self.model.parameters()],
            "grad mode": torch.is_grad_enabled(),
            "threads": self.threads_left(),
        }

    def threads_left(self):
        """Threads that the training began and that do not end: a loader's end a while after it."""
        end = time.monotonic() + 10
        while set(threading.enumerate()) - self.threads_before and time.monotonic() < end:
            time.sleep(0.01)
        return [thread.name for thread in set(threading.enumerate()) - self.threads_before]


def began(seeded):
    global calls_of_forward
    seeded(4)
    calls_of_forward = Counting.calls_of_class = 0
    values_seen["means"] = []
    generator_of_file.bit_generator.state = np.random.default_rng(3).bit_generator.state


def watched(training, run_dir, probe=True, **options):
    options = {"supervise": False, "probe": probe} | options
    with td.watch(training.model, training.optimizer, run_dir=run_dir, **options):
        training.run()
    return td.Run(run_dir)


def fact(run, name):
    """Steps and values of a fact, and its places."""
    found = {n: run.scalars(n) for n in run.names() if n.split("/")[:2] == ["loop", name]}
    told = sorted(
        (step, value)
        for steps, values in found.values()
        for step, value in zip(steps.tolist(), values.tolist(), strict=True)
    )
    return told, {n.partition(f"loop/{name}")[2].strip("/") for n in found}


def told(run):
    """Why it was not probed."""
    return [e["data"]["reason"] for e in run.events if "probes of" in str(e["data"].get("what"))]


def hooked():
    model = mlp()
    model.count = []

    def note(module, args, output):
        model.count.append(output.shape)
        return output * 1.5

    model[0].register_forward_hook(note)
    model[3].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return Training(model, loader(*table()))


TRAININGS = {
    "dropout": lambda: Training(mlp(), loader(*table())),
    "batch norm": lambda: Training(
        nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(CLASSES)
        ),
        loader(*table(48, 1, 7, 7)),
    ),
    "counters and other random numbers": lambda: Training(Counting(), loader(*table())),
    "autocast": lambda: Training(mlp(), loader(*table()), autocast=True),
    "accumulation": lambda: Training(mlp(), loader(*table()), turns=3),
    "workers": lambda: Training(mlp(), loader(*table(), num_workers=2)),
    "hooks": hooked,
    "letters": lambda: Training(
        Letters(), letters(), lambda out, y: F.cross_entropy(out.flatten(0, 1), y.flatten())
    ),
    "recurrent": lambda: Training(
        nn.Sequential(nn.LSTM(5, 8, batch_first=True), Last(), nn.Linear(8, CLASSES)),
        loader(*table(48, 7, 5)),
    ),
    "weight norm of old": lambda: Training(
        nn.Sequential(old_weight_norm(nn.Linear(FEATURES, 16)), nn.Tanh(), nn.Linear(16, CLASSES)),
        loader(*table()),
    ),
    "parametrized": lambda: Training(
        nn.Sequential(
            nn.utils.parametrizations.spectral_norm(nn.Linear(FEATURES, 16)),
            nn.Tanh(),
            nn.Linear(16, CLASSES),
        ),
        loader(*table()),
    ),
}


class Last(nn.Module):
    """The last position of a recurrent layer."""

    def forward(self, given):
        return given[0][:, -1]


def old_weight_norm(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.utils.weight_norm(module)


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_with_probes_is_the_same_bit_for_bit(name, run_dir, seeded):
    left = []
    for probe in (None, True):
        began(seeded)
        training = TRAININGS[name]()
        if name == "batch norm":
            training.model(torch.zeros(2, 1, 7, 7))
            training.optimizer = torch.optim.Adam(training.model.parameters(), lr=1e-2)
        if probe is None:
            training.run()
        else:
            run = watched(training, run_dir)
        left.append(training.left())
        if name == "hooks":
            left[-1]["hooks"] = list(training.model.count)
    assert left[0] == left[1]
    probed = fact(run, "earlier_changed" if name == "letters" else "samples_mixed")[0]
    assert probed, (told(run), run.names())
    assert probed[0] == (1, 0.0)
    if name.startswith("counters"):
        assert len(run.scalars("metric/noise").steps) == training.steps


def test_a_game_of_two_models_is_left_alone(run_dir, seeded):
    left = []
    for probe in (None, True):
        seeded(2)
        maker, judge = nn.Linear(2, FEATURES), nn.Sequential(nn.Linear(FEATURES, 1), nn.Flatten(0))
        optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (maker, judge)]
        watchers = []
        if probe:
            for model, optimizer in zip((maker, judge), optimizers, strict=True):
                joins = {} if model is judge else {"probe": probe}
                options = {"run_dir": run_dir, "supervise": False}
                watchers.append(td.watch(model, optimizer, **options, **joins))
        for _ in range(4):
            for x, _ in loader(*table()):
                made = maker(torch.randn(BATCH, 2))
                loss = F.binary_cross_entropy_with_logits(judge(x), torch.ones(BATCH))
                loss = loss + F.binary_cross_entropy_with_logits(
                    judge(made.detach()), torch.zeros(BATCH)
                )
                optimizers[1].zero_grad()
                loss.backward()
                optimizers[1].step()
                loss = F.binary_cross_entropy_with_logits(judge(made), torch.ones(BATCH))
                optimizers[0].zero_grad()
                loss.backward()
                optimizers[0].step()
        for watcher in watchers:
            watcher.detach()
        left.append([p.tolist() for m in (maker, judge) for p in m.parameters()])
    assert left[0] == left[1]
    assert fact(td.Run(run_dir), "samples_mixed")[0] == []


# What probes find.


class Mixing(nn.Module):
    """`mix(h)` is in the middle of a net of two layers."""

    def __init__(self, mix):
        super().__init__()
        self.first = nn.Linear(FEATURES, 16)
        self.mix = mix
        self.last = nn.Linear(16, CLASSES)

    def forward(self, x):
        return self.last(self.mix(self.first(x).tanh()))


class Sequence(nn.Module):
    """`part` is given [batch, positions, features]."""

    def __init__(self, part):
        super().__init__()
        self.part = part
        self.last = nn.Linear(8, CLASSES)

    def forward(self, x):
        h = self.part(x, x, x) if isinstance(self.part, nn.MultiheadAttention) else self.part(x)
        return self.last((h[0] if isinstance(h, tuple) else h).mean(1))


class Turned(nn.Module):
    """Positions first for an encoder that wants them so."""

    def __init__(self, is_right):
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1)
        self.last = nn.Linear(8, CLASSES)
        self.is_right = is_right

    def forward(self, x):
        batch, length, width = x.shape
        h = x.transpose(0, 1) if self.is_right else x.view(length, batch, width)
        return self.last(self.encoder(h).mean(0))


def standardised(dim):
    return lambda h: (h - h.mean(dim, keepdim=True)) / h.std(dim, keepdim=True)


MIXED = {
    "softmax": (lambda ok: Mixing(lambda h: h * h.softmax(1 if ok else 0)), (), "last"),
    "mean": (lambda ok: Mixing(standardised(1 if ok else 0)), (), "last"),
    "attention": (
        lambda ok: Sequence(nn.MultiheadAttention(8, 2, batch_first=ok)), (5, 8), "part",
    ),
    "recurrent": (lambda ok: Sequence(nn.GRU(8, 8, batch_first=ok)), (5, 8), "part"),
    "view": (Turned, (5, 8), "encoder.self_attn"),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("is_right", [False, True])
def test_samples_that_see_each_other_are_found(name, is_right, run_dir, seeded):
    seeded()
    make, shape, place = MIXED[name]
    run = watched(Training(make(is_right), loader(*table(48, *shape))), run_dir)
    found, places = fact(run, "samples_mixed")
    if is_right:
        assert found[0] == (1, 0.0)
        assert places == {""}
    else:
        assert [step for step, _ in found[:2]] == [1, 2]
        assert all(share >= 0.5 for _, share in found[:2])
        assert places == {place}


@pytest.mark.parametrize("is_flat", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("batch", [BATCH, 10])  # 10: as many as positions
def test_positions_that_see_later_ones_are_found(is_causal, is_flat, batch, run_dir, seeded):
    seeded()
    training = Training(
        Letters(is_causal, is_flat),
        letters(batch),
        lambda out, y: F.cross_entropy(out.reshape(-1, 9), y.flatten()),
    )
    found, places = fact(watched(training, run_dir), "earlier_changed")
    if is_causal:
        assert found[0] == (1, 0.0)
        assert places == {""}
    else:
        assert [step for step, _ in found[:2]] == [1, 2]
        assert all(share >= 0.5 for _, share in found[:2])
        assert places == {"head"}


def test_rows_that_are_dealt_by_hand_are_known_once_they_come_again(run_dir, seeded):
    seeded()
    x, y = table()

    def batches():
        while True:
            for rows in torch.randperm(len(x)).split(BATCH):
                yield x[rows], y[rows]

    mixing = Mixing(lambda h: h - h.mean(0))
    found, _ = fact(watched(Training(mixing, batches(), steps=40), run_dir), "samples_mixed")
    assert found
    assert found[0][0] >= 6  # one pass over the data
    assert all(share >= 0.5 for _, share in found)


def test_dealt_anew_is_what_comes_apart():
    dealt = Dealt()
    for _ in range(5):
        dealt.learn([("a", n) for n in range(8)])  # all at once, each time
        dealt.learn([("b", n) for n in range(8)])
    assert not dealt.is_anew
    for name in "cd":
        dealt.learn([(name, n) for n in range(8)])
    dealt.learn([(name, n) for name in "abcd" for n in range(2)])
    assert dealt.is_anew


# Where it is not certain, or not possible.


def quantised(h):
    step = h.abs().max() / 7  # of all samples
    return torch.round(h / step) * step


def test_steps_of_the_range_of_a_batch_are_meant(run_dir, seeded):
    seeded()
    run = watched(Training(Mixing(quantised), loader(*table())), run_dir)
    assert all(share == 0 for _, share in fact(run, "samples_mixed")[0])


def always(number):
    return True


@pytest.mark.parametrize(
    ("tensors", "targets", "is_dealt", "number"),
    [
        ([torch.zeros(8, 5)], [torch.ones(8)], always, 8),
        ([torch.zeros(8, 5)], [torch.ones(8)], lambda n: False, 0),
        ([torch.zeros(8, 5)], [torch.arange(8)], always, 0),  # numbers of the samples: contrastive
        ([torch.zeros(8, 5)], [torch.ones(6)], always, 0),  # of something else
        ([torch.zeros(8, 8)], [torch.ones(8)], always, 0),  # it may be the other way round
        ([torch.zeros(8, 5), torch.zeros(8, 8)], [torch.ones(8)], always, 0),  # adjacency
        ([torch.zeros(8, 5), torch.zeros(2, 9).long()], [torch.ones(8)], always, 0),  # edges
        ([torch.zeros(3, 5)], [torch.ones(3)], always, 0),
        ([torch.zeros(8, 5)], [], always, 0),
        ([], [torch.ones(8)], always, 0),
    ],
)
def test_samples_are_known_for_certain_or_not_at_all(tensors, targets, is_dealt, number):
    assert samples_of(mlp(), tensors, targets, is_dealt) == number


def test_a_norm_that_always_takes_the_batch_is_not_asked():
    model = nn.Sequential(nn.Linear(5, 5), nn.BatchNorm1d(5, track_running_stats=False))
    assert samples_of(model, [torch.zeros(8, 5)], [torch.ones(8)], always) == 0


@pytest.mark.parametrize("settings", [{"shuffle": False}, {"batch_size": 48}])
def test_batches_that_are_always_the_same_are_not_asked(settings, run_dir, seeded):
    seeded()
    mixing = Mixing(lambda h: h - h.mean(0))
    batches = [next(iter(loader(*table(), **settings | {"shuffle": False})))]
    assert fact(watched(Training(mixing, batches), run_dir), "samples_mixed")[0] == []


class Lasting(nn.Module):
    """Takes an hour in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(FEATURES, CLASSES)

    def forward(self, x):
        if not self.training:
            time.sleep(3600)
        return self.layer(x)


class Ending(Lasting):
    def forward(self, x):
        if not self.training:
            os.abort()
        return self.layer(x)


def shared():
    model = mlp()
    model[0].weight.data.share_memory_()
    return model


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (Lasting, "it takes more than 0.5 seconds"),
        (Ending, "its process ended without an answer"),
        (shared, "it has a tensor that processes share"),
    ],
)
def test_what_cannot_be_probed_is_told_once_and_trains_the_same(
    make, why, run_dir, seeded, capfd, monkeypatch
):
    monkeypatch.setattr(probe_children, "_LONGEST", 0.5)
    left = []
    for probe in (None, True):
        began(seeded)
        training = Training(make(), loader(*table()))
        if probe:
            run = watched(training, run_dir)
        else:
            training.run()
        left.append(training.left())
    assert left[0] == left[1]
    assert len(told(run)) == 1
    assert why in told(run)[0]
    assert capfd.readouterr().err.count("what probes of") == 1
    assert fact(run, "samples_mixed")[0] == []


def test_an_error_in_evaluation_mode_is_told_and_not_raised(run_dir, seeded):
    class OnlyTrains(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(FEATURES, CLASSES)

        def forward(self, x):
            if not self.training:
                raise ValueError("never evaluated")
            return self.layer(x)

    seeded()
    run = watched(Training(OnlyTrains(), loader(*table())), run_dir)
    assert told(run) == ["ValueError: never evaluated"]
    assert torch.is_grad_enabled()
    assert run.scalars("loss/cross_entropy").steps.tolist() == list(range(12))


def test_hooks_of_the_user_and_global_ones_are_not_called():
    model = mlp()
    heard = []
    model.register_forward_hook(lambda *_: heard.append(1))
    handle = nn.modules.module.register_module_forward_hook(lambda *_: heard.append(2))
    try:
        held = given((torch.randn(8, FEATURES),), {})

        def work():
            Passes(model, held).outputs()
            return {"heard": len(heard)}

        assert apart(work) == {"heard": 0}
        model(torch.randn(2, FEATURES))
    finally:
        handle.remove()
    assert 1 in heard
    assert 2 in heard


seen_so_far = {"ema": torch.zeros(FEATURES), "array": np.zeros(3)}


class Meter:
    count = 0
    total = torch.zeros(())


meter = Meter()


class WritesOutside(nn.Module):
    """Counts in whatever there is: tensors of a dictionary or class, views, arrays, objects."""

    kept = torch.zeros(FEATURES)

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(FEATURES, CLASSES)

    def forward(self, x):
        seen_so_far["ema"].mul_(0.9).add_(x.detach().mean(0))
        seen_so_far["ema"][0] += 1
        seen_so_far["array"][1] += 1
        self.kept.data.add_(1)
        meter.count += 1
        Meter.total += x.detach().sum()
        print("forward", flush=True)
        return self.layer(x + 0.01 * seen_so_far["ema"] + 0.001 * Meter.total)


def test_what_a_forward_counts_elsewhere_is_not_counted_twice(run_dir, seeded, capfd):
    left, printed = [], []
    for probe in (None, True):
        began(seeded)
        seen_so_far.update(ema=torch.zeros(FEATURES), array=np.zeros(3))
        meter.count, Meter.total, WritesOutside.kept = 0, torch.zeros(()), torch.zeros(FEATURES)
        training = Training(WritesOutside(), loader(*table()))
        if probe:
            run = watched(training, run_dir)
        else:
            training.run()
        counted = (seen_so_far["ema"].tolist(), seen_so_far["array"].tolist(), meter.count)
        left.append((training.left(), counted, Meter.total.item(), WritesOutside.kept.tolist()))
        printed.append(capfd.readouterr().out.count("forward"))
    assert left[0] == left[1]
    assert printed == [12, 12]
    assert told(run) == [] or fact(run, "samples_mixed")[0] == []


def test_signals_of_the_training_are_not_handled_twice():
    heard = []
    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(os.getpid()))

    def work():
        is_plain = signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
        return {"plain": is_plain, "blocked": len(signal.pthread_sigmask(signal.SIG_BLOCK, []))}

    try:
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
        assert apart(work) == {"plain": True, "blocked": 0}
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask
        os.kill(os.getpid(), signal.SIGUSR1)
        assert heard == [os.getpid()]
    finally:
        signal.signal(signal.SIGUSR1, before)


def children() -> list[str]:
    """Processes that this one has started, those that have ended and were not waited for, too."""
    lists = Path("/proc/self/task").glob("*/children")
    return sorted(child for each in lists for child in each.read_text().split())


def test_no_child_is_left_and_no_file():
    files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    before = children()

    def fails():
        raise ValueError("why not")

    for _ in range(3):
        assert apart(lambda: {"one": 1}) == {"one": 1}
        with pytest.raises(NotProbedError, match="ValueError: why not"):
            apart(fails)
    assert children() == before
    assert len(os.listdir("/proc/self/fd")) == files
    assert threading.active_count() == threads


def test_models_that_are_spread_are_not_asked():
    class Spread(nn.DataParallel):
        pass

    with pytest.raises(NotProbedError, match="a Spread is in it"):
        look_at(nn.Sequential(Spread(mlp())))
    with pytest.raises(NotProbedError, match="tensor on meta: probes are made on the CPU"):
        look_at(nn.Linear(2, 2, device="meta"))
    look_at(mlp())


def test_inputs_that_cannot_be_asked_are_not_held():
    with torch.inference_mode():
        x = torch.randn(8, FEATURES)
    assert given((x,), {}) is None


def test_an_input_that_was_written_to_is_not_probed(run_dir, seeded):
    seeded()

    def loss(out, y):
        given_last[-1].zero_()  # a buffer that is filled anew, say
        return F.cross_entropy(out, y)

    given_last = []

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(FEATURES, CLASSES)

        def forward(self, x):
            given_last.append(x)
            return self.layer(x.clone())

    training = Training(Keeps(), loader(*table()), loss)
    assert fact(watched(training, run_dir), "samples_mixed")[0] == []


# When.


def test_off_means_that_nothing_is_held_or_copied(run_dir, seeded, monkeypatch):
    def never(*_):
        raise AssertionError

    for where, name in (
        (probes, "given"),
        (probes, "apart"),
        (probes.Probes, "input_given"),
    ):
        monkeypatch.setattr(where, name, never)
    seeded()
    for probe, directory in ((None, "a"), (False, "b")):
        run = watched(Training(mlp(), loader(*table())), run_dir / directory, probe)
        assert fact(run, "samples_mixed")[0] == []
        assert told(run) == []


def test_the_next_probe_waits_for_a_hundred_times_what_one_took(run_dir, seeded, monkeypatch):
    made = []
    now = [0.0]

    def takes_two_seconds(_):
        made.append(now[0])
        now[0] += 2.0
        return {}

    monkeypatch.setattr(probes, "apart", takes_two_seconds)

    class Clock:
        @staticmethod
        def perf_counter():
            return now[0]

    monkeypatch.setattr(probes, "time", Clock)
    seeded()

    def loss(out, y):
        now[0] += 20.0
        return F.cross_entropy(out, y)

    training = Training(mlp(), loader(*table()), loss, steps=60)
    watched(training, run_dir)
    assert made[0] == 40.0  # the second step
    assert len(made) >= 2
    assert all(later - one >= 200.0 for one, later in itertools.pairwise(made))


def test_nothing_is_kept_when_the_probe_is_over(run_dir, seeded):
    seeded()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, probe=True):
        for _ in range(2):
            for x, y in loader(*table()):
                kept.append(weakref.ref(x))
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                optimizer.zero_grad()
        del x, y
        assert [ref() for ref in kept if ref() is not None] == []
    assert fact(td.Run(run_dir), "samples_mixed")[0]


def test_probe_is_true_or_false(run_dir):
    with pytest.raises(InvalidArgument, match="probe='yes'"):
        td.watch(mlp(), run_dir=run_dir, probe="yes", supervise=False)
