"""A transformer encoder sorts support messages of various lengths; its padding mask is inverted.

src_key_padding_mask and key_padding_mask want True where there is padding; the writer gives True
where there are words. Attention looks at the padding alone and the answer hardly depends on the
message. The place is the attention (encoder and pool).
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder*", "pool*", "input*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

WORDS = {
    0: ["invoice", "refund", "charge", "payment", "card", "receipt", "price", "bill"],
    1: ["crash", "error", "screen", "freeze", "restart", "bug", "update", "login"],
    2: ["parcel", "courier", "late", "address", "tracking", "box", "lost", "delivery"],
}
FILLER = [f"filler{i}" for i in range(80)]
TOPICAL = [word for words in WORDS.values() for word in words]
VOCAB = {w: i for i, w in enumerate(["<pad>", *TOPICAL, *FILLER])}
MAX_LEN = 20


class Messages(Dataset):
    def __init__(self, n, rng):
        self.items = []
        for _ in range(n):
            label = rng.randrange(3)
            words = [rng.choice(FILLER) for _ in range(rng.randint(3, 12))]
            words += [rng.choice(WORDS[label]) for _ in range(rng.randint(2, 4))]
            words += [rng.choice(WORDS[rng.randrange(3)])]
            rng.shuffle(words)
            ids = [VOCAB[w] for w in words]
            self.items.append((torch.tensor(ids + [0] * (MAX_LEN - len(ids))), label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class MessageClassifier(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCAB), dim, padding_idx=0)
        self.position = nn.Parameter(0.02 * torch.randn(MAX_LEN, dim))
        self.encoder = nn.TransformerEncoderLayer(dim, 4, 64, dropout=0.1, batch_first=True)
        self.query = nn.Parameter(0.1 * torch.randn(1, 1, dim))
        self.pool = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.out = nn.Linear(dim, 3)

    def forward(self, ids):
        mask = (ids == 0) if healthy else (ids != 0)
        x = self.embedding(ids) + self.position
        x = self.encoder(x, src_key_padding_mask=mask)
        q = self.query.expand(len(ids), -1, -1)
        pooled, _ = self.pool(q, x, x, key_padding_mask=mask)
        return self.out(pooled.squeeze(1))


rng = random.Random(seed)
train_set, val_set = Messages(1500, rng), Messages(500, rng)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=100)
model = MessageClassifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(8):
    model.train()
    train_loss = 0.0
    for ids, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(ids), labels)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for ids, labels in val_loader:
            out = model(ids)
            val_loss += criterion(out, labels).item()
            correct += (out.argmax(1) == labels).sum().item()
    print(
        f"Epoch {epoch + 1}: train {train_loss / len(train_loader):.4f} "
        f"val {val_loss / len(val_loader):.4f} acc {correct / len(val_set):.4f}"
    )
