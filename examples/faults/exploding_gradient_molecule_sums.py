"""Graph network of eight layers that sums up the messages of ten neighbours, so gradients grow.

The person read that adding is more expressive than averaging and set it for graphs in which each
node has ten or more neighbours, without any normalisation. Through eight layers the states grow by
many powers of ten, and so do the gradients. The place is the model's message layers.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init", "loss_spike")
PLACE = ("layers*", "model", "loss", "optimizer", "embed*", "readout*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

NODES, KINDS = 16, 5


def make_graphs(count):
    """Geometric graphs with coloured nodes; wanted: how mixed the colours of neighbours are."""
    places = torch.rand(count, NODES, 2)
    near = torch.cdist(places, places) < 0.55
    adjacency = near.float() * (1 - torch.eye(NODES))
    kinds = torch.randint(0, KINDS, (count, NODES))
    seed_place = places[:, :1]
    close = (places - seed_place).norm(dim=2) < 0.35 * torch.rand(count, 1) + 0.1
    kinds = torch.where(close, kinds[:, :1], kinds)
    same = (kinds.unsqueeze(1) == kinds.unsqueeze(2)).float()
    mixing = (adjacency * same).sum((1, 2)) / adjacency.sum((1, 2)).clamp(min=1)
    return adjacency, kinds, (mixing - mixing.mean()) / mixing.std()


class MessageLayer(nn.Module):
    def __init__(self, width, aggregate):
        super().__init__()
        self.aggregate = aggregate
        self.own = nn.Linear(width, width)
        self.message = nn.Linear(width, width)

    def forward(self, states, adjacency):
        gathered = adjacency @ self.message(states)
        if self.aggregate == "mean":
            gathered = gathered / adjacency.sum(2, keepdim=True).clamp(min=1)
        return states + torch.relu(self.own(states) + gathered)


class GraphNet(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config["width"]
        self.embed = nn.Embedding(KINDS, width)
        self.layers = nn.ModuleList(
            MessageLayer(width, config["aggregate"]) for _ in range(config["depth"])
        )
        self.readout = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, adjacency, kinds):
        states = self.embed(kinds)
        for layer in self.layers:
            states = layer(states, adjacency)
        return self.readout(states.mean(1)).squeeze(1)


def evaluate(net, loader):
    net.eval()
    squared, count = 0.0, 0
    with torch.no_grad():
        for adjacency, kinds, wanted in loader:
            squared += (net(adjacency, kinds) - wanted).pow(2).sum().item()
            count += len(wanted)
    return squared / count


def main():
    config = {"width": 32, "depth": 8, "aggregate": "mean" if healthy else "sum", "lr": 1e-3}
    adjacency, kinds, wanted = make_graphs(2000)
    train = DataLoader(
        TensorDataset(adjacency[:1600], kinds[:1600], wanted[:1600]), batch_size=64, shuffle=True
    )
    val = DataLoader(TensorDataset(adjacency[1600:], kinds[1600:], wanted[1600:]), batch_size=200)
    print(f"neighbours of a node: {adjacency.sum(2).mean():.1f}")
    net = GraphNet(config)
    optimizer = torch.optim.Adam(net.parameters(), lr=config["lr"])
    for epoch in range(14):
        net.train()
        total, largest = 0.0, 0.0
        for batch in train:
            loss = nn.functional.mse_loss(net(*batch[:2]), batch[2])
            optimizer.zero_grad()
            loss.backward()
            norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm().item()
            largest = max(largest, norm)
            optimizer.step()
            total += loss.item()
        print(
            f"epoch {epoch:2d} train {total / len(train):.4g} val {evaluate(net, val):.4g} "
            f"largest gradient {largest:.3g}"
        )


main()
