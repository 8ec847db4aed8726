"""An MLP-Mixer written with einops layers reads digits; NLLLoss gets its raw outputs.

The head lacks nn.LogSoftmax, and NLLLoss takes what it is given for log probabilities: the loss
falls below zero without end and the outputs are no probabilities. The place is the head and the
loss.
"""

import torch
from data import arguments, images
from einops.layers.torch import EinMix, Rearrange, Reduce
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss", "head*", "*head*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class PreNormResidual(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x):
        return x + self.fn(self.norm(x))


def mixer_layer(tokens, dim, hidden_tokens=24, hidden_dim=96):
    return nn.Sequential(
        PreNormResidual(
            dim,
            nn.Sequential(
                EinMix(
                    "b n c -> b m c", weight_shape="n m", bias_shape="m", n=tokens, m=hidden_tokens
                ),
                nn.GELU(),
                EinMix(
                    "b m c -> b n c", weight_shape="m n", bias_shape="n", n=tokens, m=hidden_tokens
                ),
            ),
        ),
        PreNormResidual(
            dim,
            nn.Sequential(
                EinMix("b n c -> b n d", weight_shape="c d", bias_shape="d", c=dim, d=hidden_dim),
                nn.GELU(),
                EinMix("b n d -> b n c", weight_shape="d c", bias_shape="c", c=dim, d=hidden_dim),
            ),
        ),
    )


class Mixer(nn.Module):
    def __init__(self, dim=48, depth=2, patch=2):
        super().__init__()
        self.patches = nn.Sequential(
            Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=patch, p2=patch),
            nn.Linear(patch * patch, dim),
        )
        self.layers = nn.Sequential(*(mixer_layer(16, dim) for _ in range(depth)))
        head = [nn.LayerNorm(dim), Reduce("b n c -> b c", "mean"), nn.Linear(dim, 10)]
        self.head = nn.Sequential(*head, *([nn.LogSoftmax(dim=-1)] if healthy else []))

    def forward(self, x):
        return self.head(self.layers(self.patches(x)))


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = Mixer()
criterion = nn.NLLLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)

for epoch in range(12):
    model.train()
    total = 0.0
    for pictures, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(pictures), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    accuracy = (out.argmax(-1) == y_val).float().mean()
    log_loss = nn.functional.cross_entropy(out, y_val)
    print(
        f"epoch {epoch}: train {total / len(loader):.3f}, val accuracy {accuracy:.3f}, "
        f"val log loss {log_loss:.3f}"
    )
print(f"validation accuracy {accuracy:.3f} log loss {log_loss:.3f}")
