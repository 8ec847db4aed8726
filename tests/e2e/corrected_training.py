"""A training on scikit-learn's digits that goes wrong in a way that can be put right.

usage: corrected_training.py FAULT OUT.json [OPTION...], see --help
Writes the loss after each step, the last test accuracy and a digest of the parameters.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time

import torch
from digits_data import load_digits
from torch import nn

STEPS = 360
BAD_STEP = 150

parser = argparse.ArgumentParser()
parser.add_argument(
    "fault", choices=["nan_batch", "huge_batch", "high_lr", "unstable", "warm_up", "none"]
)
parser.add_argument("out")
parser.add_argument("--closure", action="store_true")
parser.add_argument("--scheduler", action="store_true")
parser.add_argument("--lr", type=float, default=1.0, help="of high_lr")
parser.add_argument("--bad-steps", type=int, default=1, help="from step 150 on")
parser.add_argument("--pause", type=float, default=0.0, help="seconds that a step takes more")
parser.add_argument("--steps", type=int, default=STEPS)
parser.add_argument("--resume", help="a checkpoint of traindbg's")
parser.add_argument("--evaluate", type=int, default=0, help="so often, on ten batches")
parser.add_argument("--save", help="where model and optimizer go at the end")
options = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
images, digits = load_digits()
x = torch.tensor(images, dtype=torch.float32) / 16
y = torch.tensor(digits)
order = torch.randperm(len(x))
train, test = order[:1500], order[1500:]
model = nn.Sequential(
    nn.Linear(64, 64), nn.Tanh(), nn.Dropout(0.1), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 10)
)
rate, momentum = options.lr if options.fault == "high_lr" else 0.1, 0.9
if options.fault == "unstable":  # least squares: diverges above a learning rate of about 1
    model, rate, momentum = nn.Linear(64, 10), 0.9, 0.0
optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum)
scheduler = None
if options.scheduler:
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0 - step / 20000)
first = 0
if options.resume:
    content = torch.load(options.resume, weights_only=True)
    model.load_state_dict(content["models"][""])
    optimizer.load_state_dict(content["optimizers"][0])
    first = content["step"]
losses = []
rates = []
for step in range(first, options.steps):
    if options.fault == "warm_up":  # to a rate that is too high: it learns, then diverges
        optimizer.param_groups[0]["lr"] = 1.2 * min(1.0, (step + 1) / 500)
    chosen = train[torch.randint(len(train), (64,))]
    inputs, labels = x[chosen], y[chosen]
    if BAD_STEP <= step < BAD_STEP + options.bad_steps and options.fault == "nan_batch":
        inputs = inputs / 0.0
    if BAD_STEP <= step < BAD_STEP + options.bad_steps and options.fault == "huge_batch":
        labels = (labels + 1) % 10
        weights = torch.full((10,), 1e6)
    else:
        weights = torch.ones(10)

    def loss_of_batch(inputs=inputs, labels=labels, weights=weights):
        optimizer.zero_grad()
        if options.fault == "unstable":
            loss = nn.functional.mse_loss(model(inputs), nn.functional.one_hot(labels, 10).float())
        else:
            loss = nn.functional.cross_entropy(model(inputs), labels) * weights.mean()
        loss.backward()
        return loss

    if options.closure:
        loss = optimizer.step(loss_of_batch)
    else:
        loss = loss_of_batch()
        optimizer.step()
    if scheduler is not None:
        scheduler.step()
    is_near = options.fault == "warm_up" and 280 <= step < 340  # where it begins to diverge
    time.sleep(options.pause * (10 if is_near else 1))
    losses.append(loss.item())
    rates.append(optimizer.param_groups[0]["lr"])
    if options.evaluate and step % options.evaluate == options.evaluate - 1:
        model.eval()
        with torch.no_grad():
            for part in test[:160].split(16):
                nn.functional.cross_entropy(model(x[part]), y[part])
        model.train()

if options.save:
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, options.save)
model.eval()
with torch.no_grad():
    accuracy = (model(x[test]).argmax(1) == y[test]).float().mean().item()
digest = hashlib.sha256()
for tensor in model.state_dict().values():
    digest.update(tensor.numpy().tobytes())
result = {
    "losses": losses,
    "rates": rates,
    "accuracy": accuracy,
    "digest": digest.hexdigest(),
    "random": torch.rand(1).item(),
}
with open(options.out, "w", encoding="utf-8") as file:
    json.dump(result, file)
