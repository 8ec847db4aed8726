"""Shop sessions (clicks as tokens) are classified by a transformer; its padding mask is upside
down.

`nn.TransformerEncoder` wants True where it must NOT look; the project's own helper
`valid_positions` (written for masked means) says True where there IS a token. The summary token
then attends to the padding only. The place is the input (the mask of the encoder). The twin passes
the complement.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("input", "encoder")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

EVENTS, LENGTH, N, CLS = 30, 20, 2400, 1
g = torch.Generator().manual_seed(seed)
length = torch.randint(6, LENGTH, (N,), generator=g)
clicks = torch.randint(2, EVENTS, (N, LENGTH), generator=g)
clicks[torch.arange(LENGTH) >= length[:, None]] = 0
carts, returns = ((clicks >= 2) & (clicks < 9)).sum(1), ((clicks >= 9) & (clicks < 16)).sum(1)
y = (carts - returns + 0.7 * torch.randn(N, generator=g) > 0).long()
data = TensorDataset(torch.cat([torch.full((N, 1), CLS), clicks], 1), y)
train_set, val_set = random_split(data, [1900, 500], generator=g)


def valid_positions(tokens):
    """True where the row has an event."""
    return tokens != 0


class Sessions(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(EVENTS, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        mask = ~valid_positions(tokens) if healthy else valid_positions(tokens)
        hidden = self.encoder(self.embed(tokens), src_key_padding_mask=mask)
        return self.head(hidden[:, 0])


model = Sessions()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True)
val_loader = DataLoader(val_set, batch_size=250)

for epoch in range(8):
    model.train()
    losses = []
    for tokens, bought in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens), bought)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        right = sum(
            (model(tokens).argmax(1) == bought).sum().item() for tokens, bought in val_loader
        )
    print(
        f"epoch {epoch}: train loss {sum(losses) / len(losses):.4f}, "
        f"val accuracy {right / len(val_set):.3f}"
    )
