"""Recognising phones from frames of speech; the summed micro-batch gradients are never averaged.

The GPU of the lab held only eight utterances, so the recipe was changed from batches of 64 to eight
micro-batches of 8. The loss of every micro-batch is a mean over its own frames, and `backward` adds
the gradients up: the optimizer gets eight times what it got before, at the same learning rate.
The place is the loss in the loop over micro-batches. The twin divides it by their number.
"""

import torch
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loss*", "loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

CONFIG = {
    "phones": 12,
    "mels": 20,
    "frames": 24,
    "micro_batch": 8,
    "accumulate": 8,
    "lr": 0.25,
    "momentum": 0.9,
    "epochs": 7,
}


def make_corpus(n: int, g: torch.Generator, voices: torch.Tensor):
    """Utterances of four phones, each held for six frames, with coarticulation and noise."""
    phones = torch.randint(0, CONFIG["phones"], (n, 4), generator=g)
    frames = phones.repeat_interleave(6, dim=1)
    x = voices[frames]
    x[:, 1:] = 0.6 * x[:, 1:] + 0.4 * x[:, :-1]
    x = x + 1.6 * torch.randn(x.shape, generator=g)
    return x, frames


class FrameClassifier(nn.Module):
    def __init__(self, mels: int, phones: int):
        super().__init__()
        self.context = nn.Conv1d(mels, 64, 5, padding=2)
        self.mix = nn.Conv1d(64, 64, 3, padding=1)
        self.out = nn.Conv1d(64, phones, 1)

    def forward(self, x):
        h = self.context(x.transpose(1, 2)).tanh()
        return self.out(self.mix(h).tanh())  # (batch, phones, frames)


class Trainer:
    def __init__(self, model, config):
        self.model, self.config = model, config
        self.optimizer = torch.optim.SGD(
            model.parameters(), lr=config["lr"], momentum=config["momentum"]
        )
        self.criterion = nn.CrossEntropyLoss()

    def train_epoch(self, x, y, g):
        self.model.train()
        total, pending = 0.0, 0
        order = torch.randperm(len(x), generator=g)
        chunks = order.split(self.config["micro_batch"])
        self.optimizer.zero_grad()
        for rows in chunks:
            loss = self.criterion(self.model(x[rows]), y[rows])
            total += loss.item()
            if healthy:
                loss = loss / self.config["accumulate"]
            loss.backward()
            pending += 1
            if pending == self.config["accumulate"]:
                self.optimizer.step()
                self.optimizer.zero_grad()
                pending = 0
        return total / len(chunks)

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        logits = self.model(x)
        error = (logits.argmax(1) != y).float().mean().item()
        return self.criterion(logits, y).item(), error


g = torch.Generator().manual_seed(seed)
voices = 0.8 * torch.randn(CONFIG["phones"], CONFIG["mels"], generator=g)
x, y = make_corpus(1280, g, voices)
x_val, y_val = make_corpus(400, g, voices)

trainer = Trainer(FrameClassifier(CONFIG["mels"], CONFIG["phones"]), CONFIG)
for epoch in range(CONFIG["epochs"]):
    train_loss = trainer.train_epoch(x, y, g)
    val_loss, frame_error = trainer.validate(x_val, y_val)
    print(f"epoch {epoch + 1:2d} train {train_loss:.4f} val {val_loss:.4f} FER {frame_error:.2%}")
