"""Intent classifier for short queries; word vectors come from a "GloVe" table if the word is in
it.

`nn.Embedding.from_pretrained` freezes by default. Hardly any word of this domain is in the table,
so the others get random vectors, which nobody ever trains. The twin passes freeze=False. The loss
falls all the same, since the layers above learn. The place is the embedding. Exact.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("embedding*", "")
SILENT = True
EXACT = True
EARLY = True

EMB_DIM, MAX_LEN = 16, 12
healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)

# --- queries: six intents, each with its own words, drowned in words that say nothing
intents = ["transfer", "balance", "card", "loan", "branch", "fraud"]
vocab = ["<pad>"] + [f"{name}_{i}" for name in intents for i in range(25)]
vocab += [f"common_{i}" for i in range(120)]
word2idx = {w: i for i, w in enumerate(vocab)}


def make_query():
    label = rng.integers(len(intents))
    n = rng.integers(6, MAX_LEN + 1)
    words = [f"common_{rng.integers(120)}" for _ in range(n)]
    for pos in rng.choice(n, size=3, replace=False):
        words[pos] = f"{intents[label]}_{rng.integers(25)}"
    ids = [word2idx[w] for w in words]
    return ids + [0] * (MAX_LEN - n), label


rows = [make_query() for _ in range(2600)]
X = torch.tensor([r[0] for r in rows])
y = torch.tensor([r[1] for r in rows])
train_dl = DataLoader(TensorDataset(X[:2000], y[:2000]), batch_size=64, shuffle=True)
val_dl = DataLoader(TensorDataset(X[2000:], y[2000:]), batch_size=200)

# --- embedding matrix as in the Keras blog post
glove = {f"common_{i}": rng.normal(0, 0.4, EMB_DIM) for i in range(10)}
embedding_matrix = np.zeros((len(vocab), EMB_DIM), dtype=np.float32)
hits = 0
for word, i in word2idx.items():
    if word in glove:
        embedding_matrix[i] = glove[word]
        hits += 1
    elif word != "<pad>":
        embedding_matrix[i] = rng.normal(0, 0.4, EMB_DIM)
print(f"found {hits} of {len(vocab)} words")


class IntentNet(nn.Module):
    def __init__(self, weights, n_classes):
        super().__init__()
        weights = torch.from_numpy(weights)
        if healthy:
            self.embedding = nn.Embedding.from_pretrained(weights, freeze=False, padding_idx=0)
        else:
            self.embedding = nn.Embedding.from_pretrained(weights, padding_idx=0)
        self.hidden = nn.Linear(EMB_DIM, 32)
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(32, n_classes)

    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        mean = (self.embedding(ids) * mask).sum(1) / mask.sum(1)
        return self.out(self.dropout(torch.relu(self.hidden(mean))))


model = IntentNet(embedding_matrix, len(intents))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=3e-3)

for epoch in range(12):
    model.train()
    running = 0.0
    for ids, labels in train_dl:
        optimizer.zero_grad()
        loss = criterion(model(ids), labels)
        loss.backward()
        optimizer.step()
        running += loss.item() * len(ids)
    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for ids, labels in val_dl:
            out = model(ids)
            val_loss += criterion(out, labels).item() * len(ids)
            correct += (out.argmax(1) == labels).sum().item()
    print(
        f"epoch {epoch + 1:2d}  train {running / 2000:.3f}  val {val_loss / 600:.3f}  "
        f"val acc {correct / 600:.3f}"
    )
