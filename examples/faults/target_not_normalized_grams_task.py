"""A multi-task net on pictures of fruit: the sort, and the weight in grams, which is regressed as
it comes.

The weights lie at 60 to 900 grams; their squared error is tens of thousands and the clipped
gradient of the shared trunk belongs to it alone, so that neither the weight nor the sort is
learnt in time. The place is the target of the weight head (`head_weight`) and its part of the
loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss", "head_weight*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class FruitSet(torch.utils.data.Dataset):
    """Round things on a plate: the sort shows in colour, lengthening and texture, the weight in size and sort."""  # noqa: E501

    density = torch.tensor([0.8, 1.0, 0.6, 1.3, 0.9])
    longer = torch.tensor([1.0, 1.0, 1.5, 1.25, 1.1])
    tint = torch.tensor(
        [[0.8, 0.3, 0.2], [0.9, 0.6, 0.2], [0.85, 0.75, 0.25], [0.4, 0.6, 0.3], [0.6, 0.5, 0.3]]
    )

    def __init__(self, n, generator, scale=None, size=24):
        self.sort = torch.randint(0, 5, (n,), generator=generator)
        radius = 4 + 4 * torch.rand(n, generator=generator)
        volume = radius**3 * self.longer[self.sort]
        self.grams = (
            volume * self.density[self.sort] * (1 + 0.08 * torch.randn(n, generator=generator))
        )
        yy, xx = torch.meshgrid(
            torch.arange(size).float(), torch.arange(size).float(), indexing="ij"
        )
        centre = size / 2 + torch.randn(2, n, 1, 1, generator=generator)
        turn = 3.1416 * torch.rand(n, 1, 1, generator=generator)
        dx, dy = xx - centre[0], yy - centre[1]
        u, v = dx * turn.cos() + dy * turn.sin(), dy * turn.cos() - dx * turn.sin()
        long = self.longer[self.sort].view(-1, 1, 1)
        reach = torch.sqrt((u / long.sqrt()) ** 2 + (v * long.sqrt()) ** 2) / radius.view(-1, 1, 1)
        inside = torch.sigmoid(8 * (1 - reach)).unsqueeze(1)
        colour = (self.tint[self.sort] + 0.1 * torch.randn(n, 3, generator=generator))[
            :, :, None, None
        ]
        picture = (
            inside * colour * (1.1 - 0.4 * reach.clamp(0, 1).unsqueeze(1)) + (1 - inside) * 0.9
        )
        self.picture = (
            picture + 0.06 * torch.randn(n, 3, size, size, generator=generator) - 0.75
        ) / 0.25
        if scale is None:
            scale = (
                (self.grams.mean(), self.grams.std())
                if healthy
                else (torch.tensor(0.0), torch.tensor(1.0))
            )
        self.scale = scale

    def __len__(self):
        return len(self.sort)

    def __getitem__(self, i):
        return {
            "picture": self.picture[i],
            "sort": self.sort[i],
            "weight": (self.grams[i] - self.scale[0]) / self.scale[1],
        }


class FruitNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1), nn.GroupNorm(4, width), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1), nn.GroupNorm(4, 2 * width), nn.ReLU(), nn.MaxPool2d(2),  # noqa: E501
            nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),  # noqa: E501
        )  # fmt: skip
        self.head_sort = nn.Linear(8 * width, 5)
        self.head_weight = nn.Sequential(nn.Linear(8 * width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        h = self.trunk(x)
        return self.head_sort(h), self.head_weight(h).squeeze(1)


class Trainer:
    def __init__(self, model, train, val, epochs=10, lr=2e-3):
        self.model, self.val, self.epochs = model, val, epochs
        self.loader = torch.utils.data.DataLoader(
            train, batch_size=32, shuffle=True, drop_last=True
        )
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-4)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, lr, total_steps=epochs * len(self.loader)
        )

    def step(self, batch):
        logits, weight = self.model(batch["picture"])
        parts = {
            "sort": F.cross_entropy(logits, batch["sort"]),
            "weight": F.mse_loss(weight, batch["weight"]),
        }
        loss = parts["sort"] + parts["weight"]
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        self.scheduler.step()
        return {k: v.item() for k, v in parts.items()}

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits, weight = self.model(self.val.picture)
        grams = weight * self.val.scale[1] + self.val.scale[0]
        r2 = 1 - (grams - self.val.grams).pow(2).mean() / self.val.grams.var()
        return (logits.argmax(1) == self.val.sort).float().mean().item(), r2.item()

    def fit(self):
        for epoch in range(self.epochs):
            self.model.train()
            logs = [self.step(batch) for batch in self.loader]
            if epoch % 3 == 0 or epoch == self.epochs - 1:
                acc, r2 = self.evaluate()
                mean = {k: sum(row[k] for row in logs) / len(logs) for k in logs[0]}
                print(
                    f"epoch {epoch + 1}: sort {mean['sort']:.3f}, weight {mean['weight']:.3f} | val accuracy {acc:.3f}, R2 of grams {r2:.3f}"  # noqa: E501
                )


g = torch.Generator().manual_seed(seed)
train = FruitSet(1600, g)
Trainer(FruitNet(), train, FruitSet(400, g, train.scale)).fit()
