"""A regression of house prices is interrupted and resumed; the checkpoint lacks Adam's state.

Only the weights were saved. The new Adam has no second moments, so its first steps are as long as
the rate allows in every weight, and the loss jumps each time the job comes back. The place is the
optimizer after the resume. The twin saves and loads the optimizer's state too.
"""

import io

import torch
from data import arguments, houses
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
y, y_val = y.unsqueeze(1), y_val.unsqueeze(1)
mse = nn.MSELoss()


def build():
    model = nn.Sequential(
        nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    return model, torch.optim.Adam(model.parameters(), lr=8e-3, betas=(0.9, 0.999))


def validate(model):
    model.eval()
    with torch.no_grad():
        value = mse(model(x_val), y_val).item()
    model.train()
    return value


def run(model, optimizer, first, last, generator):
    worst = 0.0
    for step in range(first, last):
        rows = torch.randint(len(x), (128,), generator=generator)
        optimizer.zero_grad()
        loss = mse(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or last - first < 10:
            val = validate(model)
            worst = max(worst, val)
            print(f"step {step}: train {loss.item():.4f}  val {val:.4f}")
    return worst


generator = torch.Generator().manual_seed(seed)
model, optimizer = build()
run(model, optimizer, 0, 400, generator)
for part in range(2):
    file = io.BytesIO()
    saved = {"model": model.state_dict()}
    if healthy:
        saved["optimizer"] = optimizer.state_dict()
    torch.save(saved, file)
    before = validate(model)

    file.seek(0)
    checkpoint = torch.load(file)
    model, optimizer = build()
    model.load_state_dict(checkpoint["model"])
    if healthy:
        optimizer.load_state_dict(checkpoint["optimizer"])
    start = 400 + part * 200
    worst = run(model, optimizer, start, start + 6, generator)
    print(f"resumed at {start}: val {before:.4f} before, up to {worst:.4f} in the six steps after")
    run(model, optimizer, start + 6, start + 200, generator)
print(f"final val {validate(model):.4f}")
