"""A hand-written message-passing net predicts a molecule-like energy with an uncertainty; the NLL
broadcasts.

The readout gives (graphs, 1), the energies come as (graphs,), and the Gaussian likelihood is
typed in by hand, so nothing warns: every prediction is compared with every target of the batch.
The place is the loss.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

HP = {"hidden": 48, "layers": 3, "batch": 32, "epochs": 12, "lr": 2e-3, "wd": 1e-5}


class Molecules(Dataset):
    """Random chains with rings; energy = pair terms by atom kinds and ring strain."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        pair = torch.tensor(
            [
                [0.0, 1.0, -0.6, 0.3],
                [1.0, 0.4, -1.2, 0.8],
                [-0.6, -1.2, 0.5, 0.1],
                [0.3, 0.8, 0.1, -0.9],
            ]
        )
        for _ in range(n):
            size = int(torch.randint(6, 15, (1,), generator=g))
            kinds = torch.randint(0, 4, (size,), generator=g)
            edges = [(i, i + 1) for i in range(size - 1)]
            rings = 0
            for i in range(size - 4):
                if torch.rand(1, generator=g) < 0.15:
                    edges.append((i, i + 4))
                    rings += 1
            e = torch.tensor(edges).T
            energy = (
                pair[kinds[e[0]], kinds[e[1]]].sum()
                + 1.1 * rings
                + 0.15 * torch.randn(1, generator=g)
            )
            self.items.append((kinds, torch.cat([e, e.flip(0)], 1), energy.squeeze()))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    kinds, edges, graph, energy, offset = [], [], [], [], 0
    for number, (k, e, y) in enumerate(items):
        kinds.append(k)
        edges.append(e + offset)
        graph.append(torch.full((len(k),), number))
        energy.append(y)
        offset += len(k)
    return torch.cat(kinds), torch.cat(edges, 1), torch.cat(graph), torch.stack(energy)


class MessagePassing(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * d, d), nn.SiLU(), nn.Linear(d, d))
        self.update = nn.GRUCell(d, d)

    def forward(self, h, edges):
        src, dst = edges
        m = self.message(torch.cat([h[src], h[dst]], 1))
        return self.update(torch.zeros_like(h).index_add(0, dst, m), h)


class EnergyNet(nn.Module):
    def __init__(self, d, layers):
        super().__init__()
        self.atoms = nn.Embedding(4, d)
        self.layers = nn.ModuleList(MessagePassing(d) for _ in range(layers))
        self.mean = nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, 1))
        self.log_var = nn.Linear(d, 1)

    def forward(self, kinds, edges, graph, n):
        h = self.atoms(kinds)
        for layer in self.layers:
            h = layer(h, edges)
        per_atom = torch.zeros(n, 1).index_add(0, graph, self.mean(h))
        pooled = (
            torch.zeros(n, h.shape[1]).index_add(0, graph, h)
            / torch.bincount(graph, minlength=n)[:, None]
        )
        mean, log_var = per_atom, self.log_var(pooled).clamp(-6, 6)
        return (mean.squeeze(1), log_var.squeeze(1)) if healthy else (mean, log_var)


def gaussian_nll(mean, log_var, y):
    return 0.5 * (log_var + (y - mean) ** 2 / log_var.exp() + math.log(2 * math.pi)).mean()


train = Molecules(1200, 10 + seed)
val = Molecules(400, 5000 + seed)
mu = torch.stack([i[2] for i in train.items]).mean()
sd = torch.stack([i[2] for i in train.items]).std()
loader = DataLoader(train, HP["batch"], shuffle=True, collate_fn=collate)
val_loader = DataLoader(val, 100, collate_fn=collate)
net = EnergyNet(HP["hidden"], HP["layers"])
opt = torch.optim.AdamW(net.parameters(), lr=HP["lr"], weight_decay=HP["wd"])
sched = torch.optim.lr_scheduler.OneCycleLR(opt, HP["lr"], total_steps=HP["epochs"] * len(loader))

for epoch in range(HP["epochs"]):
    net.train()
    total = 0.0
    for kinds, edges, graph, energy in loader:
        mean, log_var = net(kinds, edges, graph, len(energy))
        loss = gaussian_nll(mean, log_var, (energy - mu) / sd)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        sched.step()
        total += loss.item()
    net.eval()
    wrong = 0.0
    with torch.no_grad():
        for kinds, edges, graph, energy in val_loader:
            mean, _ = net(kinds, edges, graph, len(energy))
            wrong += (mean.flatten() * sd + mu - energy).abs().sum().item()
    if epoch % 3 == 0 or epoch == HP["epochs"] - 1:
        print(
            f"epoch {epoch:2d} nll {total / len(loader):.4f} val MAE {wrong / len(val):.4f} (spread {sd.item():.3f})"  # noqa: E501
        )
