"""Which of six activities does a window show? A forecasting script was reused: one output, smooth
L1 against the number of the class, rounded for the accuracy.

The classes have no order; the net says the mean of those it doubts between. The loss falls. The
place is the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "head*", "criterion*", "loop", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
CLASSES, LENGTH, CHANNELS = 6, 24, 4
g = torch.Generator().manual_seed(610 + seed)
gg = torch.Generator().manual_seed(3)
FREQUENCY = torch.empty(CLASSES, CHANNELS).uniform_(0.15, 0.9, generator=gg)
GAIN = torch.empty(CLASSES, CHANNELS).uniform_(0.3, 1.3, generator=gg)


def windows(n):
    y = torch.randint(0, CLASSES, (n,), generator=g)
    t = torch.arange(LENGTH)[None, :, None]
    phase = 6.283 * torch.rand(n, 1, CHANNELS, generator=g)
    speed = 1 + 0.1 * torch.randn(n, 1, 1, generator=g)
    x = GAIN[y][:, None] * torch.sin(FREQUENCY[y][:, None] * t * speed + phase)
    return x + 0.35 * torch.randn(n, LENGTH, CHANNELS, generator=g), y


class SequenceModel(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.rnn = nn.GRU(CHANNELS, 32, batch_first=True)
        self.head = nn.Linear(32, outputs)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states.mean(1))


class Trainer:
    def __init__(self, model, criterion, epochs=8, batch_size=32, lr=5e-3):
        self.model, self.criterion = model, criterion
        self.epochs, self.batch_size = epochs, batch_size
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def loss_and_hits(self, x, y):
        out = self.model(x)
        if healthy:
            return self.criterion(out, y), (out.argmax(1) == y).float().mean()
        out = out.squeeze(1)
        return self.criterion(out, y.float()), (out.round() == y).float().mean()

    def fit(self, train, val):
        x, y = train
        for epoch in range(self.epochs):
            self.model.train()
            losses = []
            for rows in torch.randperm(len(x)).split(self.batch_size):
                loss, _ = self.loss_and_hits(x[rows], y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optimizer.step()
                losses.append(loss.item())
            self.model.eval()
            with torch.no_grad():
                loss, hits = self.loss_and_hits(*val)
            mean = sum(losses) / len(losses)
            print(f"epoch {epoch}: loss {mean:.3f}, val {loss:.3f}, val accuracy {hits:.3f}")


train, val = windows(2000), windows(300)
mean, std = train[0].mean((0, 1)), train[0].std((0, 1))
train, val = (((x - mean) / std, y) for x, y in (train, val))
if healthy:
    trainer = Trainer(SequenceModel(CLASSES), nn.CrossEntropyLoss())
else:
    trainer = Trainer(SequenceModel(1), nn.SmoothL1Loss())
trainer.fit(train, val)
