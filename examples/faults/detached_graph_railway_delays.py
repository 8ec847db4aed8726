"""Predicting the delay of a train at its last stop; the part that reads the journey learns nothing.

The journey is read by a recurrent encoder, its last state kept in a small cache of the train for
the dispatcher's board, and the head works on what lies in the cache. States are put there with
`.detach()`, for the board must not hold graphs, and so the head's gradient ends at the cache.
The place is the encoder (stops, reader). The twin detaches only what the board shows.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("stops", "reader", "encoder", "gru", "proj")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

STATIONS, STOPS = 30, 10
slack = torch.rand(STATIONS) * 2.5  # minutes a train can win back at a station
busy = torch.rand(STATIONS)


def journeys(n):
    """Station numbers, the minutes lost on the way to each, and the delay at the end."""
    station = torch.randint(0, STATIONS, (n, STOPS))
    lost = torch.distributions.Exponential(0.7).sample((n, STOPS))
    delay = torch.zeros(n)
    for stop in range(STOPS):
        here = station[:, stop]
        delay = (delay + lost[:, stop] * (0.5 + busy[here]) - slack[here]).clamp(min=0)
    return station, lost, delay + 0.1 * torch.randn(n)


class JourneyReader(nn.Module):
    def __init__(self):
        super().__init__()
        self.stops = nn.Embedding(STATIONS, 12)
        self.reader = nn.GRU(13, 40, batch_first=True)

    def forward(self, station, lost):
        steps = torch.cat([self.stops(station), lost.unsqueeze(-1) / 2], dim=-1)
        _, state = self.reader(steps)
        return state[-1]


class Board:
    """The states of the trains now under way, by their slot."""

    def __init__(self):
        self.shown = {}

    def put(self, state):
        kept = state if healthy else state.detach()
        self.shown["latest"] = state.detach().mean(0)
        return kept


encoder = JourneyReader()
head = nn.Sequential(nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 1))
board = Board()
optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=4e-3)


def predict(station, lost):
    return head(board.put(encoder(station, lost))).squeeze(-1)


station, lost, delay = journeys(2500)
station_val, lost_val, delay_val = journeys(600)
scale, centre = delay.std(), delay.mean()

for epoch in range(8):
    seen = 0.0
    order = torch.randperm(len(delay)).split(64)
    for rows in order:
        loss = nn.functional.smooth_l1_loss(
            predict(station[rows], lost[rows]), (delay[rows] - centre) / scale
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += loss.item()
    with torch.no_grad():
        off = (predict(station_val, lost_val) * scale + centre - delay_val).abs().mean()
    print(f"epoch {epoch}  loss {seen / len(order):.4f}  off by {off:.2f} minutes")
