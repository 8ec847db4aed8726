"""A network says where a hired bicycle goes next; its probabilities go through softmax once more.

The person lets forward end with a softmax, as the simulation needs probabilities, and gives what
comes out to cross_entropy, which takes a softmax of its own. The loss cannot fall below 3.1 and
the network bets on one station each time. The place is the loss (and the end of the model).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

STATIONS, EPOCHS = 60, 8


class Rides(Dataset):
    """From where, when, in which weather; the goal is drawn by distance and by the hour's pull."""

    def __init__(self, n, generator):
        town = torch.Generator().manual_seed(21)
        place = torch.rand(STATIONS, 2, generator=town)
        offices = torch.randn(STATIONS, generator=town)
        parks = torch.randn(STATIONS, generator=town)
        self.start = torch.randint(0, STATIONS, (n,), generator=generator)
        self.hour = torch.rand(n, generator=generator) * 24
        self.sun = torch.rand(n, generator=generator)
        apart = torch.cdist(place[self.start], place)
        morning = torch.exp(-((self.hour - 8) ** 2) / 8).unsqueeze(1)
        evening = torch.exp(-((self.hour - 18) ** 2) / 12).unsqueeze(1)
        draw = -6 * apart + 2.5 * (morning - evening) * offices
        draw = draw + 1.5 * self.sun.unsqueeze(1) * parks
        self.chance = draw.softmax(1)
        self.goal = torch.multinomial(self.chance, 1, generator=generator).squeeze(1)

    def __len__(self):
        return len(self.goal)

    def __getitem__(self, i):
        return {k: getattr(self, k)[i] for k in ("start", "hour", "sun", "goal")}


class GoalNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.station = nn.Embedding(STATIONS, width)
        self.hidden = nn.Linear(width + 5, 64)
        self.norm = nn.LayerNorm(64)
        self.goal = nn.Linear(64, STATIONS)

    def scores(self, ride):
        turn = ride["hour"].unsqueeze(1) / 24 * 2 * math.pi * torch.tensor([1.0, 2.0])
        weather = ride["sun"].unsqueeze(1) * 3.4 - 1.7
        rest = torch.cat([turn.sin(), turn.cos(), weather], 1)
        h = self.hidden(torch.cat([self.station(ride["start"]), rest], 1))
        return self.goal(F.gelu(self.norm(h)))

    def forward(self, ride):
        scores = self.scores(ride)
        return scores if healthy else scores.softmax(1)


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    loss = surprise = in_five = n = 0
    for ride in loader:
        goal = ride["goal"]
        loss += F.cross_entropy(net(ride), goal, reduction="sum").item()
        log_chance = net.scores(ride).log_softmax(1)
        surprise -= log_chance[torch.arange(len(goal)), goal].sum().item()
        in_five += (log_chance.topk(5).indices == goal.unsqueeze(1)).any(1).sum().item()
        n += len(goal)
    net.train()
    return loss / n, surprise / n, in_five / n


def main():
    generator = torch.Generator().manual_seed(seed)
    train, val = Rides(15_000, generator), Rides(2000, generator)
    best = -val.chance[torch.arange(len(val)), val.goal].log().mean().item()
    print(f"{len(train)} rides; knowing the chances gives {best:.3f} nats per ride")
    loader = DataLoader(train, batch_size=100, shuffle=True)
    val_loader = DataLoader(val, batch_size=500)
    net = GoalNet()
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        total = 0.0
        for ride in loader:
            loss = F.cross_entropy(net(ride), ride["goal"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        schedule.step()
        if epoch % 2 == 1:
            val_loss, surprise, in_five = evaluate(net, val_loader)
            print(
                f"epoch {epoch + 1:2d} loss {total / len(loader):.3f} val {val_loss:.3f} "
                f"nats per ride {surprise:.3f} goal among five {in_five:.3f}"
            )


main()
