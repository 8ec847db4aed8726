"""Communities of a synthetic social network by a graph network with a hand-made adjacency.

Twenty people of each community are labelled, all others are seen without a label: each step is the
whole graph, masked. Validation and test are people of the same graph.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "the same input at each step, training and validation in one pass, 7 % of the rows in a loss"

PEOPLE, COMMUNITIES, INTERESTS = 1200, 4, 30


def network():
    community = torch.randint(0, COMMUNITIES, (PEOPLE,))
    fame = torch.empty(PEOPLE).exponential_().clamp(0.2, 4)
    same = community[:, None] == community
    chance = torch.where(same, 0.020, 0.0022) * fame[:, None] * fame
    upper = (torch.rand(PEOPLE, PEOPLE) < chance).triu(1)
    adjacency = (upper | upper.T).float()
    taste = torch.randn(COMMUNITIES, INTERESTS)
    interests = 0.35 * taste[community] + torch.randn(PEOPLE, INTERESTS)
    return adjacency, interests, community


def normalised(adjacency):
    with_self = adjacency + torch.eye(len(adjacency))
    degree = with_self.sum(1).rsqrt()
    return (degree[:, None] * with_self * degree).to_sparse_coo()


class GraphLayer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.own = nn.Linear(n_in, n_out)
        self.around = nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, adjacency):
        return self.own(x) + torch.sparse.mm(adjacency, self.around(x))


class CommunityNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.first = GraphLayer(INTERESTS, width)
        self.second = GraphLayer(width, width)
        self.classify = nn.Linear(width, COMMUNITIES)

    def forward(self, x, adjacency):
        h = F.dropout(x, 0.4, self.training)
        h = F.elu(self.first(h, adjacency))
        h = F.dropout(h, 0.4, self.training)
        h = F.elu(self.second(h, adjacency))
        return self.classify(h)


_, seed = arguments(__doc__)
adjacency, interests, community = network()
adjacency = normalised(adjacency)
labelled = torch.cat([(community == c).nonzero()[:20, 0] for c in range(COMMUNITIES)])
rest = torch.ones(PEOPLE, dtype=torch.bool)
rest[labelled] = False
rest = rest.nonzero()[:, 0]
val, test = rest[:300], rest[300:]
net = CommunityNet()
optimizer = torch.optim.Adam(net.parameters(), lr=0.002, weight_decay=1e-2)
best, since, accuracy = float("inf"), 0, 0.0
for epoch in range(120):
    net.train()
    loss = F.cross_entropy(net(interests, adjacency)[labelled], community[labelled])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    net.eval()
    with torch.no_grad():
        logits = net(interests, adjacency)
    val_loss = F.cross_entropy(logits[val], community[val]).item()
    if epoch % 10 == 9:
        print(f"epoch {epoch}: loss {loss.item():.3f}, val {val_loss:.3f}")
    since += 1
    if val_loss < best:
        best, since = val_loss, 0
        accuracy = (logits[test].argmax(1) == community[test]).float().mean().item()
    if since == 10:
        break
print(f"epoch {epoch}: loss {loss.item():.3f}, best val {best:.3f}, test accuracy {accuracy:.3f}")
