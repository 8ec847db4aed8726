"""Population based training: three networks learn side by side; now and then the worst takes over
the best's weights and a changed rate."""

import copy
import random

import torch
from data import arguments, digits
from torch import nn

ODD = (
    "weights and optimizer state are replaced in the middle, rates jump up and down, each "
    "step trains another model"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
fit, judge = (
    slice(0, 1100),
    slice(1100, None),
)  # the outer loop chooses by a part of the training set
criterion = nn.CrossEntropyLoss()


class Member:
    def __init__(self, rate):
        self.net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 10))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=rate, momentum=0.9)

    def learn(self, steps):
        self.net.train()
        for _ in range(steps):
            rows = torch.randint(1100, (32,))
            self.optimizer.zero_grad()
            criterion(self.net(x[fit][rows]), y[fit][rows]).backward()
            self.optimizer.step()

    def worth(self, pixels, labels):
        self.net.eval()
        with torch.no_grad():
            return -criterion(self.net(pixels), labels).item()

    def take_over(self, other):
        self.net.load_state_dict(copy.deepcopy(other.net.state_dict()))
        self.optimizer.load_state_dict(copy.deepcopy(other.optimizer.state_dict()))
        for group in self.optimizer.param_groups:
            group["lr"] = min(0.05, group["lr"] * random.choice((0.7, 1.4)))


population = [Member(rate) for rate in (0.005, 0.015, 0.03)]
for generation in range(8):
    for member in population:
        member.learn(40)
    population.sort(key=lambda m: m.worth(x[judge], y[judge]))
    if generation < 7:
        population[0].take_over(population[-1])
best = population[-1]
accuracy = (best.net(x_val).argmax(1) == y_val).float().mean()
print(
    f"validation loss {-best.worth(x_val, y_val):.3f}, accuracy "
    f"{accuracy:.3f}, rate {best.optimizer.param_groups[0]['lr']:.4f}"
)
