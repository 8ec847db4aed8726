"""traindbg's callback for the Trainer of transformers."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.integrations.transformers import Callback

pytestmark = pytest.mark.filterwarnings("ignore")


class Rows(torch.utils.data.Dataset):
    def __init__(self, size: int) -> None:
        generator = torch.Generator().manual_seed(2)
        self.words = torch.randint(0, 20, (size, 6), generator=generator)

    def __len__(self) -> int:
        return len(self.words)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.words[index], "labels": self.words[index, 0] % 3}


def train(out, *callbacks, **options):
    torch.manual_seed(0)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=20,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=8,
            num_labels=3,
        )
    )
    arguments = TrainingArguments(
        str(out),
        max_steps=6,
        per_device_train_batch_size=8,
        eval_strategy="steps",
        eval_steps=3,
        logging_steps=2,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        **options,
    )
    rows = Rows(64), Rows(16)
    trainer = Trainer(
        model, arguments, train_dataset=rows[0], eval_dataset=rows[1], callbacks=list(callbacks)
    )
    trainer.train()
    return trainer


def test_a_training_is_a_run_with_its_metrics(run_dir, tmp_path):
    callback = Callback(run_dir=run_dir, supervise=False, every=1)
    options = {"gradient_accumulation_steps": 2, "max_grad_norm": 0.01}
    trainer = train(tmp_path / "out", callback, **options)
    assert callback.watcher is None
    assert recordings.current is None
    run = td.Run(run_dir)
    assert run.is_complete
    assert run.steps().tolist() == list(range(6))
    assert run.worker_meta()["model_type"] == "BertForSequenceClassification"
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert [entry["step"] for entry in logged] == [2, 4, 6]
    losses = [entry["loss"] for entry in logged]
    # Each is known when its step has ended; there is none after the last one.
    assert run.scalars("metric/loss").steps.tolist() == [2, 4]
    assert run.scalars("metric/loss").values.tolist() == pytest.approx(losses[:2])
    assert run.scalars("metric/loss", "eval").values.tolist() == pytest.approx(losses[2:])
    evaluated = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
    assert run.scalars("metric/eval_loss", "eval").values.tolist() == pytest.approx(evaluated)
    assert not run.names("runtime$", role="metric") or "metric/train_runtime" not in run
    first = [run[name].values("l2")[0] for name in run.names("^gradient/")]
    assert sum(norm**2 for norm in first) ** 0.5 == pytest.approx(0.01, rel=1e-3)


def test_the_loss_with_smoothed_labels_is_one_of_evaluations_too(run_dir, tmp_path):
    options = {"label_smoothing_factor": 0.1, "gradient_accumulation_steps": 2}
    trainer = train(tmp_path / "out", Callback(run_dir=run_dir, supervise=False), **options)
    run = td.Run(run_dir)
    evaluated = run.scalars("loss/label_smoother", "eval").values
    assert evaluated.size == 2 * 2  # batches of eight
    wanted = [entry["eval_loss"] for entry in trainer.state.log_history if "eval_loss" in entry]
    assert evaluated.reshape(2, 2).mean(axis=1).tolist() == pytest.approx(wanted, rel=1e-3)
    trained = run.scalars("loss/label_smoother").values
    assert trained.tolist() == pytest.approx([evaluated[0]] * 6, rel=0.2)
    from transformers.trainer_pt_utils import LabelSmoother

    assert not hasattr(LabelSmoother.__call__, "__wrapped__")  # put back


def test_a_watched_training_trains_the_same(run_dir, tmp_path):
    def weights(*callbacks):
        model = train(tmp_path / "out", *callbacks).model
        return [*model.state_dict().values(), torch.get_rng_state()]

    without = weights()
    watched = weights(Callback(run_dir=run_dir, supervise=False, every=1))
    assert all(torch.equal(a, b) for a, b in zip(without, watched, strict=True))


def test_a_recording_that_is_there_is_joined_and_left_open(run_dir, tmp_path):
    other = torch.nn.Linear(2, 2)
    with td.watch(other, run_dir=run_dir, supervise=False) as watcher:
        train(tmp_path / "out", Callback())
        assert watcher.is_active
        recordings.current.close()
    assert td.Run(run_dir).steps().tolist() == list(range(6))
