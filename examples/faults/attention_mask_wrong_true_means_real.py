"""A small encoder over sets of measurements of different sizes; the mask of the tokens that are
real goes to PyTorch's attention as `src_key_padding_mask`.

Fault: as in Hugging Face's `attention_mask`, True is a real token; PyTorch's mask means the
opposite, so that the real tokens are hidden and only the padding is attended to. The place is the
encoder. The loss falls somewhat (each token still sees itself by the residual). Exact.
"""

import torch
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LONGEST = 12


def sets(n):
    """Each row: pairs (key, value); the target is the value beside the largest key."""
    length = torch.randint(4, LONGEST, (n,))
    real = torch.arange(LONGEST) < length[:, None]
    key = torch.rand(n, LONGEST).masked_fill(~real, 0)
    value = torch.randn(n, LONGEST).masked_fill(~real, 0)
    best = key.argmax(1)
    return (
        torch.stack([key * 4 - 2, value], -1) * real[..., None],
        real,
        value.gather(1, best[:, None]),
    )


class Model(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Linear(2, width)
        self.query = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 1)

    def forward(self, x, attention_mask):
        h = torch.cat([self.query.expand(len(x), -1, -1), self.embed(x)], 1)
        first = torch.ones(len(x), 1, dtype=torch.bool)
        mask = torch.cat([first, attention_mask], 1)
        h = self.encoder(h, src_key_padding_mask=~mask if healthy else mask)
        return self.head(h[:, 0])


torch.manual_seed(seed)
train, val = sets(4000), sets(500)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
criterion = nn.MSELoss()


@torch.no_grad()
def evaluate():
    model.eval()
    x, real, y = val
    score = 1 - criterion(model(x, real), y) / y.var()
    model.train()
    return score.item()


for step in range(300):
    rows = torch.randint(0, 4000, (64,))
    x, real, y = (part[rows] for part in train)
    loss = criterion(model(x, real), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1}: loss {loss.item():.4f}, validation R2 {evaluate():.3f}")
print(f"loss {loss.item():.4f} | validation R2 {evaluate():.3f}")
