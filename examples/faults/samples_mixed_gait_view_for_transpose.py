"""What somebody does, from windows of a body-worn sensor: convolutions, then a transformer encoder.

The encoder wants (time, batch, features), the convolutions give (batch, features, time), and a
`view` with the right three sizes was taken for the transpose. It puts values of different people
into one vector. The loss stays where guessing is: what is said of one window is made of all the
windows of its batch. The place is what comes after the convolutions: the encoder. Exact: other
windows change the answer to a window.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("encoder*", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH, ACTIVITIES = 24, 4


def windows(n):
    """Three axes of acceleration: still, walking, running, stairs."""
    y = torch.randint(0, ACTIVITIES, (n,))
    pace = torch.tensor([0.05, 0.7, 1.5, 0.7])[y]
    force = torch.tensor([0.1, 0.8, 1.6, 0.8])[y]
    t = torch.arange(LENGTH) * pace[:, None] + 6.283 * torch.rand(n, 1)
    up = force[:, None] * t.sin()
    forth = 0.6 * force[:, None] * (t + 0.8).sin()
    tilt = torch.where(y == 3, 0.9, 0.0)[:, None] + 0.3 * torch.randn(n, 1)
    side = tilt + 0.2 * (t / 2).sin()
    return torch.stack([up, forth, side], 1) + 0.15 * torch.randn(n, 3, LENGTH), y


class Recogniser(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(3, width, 5, padding=2), nn.ReLU(), nn.Conv1d(width, width, 4, stride=2)
        )
        layer = nn.TransformerEncoderLayer(width, 3, 48, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, ACTIVITIES)

    def forward(self, x):
        h = self.conv(x)
        batch, width, time = h.shape
        h = h.permute(2, 0, 1) if healthy else h.view(time, batch, width)
        return self.head(self.encoder(h).mean(0))


model = Recogniser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
x_val, y_val = windows(400)
loader = DataLoader(TensorDataset(*windows(1280)), batch_size=32, shuffle=True)
for epoch in range(5):
    model.train()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = (model(x_val).argmax(1) == y_val).float().mean()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}, right in validation {right:.2f}")
with torch.no_grad():  # as it is used: one window at a time
    alone = torch.cat([model(x[None]) for x in x_val[:100]]).argmax(1)
print(f"loss {loss.item():.3f}, right alone {(alone == y_val[:100]).float().mean():.2f}")
