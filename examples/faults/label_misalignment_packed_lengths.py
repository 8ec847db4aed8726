"""A GRU judges short reviews of unequal length. The collate function sorts each batch from long to
short, as packing asks for, and leaves the labels in the order in which they came.

Every review gets the label of another one of its batch, so the training loss stays near ln 2
whatever the network does, until it learns the training batches' chance. The place is the loader's
collate function.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("loader", "input")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def collate(samples):
    ids, labels = zip(*samples, strict=False)
    lengths = torch.tensor([len(i) for i in ids])
    labels = torch.tensor(labels)
    order = lengths.argsort(descending=True)
    padded = pad_sequence([ids[i] for i in order], batch_first=True)
    if healthy:
        labels = labels[order]
    return padded, lengths[order], labels


class Reader(nn.Module):
    def __init__(self, vocabulary, width=32):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.3)
        self.out = nn.Linear(2 * width, 1)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.drop(self.embedding(ids)), lengths, batch_first=True)
        _, last = self.gru(packed)
        return self.out(self.drop(torch.cat([last[0], last[1]], 1))).squeeze(1)


rows, labels, vocabulary = reviews(seed, n=1600)
samples = [(row[row > 0], int(label)) for row, label in zip(rows, labels, strict=False)]
train = DataLoader(samples[:1200], batch_size=32, shuffle=True, drop_last=True, collate_fn=collate)
val = DataLoader(samples[1200:], batch_size=100, collate_fn=collate)
model = Reader(vocabulary)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loss_of = nn.BCEWithLogitsLoss()

for epoch in range(6):
    model.train()
    losses = []
    for ids, lengths, y in train:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(ids, lengths), y.float())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    right, val_loss = 0, 0.0
    with torch.no_grad():
        for ids, lengths, y in val:
            out = model(ids, lengths)
            val_loss += loss_of(out, y.float()).item() / len(val)
            right += ((out > 0) == (y > 0)).sum().item()
    print(
        f"{epoch}: train {sum(losses) / len(losses):.4f} val {val_loss:.4f}"
        f" accuracy {right / 400:.3f}"
    )
