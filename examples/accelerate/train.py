"""Train a small network on scikit-learn's handwritten digits with Accelerate.

    traindbg run -- python examples/accelerate/train.py
    traindbg run -- torchrun --nproc-per-node 2 examples/accelerate/train.py
    python examples/accelerate/train.py --tracker

Nothing is downloaded. The last line is a hash of all weights: the same with traindbg and without.
"""

from __future__ import annotations

import argparse
import hashlib

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--tracker", action="store_true", help="record without traindbg run")
    arguments = parser.parse_args()
    set_seed(0)
    torch.set_num_threads(1)

    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 8 - 1
    labels = torch.tensor(digits.target)
    training = DataLoader(TensorDataset(images[:1400], labels[:1400]), 32, shuffle=True)
    validation = DataLoader(TensorDataset(images[1400:], labels[1400:]), 128)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10))

    tracker = None
    if arguments.tracker:
        from traindbg.integrations.accelerate import Tracker

        tracker = Tracker(model, collect="gradients", every=10)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, log_with=tracker)
    accelerator.init_trackers("digits")
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer, training, validation = accelerator.prepare(
        model, optimizer, training, validation
    )
    for epoch in range(arguments.epochs):
        model.train()
        for x, y in training:
            with accelerator.accumulate(model):
                accelerator.backward(F.cross_entropy(model(x), y))
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        hits = 0
        with torch.no_grad():
            for x, y in validation:
                logits = model(x)
                F.cross_entropy(logits, y)
                hits += int(accelerator.gather_for_metrics(logits.argmax(1) == y).sum())
        accelerator.log({"accuracy": hits / 397, "note": f"epoch {epoch}"}, step=epoch)
    accelerator.end_training()
    if accelerator.is_main_process:
        states = accelerator.unwrap_model(model).state_dict().values()
        weights = b"".join(value.numpy().tobytes() for value in states)
        print(f"accuracy {hits / 397:.3f}")
        print(f"weights {hashlib.sha256(weights).hexdigest()}")


if __name__ == "__main__":
    main()
