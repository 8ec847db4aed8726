"""A restricted Boltzmann machine on binary digits: persistent contrastive divergence by autograd
of the difference of two free energies.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = (
    "the loss is a gap between two energies: it goes up "
    "and down around 0 and does not say what is learnt"
)

_, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x, x_val = (x > 7).float(), (x_val > 7).float()


class RBM(nn.Module):
    def __init__(self, visible=64, hidden=64):
        super().__init__()
        self.weight = nn.Parameter(0.01 * torch.randn(hidden, visible))
        share = x.mean(0).clamp(0.02, 0.98)
        self.visible_bias = nn.Parameter((share / (1 - share)).log())
        self.hidden_bias = nn.Parameter(torch.zeros(hidden))

    def free_energy(self, v):
        return -(v @ self.visible_bias) - F.softplus(
            F.linear(v, self.weight, self.hidden_bias)
        ).sum(1)

    forward = free_energy

    @torch.no_grad()
    def gibbs(self, v, k=1):
        for _ in range(k):
            h = torch.bernoulli(F.linear(v, self.weight, self.hidden_bias).sigmoid())
            v = torch.bernoulli(F.linear(h, self.weight.t(), self.visible_bias).sigmoid())
        return v

    @torch.no_grad()
    def reconstruction(self, v):
        h = F.linear(v, self.weight, self.hidden_bias).sigmoid()
        return F.binary_cross_entropy_with_logits(
            F.linear(h, self.weight.t(), self.visible_bias), v
        ).item()

    @torch.no_grad()
    def pseudo_likelihood(self, v):
        flipped, i = v.clone(), torch.randint(64, (len(v),))
        rows = torch.arange(len(v))
        flipped[rows, i] = 1 - flipped[rows, i]
        return 64 * F.logsigmoid(self.free_energy(flipped) - self.free_energy(v)).mean().item()


rbm = RBM()
optimizer = torch.optim.SGD(rbm.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, 40)
chains = torch.bernoulli(torch.full((48, 64), 0.4))
for epoch in range(40):
    gaps = []
    for rows in torch.randperm(len(x)).split(48):
        chains = rbm.gibbs(chains)
        loss = rbm.free_energy(x[rows]).mean() - rbm.free_energy(chains).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        gaps.append(loss.item())
    schedule.step()
    if epoch % 8 == 7:
        print(
            f"epoch {epoch + 1} gap {sum(gaps) / len(gaps):+.3f} pseudo-likelihood "
            f"{rbm.pseudo_likelihood(x):.2f} val {rbm.pseudo_likelihood(x_val):.2f} "
            f"reconstruction {rbm.reconstruction(x):.3f} val {rbm.reconstruction(x_val):.3f}"
        )
