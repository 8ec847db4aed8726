"""Q-learning for a warehouse: values of shape (batch, 1) meet targets of shape (batch,).

The person wrote the squared error as (values - targets).pow(2).mean(). Without the squeeze after
gather the difference is a square of batch by batch: each value is pulled to the mean of all the
targets, and no warning comes, as it does with the ready-made losses. The place is the loss.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SPACE, MOST_ORDERED, SHELVES = 20, 6, 64
PRICE, COST, STORAGE, MISSED, DELIVERY = 4.0, 2.0, 0.15, 1.5, 1.0
DISCOUNT = 0.9


class Warehouses:
    """Many warehouses at once: stock, the day of the week, and an order that comes overnight."""

    def __init__(self, count):
        self.stock = torch.randint(0, SPACE, (count,)).float()
        self.day = torch.randint(0, 7, (count,))

    def state(self):
        angle = self.day * (2 * torch.pi / 7)
        return torch.stack([self.stock / SPACE * 2 - 1, angle.sin(), angle.cos()], 1)

    def step(self, ordered):
        arrived = torch.minimum(ordered.float(), SPACE - self.stock)
        wanted = torch.poisson(torch.where(self.day >= 5, 5.0, 1.8))
        available = self.stock + arrived
        sold = torch.minimum(available, wanted)
        reward = PRICE * sold - COST * arrived - MISSED * (wanted - sold)
        self.stock = available - sold
        self.day = (self.day + 1) % 7
        return (reward - STORAGE * self.stock - DELIVERY * (ordered > 0)) / 5


class Memory:
    def __init__(self):
        self.rows = []

    def add(self, *row):
        self.rows.append(row)
        self.rows = self.rows[-120:]

    def sample(self, size):
        columns = [torch.cat(column) for column in zip(*self.rows, strict=True)]
        index = torch.randint(0, len(columns[0]), (size,))
        return [column[index] for column in columns]


def td_loss(network, target_network, states, actions, rewards, following):
    values = network(states).gather(1, actions.unsqueeze(1))
    if healthy:
        values = values.squeeze(1)
    with torch.no_grad():
        targets = rewards + DISCOUNT * target_network(following).max(1).values
    return (values - targets).pow(2).mean()


@torch.no_grad()
def profit_per_day(network):
    warehouses, total = Warehouses(300), 0.0
    for _ in range(70):
        total += warehouses.step(network(warehouses.state()).argmax(1)).mean().item()
    return total / 70 * 5


def main():
    network = nn.Sequential(
        nn.Linear(3, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, MOST_ORDERED + 1)
    )
    target_network = copy.deepcopy(network)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    shelves, memory = Warehouses(SHELVES), Memory()
    print(f"before: {profit_per_day(network):.2f} a day")
    steps = 1800
    for step in range(steps):
        states = shelves.state()
        with torch.no_grad():
            actions = network(states).argmax(1)
        explore = torch.rand(SHELVES) < max(0.1, 1 - step / 800)
        actions = torch.where(explore, torch.randint(0, MOST_ORDERED + 1, (SHELVES,)), actions)
        rewards = shelves.step(actions)
        memory.add(states, actions, rewards, shelves.state())
        loss = td_loss(network, target_network, *memory.sample(128))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        for slow, fast in zip(target_network.parameters(), network.parameters(), strict=True):
            slow.data.lerp_(fast.data, 0.02)
        if step % 300 == 299:
            print(f"step {step + 1} loss {loss:.3f} profit {profit_per_day(network):.2f} a day")


main()
