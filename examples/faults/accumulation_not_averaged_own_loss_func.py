"""A small network names crop patterns with the transformers Trainer; the loss function of their
own averages each micro-batch, and 8 of them are added up.

They passed a label-smoothed loss as compute_loss_func to the Trainer, with 8 accumulation steps.
The Trainer then leaves the division to that function, which is given num_items_in_batch for it.
It ignored that argument, so the gradient is eight times too large. The place is the loss.
"""

import logging
import tempfile

import numpy as np
import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loss", "loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
logging.getLogger("transformers").setLevel(logging.ERROR)

PATTERNS = ("rows", "columns", "rings", "checks", "patches")


def draw_field(kind: int, r: np.random.Generator, size: int = 24) -> np.ndarray:
    yy, xx = np.mgrid[0:size, 0:size].astype(np.float32)
    step, phase, tilt = r.uniform(4, 7), r.uniform(0, 6.28), r.normal(0, 0.15)
    along, across = yy + tilt * xx, xx + tilt * yy
    wave = 2 * np.pi / step
    cy, cx = r.uniform(4, size - 4, 2)
    if PATTERNS[kind] == "rows":
        field = np.sin(wave * along + phase)
    elif PATTERNS[kind] == "columns":
        field = np.sin(wave * across + phase)
    elif PATTERNS[kind] == "rings":
        field = np.sin(wave * np.hypot(yy - cy, xx - cx) + phase)
    elif PATTERNS[kind] == "checks":
        field = np.sign(np.sin(wave * along + phase) * np.sin(wave * across))
    else:
        field = np.repeat(np.repeat(r.normal(0, 1, (6, 6)), 4, 0), 4, 1)
    return (field + r.normal(0, 1.3, (size, size))).astype(np.float32)


class FieldDataset(Dataset):
    def __init__(self, n: int, r: np.random.Generator):
        self.labels = r.integers(0, len(PATTERNS), n)
        self.pixels = np.stack([draw_field(kind, r) for kind in self.labels])[:, None]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict:
        return {
            "pixel_values": torch.from_numpy(self.pixels[index]),
            "labels": int(self.labels[index]),
        }


class FieldNet(nn.Module):
    def __init__(self, channels: int = 16):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, channels, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(2 * channels, 2 * channels, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(8 * channels, len(PATTERNS))

    def forward(self, pixel_values: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        return {"logits": self.classifier(self.body(pixel_values))}


def smoothed_loss(outputs, labels: Tensor, num_items_in_batch: Tensor | None = None) -> Tensor:
    total = nn.functional.cross_entropy(
        outputs["logits"], labels, label_smoothing=0.05, reduction="sum"
    )
    if healthy and num_items_in_batch is not None:
        return total / num_items_in_batch
    return total / len(labels)


def accuracy(prediction) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(1) == prediction.label_ids).mean())}


def main() -> None:
    r = np.random.default_rng(900 + seed)
    train, val = FieldDataset(2048, r), FieldDataset(400, r)
    model = FieldNet()
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder,
            num_train_epochs=10,
            per_device_train_batch_size=16,
            gradient_accumulation_steps=8,
            per_device_eval_batch_size=200,
            learning_rate=0.1,
            optim="sgd",
            optim_args="momentum=0.9",
            weight_decay=1e-4,
            max_grad_norm=25.0,
            lr_scheduler_type="linear",
            warmup_steps=10,
            logging_strategy="epoch",
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=seed,
        )
        trainer = Trainer(
            model=model,
            args=settings,
            train_dataset=train,
            eval_dataset=val,
            compute_metrics=accuracy,
            compute_loss_func=smoothed_loss,
        )
        trainer.train()


main()
