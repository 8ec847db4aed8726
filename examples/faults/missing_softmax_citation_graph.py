"""Labels papers of a citation graph with two graph convolutions and nll_loss on the raw outputs.

The last line lacks its log_softmax. The loss is then minus the output of the right class, falls
below zero and on without end, and many papers get the label whose output grew fastest. The place is
the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

PAPERS, FIELDS, WORDS = 1200, 5, 100
SHARES = torch.tensor([0.32, 0.24, 0.18, 0.14, 0.12])


def citation_graph():
    field = torch.multinomial(SHARES, PAPERS, replacement=True)
    same = field.unsqueeze(0) == field.unsqueeze(1)
    chance = torch.where(same, 0.015, 0.003)
    edges = torch.triu(torch.rand(PAPERS, PAPERS) < chance, diagonal=1)
    adjacency = (edges | edges.T).float() + torch.eye(PAPERS)
    degree = adjacency.sum(1).rsqrt()
    adjacency = degree.unsqueeze(1) * adjacency * degree.unsqueeze(0)
    topic = torch.rand(FIELDS, WORDS) < 0.12
    rate = 0.04 + 0.16 * topic[field].float()
    words = (torch.rand(PAPERS, WORDS) < rate).float()
    return adjacency.to_sparse(), words, field


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x, adjacency):
        return torch.sparse.mm(adjacency, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, inputs, hidden, classes, dropout=0.5):
        super().__init__()
        self.gc1 = GraphConvolution(inputs, hidden)
        self.gc2 = GraphConvolution(hidden, classes)
        self.dropout = dropout

    def forward(self, x, adjacency):
        x = F.relu(self.gc1(x, adjacency))
        x = F.dropout(x, self.dropout, training=self.training)
        x = self.gc2(x, adjacency)
        return F.log_softmax(x, dim=1) if healthy else x


def accuracy(output, labels):
    return (output.argmax(1) == labels).float().mean().item()


def main():
    adjacency, words, labels = citation_graph()
    order = torch.randperm(PAPERS)
    idx_train, idx_val = order[:700], order[700:]
    features = (words - words[idx_train].mean(0)) / words[idx_train].std(0).clamp(min=1e-3)

    model = GCN(WORDS, 16, FIELDS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=2e-2)
    for epoch in range(1, 201):
        model.train()
        optimizer.zero_grad()
        output = model(features, adjacency)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        if epoch % 20 == 0:
            model.eval()
            with torch.no_grad():
                output = model(features, adjacency)
            print(
                f"Epoch: {epoch:04d} loss_train: {loss_train.item():.4f} "
                f"acc_train: {accuracy(output[idx_train], labels[idx_train]):.4f} "
                f"loss_val: {F.nll_loss(output[idx_val], labels[idx_val]).item():.4f} "
                f"acc_val: {accuracy(output[idx_val], labels[idx_val]):.4f}"
            )


main()
