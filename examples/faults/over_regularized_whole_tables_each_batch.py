"""FunkSVD for ratings: the penalty takes the norms of both whole tables in every batch.

lambda = 0.02 is Koren's, for the rows of the one rating at hand and summed over ratings; added to
a mean loss as 0.02 * ||P||^2 + 0.02 * ||Q||^2 of all users and items it is hundreds of times as
strong: the factors shrink to nothing, and all that is predicted are the biases. The twin
penalises the rows of the batch, averaged. The place is the tables and the loss. The loss falls
(silent).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("user_factors", "item_factors", "loss*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ITEMS, K, N = 150, 100, 8, 10000

taste, style = torch.randn(USERS, 3), torch.randn(ITEMS, 3)
u, i = torch.randint(0, USERS, (N,)), torch.randint(0, ITEMS, (N,))
stars = 3.4 + 0.3 * torch.randn(USERS)[u] + 0.4 * torch.randn(ITEMS)[i]
stars = (stars + 0.55 * (taste[u] * style[i]).sum(1) + 0.3 * torch.randn(N)).clamp(1, 5)


class FunkSVD(nn.Module):
    def __init__(self):
        super().__init__()
        self.user_factors, self.item_factors = nn.Embedding(USERS, K), nn.Embedding(ITEMS, K)
        self.user_bias, self.item_bias = nn.Embedding(USERS, 1), nn.Embedding(ITEMS, 1)
        for table in (self.user_factors, self.item_factors):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)
        self.mean = nn.Parameter(torch.tensor(3.0))

    def forward(self, u, i):
        bias = self.user_bias(u) + self.item_bias(i)
        return self.mean + bias.squeeze(1) + (self.user_factors(u) * self.item_factors(i)).sum(1)

    def regularization(self, u, i):
        if healthy:
            return (
                self.user_factors(u).pow(2).sum(1).mean()
                + self.item_factors(i).pow(2).sum(1).mean()
            )
        return self.user_factors.weight.norm() ** 2 + self.item_factors.weight.norm() ** 2


train = DataLoader(TensorDataset(u[:8500], i[:8500], stars[:8500]), batch_size=100, shuffle=True)
val = [part[8500:] for part in (u, i, stars)]
LAMBDA = 0.02
model = FunkSVD()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(8):
    mse = 0.0
    for ub, ib, rb in train:
        fit = nn.functional.mse_loss(model(ub, ib), rb)
        loss = fit + LAMBDA * model.regularization(ub, ib)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mse += fit.item() / len(train)
    with torch.no_grad():
        val_mse = nn.functional.mse_loss(model(val[0], val[1]), val[2]).item()
    print(
        f"epoch {epoch}: loss {loss.item():.3f}  train "
        f"rmse {mse**0.5:.3f}  val rmse {val_mse**0.5:.3f}"
    )
