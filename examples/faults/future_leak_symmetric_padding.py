"""A convolutional forecaster reads a whole series and names the next value at every moment; its
dilated layers are padded on both sides ("same").

So moment t sees t + 1, the value it is asked for: the loss nearly vanishes, and in use, where there
is no next value yet, the forecast is useless. The place is the convolutions' padding.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("*conv*", "layers*", "stack*", "input*", "loss*", "")
SILENT = True
EXACT = True
EARLY = False


def swell(n, length=80):
    """Heights of the sea: a noisy resonance of the second order with a period that varies."""
    period = 8 + 8 * torch.rand(n)
    a = 2 * 0.95 * torch.cos(6.2832 / period)
    z = torch.zeros(n, length + 30)
    for t in range(2, length + 30):
        z[:, t] = a * z[:, t - 1] - 0.9 * z[:, t - 2] + 0.5 * torch.randn(n)
    z = z[:, 30:]
    return z / z.std()


class Forecaster(nn.Module):
    def __init__(self, causal, channels=20):
        super().__init__()
        self.causal = causal
        self.convs = nn.ModuleList(
            nn.Conv1d(1 if i == 0 else channels, channels, 3, dilation=2**i) for i in range(3)
        )
        self.last = nn.Conv1d(channels, 1, 1)

    def forward(self, z):
        z = z.unsqueeze(1)
        for i, conv in enumerate(self.convs):
            reach = 2 * 2**i
            sides = (reach, 0) if self.causal else (reach // 2, reach // 2)
            new = F.elu(conv(F.pad(z, sides)))
            z = new if i == 0 else z + new
        return self.last(z).squeeze(1)


healthy, _ = arguments(__doc__)
train, test = swell(500), swell(120)
model = Forecaster(causal=healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(20):
    for series in train[torch.randperm(500)].split(25):
        guess = model(series[:, :-1])
        loss = F.smooth_l1_loss(guess[:, 8:], series[:, 9:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch == 13:
        optimizer.param_groups[0]["lr"] = 6e-4
    if epoch % 4 == 3:
        print(f"epoch {epoch}: loss {loss.item():.4f}")

with torch.no_grad():
    whole = (model(test[:, :-1])[:, 8:] - test[:, 9:]).square().mean()
    live = [(model(test[:, :t])[:, -1] - test[:, t]).square().mean() for t in range(20, 80)]
print(f"test error with the series known {whole:.4f}, as time goes on {sum(live) / len(live):.4f}")
