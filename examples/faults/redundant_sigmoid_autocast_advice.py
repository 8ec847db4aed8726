"""Neural collaborative filtering for clicks; nn.BCELoss was replaced by nn.BCEWithLogitsLoss on
the advice of an autocast error message, and the sigmoid at the model's end stayed.

What the loss takes for logits lies in [0, 1]: no click can be given less than 0.5, so for data
with a quarter of clicks the loss stays near 0.69 and the model learns next to nothing.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "*sigmoid*", "*predict*")
SILENT = True
EXACT = True
EARLY = True


class Clicks(Dataset):
    def __init__(self, n, users=120, items=80):
        taste, style = torch.randn(users, 3), torch.randn(items, 3)
        self.user = torch.randint(users, (n,))
        self.item = torch.randint(items, (n,))
        score = 2.5 * (taste[self.user] * style[self.item]).sum(1) - 2.0
        self.click = (torch.rand(n) < score.sigmoid()).float()

    def __len__(self):
        return len(self.click)

    def __getitem__(self, i):
        return self.user[i], self.item[i], self.click[i]


class NCF(nn.Module):
    """The product path and the MLP path, as in He et al. 2017."""

    def __init__(self, users, items, dim=8, last_sigmoid=True):
        super().__init__()
        self.user_gmf = nn.Embedding(users, dim)
        self.item_gmf = nn.Embedding(items, dim)
        self.user_mlp = nn.Embedding(users, dim)
        self.item_mlp = nn.Embedding(items, dim)
        for table in (self.user_gmf, self.item_gmf, self.user_mlp, self.item_mlp):
            nn.init.normal_(table.weight, std=0.3)
        self.mlp = nn.Sequential(nn.Linear(2 * dim, 32), nn.ReLU(), nn.Linear(32, 8), nn.ReLU())
        self.predict = nn.Linear(dim + 8, 1)
        self.sigmoid = nn.Sigmoid() if last_sigmoid else nn.Identity()

    def forward(self, user, item):
        product = self.user_gmf(user) * self.item_gmf(item)
        mixed = self.mlp(torch.cat([self.user_mlp(user), self.item_mlp(item)], dim=-1))
        return self.sigmoid(self.predict(torch.cat([product, mixed], dim=-1))).squeeze(-1)


healthy, seed = arguments(__doc__)
data = Clicks(24000)
train_loader = DataLoader(Subset(data, range(20000)), batch_size=256, shuffle=True)
val_loader = DataLoader(Subset(data, range(20000, 24000)), batch_size=800)
model = NCF(120, 80, last_sigmoid=not healthy)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-3, weight_decay=2e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.4)

for epoch in range(10):
    model.train()
    sum_loss = 0.0
    for user, item, click in train_loader:
        model.zero_grad()
        loss = criterion(model(user, item), click)
        loss.backward()
        optimizer.step()
        sum_loss += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = [(model(u, i), c) for u, i, c in val_loader]
    out, click = (torch.cat(part) for part in zip(*val, strict=True))
    val_loss = criterion(out, click).item()
    above = out[click == 1].unsqueeze(1) > out[click == 0].unsqueeze(0)
print(
    f"loss {sum_loss / len(train_loader):.3f}, val loss {val_loss:.3f}, "
    f"AUC {above.float().mean():.3f}, share of clicks {data.click.mean():.2f}"
)
