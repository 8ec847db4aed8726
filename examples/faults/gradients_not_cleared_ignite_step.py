"""A recommender of user and item vectors learns ratings with a pytorch-ignite Engine whose step
never clears gradients.

`optimizer.zero_grad()` was forgotten in the step handed to Engine, so every step is made with the
sum of all gradients so far. The place is the loop (train_step).
"""

import torch
from data import arguments
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.handlers import LRScheduler
from ignite.metrics import MeanAbsoluteError, RootMeanSquaredError, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def ratings(users=150, items=80, n=8000):
    g = torch.Generator().manual_seed(seed)
    taste, genre = torch.randn(users, 4, generator=g), torch.randn(items, 4, generator=g)
    mild, good = 0.5 * torch.randn(users, generator=g), 0.6 * torch.randn(items, generator=g)
    u = torch.randint(0, users, (n,), generator=g)
    i = torch.randint(0, items, (n,), generator=g)
    score = 3.3 + mild[u] + good[i] + 0.45 * (taste[u] * genre[i]).sum(1)
    stars = (score + 0.5 * torch.randn(n, generator=g)).clamp(1, 5)
    return TensorDataset(torch.stack([u, i], 1), stars - 3.3)


class FactorModel(nn.Module):
    def __init__(self, users=150, items=80, width=8):
        super().__init__()
        self.user = nn.Embedding(users, width)
        self.item = nn.Embedding(items, width)
        self.user_bias = nn.Embedding(users, 1)
        self.item_bias = nn.Embedding(items, 1)
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.3)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(self, pair):
        u, i = pair.unbind(1)
        dot = (self.user(u) * self.item(i)).sum(1)
        return dot + self.user_bias(u).squeeze(1) + self.item_bias(i).squeeze(1)


train_set, val_set = random_split(ratings(), [6800, 1200])
train_loader = DataLoader(train_set, batch_size=128, shuffle=True)
val_loader = DataLoader(val_set, batch_size=600)
model = FactorModel()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
criterion = nn.MSELoss()


def train_step(engine, batch):
    model.train()
    if healthy:
        optimizer.zero_grad()
    pair, stars = batch
    loss = criterion(model(pair), stars)
    loss.backward()
    optimizer.step()
    return loss.item()


trainer = Engine(train_step)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "loss")
evaluator = create_supervised_evaluator(
    model, metrics={"rmse": RootMeanSquaredError(), "mae": MeanAbsoluteError()}, device="cpu"
)
scheduler = LRScheduler(torch.optim.lr_scheduler.StepLR(optimizer, step_size=53, gamma=0.85))
trainer.add_event_handler(Events.ITERATION_COMPLETED, scheduler)


@trainer.on(Events.EPOCH_COMPLETED)
def log(engine):
    evaluator.run(val_loader)
    m = evaluator.state.metrics
    print(
        f"epoch {engine.state.epoch}: train mse {engine.state.metrics['loss']:.3f}, "
        f"rmse {m['rmse']:.3f}, mae {m['mae']:.3f}"
    )


trainer.run(train_loader, max_epochs=12)
print(f"validation rmse {evaluator.state.metrics['rmse']:.3f}")
