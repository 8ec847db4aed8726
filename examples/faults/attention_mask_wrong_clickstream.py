"""A Transformer over a shop's click streams says who will buy; it attends to the padding only.

The collate function returns a mask as a well-known tokenizer does, 1 for a real token. PyTorch's
`src_key_padding_mask` has the opposite meaning, True for what is to be IGNORED. Every session has
room to spare, so there is no NaN: the summary token looks at padding and sees the same thing in
every session. The place is the encoder. The twin passes `~mask`.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder", "encoder.layers.0.self_attn", "encoder.layers.0", "input*", "loader")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PAD, CLS, HOME, SEARCH, ITEM, CART, REVIEW, HELP, PAY = range(9)
LENGTH = 20


class Sessions(Dataset):
    """Walks over pages; buying follows from cart after reviews, and help keeps people from it."""

    def __init__(self, n, g):
        self.rows, self.bought = [], []
        for _ in range(n):
            size = int(torch.randint(4, LENGTH - 2, (1,), generator=g))
            pages = torch.randint(HOME, PAY + 1, (size,), generator=g)
            count = [(pages == page).sum().item() for page in range(9)]
            score = (
                1.4 * count[CART]
                + 0.8 * count[REVIEW]
                - 1.6 * count[HELP]
                - 0.9 * count[SEARCH]
                + 0.3
            )
            p = torch.sigmoid(torch.tensor(1.5 * score))
            self.rows.append(pages)
            self.bought.append(float(torch.rand((), generator=g) < p))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.bought[i]


def collate(batch):
    """Token numbers, attention mask (1 = token, 0 = padding) and label."""
    ids = torch.full((len(batch), LENGTH), PAD)
    mask = torch.zeros(len(batch), LENGTH, dtype=torch.bool)
    for i, (pages, _) in enumerate(batch):
        ids[i, 0], ids[i, 1 : len(pages) + 1] = CLS, pages
        mask[i, : len(pages) + 1] = True
    return ids, mask, torch.tensor([bought for _, bought in batch])


class Buyer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(9, width, padding_idx=PAD)
        self.place = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, ids, mask):
        x = self.embed(ids) + self.place
        x = self.encoder(x, src_key_padding_mask=~mask if healthy else mask)
        return self.head(x[:, 0]).squeeze(1)


g = torch.Generator().manual_seed(seed)
train = DataLoader(Sessions(3000, g), batch_size=64, shuffle=True, collate_fn=collate)
val = DataLoader(Sessions(600, g), batch_size=200, collate_fn=collate)
model = Buyer()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    model.train()
    total = 0.0
    for ids, mask, bought in train:
        optimizer.zero_grad()
        loss = criterion(model(ids, mask), bought)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        right = sum(((model(i, m) > 0) == (b > 0.5)).sum().item() for i, m, b in val)
    print(f"epoch {epoch} train {total:.3f} val accuracy {right / 600:.3f}")
