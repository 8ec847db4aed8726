"""A message passing network takes road graphs one at a time and sums up the gradients of 24.

The person could not stack graphs of different size, so each is a batch of its own and the
optimizer steps after every 24 of them. The loss of each goes into backward as it is: the step is
24 times as large as the rate was chosen for. The place is the loop: the loss before backward.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high", "exploding_gradient")
PLACE = ("loop", "loss", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

ACCUMULATE, EPOCHS = 24, 22


def road_graph(generator):
    """Crossings with places; the answer is the mean traffic, by length and neighbours' density."""
    n = int(torch.randint(8, 22, (1,), generator=generator))
    place = torch.rand(n, 2, generator=generator)
    apart = torch.cdist(place, place)
    near = ((apart < 0.35) & (apart > 0)).float()
    people = torch.rand(n, 1, generator=generator)
    flow = (near * torch.exp(-2 * apart)) @ people
    traffic = (flow * (1 + people)).mean() + 0.3 * torch.sin(4 * people.mean())
    traffic = traffic + 0.05 * torch.randn((), generator=generator)
    nodes = torch.cat([people * 3.5 - 1.75, near.sum(1, keepdim=True) / 3 - 1.3], 1)
    return {"nodes": nodes, "near": near, "apart": apart, "traffic": traffic}


class RoadNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.enter = nn.Linear(2, width)
        self.message = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.stay = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.read = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, graph):
        h = torch.relu(self.enter(graph["nodes"]))
        weight = graph["near"] * torch.exp(-2 * graph["apart"])
        for message, stay in zip(self.message, self.stay, strict=True):
            h = torch.relu(stay(h) + message(weight @ h / 3))
        return self.read(h.mean(0)).squeeze()


class Trainer:
    def __init__(self, model, graphs, held_out):
        self.model, self.graphs, self.held_out = model, graphs, held_out
        self.optimizer = torch.optim.SGD(
            model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4
        )
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, EPOCHS)

    def loss(self, graph):
        return (self.model(graph) - graph["traffic"]) ** 2

    def epoch(self):
        total = 0.0
        self.optimizer.zero_grad()
        for count, i in enumerate(torch.randperm(len(self.graphs)).tolist(), 1):
            loss = self.loss(self.graphs[i])
            (loss / ACCUMULATE if healthy else loss).backward()
            total += loss.item()
            if count % ACCUMULATE == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        self.schedule.step()
        return total / len(self.graphs)

    @torch.no_grad()
    def validate(self):
        return sum(self.loss(graph).item() for graph in self.held_out) / len(self.held_out)


def main():
    generator = torch.Generator().manual_seed(seed)
    graphs = [road_graph(generator) for _ in range(480)]
    traffic = torch.stack([graph["traffic"] for graph in graphs[:360]])
    for graph in graphs:
        graph["traffic"] = (graph["traffic"] - traffic.mean()) / traffic.std()
    trainer = Trainer(RoadNet(), graphs[:360], graphs[360:])
    for epoch in range(EPOCHS):
        train = trainer.epoch()
        if epoch % 3 == 0 or epoch == EPOCHS - 1:
            val = trainer.validate()
            print(f"epoch {epoch:2d} train {train:.4f} val {val:.4f} (rmse {math.sqrt(val):.3f})")


main()
