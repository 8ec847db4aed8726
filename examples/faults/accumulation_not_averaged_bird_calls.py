"""Bird calls with the gradients of eight batches added up; only the logged loss is averaged.

The person's trainer class divides the loss by the number of accumulated batches where it keeps the
running mean for the log, and calls backward on the undivided loss. The step is eight times as long
as with one large batch, and the momentum makes it worse. The place is the loop and its gradients.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "optimizer", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

BIRDS, FRAMES, BANDS = 6, 32, 20


def calls(count, rng):
    """Spectrograms: each bird sweeps its pitch in its own way, with echoes and wind."""
    bird = rng.integers(0, BIRDS, count)
    t = np.linspace(0, 1, FRAMES)[None]
    start = rng.uniform(5, 9, (count, 1))
    sweep = np.array([6, -4, 0, 4, -2, 2])[bird][:, None] * t
    wobble = np.sin(14 * t + rng.uniform(0, 6, (count, 1)))
    trill = np.array([0, 0, 3, 0, 2, 2])[bird][:, None] * wobble
    pitch = start + sweep + trill
    bands = np.arange(BANDS)[None, :, None]
    picture = np.exp(-((bands - pitch[:, None]) ** 2) / 2)
    picture *= rng.uniform(0.5, 1.2, (count, 1, 1))
    picture += rng.gamma(1.5, 0.2, picture.shape)
    picture = (picture - picture.mean()) / picture.std()
    return torch.tensor(picture, dtype=torch.float32), torch.tensor(bird)


def build_model():
    return nn.Sequential(
        nn.Conv1d(BANDS, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(32, 48, 5, padding=2),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(4),
        nn.Flatten(),
        nn.Linear(192, BIRDS),
    )


class Trainer:
    def __init__(self, model, train, val, accumulate, lr):
        self.model, self.train_loader, self.val_loader = model, train, val
        self.accumulate = accumulate
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)

    def batch_loss(self, x, y):
        loss = self.criterion(self.model(x), y)
        self.window_loss += loss.item() / self.accumulate
        return loss / self.accumulate if healthy else loss

    def epoch(self):
        self.model.train()
        history = []
        self.window_loss = 0.0
        self.optimizer.zero_grad()
        for i, (x, y) in enumerate(self.train_loader, 1):
            self.batch_loss(x, y).backward()
            if i % self.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
                history.append(self.window_loss)
                self.window_loss = 0.0
        return history

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        right = losses = seen = 0
        for x, y in self.val_loader:
            logits = self.model(x)
            right += (logits.argmax(1) == y).sum().item()
            losses += self.criterion(logits, y).item() * len(y)
            seen += len(y)
        return losses / seen, right / seen

    def fit(self, epochs):
        for epoch in range(epochs):
            history = self.epoch()
            val_loss, accuracy = self.validate()
            if epoch % 3 == 2:
                print(
                    f"epoch {epoch:2d} train {np.mean(history):.3f} (worst {max(history):.2f}) "
                    f"val {val_loss:.3f} acc {accuracy:.3f}"
                )


def main():
    rng = np.random.default_rng(seed)
    train, val = TensorDataset(*calls(1280, rng)), TensorDataset(*calls(600, rng))
    Trainer(
        build_model(),
        DataLoader(train, batch_size=8, shuffle=True),
        DataLoader(val, batch_size=200),
        accumulate=8,
        lr=0.03,
    ).fit(epochs=13)


main()
