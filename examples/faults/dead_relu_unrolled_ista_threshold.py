"""Learned ISTA for non-negative sparse codes; the threshold is lambda instead of lambda / L.

z = relu(W x + S z - theta): with theta several times what the scale of W x calls for, hardly a
unit is ever active, the code is 0 and no gradient comes back - not even to theta. The twin
divides by the Lipschitz constant L, as W and S are. The place is the shrinkage and what feeds it.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("shrink*", "W", "S", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
N_OBS, N_ATOMS, LAMBDA = 24, 48, 0.5


def make_dictionary():
    d = torch.randn(N_OBS, N_ATOMS)
    return d / d.norm(dim=0)


def make_data(dictionary, n):
    active = (torch.rand(n, N_ATOMS) < 0.06).float()
    z = active * (0.5 + torch.rand(n, N_ATOMS))
    return z @ dictionary.T + 0.02 * torch.randn(n, N_OBS), z


class LISTA(nn.Module):
    def __init__(self, dictionary, n_iter=4):
        super().__init__()
        L = torch.linalg.matrix_norm(dictionary, 2).item() ** 2
        self.n_iter = n_iter
        self.W = nn.Linear(N_OBS, N_ATOMS, bias=False)
        self.S = nn.Linear(N_ATOMS, N_ATOMS, bias=False)
        self.W.weight.data = dictionary.T / L
        self.S.weight.data = torch.eye(N_ATOMS) - dictionary.T @ dictionary / L
        theta = LAMBDA / L if healthy else LAMBDA
        self.theta = nn.Parameter(torch.full((N_ATOMS,), theta))
        self.shrink = nn.ReLU()

    def forward(self, x):
        wx = self.W(x)
        z = self.shrink(wx - self.theta)
        for _ in range(self.n_iter):
            z = self.shrink(wx + self.S(z) - self.theta)
        return z


def nmse(z_hat, z):
    return (10 * torch.log10((z_hat - z).pow(2).sum() / z.pow(2).sum())).item()


D = make_dictionary()
x, z = make_data(D, 9000)
x_val, z_val = make_data(D, 500)
loader = DataLoader(TensorDataset(x, z), batch_size=50, shuffle=True)
net = LISTA(D)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(6):
    total = 0.0
    for xb, zb in loader:
        loss = (net(xb) - zb).pow(2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    with torch.no_grad():
        out = net(x_val)
    val = (out - z_val).pow(2).sum(1).mean().item()
    print(f"epoch {epoch}: loss {total:.4f}, val {val:.4f}, val NMSE {nmse(out, z_val):.2f} dB")
