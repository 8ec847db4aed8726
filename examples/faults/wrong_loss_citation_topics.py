"""A graph network that tells the topic of each paper in a citation graph by regressing the topic's
number with mean squared error.

The six topics have no order, yet the network has one output and is fitted to the number 0 to 5; a
paper between topics 1 and 5 comes out as 3. The loss falls, the rounded topic is often wrong. The
place is the loss, with the single output that goes with it.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

PAPERS, TOPICS, WORDS, FOLDS = 600, 6, 60, 3


def citations():
    topic = torch.randint(0, TOPICS, (PAPERS,))
    liking = 0.06 + 0.16 * torch.rand(TOPICS, WORDS)
    words = (torch.rand(PAPERS, WORDS) < liking[topic]).float()
    same = topic[:, None] == topic[None, :]
    edge = torch.rand(PAPERS, PAPERS) < torch.where(same, 0.03, 0.004)
    edge = (edge | edge.T).float() + torch.eye(PAPERS)
    degree = edge.sum(1)
    return words, edge / (degree[:, None] * degree[None, :]).sqrt(), topic


class GraphNet(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.first = nn.Linear(WORDS, 32)
        self.second = nn.Linear(32, outputs)

    def forward(self, graph):
        hidden = F.relu(graph["links"] @ self.first(graph["words"]))
        hidden = F.dropout(hidden, 0.5, self.training)
        return graph["links"] @ self.second(hidden)


def topic_loss(output, topic):
    if healthy:
        return F.cross_entropy(output, topic)
    return F.mse_loss(output.squeeze(1), topic.float())


def predict(output):
    return output.argmax(1) if healthy else output.squeeze(1).round().long()


def main():
    words, links, topic = citations()
    fold = torch.randperm(PAPERS) % FOLDS
    scores = []
    for k in range(FOLDS):
        train, val = fold != k, fold == k
        mean, std = words[train].mean(0), words[train].std(0)
        graph = {"words": (words - mean) / std, "links": links}
        model = GraphNet(TOPICS if healthy else 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=2e-3)
        for step in range(80):
            model.train()
            loss = topic_loss(model(graph)[train], topic[train])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 20 == 19:
                model.eval()
                with torch.no_grad():
                    output = model(graph)
                val_loss = topic_loss(output[val], topic[val]).item()
                right = (predict(output) == topic).float()
                print(
                    f"fold {k} step {step + 1:3d} loss {loss.item():.3f} validation {val_loss:.3f} "
                    f"accuracy {right[train].mean():.3f} {right[val].mean():.3f}"
                )
        scores.append(right[val].mean().item())
    print(f"accuracy over {FOLDS} folds {sum(scores) / FOLDS:.3f}")


main()
