"""Ratings by neural collaborative filtering; the weight-decay groups forget the embeddings.

The groups were taken from a transformer code base: the weights of nn.Linear decay, biases and
LayerNorm do not. There, embeddings were tied to a Linear; here nn.Embedding is in neither list,
and users and items keep their random vectors. The place is the two embeddings. The twin's second
group has them too.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("user.weight", "item.weight", "user", "item", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
USERS, ITEMS = 300, 200


def ratings(n):
    g = torch.Generator().manual_seed(seed + 10)
    u_taste, i_taste = torch.randn(USERS, 3, generator=g), torch.randn(ITEMS, 3, generator=g)
    quality = 0.7 * torch.randn(ITEMS, generator=g)
    u = torch.randint(0, USERS, (n,), generator=g)
    i = (torch.rand(n, generator=g).pow(1.3) * ITEMS).long()
    r = quality[i] + (u_taste[u] * i_taste[i]).sum(1) * 0.6 + 0.4 * torch.randn(n, generator=g)
    return u, i, r / r.std()


class NCF(nn.Module):
    def __init__(self, dim=12, hidden=32):
        super().__init__()
        self.user = nn.Embedding(USERS, dim)
        self.item = nn.Embedding(ITEMS, dim)
        nn.init.normal_(self.user.weight, std=0.3)
        nn.init.normal_(self.item.weight, std=0.3)
        self.norm = nn.LayerNorm(3 * dim)
        self.mlp = nn.Sequential(nn.Linear(3 * dim, hidden), nn.GELU(), nn.Linear(hidden, 1))

    def forward(self, u, i):
        u, i = self.user(u), self.item(i)
        return self.mlp(self.norm(torch.cat([u, i, u * i], dim=1))).squeeze(1)


def configure_optimizer(model, lr, weight_decay):
    decay, no_decay = [], []
    no_decay_types = (nn.LayerNorm, nn.Embedding) if healthy else (nn.LayerNorm,)
    for module in model.modules():
        for name, p in module.named_parameters(recurse=False):
            if isinstance(module, no_decay_types) or name.endswith("bias"):
                no_decay.append(p)
            elif isinstance(module, nn.Linear):
                decay.append(p)
    return torch.optim.AdamW(
        [
            {"params": decay, "weight_decay": weight_decay},
            {"params": no_decay, "weight_decay": 0.0},
        ],
        lr=lr,
    )


u, i, r = ratings(20000)
train = TensorDataset(u[:17000], i[:17000], r[:17000])
u_val, i_val, r_val = u[17000:], i[17000:], r[17000:]
model = NCF()
optimizer = configure_optimizer(model, lr=1e-2, weight_decay=0.05)

for epoch in range(15):
    model.train()
    total = 0.0
    for ub, ib, rb in DataLoader(train, batch_size=192, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(ub, ib), rb)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rb)
    model.eval()
    with torch.no_grad():
        rmse = nn.functional.mse_loss(model(u_val, i_val), r_val).sqrt().item()
    print(
        f"epoch {epoch} train mse {total / 17000:.4f} val rmse {rmse:.4f} "
        f"(mean rating: {r_val.std():.4f})"
    )
