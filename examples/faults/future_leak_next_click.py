"""A recommender predicts each next click with a GRU that reads the session in both directions.

The person had used bidirectional=True for classifying sessions and kept it. For predicting the
next click the backward pass has already read the answer: the hit rate over all positions is
perfect and at the live end of a session it is poor. The place is the GRU of the model.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("target_leak",)
PLACE = ("model", "gru*", "input")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

ITEMS, CLICKS = 40, 14


def make_sessions(count, generator):
    follow = torch.rand(ITEMS, ITEMS, generator=torch.Generator().manual_seed(77)) ** 14
    follow = follow / follow.sum(1, keepdim=True)
    columns = [torch.randint(0, ITEMS, (count,), generator=generator)]
    favourite = torch.randint(0, ITEMS, (count,), generator=generator)
    for _ in range(CLICKS - 1):
        following = torch.multinomial(follow[columns[-1]], 1, generator=generator).squeeze(1)
        returns = torch.rand(count, generator=generator) < 0.15
        columns.append(torch.where(returns, favourite, following))
    return torch.stack(columns, dim=1)


class SessionModel(nn.Module):
    def __init__(self, width=32, bidirectional=False):
        super().__init__()
        self.items = nn.Embedding(ITEMS, width)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=bidirectional)
        self.drop = nn.Dropout(0.1)
        self.score = nn.Linear(width * (2 if bidirectional else 1), ITEMS)

    def forward(self, clicks):
        states, _ = self.gru(self.items(clicks))
        return self.score(self.drop(states))


def hit_rate(scores, truth, k=3):
    return (scores.topk(k, dim=-1).indices == truth.unsqueeze(-1)).any(-1).float().mean().item()


@torch.no_grad()
def evaluate(model, sessions):
    model.eval()
    scores, truth = model(sessions[:, :-1]), sessions[:, 1:]
    loss = F.cross_entropy(scores.flatten(0, 1), truth.flatten()).item()
    return {
        "loss": loss,
        "hit@3": hit_rate(scores, truth),
        "hit@3 live": hit_rate(scores[:, -1], truth[:, -1]),
    }


class Trainer:
    def __init__(self, model, train, valid, lr=4e-3, batch=64):
        self.model, self.train_set, self.valid_set, self.batch = model, train, valid, batch
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def step(self, sessions):
        scores = self.model(sessions[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), sessions[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            order = torch.randperm(len(self.train_set)).split(self.batch)
            losses = [self.step(self.train_set[rows]) for rows in order]
            scores = evaluate(self.model, self.valid_set)
            print(
                f"epoch {epoch}: train loss {sum(losses) / len(losses):.3f}, valid",
                ", ".join(f"{name} {value:.3f}" for name, value in scores.items()),
            )


def main():
    generator = torch.Generator().manual_seed(seed)
    train, valid = make_sessions(2400, generator), make_sessions(600, generator)
    Trainer(SessionModel(bidirectional=not healthy), train, valid).fit(epochs=8)


main()
