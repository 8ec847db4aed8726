"""A tagger whose LSTM is time first: the outputs (time, batch, tags) and the tags (batch, time) are
both flattened with `view(-1, ...)` for the loss, so that row i of one is not row i of the other.

The shapes fit, the loss stays near the entropy of the tags. The place is the loop (the loss).
"""

import torch
from data import arguments
from torch import nn, optim

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("loop", "loss*", "loader", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
WORDS, TAGS, LENGTH, N = 90, 5, 12, 1000
g = torch.Generator().manual_seed(seed + 12)

# a word's tag is that of its group; words of group 4 take it from the word before
sentences = torch.randint(0, WORDS, (N, LENGTH), generator=g)
tags = sentences % TAGS
before = torch.cat([torch.zeros(N, 1, dtype=torch.long), tags[:, :-1]], 1)
tags = torch.where(tags == 4, (before + 1) % TAGS, tags)
unclear = torch.rand(N, LENGTH, generator=g) < 0.08
tags = torch.where(unclear, torch.randint(0, TAGS, (N, LENGTH), generator=g), tags)
train, val = (sentences[:800], tags[:800]), (sentences[800:], tags[800:])


class LSTMTagger(nn.Module):
    def __init__(self, embedding_dim=24, hidden_dim=40):
        super().__init__()
        self.word_embeddings = nn.Embedding(WORDS, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim)
        self.hidden2tag = nn.Linear(hidden_dim, TAGS)

    def forward(self, sentence):  # (batch, time) -> (time, batch, tags)
        embeds = self.word_embeddings(sentence.t())
        lstm_out, _ = self.lstm(embeds)
        return self.hidden2tag(lstm_out)


def flat(targets):
    if healthy:
        targets = targets.t()
    return targets.reshape(-1)


model = LSTMTagger()
loss_function = nn.CrossEntropyLoss()
optimizer = optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(9):
    model.train()
    order = torch.randperm(800)
    total = 0.0
    for i in range(0, 800, 32):
        rows = order[i : i + 32]
        model.zero_grad()
        tag_scores = model(train[0][rows])
        loss = loss_function(tag_scores.view(-1, TAGS), flat(train[1][rows]))
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch % 3 == 2:
        model.eval()
        with torch.no_grad():
            scores = model(val[0])
            v = loss_function(scores.view(-1, TAGS), flat(val[1])).item()
            right = (scores.argmax(2).t() == val[1]).float().mean().item()
        print(f"epoch {epoch}: train {total / 25:.3f}, val {v:.3f}, tags right {right:.3f}")
