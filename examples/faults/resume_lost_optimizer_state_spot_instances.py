"""Property values on spot instances: every epoch's end is a preemption, and only the weights come
back.

The checkpoint has both, but `resume` loads the optimizer's state first and then builds the
optimizer anew around the loaded model. Adam's moments and the rate of its schedule start over each
time: a jolt, and never the fine steps at the end. The place is the optimizer (its state). The twin
loads the state into the optimizer it uses.
"""

import io

import torch
from data import arguments, batches, standardise
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ("loss_spike",)
PLACE = ("optimizer", "schedule", "loop")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(seed)
raw = torch.rand(3200, 8, generator=g)
value = (
    2 * raw[:, 0] * raw[:, 1] + torch.sin(5 * raw[:, 2]) + (raw[:, 3] - 0.4).abs() + raw[:, 4] ** 2
)
value = value + 0.5 * torch.sin(6 * raw[:, 5] * raw[:, 6]) + 0.02 * torch.randn(3200, generator=g)
x, x_val = standardise(raw[:2560], raw[2560:])
y, y_val = standardise(value[:2560, None], value[2560:, None])
EPOCHS, STEPS = 10, 80


def make_model():
    return nn.Sequential(
        nn.Linear(8, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 1)
    )


def make_optimizer(model):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return optimizer, torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS * STEPS)


def save(model, optimizer, schedule):
    file = io.BytesIO()
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "schedule": schedule.state_dict(),
        },
        file,
    )
    file.seek(0)
    return file


def resume(file):
    state = torch.load(file)
    model = make_model()
    model.load_state_dict(state["model"])
    optimizer, schedule = make_optimizer(model)
    optimizer.load_state_dict(state["optimizer"])
    schedule.load_state_dict(state["schedule"])
    if not healthy:
        optimizer, schedule = make_optimizer(model)
    return model, optimizer, schedule


model = make_model()
optimizer, schedule = make_optimizer(model)
checkpoint = None
for epoch in range(EPOCHS):
    if checkpoint is not None:
        model, optimizer, schedule = resume(checkpoint)
    model.train()
    losses = []
    for batch, target in batches(x, y, size=16, steps=STEPS, seed=100 * seed + epoch):
        loss = nn.functional.mse_loss(model(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val).item()
    print(
        f"epoch {epoch} first {losses[0]:.4f} worst {max(losses):.4f} "
        f"mean {sum(losses) / STEPS:.4f} val {val:.4f}"
    )
    checkpoint = save(model, optimizer, schedule)
