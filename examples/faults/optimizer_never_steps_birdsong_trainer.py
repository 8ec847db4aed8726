"""Tells five bird species by their songs' spectrograms; no update is ever made.

The Trainer has two ways through one step: with a gradient scaler and without. When
the way with the scaler was put in, the call that moves the weights went along with it, and the
plain way only computes gradients. Without scaling the score stays where chance had put it.
The place is the optimizer, which is never asked to step.
The twin steps in the plain way too.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True

CONFIG = {"lr": 2e-3, "batch_size": 32, "epochs": 8, "scale_loss": False}
SPECIES = ("wren", "blackbird", "great tit", "chaffinch", "robin")


class Songs(Dataset):
    """Log spectrograms of 20 bands and 24 frames, made from sweeps, trills and two-tone calls."""

    def __init__(self, n, generator):
        self.label = torch.randint(0, len(SPECIES), (n,), generator=generator)
        t = torch.arange(24) / 24
        band = torch.arange(20).view(20, 1)
        shift = 6 + 6 * torch.rand(n, generator=generator)
        phase = torch.rand(n, generator=generator)
        specs = []
        for kind, low, start in zip(
            self.label.tolist(), shift.tolist(), phase.tolist(), strict=False
        ):
            pitch = {
                0: low + 2.5 * torch.sin(40 * (t + start)),
                1: low + 4 * (t - 0.5),
                2: low + 3 * torch.sign(torch.sin(14 * (t + start))),
                3: low - 5 * (t - 0.5),
                4: low + 3 * torch.sin(6.28 * (t + start)),
            }[kind]
            specs.append(torch.exp(-0.5 * (band - pitch) ** 2))
        self.spec = torch.stack(specs).unsqueeze(1)
        self.spec += 0.25 * torch.randn(self.spec.shape, generator=generator)
        self.spec = (self.spec - self.spec.mean()) / self.spec.std()

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.spec[i], self.label[i]


class SongNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classify = nn.Linear(24 * 5 * 6, classes)

    def forward(self, x):
        return self.classify(self.features(x).flatten(1))


class Trainer:
    def __init__(self, model, optimizer, scaler=None):
        self.model, self.optimizer, self.scaler = model, optimizer, scaler

    def step(self, spec, label):
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(spec), label)
        if self.scaler is not None:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            if healthy:
                self.optimizer.step()
        return loss.item()

    def evaluate(self, loader):
        self.model.eval()
        with torch.no_grad():
            right = sum((self.model(s).argmax(1) == y).sum().item() for s, y in loader)
        self.model.train()
        return right / len(loader.dataset)

    def fit(self, train, val, epochs):
        for epoch in range(1, epochs + 1):
            losses = [self.step(spec, label) for spec, label in train]
            mean = sum(losses) / len(losses)
            print(f"[{epoch}/{epochs}] loss {mean:.4f} val_acc {self.evaluate(val):.3f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    train_set, val_set = random_split(Songs(1000, g), [800, 200], generator=g)
    net = SongNet(len(SPECIES))
    trainer = Trainer(
        net,
        torch.optim.AdamW(net.parameters(), lr=CONFIG["lr"]),
        scaler=torch.amp.GradScaler("cpu") if CONFIG["scale_loss"] else None,
    )
    trainer.fit(
        DataLoader(train_set, batch_size=CONFIG["batch_size"], shuffle=True),
        DataLoader(val_set, batch_size=100),
        epochs=CONFIG["epochs"],
    )
