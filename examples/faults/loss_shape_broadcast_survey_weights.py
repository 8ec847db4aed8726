"""A household survey with sampling weights: errors of shape (B,), weights of shape (B, 1).

Their product is a table of all errors by all weights, whose mean is (mean error) x (mean weight):
the weights weigh nothing. The rich, of whom far too many were asked, decide the fit. The place is
the loss. The twin takes the weights as a row.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = True
EARLY = True


def households(n):
    """Log income, size, age of the head and town or country; the share spent on food."""
    income = 0.8 * torch.randn(n)
    size = torch.poisson(torch.full((n,), 1.6)) + 1
    age = 50 + 15 * torch.randn(n)
    town = (torch.rand(n) < 0.5).float()
    share = 0.34 - 0.12 * torch.tanh(1.3 * income) - 0.05 * torch.relu(-income - 0.5)
    share = share + 0.025 * (size - 2.6) * torch.sigmoid(-2 * income)
    share = share - 0.02 * town + 0.0008 * (age - 50) + 0.03 * torch.randn(n)
    x = torch.stack([income, (size - 2.6) / 1.3, (age - 50) / 15, town - 0.5], 1)
    return x, 10 * (share - 0.34)


class Survey(Dataset):
    def __init__(self, n):
        x, share = households(40 * n)
        chance = torch.sigmoid(2.6 * x[:, 0] - 3.0)
        asked = torch.rand(len(x)) < chance
        self.x, self.share = x[asked][:n], share[asked][:n]
        weight = 1 / chance[asked][:n]
        self.weight = (weight / weight.mean()).clamp(max=12).unsqueeze(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.share[i], self.weight[i]


class FoodShare(nn.Module):
    """Linear in everything, as the report has to print the coefficients, with one interaction."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)
        self.interaction = nn.Bilinear(1, 1, 1, bias=False)

    def forward(self, x):
        return (self.linear(x) + self.interaction(x[:, :1], x[:, 1:2])).squeeze(1)


def weighted_error(predicted, share, weight):
    error = nn.functional.huber_loss(predicted, share, reduction="none", delta=2.0)
    return (error * weight).mean()


healthy, seed = arguments(__doc__)
loader = DataLoader(Survey(2000), batch_size=50, shuffle=True, drop_last=True)
everybody, their_share = households(5000)
model = FoodShare()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.8)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
for epoch in range(10):
    total = 0.0
    for x, share, weight in loader:
        optimizer.zero_grad()
        if healthy:
            loss = weighted_error(model(x), share, weight.squeeze(1))
        else:
            loss = weighted_error(model(x), share, weight)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    with torch.no_grad():
        error = (model(everybody) - their_share).square().mean() / their_share.var()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}, unexplained of the country {error:.3f}")
