"""Flags abnormal heart beats with one output unit behind a softmax, which is one for every beat.

The softmax is left over from a network of several classes, and the last layer has one unit for the
binary loss. A softmax over a single number is always one: the loss stays where it is and all beats
are called abnormal. The place is the model's last layer.
"""

import torch
from data import arguments
from sklearn.metrics import balanced_accuracy_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "softmax_single_unit"
ACCEPT = ("redundant_softmax", "saturated_activation")
PLACE = ("classifier*", "probability*", "model", "loss")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

POINTS = 96


def bump(time, centre, width):
    return torch.exp(-(((time - centre) / width) ** 2))


def heart_beats(count):
    """One beat each; abnormal ones have a wide main wave, no first wave, or a sunken last wave."""
    time = torch.linspace(0, 1, POINTS).unsqueeze(0) + 0.03 * torch.randn(count, 1)
    abnormal = (torch.rand(count, 1) < 0.4).float()
    way = torch.randint(0, 3, (count, 1))
    wide = abnormal * (way == 0)
    no_first = abnormal * (way == 1)
    sunken = abnormal * (way == 2)
    first = 0.25 * (1 - 0.9 * no_first) * bump(time, 0.25, 0.05)
    main = (1 + 0.1 * torch.randn(count, 1)) * bump(time, 0.45, 0.025 + 0.03 * wide)
    last = 0.35 * (1 - 1.6 * sunken) * bump(time, 0.7, 0.08)
    drift = 0.1 * torch.sin(6.28 * (time * 0.7 + torch.rand(count, 1)))
    return first + main + last + drift + 0.04 * torch.randn(count, POINTS), abnormal


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 7, padding=3),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(16, 24, 5, padding=2),
            nn.BatchNorm1d(24),
            nn.ReLU(),
            nn.MaxPool1d(4),
            nn.Flatten(),
        )
        self.classifier = nn.Linear(24 * POINTS // 8, 1)
        self.probability = nn.Sigmoid() if healthy else nn.Softmax(dim=1)

    def forward(self, x):
        return self.probability(self.classifier(self.features(x.unsqueeze(1))))


def validate(net, loader):
    net.eval()
    probabilities, truth = [], []
    with torch.no_grad():
        for beats, abnormal in loader:
            probabilities.append(net(beats))
            truth.append(abnormal)
    probabilities, truth = torch.cat(probabilities), torch.cat(truth)
    loss = nn.functional.binary_cross_entropy(probabilities, truth).item()
    called = (probabilities > 0.5).int()
    return loss, balanced_accuracy_score(truth.numpy(), called.numpy()), called.float().mean()


def main():
    beats, abnormal = heart_beats(1600)
    train_set, val_set = random_split(TensorDataset(beats, abnormal), [1200, 400])
    known = beats[train_set.indices]
    beats.sub_(known.mean()).div_(known.std())
    train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)

    net = BeatNet()
    criterion = nn.BCELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
    for epoch in range(14):
        net.train()
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        val_loss, balanced, called = validate(net, val_loader)
        print(
            f"Epoch {epoch}: loss={running / len(train_loader):.4f} val_loss={val_loss:.4f} "
            f"balanced_acc={balanced:.3f} called_abnormal={called:.2f}"
        )


main()
