"""An LSTM names the shape of a wave. The rate is to drop when the validation accuracy no longer
improves, so ReduceLROnPlateau gets the accuracy after every epoch, in its default mode.

The default waits for a falling number: an accuracy that rises looks like no progress at all, and
the rate is divided by ten every third epoch until nothing moves. The place is the optimizer.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


class WaveNamer(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 3))

    def forward(self, x):
        h, _ = self.lstm(x)
        return self.head(h.mean(1))


class Trainer:
    def __init__(self, model, train, held):
        self.model, self.train, self.held = model, train, held
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        self.scheduler = ReduceLROnPlateau(
            self.optimizer, mode="max" if healthy else "min", factor=0.1, patience=2
        )

    def run_epoch(self, loader, learn):
        self.model.train(learn)
        loss_sum = right = n = 0
        with torch.set_grad_enabled(learn):
            for x, y in loader:
                out = self.model(x)
                loss = self.criterion(out, y)
                if learn:
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                loss_sum += loss.item() * len(y)
                right += (out.argmax(1) == y).sum().item()
                n += len(y)
        return loss_sum / n, right / n

    def fit(self, epochs):
        for epoch in range(epochs):
            loss, _ = self.run_epoch(self.train, True)
            val, accuracy = self.run_epoch(self.held, False)
            self.scheduler.step(accuracy)
            print(f"epoch {epoch}: train {loss:.3f} val {val:.3f} accuracy {accuracy:.3f}")


x, y = waves(seed, n=1000)
data = TensorDataset(x + 0.3 * torch.randn_like(x), y)
train, held = random_split(data, [800, 200], torch.Generator().manual_seed(seed))
Trainer(WaveNamer(), DataLoader(train, 32, shuffle=True), DataLoader(held, 200)).fit(18)
