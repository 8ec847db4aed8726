"""A graph network for fields of papers ends with softmax, and cross_entropy adds another.

The network returns probabilities, and F.cross_entropy takes them for logits. The loss sticks well
above 1 although the accuracy climbs, and the gradients are so small that the rarer fields are
learnt late or never. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FIELDS = 6
PAPERS = 1000
WORDS = 40


def citation_graph(generator):
    """Papers cite within their field mostly; the words of a paper hint at its field."""
    share = torch.tensor([0.32, 0.24, 0.18, 0.12, 0.08, 0.06])
    field = torch.multinomial(share, PAPERS, replacement=True, generator=generator)
    same = field.unsqueeze(0) == field.unsqueeze(1)
    chance = torch.where(same, 0.018, 0.0015)
    edge = (torch.rand(PAPERS, PAPERS, generator=generator) < chance).float().triu(1)
    adjacency = edge + edge.T + torch.eye(PAPERS)
    scale = adjacency.sum(1).rsqrt()
    adjacency = scale.unsqueeze(1) * adjacency * scale.unsqueeze(0)
    topics = 1.5 * torch.randn(FIELDS, WORDS, generator=generator)
    words = (topics[field] + 2.0 * torch.randn(PAPERS, WORDS, generator=generator) > 2.0).float()
    words = (words - words.mean(0)) / words.std(0)
    return adjacency, words, field


class GraphConvolution(torch.nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(n_in, n_out))
        self.bias = torch.nn.Parameter(torch.zeros(n_out))
        torch.nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adjacency):
        return adjacency @ (x @ self.weight) + self.bias


class GCN(torch.nn.Module):
    def __init__(self, hidden=16, dropout=0.5):
        super().__init__()
        self.gc1 = GraphConvolution(WORDS, hidden)
        self.gc2 = GraphConvolution(hidden, FIELDS)
        self.dropout = dropout

    def forward(self, x, adjacency):
        x = F.relu(self.gc1(x, adjacency))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adjacency)
        return x if healthy else F.softmax(x, dim=1)


adjacency, words, field = citation_graph(torch.Generator().manual_seed(20 + seed))
nodes = torch.randperm(PAPERS)
train_nodes, valid_nodes = nodes[:600], nodes[600:]
model = GCN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=60, gamma=0.5)

for epoch in range(1, 151):
    model.train()
    optimizer.zero_grad()
    output = model(words, adjacency)
    loss = F.cross_entropy(output[train_nodes], field[train_nodes])
    loss.backward()
    optimizer.step()
    scheduler.step()
    if epoch % 15 == 0:
        model.eval()
        with torch.no_grad():
            output = model(words, adjacency)
        hit = output.argmax(1) == field
        valid_loss = F.cross_entropy(output[valid_nodes], field[valid_nodes])
        rare = valid_nodes[field[valid_nodes] >= 4]
        print(
            f"Epoch {epoch:03d} loss_train {loss.item():.4f} "
            f"acc_train {hit[train_nodes].float().mean():.3f} loss_val {valid_loss:.4f} "
            f"acc_val {hit[valid_nodes].float().mean():.3f} rare fields "
            f"{hit[rare].float().mean():.3f}"
        )
