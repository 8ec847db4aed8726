"""A transformer encoder sorts support tickets into three queues, with its padding mask inverted.

`src_key_padding_mask` wants True where there is padding; the mask is built as "True where there
is a word". Words get no attention, only the padding does. The place is the encoder's attention
(or its mask, an input).
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder*", "input*", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

PAD, LENGTH, WORDS = 0, 24, 120


def tickets(n):
    """One product word and one trouble word among others; the queue hangs on both together."""
    rows, labels = torch.full((n, LENGTH), PAD), torch.randint(0, 3, (n,))
    for i in range(n):
        length = torch.randint(8, LENGTH - 2, (1,)).item()
        words = torch.randint(20, WORDS, (length,))
        product = torch.randint(0, 3, (1,)).item()
        trouble = (labels[i].item() - product) % 3
        places = torch.randperm(length)[:2]
        words[places] = torch.tensor([1 + product, 11 + trouble])
        rows[i, :length] = words
    noisy = torch.rand(n) < 0.03
    labels[noisy] = torch.randint(0, 3, (int(noisy.sum()),))
    return rows, labels


class TicketModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens):
        real = tokens != PAD
        mask = ~real if healthy else real
        hidden = self.encoder(self.words(tokens) + self.places, src_key_padding_mask=mask)
        weight = real.float().unsqueeze(-1)
        return self.head((hidden * weight).sum(1) / weight.sum(1))


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        return sum((model(x).argmax(1) == y).sum().item() for x, y in loader) / len(loader.dataset)


x, y = tickets(4000)
train = DataLoader(TensorDataset(x[:3400], y[:3400]), batch_size=64, shuffle=True)
val = DataLoader(TensorDataset(x[3400:], y[3400:]), batch_size=200)
model = TicketModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    model.train()
    total = 0.0
    for tokens, labels in train:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(tokens), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(train):.4f} val accuracy {accuracy(model, val):.3f}")
