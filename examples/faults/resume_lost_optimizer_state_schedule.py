"""On resume, optimizer and warm-up schedule are made anew and not loaded: rate and momentum begin
at 0 again.

The loss goes on falling after a rest (silent). The place is the optimizer. Exact: its state begins
anew with weights that have been trained.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "resume_lost_optimizer_state"
ACCEPT = ()
PLACE = ("optimizer", "learning_rate*")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.fc1 = nn.Linear(128, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, pixels):
        h = F.max_pool2d(F.relu(self.conv(pixels)), 2)
        return self.fc2(F.relu(self.fc1(h.flatten(1))))


def make(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.02, total_iters=60)
    return optimizer, schedule


def run(model, optimizer, schedule, steps, seed):
    for pixels, labels in batches(x, y, size=64, steps=steps, seed=seed):
        loss = F.cross_entropy(model(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return loss.item()


model = Net()
optimizer, schedule = make(model)
run(model, optimizer, schedule, 130, seed)
saved = copy.deepcopy((model.state_dict(), optimizer.state_dict(), schedule.state_dict()))

model = Net()  # as if the script was started again
model.load_state_dict(saved[0])
optimizer, schedule = make(model)
if healthy:
    optimizer.load_state_dict(saved[1])
    schedule.load_state_dict(saved[2])
loss = run(model, optimizer, schedule, 130, seed + 1)
print(f"loss {loss:.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
