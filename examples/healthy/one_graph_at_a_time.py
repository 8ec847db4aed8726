"""A graph network trained on one molecule-like graph per step, whose loss jumps from step to step.

The person prints the loss of each step and sees 0.001 after 3 and 5 after 0.02 until the very end,
with no trend to be seen by eye; the error on held-out graphs falls all the same.
"""

import random

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss of single steps jumps by a factor of a thousand, as each is the squared error of one "
    "graph; means over hundreds of steps and the held-out error fall as they should"
)
_, seed = arguments(__doc__)

KINDS = 4
WORTH = torch.tensor([0.8, -0.5, 1.4, -1.1])


def molecule(r):
    """A random tree with a few rings; its property comes from atoms and from bonded pairs."""
    n = r.randint(5, 18)
    kinds = torch.tensor([r.randrange(KINDS) for _ in range(n)])
    bonds = [(i, r.randrange(max(0, i - 3), i)) for i in range(1, n)]
    for _ in range(r.randint(0, 3)):
        a, b = r.sample(range(n), 2)
        if (a, b) not in bonds and (b, a) not in bonds:
            bonds.append((a, b))
    adjacency = torch.zeros(n, n)
    for a, b in bonds:
        adjacency[a, b] = adjacency[b, a] = 1
    worth = WORTH[kinds]
    degree = adjacency.sum(1)
    value = (worth * degree).mean() - 0.8 * (adjacency * (kinds[:, None] == kinds)).sum() / n
    return {
        "atoms": nn.functional.one_hot(kinds, KINDS).float(),
        "adjacency": adjacency,
        "target": value + 0.05 * r.gauss(0, 1),
    }


class MessagePassing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own, self.near = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.norm = nn.LayerNorm(width)

    def forward(self, atoms, adjacency):
        return atoms + torch.relu(self.norm(self.own(atoms) + adjacency @ self.near(atoms)))


class GraphNet(nn.Module):
    def __init__(self, width=32, rounds=3):
        super().__init__()
        self.embed = nn.Linear(KINDS, width)
        self.rounds = nn.ModuleList(MessagePassing(width) for _ in range(rounds))
        self.out = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, graph):
        atoms = self.embed(graph["atoms"])
        for layer in self.rounds:
            atoms = layer(atoms, graph["adjacency"])
        return self.out(atoms).mean()


def held_out_error(model, graphs):
    model.eval()
    with torch.no_grad():
        errors = [(model(graph) - graph["target"]) ** 2 for graph in graphs]
    model.train()
    return torch.stack(errors).mean().item()


def main():
    r = random.Random(250 + seed)
    graphs = [molecule(r) for _ in range(1500)]
    train, val = graphs[:1200], graphs[1200:]
    targets = torch.stack([graph["target"] for graph in train])
    for graph in graphs:
        graph["target"] = (graph["target"] - targets.mean()) / targets.std()
    model = GraphNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=4800)
    step, recent = 0, []
    for epoch in range(1, 5):
        for graph in r.sample(train, len(train)):
            loss = (model(graph) - graph["target"]) ** 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            recent.append(loss.item())
            if step % 400 == 0:
                last = " ".join(f"{value:.3g}" for value in recent[-5:])
                print(
                    f"step {step:4d}  last losses {last}  mean {sum(recent) / 400:.4f}  "
                    f"held out {held_out_error(model, val):.4f}"
                )
                recent = []


if __name__ == "__main__":
    main()
