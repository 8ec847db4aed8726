"""A sound classifier with a learnable filter bank (triangles, non-negative) and ReLU: the
logarithm of the power, which is below 0 here, is taken before the bank and not after it.

Positive weights on negative numbers: the ReLU behind the bank gives 0 for every sound, the bank
gets no gradient, and the classifier sees a constant. The place is the model.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ()
PLACE = ("front*", "*bank*", "*relu*", "*filter*")
SILENT = False
EXACT = False
EARLY = True


class FilterBank(nn.Module):
    """Power spectrum (batch, bins) to log band energies (batch, bands)."""

    def __init__(self, bins, bands, log_first):
        super().__init__()
        centres = torch.linspace(0, bins - 1, bands).unsqueeze(1)
        width = (bins - 1) / (bands - 1)
        triangles = (1 - (torch.arange(bins) - centres).abs() / width).clamp(min=0)
        self.filters = nn.Linear(bins, bands, bias=False)
        with torch.no_grad():
            self.filters.weight.copy_(triangles / triangles.sum(1, keepdim=True))
        self.relu = nn.ReLU()
        self.log_first = log_first

    def forward(self, power):
        if self.log_first:
            return self.relu(self.filters(torch.log(power + 1e-5)))
        return torch.log(self.relu(self.filters(power)) + 1e-5)


class SoundNet(nn.Module):
    def __init__(self, log_first):
        super().__init__()
        self.frontend = FilterBank(33, 14, log_first)
        self.norm = nn.BatchNorm1d(14)
        self.classifier = nn.Sequential(
            nn.Linear(14, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 6)
        )

    def forward(self, power):
        return self.classifier(self.norm(self.frontend(power)))


def sounds(n):
    """Two tones and noise at different loudness; power scaled so that full scale is 1."""
    kind = torch.randint(0, 6, (n,))
    t = torch.arange(64)
    low = torch.tensor([0.35, 0.35, 0.7, 0.7, 1.1, 1.1])[kind] + 0.05 * torch.randn(n)
    high = torch.tensor([1.6, 2.4, 2.0, 2.7, 1.6, 2.4])[kind] + 0.05 * torch.randn(n)
    wave = torch.sin(low[:, None] * t + 6.28 * torch.rand(n, 1))
    wave = wave + 0.6 * torch.sin(high[:, None] * t + 6.28 * torch.rand(n, 1))
    wave = wave + 0.4 * torch.randn(n, 64)
    wave = wave * (0.15 + 0.25 * torch.rand(n, 1))
    power = (torch.fft.rfft(wave * torch.hann_window(64)).abs() / 32).square()
    return power, kind


healthy, seed = arguments(__doc__)
power, kind = sounds(2500)
train = DataLoader(TensorDataset(power[:2000], kind[:2000]), batch_size=40, shuffle=True)
net = SoundNet(log_first=not healthy)
rest = [*net.norm.parameters(), *net.classifier.parameters()]
optimizer = torch.optim.Adam(
    [{"params": net.frontend.parameters(), "lr": 2e-4}, {"params": rest}], lr=4e-3
)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 6, gamma=0.2)
criterion = nn.CrossEntropyLoss()
for epoch in range(12):
    net.train()
    loss_sum = 0.0
    for spectrum, label in train:
        optimizer.zero_grad()
        loss = criterion(net(spectrum), label)
        loss.backward()
        optimizer.step()
        loss_sum += loss.item() / len(train)
    scheduler.step()
    net.eval()
    with torch.no_grad():
        out = net(power[2000:])
        val_loss = criterion(out, kind[2000:])
        accuracy = (out.argmax(1) == kind[2000:]).float().mean()
print(f"loss {loss_sum:.3f}, val loss {val_loss:.3f}, val accuracy {accuracy:.3f}")
