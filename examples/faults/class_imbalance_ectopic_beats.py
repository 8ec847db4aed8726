"""Heart beats by a 1-D convolutional net, 3 in 100 are ectopic: no weights, judged by accuracy.

An ectopic beat comes a little early and a little wide, as many normal ones do, so guessing
"normal" costs least: accuracy 0.97, and hardly one of the ectopic beats is found. The twin weighs
the two classes in the loss and finds most of them. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("", "loss*", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def beats(n, length=48):
    ectopic = (torch.rand(n) < 0.03).long()
    t = torch.linspace(0, 1, length)
    early = 0.5 + 0.02 * torch.randn(n, 1) - 0.03 * ectopic[:, None]
    width = 0.03 * torch.exp(0.2 * torch.randn(n, 1) + 0.35 * ectopic[:, None])
    wave = torch.exp(-(((t - early) / width) ** 2))
    wave = wave + 0.25 * torch.exp(-(((t - 0.78) / 0.07) ** 2)) + 0.15 * torch.randn(n, length)
    return (wave[:, None] - 0.2) / 0.33, ectopic


x_train, y_train = beats(4000)
x_val, y_val = beats(3000)


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv1d(1, 8, 7, padding=3), nn.BatchNorm1d(8), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv1d(8, 12, 5, padding=2), nn.BatchNorm1d(12), nn.ReLU())
        self.pool = nn.MaxPool1d(4)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(12 * 12, 2)

    def forward(self, x):
        h = self.pool(self.layer2(self.layer1(x)))
        return self.fc(self.dropout(h.flatten(1)))


model = BeatNet()
weight = None
if healthy:
    weight = len(y_train) / (2.0 * y_train.bincount())
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, weight_decay=1e-3)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
for epoch in range(8):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y, weight=weight)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = F.cross_entropy(out, y_val, weight=weight)
        said = out.argmax(1)
accuracy = (said == y_val).float().mean()
recall = said[y_val == 1].float().mean()
normal = (said[y_val == 0] == 0).float().mean()
print(
    f"loss {loss.item():.3f}, val {val_loss:.3f}, accuracy {accuracy:.3f}, "
    f"recall ectopic {recall:.3f}, normal {normal:.3f}"
)
