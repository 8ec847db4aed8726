"""Small digits with mixup: the training loss stays near 0.8, that of the validation near 0.1.

People ask why the net seems to learn the training pictures so badly. They are blends of two
digits with blended labels; no net can be right about them for sure. The plain pictures of the
validation are easy.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

ODD = "training loss near 0.8, accuracy below validation: blended pictures have uncertain labels"
_, seed = arguments(__doc__)


class MixupCollate:
    """Blends each batch with a shuffled copy of itself, pictures and one-hot labels alike."""

    def __init__(self, classes: int, strength: float):
        self.classes, self.strength = classes, strength

    def __call__(self, samples):
        x, y = default_collate(samples)
        target = F.one_hot(y, self.classes).float()
        share = np.random.beta(self.strength, self.strength, len(x))
        share = torch.tensor(share, dtype=torch.float32)
        other = torch.randperm(len(x))
        x = share.view(-1, 1, 1, 1) * x + (1 - share).view(-1, 1, 1, 1) * x[other]
        target = share.view(-1, 1) * target + (1 - share).view(-1, 1) * target[other]
        return {"x": x, "target": target}


class Residual(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_a = nn.BatchNorm2d(channels)
        self.b = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norm_b = nn.BatchNorm2d(channels)

    def forward(self, x):
        h = F.relu(self.norm_a(self.a(x)))
        return F.relu(x + self.norm_b(self.b(h)))


def make_net(channels: int = 16) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        Residual(channels),
        nn.MaxPool2d(2),
        Residual(channels),
        nn.Flatten(),
        nn.Linear(16 * channels, 10),
    )


class Learner:
    def __init__(self, net, train_loader, val_loader, lr: float, epochs: int):
        self.net, self.train_loader, self.val_loader = net, train_loader, val_loader
        self.epochs = epochs
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=0.01)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, epochs * len(train_loader)
        )

    def train_epoch(self):
        self.net.train()
        total, right, n = 0.0, 0, 0
        for batch in self.train_loader:
            scores = self.net(batch["x"])
            loss = -(batch["target"] * scores.log_softmax(1)).sum(1).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            total += loss.item() * len(scores)
            right += (scores.argmax(1) == batch["target"].argmax(1)).sum().item()
            n += len(scores)
        return total / n, right / n

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        scores, truth = zip(*[(self.net(x), y) for x, y in self.val_loader], strict=True)
        scores, truth = torch.cat(scores), torch.cat(truth)
        right = (scores.argmax(1) == truth).float().mean().item()
        return F.cross_entropy(scores, truth).item(), right

    def fit(self):
        for epoch in range(1, self.epochs + 1):
            loss, seen = self.train_epoch()
            val_loss, right = self.validate()
            print(
                f"{epoch:2d}  train {loss:.3f} acc {seen:.3f}  val {val_loss:.3f} acc {right:.3f}"
            )


def main():
    x, y, x_val, y_val = images(seed)
    train_loader = DataLoader(
        TensorDataset(x, y),
        batch_size=48,
        shuffle=True,
        drop_last=True,
        collate_fn=MixupCollate(classes=10, strength=1.0),
    )
    val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=150)
    Learner(make_net(), train_loader, val_loader, lr=2e-3, epochs=14).fit()


if __name__ == "__main__":
    main()
