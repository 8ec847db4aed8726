"""Reviews by a packed GRU; the batch is sorted by length for packing, its labels are not.

`pack_padded_sequence` wants the longest first, so the collate function sorts the sequences and
forgets that the labels came in the order before. Each review gets another's label, by another
shuffle in every epoch: the loss stays at ln 2. The place is the loss.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

KIND = "label_misalignment"
ACCEPT = ()
PLACE = ("", "loader", "loss*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
words, praise, vocabulary = reviews(seed, n=1600)
pairs = [(row[row > 0], label) for row, label in zip(words, praise, strict=False)]
train_pairs, val_pairs = pairs[:1300], pairs[1300:]


def collate(batch):
    sequences = [s for s, _ in batch]
    labels = torch.stack([label for _, label in batch])
    lengths = torch.tensor([len(s) for s in sequences])
    lengths, order = lengths.sort(descending=True)
    sequences = [sequences[i] for i in order]
    if healthy:
        labels = labels[order]
    return pad_sequence(sequences, batch_first=True), lengths, labels.float()


class SentimentGRU(nn.Module):
    def __init__(self, vocabulary, dim=32, hidden=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.drop = nn.Dropout(0.3)
        self.gru = nn.GRU(dim, hidden, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.drop(self.embed(tokens)), lengths, batch_first=True)
        _, last = self.gru(packed)
        return self.fc(self.drop(torch.cat([last[0], last[1]], 1))).squeeze(1)


model = SentimentGRU(vocabulary)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
train_loader = DataLoader(train_pairs, batch_size=32, shuffle=True, collate_fn=collate)
val_loader = DataLoader(val_pairs, batch_size=100, collate_fn=collate)
for epoch in range(12):
    model.train()
    for tokens, lengths, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens, lengths), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    model.eval()
    right = val_loss = 0
    with torch.no_grad():
        for tokens, lengths, labels in val_loader:
            out = model(tokens, lengths)
            val_loss += criterion(out, labels).item() / len(val_loader)
            right += ((out > 0) == (labels > 0.5)).sum().item()
print(f"loss {loss.item():.3f}, val loss {val_loss:.3f}, accuracy {right / len(val_pairs):.3f}")
