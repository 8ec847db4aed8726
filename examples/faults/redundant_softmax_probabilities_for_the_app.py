"""Exercises from a wrist sensor by a GRU; the model gives probabilities, the loss takes logits.

The app's people asked for probabilities, so `forward` got a softmax at its end, and the training
was left as it was: cross_entropy takes the softmax once more. Of sixteen exercises none can then
get more than a small share, the gradients are weak, and the loss ends far from zero. The place is
the loss. The twin gives logits in forward and has `predict` for the app.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss*", "head", "model")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH, EXERCISES = 32, 16


class WristData(Dataset):
    """Three axes; every exercise has its tempo, its main axis and its second harmonic."""

    def __init__(self, n, g):
        self.label = torch.randint(0, EXERCISES, (n,), generator=g)
        k = self.label
        tempo = 0.35 + 0.16 * (k % 4) + 0.02 * torch.randn(n, generator=g)
        phase = 6.283 * torch.rand(n, 1, generator=g)
        angle = tempo[:, None] * torch.arange(LENGTH) + phase
        axis = torch.tensor([[1.0, 0.2, 0], [0, 1, 0.2]])[(k // 4) % 2]
        second = torch.tensor([0.0, 0.8])[k // 8][:, None]
        wave = angle.sin() + second * (2 * angle).sin()
        x = wave[:, :, None] * axis[:, None, :]
        gravity = 0.3 * torch.randn(n, 1, 3, generator=g)
        self.x = x + gravity + 0.25 * torch.randn(n, LENGTH, 3, generator=g)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return self.x[i], self.label[i]


class ExerciseNet(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Linear(2 * hidden, EXERCISES)

    def forward(self, x):
        states, last = self.gru(x)
        logits = self.head(torch.cat([last[-1], states.mean(1)], 1))
        return logits if healthy else F.softmax(logits, dim=-1)

    def predict(self, x):
        return F.softmax(self(x), dim=-1) if healthy else self(x)


g = torch.Generator().manual_seed(seed)
train_loader = DataLoader(WristData(1600, g), batch_size=64, shuffle=True)
val_loader = DataLoader(WristData(600, g), batch_size=300)
model = ExerciseNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(1, 19):
    model.train()
    total = 0.0
    for x, label in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    right = 0
    with torch.no_grad():
        for x, label in val_loader:
            right += (model.predict(x).argmax(1) == label).sum().item()
    if epoch % 3 == 0:
        print(f"epoch {epoch} loss {total / len(train_loader):.3f} accuracy {right / 600:.3f}")
