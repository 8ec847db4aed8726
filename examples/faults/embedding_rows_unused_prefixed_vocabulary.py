"""The vocabulary was written by a tokenizer that marks the beginning of a word ("_server"); the
program looks words up without the mark.

Almost no word is found and all become <unk>, number 0: of 320 embedding rows a dozen are used, and
the topic cannot be told. The place is the embedding (and the loader, which looks words up).
"""

import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence

KIND = "embedding_rows_unused"
ACCEPT = ("constant_feature",)
PLACE = ("*emb*", "table*", "input*", "loader", "")
SILENT = True
EXACT = False
EARLY = True

SYLLABLES = [
    "ka",
    "ri",
    "to",
    "mel",
    "sun",
    "dor",
    "vi",
    "pe",
    "lo",
    "gra",
    "nix",
    "ba",
    "tu",
    "sha",
    "or",
    "en",
    "fi",
    "ul",
]


def language():
    words = set()
    while len(words) < 300:
        words.add("".join(random.choices(SYLLABLES, k=random.randint(2, 4))))
    words = sorted(words)
    random.shuffle(words)
    return {topic: words[topic * 40 : topic * 40 + 40] for topic in range(4)}, words[160:]


def article(own, common, topic):
    said = random.choices(common, k=14) + random.choices(own[topic], k=4)
    said += [random.choice(own[random.randrange(4)])]
    random.shuffle(said)
    said.insert(random.randrange(len(said)), ",")
    return [*said, random.choice(".!?")]


class Vocabulary:
    def __init__(self, words, prefix=""):
        marks = ["<pad>", ",", ".", "!", "?", "'", ";", ":", "-"]
        entries = ["<unk>", *marks, *(f"_{w}" for w in words)]
        self.number = {entry: i for i, entry in enumerate(entries)}
        self.prefix = prefix

    def __call__(self, said):
        return torch.tensor([self.number.get(w, self.number.get(self.prefix + w, 0)) for w in said])


class Topics(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.table = nn.Embedding(rows, 20, padding_idx=1)
        self.drop = nn.Dropout(0.4)
        self.rnn = nn.LSTM(20, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, 4)

    def forward(self, tokens):
        states, _ = self.rnn(self.drop(self.table(tokens)))
        return self.head(self.drop(states.amax(1)))


healthy, _ = arguments(__doc__)
own, common = language()
vocabulary = Vocabulary([w for ws in own.values() for w in ws] + common, "_" if healthy else "")
topics = [random.randrange(4) for _ in range(1900)]
tokens = pad_sequence([vocabulary(article(own, common, t)) for t in topics], True, 1)
topics = torch.tensor(topics)

model = Topics(len(vocabulary.number))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(12):
    model.train()
    for rows in torch.randperm(1500).split(50):
        loss = nn.functional.cross_entropy(model(tokens[rows]), topics[rows])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(tokens[1500:])
        accuracy = (scores.argmax(1) == topics[1500:]).float().mean()
        val = nn.functional.cross_entropy(scores, topics[1500:])
    print(f"epoch {epoch}: loss {loss.item():.3f}, val loss {val:.3f}, val accuracy {accuracy:.3f}")
