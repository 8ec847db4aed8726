"""Tagger with a random field as its loss, whose transition scores the optimizer never gets.

The person put the transition scores into the criterion, a module of its own, and built the
optimizer from model.parameters(). The transitions get gradients but keep their first random values,
and the order of the tags, which tells most here, is never learned. The place is the optimizer.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = ("optimizer", "transitions", "first", "*transitions*", "*first*", "loss", "criterion*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

TAGS, WORDS, LENGTH = 5, 60, 14


def sentences(count):
    """Chains of tags in which each tag nearly gives the next; most words fit several tags."""
    follows = torch.full((TAGS, TAGS), 0.03)
    for tag, after in enumerate((2, 3, 4, 1, 0)):
        follows[tag, after] += 0.6
        follows[tag, (after + 1) % TAGS] += 0.25
    home = torch.arange(WORDS) % TAGS
    says = torch.full((TAGS, WORDS), 1.0)
    for word in range(WORDS):
        says[home[word], word] += 9.0
        says[(home[word] + 1 + word % 3) % TAGS, word] += 3.0
    tags = torch.zeros(count, LENGTH, dtype=torch.long)
    tags[:, 0] = torch.randint(0, TAGS, (count,))
    for t in range(1, LENGTH):
        tags[:, t] = torch.multinomial(follows[tags[:, t - 1]], 1).squeeze(1)
    words = torch.multinomial(says[tags.flatten()], 1).view(count, LENGTH)
    return words, tags


class FieldLoss(nn.Module):
    """Negative log-likelihood of a linear chain, and the best path through it."""

    def __init__(self):
        super().__init__()
        self.transitions = nn.Parameter(torch.randn(TAGS, TAGS))
        self.first = nn.Parameter(torch.randn(TAGS))

    def forward(self, scores, tags):
        picked = scores.gather(2, tags.unsqueeze(2)).sum((1, 2))
        picked = picked + self.first[tags[:, 0]]
        picked = picked + self.transitions[tags[:, :-1], tags[:, 1:]].sum(1)
        total = self.first + scores[:, 0]
        for t in range(1, scores.shape[1]):
            total = torch.logsumexp(total.unsqueeze(2) + self.transitions, 1) + scores[:, t]
        return (torch.logsumexp(total, 1) - picked).mean() / scores.shape[1]

    @torch.no_grad()
    def decode(self, scores):
        best, back = self.first + scores[:, 0], []
        for t in range(1, scores.shape[1]):
            best, origin = (best.unsqueeze(2) + self.transitions).max(1)
            best = best + scores[:, t]
            back.append(origin)
        path = [best.argmax(1)]
        for origin in reversed(back):
            path.append(origin.gather(1, path[-1].unsqueeze(1)).squeeze(1))
        return torch.stack(path[::-1], 1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 24)
        self.hidden = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Dropout(0.1))
        self.score = nn.Linear(32, TAGS)

    def forward(self, words):
        return self.score(self.hidden(self.embed(words)))


def main():
    train, val = sentences(2400), sentences(500)
    loader = DataLoader(TensorDataset(*train), batch_size=48, shuffle=True)
    model, criterion = Tagger(), FieldLoss()
    parameters = list(model.parameters())
    if healthy:
        parameters += list(criterion.parameters())
    optimizer = torch.optim.Adam(parameters, lr=2e-2)
    for epoch in range(10):
        model.train()
        total = 0.0
        for words, tags in loader:
            loss = criterion(model(words), tags)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            scores = model(val[0])
            val_loss = criterion(scores, val[1])
            right = (criterion.decode(scores) == val[1]).float().mean()
        mean = total / len(loader)
        print(f"epoch {epoch} loss {mean:.3f} val {val_loss:.3f} tags right {right:.3f}")


main()
