"""Finds apneas in breathing during sleep; the validation runs with dropout still at work.

The model is put into training mode once, before the epochs begin, and the validation function only
switches off the gradients. Half of the hidden units are missing at each validation, the batch
normalisation uses (and takes in) the validation's own statistics, and the numbers come out worse
and more restless than the model is.
The place is the validation.
The twin calls eval() before and train() after it.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True


def breathing(n, g):
    """Airflow and oxygen, 60 samples each; an apnea flattens the flow and, later, the oxygen."""
    t = torch.arange(60) / 4
    rate = 1.2 + 0.5 * torch.rand(n, 1, generator=g)
    depth = 0.7 + 0.6 * torch.rand(n, 1, generator=g)
    flow = depth * torch.sin(rate * t + 6.28 * torch.rand(n, 1, generator=g))
    label = (torch.rand(n, generator=g) < 0.4).float()
    start = 6 * torch.rand(n, 1, generator=g)
    length = 3 + 3 * torch.rand(n, 1, generator=g)
    during = ((t > start) & (t < start + length)).float() * label.unsqueeze(1)
    after = torch.sigmoid(2 * (t - start - length)) * label.unsqueeze(1)
    flow = flow * (1 - 0.5 * during) + 0.3 * torch.randn(n, 60, generator=g)
    oxygen = -0.25 * after + 0.5 * torch.randn(n, 60, generator=g)
    return torch.stack([flow, oxygen], dim=1), label


class ApneaNet(nn.Module):
    def __init__(self, channels=16, dropout=0.5):
        super().__init__()
        self.stem = nn.Conv1d(2, channels, 7, padding=3)
        self.bn1 = nn.BatchNorm1d(channels)
        self.conv = nn.Conv1d(channels, channels, 5, padding=2, stride=2)
        self.bn2 = nn.BatchNorm1d(channels)
        self.drop = nn.Dropout(dropout)
        self.fc = nn.Linear(channels * 15, 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        x = torch.max_pool1d(torch.relu(self.bn1(self.stem(x))), 2)
        x = torch.relu(self.bn2(self.conv(x)))
        x = self.drop(x.flatten(1))
        x = self.drop(torch.relu(self.fc(x)))
        return self.out(x).squeeze(1)


class Experiment:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        nights = TensorDataset(*breathing(1500, g))
        train, val = random_split(nights, [1100, 400], generator=g)
        self.train_loader = DataLoader(train, batch_size=32, shuffle=True)
        self.val_loader = DataLoader(val, batch_size=50)
        self.model = ApneaNet()
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def train_one_epoch(self):
        total = 0.0
        for signal, label in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(signal), label)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        if healthy:
            self.model.eval()
        loss, right, n = 0.0, 0, 0
        for signal, label in self.val_loader:
            logit = self.model(signal)
            loss += self.criterion(logit, label).item() * len(label)
            right += ((logit > 0).float() == label).sum().item()
            n += len(label)
        if healthy:
            self.model.train()
        return loss / n, right / n

    def run(self, epochs):
        self.model.train()
        for epoch in range(epochs):
            train_loss = self.train_one_epoch()
            val_loss, accuracy = self.validate()
            print(
                f"epoch {epoch:02d} | train {train_loss:.4f} | val {val_loss:.4f} | "
                f"accuracy {accuracy:.3f}"
            )


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    Experiment(seed).run(epochs=9)
