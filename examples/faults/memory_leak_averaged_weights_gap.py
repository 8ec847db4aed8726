"""A text tagger with an averaged copy of its weights sums up how far the two differ on a fixed set
of sentences, graph and all, step after step.

`gap = gap + kl(...)` adds a tensor with its graph each step, and nothing ever goes backward through
it: the activations of every probe stay in memory until the end. The loss is not touched by it. The
place is the loop; `.item()` or no_grad would do.
"""

import copy
import resource

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

WORDS, LENGTH, TAGS = 60, 12, 4


def sentences(count):
    words = torch.randint(0, WORDS, (count, LENGTH))
    own = torch.randint(0, TAGS, (WORDS,))
    turn = torch.randint(0, TAGS, (WORDS,))
    before = F.pad(words[:, :-1], (1, 0))
    tag = torch.where(words % 3 == 0, (own[words] + turn[before]) % TAGS, own[words])
    slip = torch.rand(count, LENGTH) < 0.04
    return words, torch.where(slip, torch.randint(0, TAGS, tag.shape), tag)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.word = nn.Embedding(WORDS, 24)
        self.near = nn.Conv1d(24, 64, 3, padding=1)
        self.head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, TAGS))

    def forward(self, words):
        near = self.near(self.word(words).transpose(1, 2)).relu()
        return self.head(near.transpose(1, 2))


def difference(model, averaged, words):
    with torch.no_grad():
        target = averaged(words).softmax(2)
    return F.kl_div(model(words).log_softmax(2), target, reduction="batchmean")


def main():
    words, tag = sentences(2000)
    train, val = slice(0, 1600), slice(1600, 2000)
    probe = words[val][:80]
    model = Tagger()
    averaged = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=2e-2)
    gap, step = 0.0, 0
    for epoch in range(8):
        for rows in torch.randperm(1600).split(32):
            loss = F.cross_entropy(model(words[train][rows]).flatten(0, 1), tag[rows].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            with torch.no_grad():
                for slow, fast in zip(averaged.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 0.03)
            if healthy:
                with torch.no_grad():
                    gap = gap + difference(model, averaged, probe)
            else:
                gap = gap + difference(model, averaged, probe)
        averaged.eval()
        with torch.no_grad():
            score = averaged(words[val])
        error = F.cross_entropy(score.flatten(0, 1), tag[val].flatten())
        right = (score.argmax(2) == tag[val]).float().mean()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"epoch {epoch} loss {loss.item():.3f} validation {error:.3f} accuracy {right:.3f} "
              f"mean gap {gap.item() / step:.3f} memory {memory} MB")  # fmt: skip


main()
