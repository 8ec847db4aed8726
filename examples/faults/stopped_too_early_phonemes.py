"""A TDNN labels speech frames with phonemes and is stopped while it is still getting better.

The early-stopping helper was written for accuracy, so its `mode` is "max" by default; now it is
given the validation loss. The first loss, the highest, stays the "best" for ever, and after five
epochs without a rise the training is ended. The place is the loop. The twin passes mode="min".
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, patience=5, mode="max", min_delta=0.0):
        self.patience, self.mode, self.min_delta = patience, mode, min_delta
        self.best, self.waited = None, 0

    def __call__(self, value):
        better = self.best is None or (
            value > self.best + self.min_delta
            if self.mode == "max"
            else value < self.best - self.min_delta
        )
        if better:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited >= self.patience


def utterances(n, means, length=60, phonemes=12):
    """Thirteen cepstra a frame; each phoneme lasts some frames and runs into the next."""
    labels = torch.zeros(n, length, dtype=torch.int64)
    for row in labels:
        t = 0
        while t < length:
            held = int(torch.randint(4, 9, ()))
            row[t : t + held] = int(torch.randint(0, phonemes, ()))
            t += held
    clean = means[labels].transpose(1, 2)
    blurred = nn.functional.avg_pool1d(clean, 3, 1, 1, count_include_pad=False)
    speaker = 0.3 * torch.randn(n, 13, 1)
    return blurred + speaker + 1.0 * torch.randn(n, 13, length), labels


class TDNN(nn.Module):
    def __init__(self, phonemes=12, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(13, width, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=2, dilation=2),
            nn.ReLU(),
            nn.Conv1d(width, phonemes, 1),
        )

    def forward(self, x):
        return self.layers(x)


@torch.no_grad()
def evaluate(model, loader, criterion):
    model.eval()
    loss, right, frames = 0.0, 0, 0
    for x, y in loader:
        scores = model(x)
        loss += criterion(scores, y).item() / len(loader)
        right += (scores.argmax(1) == y).sum().item()
        frames += y.numel()
    return loss, 1 - right / frames


means = 0.8 * torch.randn(12, 13)
train = DataLoader(TensorDataset(*utterances(640, means)), batch_size=16, shuffle=True)
val = DataLoader(TensorDataset(*utterances(160, means)), batch_size=80)
model = TDNN()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.006, momentum=0.9)
stopper = EarlyStopping(patience=5, mode="min") if healthy else EarlyStopping(patience=5)

for epoch in range(35):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    val_loss, error = evaluate(model, val, criterion)
    print(f"epoch {epoch:2d}  train {loss.item():.3f}  val {val_loss:.3f}  frame error {error:.3f}")
    if stopper(val_loss):
        print(f"early stopping, best val loss {stopper.best:.3f}")
        break
