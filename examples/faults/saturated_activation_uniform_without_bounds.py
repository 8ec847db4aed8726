"""Kind of merchant from a set of card transactions; the weights behind the pooling start in [0,
1].

The layers behind the pooling get the uniform start of the paper by `nn.init.uniform_(weight)`, in
the belief that its default is the layer's own bound, one over the root of the inputs. It is 0 to
1: 48 weights, all positive, add up and hold every tanh at its flat end, where nothing can be
learnt. The place is the layers behind the pooling. The twin gives the bounds.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("rho", "rho.0", "rho.1", "rho.2", "rho.3", "rho.0.weight", "rho.2.weight")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LONGEST, KINDS = 60, 6


def merchants(n, g):
    """Per transaction: log amount, sine and cosine of the hour, online or not, days since last."""
    kind = torch.randint(0, KINDS, (n,), generator=g)
    count = torch.randint(25, LONGEST + 1, (n,), generator=g)
    noise = torch.randn(n, LONGEST, 5, generator=g)
    level = torch.tensor([0.2, 0.7, -0.2, 0.2, -0.6, 0.0])[kind][:, None]
    spread = torch.tensor([0.7, 0.7, 1.3, 1.3, 0.9, 0.9])[kind][:, None]
    amount = level + spread * noise[..., 0] + 0.12 * torch.randn(n, 1, generator=g)
    peak = torch.tensor([0.4, 1.2, 0.4, 1.4, 0.9, 0.7])[kind][:, None]
    hour = peak + 1.2 * noise[..., 1] + 0.15 * torch.randn(n, 1, generator=g)
    p = torch.tensor([0.4, 0.5, 0.4, 0.5, 0.5, 0.4])[kind][:, None]
    online = (torch.rand(n, LONGEST, generator=g) < p).float() * 2 - 1
    x = torch.stack([amount, hour.sin(), hour.cos(), online, noise[..., 4]], -1)
    mask = (torch.arange(LONGEST) < count[:, None]).float()
    return x * mask[..., None], mask, kind


class SetClassifier(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.rho = nn.Sequential(
            nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.out = nn.Linear(width, KINDS)
        self.rho.apply(self.start)

    @staticmethod
    def start(module):
        if isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            nn.init.uniform_(module.weight, *((-bound, bound) if healthy else ()))
            nn.init.zeros_(module.bias)

    def forward(self, x, mask):
        mask = mask.unsqueeze(-1)
        pooled = (self.phi(x) * mask).sum(1) / mask.sum(1)
        return self.out(self.rho(pooled))


g = torch.Generator().manual_seed(seed)
dataset = TensorDataset(*merchants(2000, g))
train_set, val_set = random_split(dataset, [1500, 500], generator=g)
train_loader = DataLoader(train_set, batch_size=50, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)
model = SetClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(1, 17):
    model.train()
    train_loss = 0.0
    for x, mask, kind in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x, mask), kind)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    model.eval()
    correct = val_loss = 0.0
    with torch.no_grad():
        for x, mask, kind in val_loader:
            logits = model(x, mask)
            val_loss += criterion(logits, kind).item() / len(val_loader)
            correct += (logits.argmax(1) == kind).sum().item()
    if epoch % 4 == 0:
        print(f"{epoch:2d} train {train_loss:.3f} val {val_loss:.3f} accuracy {correct / 500:.3f}")
