"""Leaf diseases from spectra: after the first validation the network stays in evaluation mode.

The method that validates switches the network over, and nobody switches it back. From then on
dropout does nothing and batch normalisation works with the averages of the first few batches.
The place is the loop (or the validation, or the layers that care). The twin switches back.
"""

import torch
from data import arguments
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "net", "net.2", "net.4", "net.6", "net.1", "net.5", "net.3", "net.7")
SILENT = True
EXACT = True
EARLY = False


def spectra(n, seed):
    g = torch.Generator().manual_seed(seed)
    prototypes = torch.randn(4, 60, generator=torch.Generator().manual_seed(99))
    y = torch.randint(0, 4, (n,), generator=g)
    strength = 0.25 + 0.25 * torch.rand(n, 1, generator=g)
    x = prototypes[y] * strength + torch.randn(n, 60, generator=g)
    return TensorDataset(x, y)


class Trainer:
    def __init__(self, net, healthy, lr=3e-3):
        self.net, self.healthy = net, healthy
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = optim.AdamW(net.parameters(), lr=lr)

    def fit(self, train, val, epochs):
        self.net.train()
        for epoch in range(epochs):
            if self.healthy:
                self.net.train()
            total = 0.0
            for x, y in train:
                self.optimizer.zero_grad()
                loss = self.loss(self.net(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item() / len(train)
            val_loss, accuracy = self.validate(val)
            if epoch % 5 == 4:
                print(f"{epoch + 1:3d} {total:.4f} {val_loss:.4f} {accuracy:.3f}")

    @torch.no_grad()
    def validate(self, loader):
        self.net.eval()
        total, right, n = 0.0, 0, 0
        for x, y in loader:
            out = self.net(x)
            total += self.loss(out, y).item() * len(y)
            right += (out.argmax(1) == y).sum().item()
            n += len(y)
        return total / n, right / n


class LeafNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(60, 96),
            nn.BatchNorm1d(96),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(96, 96),
            nn.BatchNorm1d(96),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(96, 4),
        )

    def forward(self, x):
        return self.net(x)


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    train, val = random_split(spectra(1400, seed), [600, 800])
    print("epoch, training loss, validation loss, accuracy")
    trainer = Trainer(LeafNet(), healthy)
    trainer.fit(DataLoader(train, 32, shuffle=True), DataLoader(val, 200), epochs=20)
