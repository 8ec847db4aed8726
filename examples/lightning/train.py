"""Train a small network on scikit-learn's handwritten digits with Lightning.

    traindbg run -- python examples/lightning/train.py
    python examples/lightning/train.py --callback

Nothing is downloaded. The last line is a hash of all weights: the same in every way of starting it.
"""

from __future__ import annotations

import argparse
import hashlib

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Digits(lightning.LightningModule):
    """(n, 64) pixels to (n, 10) logits."""

    def __init__(self, learning_rate: float) -> None:
        super().__init__()
        self.learning_rate = learning_rate
        self.body = nn.Sequential(
            nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 32), nn.ReLU()
        )
        self.head = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))

    def training_step(self, batch, index):
        images, labels = batch
        loss = F.cross_entropy(self(images), labels)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, index):
        images, labels = batch
        logits = self(images)
        self.log("val_loss", F.cross_entropy(logits, labels))
        self.log("val_accuracy", (logits.argmax(1) == labels).float().mean())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.learning_rate, momentum=0.9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--accumulate", type=int, default=1, help="batches per step")
    parser.add_argument("--clip", type=float, help="norm that gradients are clipped to")
    parser.add_argument("--precision", default="32-true", help="as Lightning's Trainer takes it")
    parser.add_argument("--callback", action="store_true", help="record without traindbg run")
    arguments = parser.parse_args()
    lightning.seed_everything(0, verbose=False)
    torch.set_num_threads(1)

    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    labels = torch.tensor(digits.target)
    training = DataLoader(TensorDataset(images[:1400], labels[:1400]), 32, shuffle=True)
    validation = DataLoader(TensorDataset(images[1400:], labels[1400:]), 256)

    callbacks = [EarlyStopping("val_loss", patience=3, check_finite=False)]
    if arguments.callback:
        from traindbg.integrations.lightning import Callback

        callbacks.append(Callback(collect="gradients", every=10))
    model = Digits(arguments.learning_rate)
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_epochs=arguments.epochs,
        accumulate_grad_batches=arguments.accumulate,
        gradient_clip_val=arguments.clip,
        precision=arguments.precision,
        callbacks=callbacks,
        log_every_n_steps=10,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    try:
        trainer.fit(model, training, validation)
    finally:
        print(f"steps {trainer.global_step}, {trainer.state.status}", flush=True)
    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    print(f"accuracy {trainer.callback_metrics['val_accuracy']:.3f}")
    print(f"weights {hashlib.sha256(weights).hexdigest()}")


if __name__ == "__main__":
    main()
