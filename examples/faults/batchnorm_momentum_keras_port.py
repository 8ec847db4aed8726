"""A residual net for spectra was ported from Keras with BatchNormalization(momentum=0.99), which
in PyTorch means that the running statistics are those of the last batch alone.

Batches are of 8 (the last of an epoch has 2) and spectra differ much in strength, so that in eval
mode the outputs jump from one validation to the next and the loss is many times that of training
mode. The place is the model.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("*bn*", "*norm*")
SILENT = True
EXACT = False
EARLY = True


def conv_bn(c_in, c_out, momentum, stride=1):
    return nn.Sequential(
        nn.Conv1d(c_in, c_out, 5, stride=stride, padding=2, bias=False),
        nn.BatchNorm1d(c_out, momentum=momentum, eps=1e-3),
    )


class ResBlock(nn.Module):
    def __init__(self, channels, momentum):
        super().__init__()
        self.a_bn = conv_bn(channels, channels, momentum)
        self.b_bn = conv_bn(channels, channels, momentum)

    def forward(self, x):
        return torch.relu(x + self.b_bn(torch.relu(self.a_bn(x))))


class SpectraNet(nn.Module):
    def __init__(self, momentum):
        super().__init__()
        self.stem_bn = conv_bn(1, 12, momentum, stride=2)
        self.block1 = ResBlock(12, momentum)
        self.block2 = ResBlock(12, momentum)
        self.fc = nn.Linear(12, 5)

    def forward(self, x):
        x = self.block2(self.block1(torch.relu(self.stem_bn(x))))
        return self.fc(x.mean(dim=2))


def spectra(n, length=40):
    """Lines of five minerals on a slope; the strength of the lamp differs tenfold."""
    mineral = torch.randint(0, 5, (n,))
    at = torch.arange(length)
    gap = torch.tensor([3, 5, 7, 9, 12])[mineral].unsqueeze(1)
    first = torch.randint(4, 24, (n, 1))
    lines = torch.exp(-((at - first) ** 2) / 2) + torch.exp(-((at - first - gap) ** 2) / 2)
    strength = torch.exp(0.8 * torch.randn(n, 1))
    x = strength * (2 * lines + 0.1 * torch.randn(n, length))
    return ((x - x.mean()) / x.std()).unsqueeze(1), mineral


healthy, seed = arguments(__doc__)
x, y = spectra(1602)
train_loader = DataLoader(TensorDataset(x[:1202], y[:1202]), batch_size=8, shuffle=True)
x_val, y_val = x[1202:], y[1202:]
model = SpectraNet(momentum=0.05 if healthy else 0.99)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
val_losses = []
for epoch in range(6):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train_loader)
    scheduler.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_losses.append(nn.functional.cross_entropy(out, y_val).item())
print(
    f"loss {total:.3f}, val losses {' '.join(f'{v:.2f}' for v in val_losses)}, "
    f"val accuracy {(out.argmax(1) == y_val).float().mean():.3f}"
)
