"""A bidirectional LSTM tags the words of sentences, and forward() gives softmax probabilities to
cross_entropy.

F.cross_entropy applies log_softmax on its own; given probabilities it can't go under a floor (about
0.9 for five tags) and pushes less and less the surer the model is. Tags are learned slower and the
loss stays high. The twin returns the scores. The place is `out` or the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("out", "loss*")
SILENT = True
EXACT = True
EARLY = True

WORDS, TAGS, LENGTH = 40, 5, 12
healthy, seed = arguments(__doc__)


def make_sentences(n):
    """The tag of a word depends on its class and on the class of the word before."""
    words = torch.randint(0, WORDS, (n, LENGTH))
    group = words % TAGS
    before = torch.cat([torch.zeros(n, 1, dtype=torch.long), group[:, :-1]], 1)
    tags = torch.where(before < 3, group, (group + before) % TAGS)
    return words, tags


class Tagger(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embed = nn.Embedding(WORDS, 24)
        self.lstm = nn.LSTM(24, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, TAGS)

    def forward(self, words):
        h, _ = self.lstm(self.embed(words))
        scores = self.out(h)
        if healthy:
            return scores
        return F.softmax(scores, dim=-1)


words, tags = make_sentences(3000)
val_words, val_tags = make_sentences(600)

tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters(), lr=4e-3)
steps = 300
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=steps)

for step, (wb, tb) in enumerate(batches(words, tags, size=64, steps=steps, seed=seed)):
    tagger.train()
    out = tagger(wb)
    loss = F.cross_entropy(out.transpose(1, 2), tb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 50 == 49:
        tagger.eval()
        with torch.no_grad():
            out = tagger(val_words)
            val = F.cross_entropy(out.transpose(1, 2), val_tags)
            acc = (out.argmax(-1) == val_tags).float().mean()
        print(f"step {step + 1}: loss {loss.item():.3f}, val loss {val:.3f}, val acc {acc:.3f}")
