"""A network gives several tags to a song; it ends in a sigmoid and is trained with
BCEWithLogitsLoss.

The loss applies the sigmoid once more, so a probability can only lie between 0.5 and 0.73 and a
tag is never denied. The place is the last activation (net.5) and the loss.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("net.5", "net", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

TAGS = ["calm", "dance", "guitar", "electronic", "vocal"]


def make_songs(n):
    tempo = 60 + 110 * torch.rand(n)
    loudness = -25 + 20 * torch.rand(n)
    bright = torch.randn(n)
    timbre = torch.randn(n, 9)
    speed = (tempo - 115) / 32
    loud = (loudness + 15) / 6
    score = torch.stack(
        [
            -speed - loud - 1.0,
            speed + loud + 0.5 * bright - 1.2,
            timbre[:, 0] + timbre[:, 1] * timbre[:, 2] - 0.8,
            bright - timbre[:, 0] + 0.7 * timbre[:, 3] - 1.0,
            timbre[:, 4].abs() + timbre[:, 5] - 0.9,
        ],
        dim=1,
    )
    tags = (torch.rand(n, len(TAGS)) < torch.sigmoid(2.5 * score)).float()
    return torch.cat([torch.stack([tempo, loudness, bright], 1), timbre], dim=1), tags


x, tags = make_songs(3200)
x_train, x_val = standardise(x[:2400], x[2400:])
t_train, t_val = tags[:2400], tags[2400:]
train_loader = DataLoader(TensorDataset(x_train, t_train), batch_size=48, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, t_val), batch_size=200)
print("tags per song:", t_train.sum(1).mean().item())


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [
            nn.Linear(12, 48),
            nn.ReLU(),
            nn.Linear(48, 32),
            nn.ReLU(),
            nn.Linear(32, len(TAGS)),
        ]
        if not healthy:
            layers.append(nn.Sigmoid())
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


model = Tagger()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)


def validate():
    model.eval()
    loss, right, count = 0.0, 0, 0
    with torch.no_grad():
        for xb, tb in val_loader:
            out = model(xb)
            loss += criterion(out, tb).item()
            predicted = torch.sigmoid(out) > 0.5
            right += (predicted == (tb > 0.5)).sum().item()
            count += tb.numel()
    return loss / len(val_loader), right / count


for epoch in range(18):
    model.train()
    running = 0.0
    for xb, tb in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), tb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    val_loss, val_acc = validate()
    print(
        f"epoch {epoch + 1}: train {running / len(train_loader):.4f} "
        f"val {val_loss:.4f} tag acc {val_acc:.4f}"
    )
