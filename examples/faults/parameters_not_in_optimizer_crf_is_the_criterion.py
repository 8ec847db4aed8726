"""Tagger with a CRF; the CRF is made as the criterion, and the optimizer gets model.parameters().

Its transition scores get gradients and never move: the tagger decides each token by itself. The
twin adds crf.parameters(). The net learns (silent). The place is the CRF. Exact.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("crf*", "criterion*", "optimizer", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
TAGS, WORDS, T = 4, 60, 12

# O, B, I, E: after B comes I or E, after I the same, E is followed by O or B; words are ambiguous
FOLLOW = torch.tensor(
    [[0.6, 0.4, 0.0, 0.0], [0.0, 0.0, 0.7, 0.3], [0.0, 0.0, 0.5, 0.5], [0.7, 0.3, 0.0, 0.0]]
)
EMIT = torch.distributions.Dirichlet(torch.full((TAGS, WORDS), 0.12)).sample()
EMIT = 0.6 * EMIT + 0.4 / WORDS


def corpus(n):
    tags = torch.zeros(n, T, dtype=torch.long)
    tags[:, 0] = (torch.rand(n) < 0.3).long()
    for t in range(1, T):
        tags[:, t] = torch.multinomial(FOLLOW[tags[:, t - 1]], 1).squeeze(1)
    words = torch.multinomial(EMIT[tags.flatten()], 1).view(n, T)
    return words, tags


class CRF(nn.Module):
    def __init__(self, n_tags):
        super().__init__()
        self.start = nn.Parameter(torch.empty(n_tags).uniform_(-0.1, 0.1))
        self.transitions = nn.Parameter(torch.empty(n_tags, n_tags).uniform_(-0.1, 0.1))

    def forward(self, emissions, tags):
        """Mean negative log-likelihood of a token."""
        score = self.start[tags[:, 0]] + emissions[:, 0].gather(1, tags[:, :1]).squeeze(1)
        alpha = self.start + emissions[:, 0]
        for t in range(1, tags.shape[1]):
            score = score + self.transitions[tags[:, t - 1], tags[:, t]]
            score = score + emissions[:, t].gather(1, tags[:, t : t + 1]).squeeze(1)
            alpha = torch.logsumexp(alpha.unsqueeze(2) + self.transitions, 1) + emissions[:, t]
        return (torch.logsumexp(alpha, 1) - score).mean() / tags.shape[1]

    @torch.no_grad()
    def decode(self, emissions):
        best, back = self.start + emissions[:, 0], []
        for t in range(1, emissions.shape[1]):
            top, arg = (best.unsqueeze(2) + self.transitions).max(1)
            best = top + emissions[:, t]
            back.append(arg)
        path = [best.argmax(1)]
        for arg in reversed(back):
            path.append(arg.gather(1, path[-1].unsqueeze(1)).squeeze(1))
        return torch.stack(path[::-1], 1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 24)
        self.hidden = nn.Linear(24, 32)
        self.emissions = nn.Linear(32, TAGS)

    def forward(self, words):
        return self.emissions(torch.relu(self.hidden(self.embed(words))))


train, val = corpus(1600), corpus(400)
loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)
model, crf = Tagger(), CRF(TAGS)
if healthy:
    optimizer = torch.optim.Adam([*model.parameters(), *crf.parameters()], lr=2e-2)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)

for epoch in range(7):
    model.train()
    running = 0.0
    for words, tags in loader:
        optimizer.zero_grad()
        loss = crf(model(words), tags)
        loss.backward()
        optimizer.step()
        running += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        emissions = model(val[0])
        val_loss = crf(emissions, val[1]).item()
    acc = (crf.decode(emissions) == val[1]).float().mean().item()
    print(f"epoch {epoch}: nll {running:.4f}  val nll {val_loss:.4f}  tag accuracy {acc:.4f}")
