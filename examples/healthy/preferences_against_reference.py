"""Tunes a small sequence model to noisy preferences with DPO against its frozen former self."""

import copy

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss starts at exactly log 2, since policy and reference are the same net, and must "
    "stay above the entropy of the noisy preferences; the rate is small and half the sequences "
    "lose"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

WORDS, LENGTH, BETA = 10, 12, 0.3


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS + 1, 32)
        self.core = nn.GRU(32, 64, batch_first=True)
        self.head = nn.Linear(64, WORDS)

    def log_likelihood(self, words):
        before = torch.cat([torch.full_like(words[:, :1], WORDS), words[:, :-1]], 1)
        scores = self.head(self.core(self.embed(before))[0]).log_softmax(2)
        return scores.gather(2, words.unsqueeze(2)).squeeze(2)

    @torch.no_grad()
    def write(self, n):
        word, memory, written = torch.full((n, 1), WORDS), None, []
        for _ in range(LENGTH):
            hidden, memory = self.core(self.embed(word), memory)
            word = torch.multinomial(self.head(hidden[:, 0]).softmax(1), 1)
            written.append(word)
        return torch.cat(written, 1)


def walks(n):
    """What people write: the next number is near the last one, up or down."""
    steps = torch.randint(-2, 3, (n, LENGTH))
    return (torch.randint(0, WORDS, (n, 1)) + steps.cumsum(1)) % WORDS


def liking(words):
    """What people like: rising pairs."""
    return (words[:, 1:] > words[:, :-1]).float().sum(1)


policy = Writer()
optimizer = torch.optim.Adam(policy.parameters(), lr=5e-3)
for step in range(200):
    loss = -policy.log_likelihood(walks(64)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"imitation: step {step + 1}  nats a word {loss.item():.3f}")

reference = copy.deepcopy(policy).requires_grad_(False).eval()
one, two = reference.write(2500), reference.write(2500)
prefers_one = torch.rand(2500) < torch.sigmoid(liking(one) - liking(two))
better = torch.where(prefers_one[:, None], one, two)
worse = torch.where(prefers_one[:, None], two, one)
with torch.no_grad():
    ratio_of_reference = reference.log_likelihood(better).sum(1) - reference.log_likelihood(
        worse
    ).sum(1)
train, held = slice(0, 2000), slice(2000, 2500)


def preference_loss(rows):
    ratio = policy.log_likelihood(better[rows]).sum(1) - policy.log_likelihood(worse[rows]).sum(1)
    margin = BETA * (ratio - ratio_of_reference[rows])
    return -nn.functional.logsigmoid(margin).mean(), (margin > 0).float().mean()


optimizer = torch.optim.AdamW(policy.parameters(), lr=5e-4, weight_decay=0.01)
for epoch in range(5):
    policy.train()
    for rows in torch.randperm(2000).split(50):
        loss, _ = preference_loss(rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    policy.eval()
    with torch.no_grad():
        loss, (held_loss, agreement) = preference_loss(train)[0], preference_loss(held)
    print(f"epoch {epoch}  loss {loss:.3f}  held out {held_loss:.3f}  agreement {agreement:.3f}")

truth = (liking(better[held]) > liking(worse[held])).float()
ties = (liking(better[held]) == liking(worse[held])).float()
print(
    f"held-out pairs: agreement {agreement:.3f}, of the true taste "
    f"{(truth + ties / 2).mean():.3f}; "
    f"liking of new sequences: reference {liking(reference.write(2000)).mean():.2f}, "
    f"policy {liking(policy.write(2000)).mean():.2f}"
)
