"""traindbg's callback for Lightning."""

from __future__ import annotations

import lightning
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.integrations.lightning import Callback

pytestmark = pytest.mark.filterwarnings("ignore")


class Net(lightning.LightningModule):
    def __init__(self, optimizers: int = 1, bad_step: int | None = None) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))
        self.other = nn.Linear(3, 1)
        self.automatic_optimization = optimizers == 1
        self.bad_step = bad_step

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.body(x), y)
        self.log("train_loss", loss)
        self.log("note", 1.0)
        if self.global_step == self.bad_step:
            raise ValueError("bad batch")
        if self.automatic_optimization:
            return loss
        first, second = self.optimizers()
        first.zero_grad()
        self.manual_backward(loss)
        first.step()
        second.zero_grad()
        self.manual_backward(self.other(self.body(x).detach()).square().mean())
        second.step()
        return None

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self.body(x), y))

    def configure_optimizers(self):
        if self.automatic_optimization:
            return torch.optim.Adam(self.parameters(), lr=0.01)
        return [
            torch.optim.SGD(self.body.parameters(), lr=0.1),
            torch.optim.Adam(self.other.parameters(), lr=0.1),
        ]


def fit(net: Net, *callbacks, epochs: int = 2, **options) -> lightning.Trainer:
    lightning.seed_everything(1, verbose=False)
    for parameter in net.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    data = TensorDataset(torch.randn(48, 6), torch.randint(0, 3, (48,)))
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=epochs,
        callbacks=list(callbacks),
        log_every_n_steps=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    trainer.fit(net, DataLoader(data, 8, shuffle=True), DataLoader(data, 16))
    return trainer


def watching(run_dir, **more) -> Callback:
    return Callback(run_dir=run_dir, supervise=False, **more)


def test_a_fit_is_a_run_with_its_metrics(run_dir):
    callback = watching(run_dir, every=1)
    trainer = fit(Net(), callback, accumulate_grad_batches=2, gradient_clip_val=0.01)
    assert trainer.global_step == 6
    assert callback.watcher is None
    assert recordings.current is None
    run = td.Run(run_dir)
    assert run.is_complete
    assert run.steps().tolist() == list(range(6))
    assert run.worker_meta()["model_type"] == "Net"
    # Two of the sanity check, three of each validation.
    assert run.scalars("loss/cross_entropy", "eval").steps.size == 2 + 2 * 3
    assert run.scalars("metric/val_loss", "eval").values.size == 2
    last = run.scalars("metric/val_loss", "eval").values[-1]
    assert last == pytest.approx(float(trainer.callback_metrics["val_loss"]))
    assert run.scalars("metric/train_loss").values.size >= 2
    assert run.scalars("metric/note").values.tolist() == [1.0]  # it never changes
    # Its module is never called, and neither are evaluations taken for steps.
    assert run["output/body.0"].steps().tolist() == list(range(6))
    for step in range(6):
        norms = [run[name].values("l2")[step] for name in run.names("^gradient/body")]
        assert sum(norm**2 for norm in norms) ** 0.5 <= 0.01 * 1.001


class Coder(Net):
    """Its validations call the module, its training only the parts."""

    def forward(self, x):
        return self.body(x)

    def validation_step(self, batch, index):
        x, y = batch
        self.log("val_loss", F.cross_entropy(self(x), y))


def test_parts_are_seen_from_the_first_step_on_although_validations_call_the_module(run_dir):
    fit(Coder(), watching(run_dir, every=1))
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(12))
    assert run["output/body.0"].steps().tolist() == list(range(12))


@pytest.mark.parametrize("optimizers", [1, 2])
def test_a_watched_fit_trains_the_same(optimizers, run_dir):
    def weights(*callbacks):
        net = Net(optimizers)
        fit(net, *callbacks)
        return [*net.state_dict().values(), torch.get_rng_state()]

    without, watched = weights(), weights(watching(run_dir, every=1))
    assert all(torch.equal(a, b) for a, b in zip(without, watched, strict=True))
    run = td.Run(run_dir)
    assert len(run.worker_meta()["optimizers"]) == optimizers
    # Of two, the last step of the second one comes after the first one's last.
    assert len(run.steps()) == (12 if optimizers == 1 else 13)


def test_what_fit_raises_is_recorded_once_and_ends_the_run(run_dir):
    with pytest.raises(ValueError, match="bad batch"):
        fit(Net(bad_step=5), watching(run_dir))
    assert recordings.current is None
    run = td.Run(run_dir)
    assert run.is_complete
    errors = [event["data"] for event in run.events if event["kind"] == "exception"]
    assert [(e["type"], e["message"], e["step"]) for e in errors] == [
        ("ValueError", "bad batch", 5)
    ]


def test_what_the_first_forward_pass_raises_is_recorded_and_keeps_the_flight(run_dir):
    class Wrong(Net):
        def training_step(self, batch, index):
            return self.other(self.body[0](batch[0])).sum()

        def validation_step(self, batch, index):
            pass

    with pytest.raises(RuntimeError, match="shapes"):
        fit(Wrong(), watching(run_dir, flight_recorder=5))
    run = td.Run(run_dir)
    errors = [event["data"] for event in run.events if event["kind"] == "exception"]
    assert [(e["type"], e["step"]) for e in errors] == [("RuntimeError", 0)]
    assert any("RuntimeError" in str(event["data"]) for event in run.events)
    assert run.flight is not None


def test_a_recording_that_is_there_is_joined_and_left_open(run_dir):
    net = Net()
    with td.watch(net, run_dir=run_dir, supervise=False) as watcher:
        fit(net, Callback(), epochs=1)
        assert watcher.is_active
        fit(net, Callback(), epochs=1)
        assert watcher.is_active
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(12))
    assert run.scalars("metric/val_loss", "eval").values.size == 2


def test_two_fits_with_one_callback_are_two_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINDBG_RUNS", str(tmp_path))
    callback = Callback(supervise=False)
    for _ in range(2):
        fit(Net(), callback, epochs=1)
    assert [run.steps().size for run in td.runs(tmp_path)] == [6, 6]


def test_a_wrong_argument_is_told_at_once(run_dir):
    with pytest.raises(td.TraindbgError, match="no_such_rule"):
        fit(Net(), watching(run_dir, rules=["no_such_rule"]))
