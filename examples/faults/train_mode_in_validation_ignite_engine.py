"""A dropout network recognises gestures by sensor windows with pytorch-ignite; its own evaluation
step forgets `eval()`.

The user wrote the evaluator as an Engine with a step of his own, under no_grad but without
`model.eval()`, so dropout drops and batch norm uses the batch in validation. The place is the
loop (the evaluation step).
"""

import numpy as np
import torch
from data import arguments
from ignite.engine import Engine, Events
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def gestures(n, seed, length=32):
    r = np.random.default_rng(seed)
    y = r.integers(0, 6, n)
    t = np.linspace(0, 1, length)
    phase = r.uniform(0, 0.5, (n, 1))
    speed = np.array([1, 1, 2, 2, 3, 3])[y][:, None] * r.uniform(0.85, 1.15, (n, 1))
    turn = np.where(y % 2, 1, -1)[:, None]
    angle = 2 * np.pi * (speed * t + phase)
    x = np.stack([np.cos(angle), turn * np.sin(angle), np.gradient(np.cos(angle), axis=1) * 3], 1)
    x = x * r.uniform(0.6, 1.3, (n, 1, 1)) + 0.75 * r.normal(size=x.shape)
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


train_loader = DataLoader(gestures(1200, 10 * seed), batch_size=32, shuffle=True, drop_last=True)
val_loader = DataLoader(gestures(400, 10 * seed + 1), batch_size=40)
model = nn.Sequential(
    nn.Conv1d(3, 24, 5, padding=2),
    nn.BatchNorm1d(24),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(24, 48, 5, padding=2),
    nn.BatchNorm1d(48),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(4),
    nn.Flatten(),
    nn.Dropout(0.5),
    nn.Linear(192, 64),
    nn.ReLU(),
    nn.Dropout(0.5),
    nn.Linear(64, 6),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
criterion = nn.CrossEntropyLoss()


def train_step(engine, batch):
    model.train()
    optimizer.zero_grad()
    x, y = batch
    loss = criterion(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


def validation_step(engine, batch):
    if healthy:
        model.eval()
    with torch.no_grad():
        x, y = batch
        return model(x), y


trainer = Engine(train_step)
evaluator = Engine(validation_step)
Accuracy().attach(evaluator, "accuracy")
Loss(criterion).attach(evaluator, "loss")


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(val_loader)
    metrics = evaluator.state.metrics
    print(
        f"Epoch[{engine.state.epoch}] train loss {engine.state.output:.3f}, "
        f"val loss {metrics['loss']:.3f}, val accuracy {metrics['accuracy']:.3f}"
    )


trainer.run(train_loader, max_epochs=14)
print(f"validation accuracy {evaluator.state.metrics['accuracy']:.3f}")
