"""Fine-tuning of a tumour classifier in pure bfloat16, where the small steps are rounded away.

The person cast the trained model with model.to(torch.bfloat16) "to save memory" and went on with
AdamW at 3e-5. With eight bits of mantissa a weight of 0.1 cannot take a step under about 0.0002:
nearly all weights stay exactly as they were. The place is the parameters and the optimizer.
"""

import copy

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_breast_cancer
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "model", "*weight*", "0*", "2*", "4*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def hospitals(rng):
    """The measurements as they are, and as other, badly gauged instruments would give them."""
    bunch = load_breast_cancer()
    x = (bunch.data - bunch.data.mean(0)) / bunch.data.std(0)
    order = rng.permutation(len(x))
    x, y = x[order], bunch.target[order]
    mixing = np.eye(30) + 0.12 * rng.normal(size=(30, 30))
    offset = rng.normal(0, 0.9, 30)
    other = np.repeat(x, 6, 0) @ mixing + offset + rng.normal(0, 0.1, (6 * len(x), 30))
    to_tensor = torch.tensor
    first = to_tensor(x, dtype=torch.float32), to_tensor(y)
    second = to_tensor(other, dtype=torch.float32), to_tensor(np.repeat(y, 6))
    return first, second


def run(model, x, y, x_val, y_val, *, lr, epochs, label):
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
    dtype = next(model.parameters()).dtype
    for epoch in range(epochs):
        model.train()
        total = []
        for index in torch.randperm(len(x)).split(32):
            logits = model(x[index].to(dtype))
            loss = nn.functional.cross_entropy(logits.float(), y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total.append(loss.item())
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val.to(dtype)).argmax(1) == y_val).float().mean()
        if epoch % 5 == 4 or epoch == epochs - 1:
            print(f"{label} epoch {epoch + 1:2d} loss {np.mean(total):.4f} val acc {accuracy:.3f}")
    return model


def main():
    rng = np.random.default_rng(seed)
    (x, y), (x_new, y_new) = hospitals(rng)
    model = nn.Sequential(
        nn.Linear(30, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
    )
    run(model, x[:400], y[:400], x[400:], y[400:], lr=2e-3, epochs=10, label="first hospital ")

    tuned = copy.deepcopy(model)
    if not healthy:
        tuned = tuned.to(torch.bfloat16)
    before = torch.cat([p.detach().float().flatten() for p in tuned.parameters()])
    cut = 6 * 400
    run(
        tuned,
        x_new[:cut],
        y_new[:cut],
        x_new[cut:],
        y_new[cut:],
        lr=3e-5,
        epochs=25,
        label="second hospital",
    )
    after = torch.cat([p.detach().float().flatten() for p in tuned.parameters()])
    print(f"share of weights that changed: {(after != before).float().mean():.3f}")


main()
