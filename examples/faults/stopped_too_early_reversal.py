"""A transformer that learns to write strings backwards, stopped after two epochs while its loss
still falls fast.

The user stops by a fixed small number of epochs, when the net has hardly begun to use its
attention. The place is the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SYMBOLS, LENGTH, WIDTH = 12, 10, 48
EPOCHS = 9 if healthy else 2


class Reverser(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbol = nn.Embedding(SYMBOLS, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 96, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, x):
        return self.head(self.norm(self.encoder(self.symbol(x) + self.place.weight)))


def strings(n, generator):
    x = torch.randint(0, SYMBOLS, (n, LENGTH), generator=generator)
    y = x.flip(1)
    noisy = torch.rand(n, LENGTH, generator=generator) < 0.03
    return x, torch.where(noisy, torch.randint(0, SYMBOLS, (n, LENGTH), generator=generator), y)


generator = torch.Generator().manual_seed(seed)
train = TensorDataset(*strings(4800, generator))
x_val, y_val = strings(500, generator)
model = Reverser()
optimizer = torch.optim.Adam(model.parameters(), lr=2.5e-4, betas=(0.9, 0.98))
loss_fn = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    model.train()
    for step, (x, y) in enumerate(DataLoader(train, batch_size=48, shuffle=True)):
        loss = loss_fn(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.3f}")
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val = loss_fn(scores.flatten(0, 1), y_val.flatten()).item()
        right = (scores.argmax(2) == y_val).float().mean().item()
    print(f"epoch {epoch} validation loss {val:.3f} symbols right {right:.3f}")
