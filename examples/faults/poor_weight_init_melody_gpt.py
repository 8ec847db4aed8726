"""A small GPT writes folk melodies, and its weights start fifty times too large.

The model reads the spread of its initial weights from the configuration as `initializer_range` and
falls back to 1.0, which is what `nn.init.normal_` itself does. The configuration file calls it
`init_range`, so nobody's 0.02 arrives. The tied logits start with a spread of about eight, the
loss at many times ln V, and attention is a hard choice of one key from the start. The place is the
embedding (tied to the output) and the linear layers. The twin's configuration uses the right name.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("tok.weight", "tok", "pos.weight", "pos")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

NAME = "initializer_range" if healthy else "init_range"
CONFIG = {"vocab": 24, "block": 32, "width": 48, "heads": 4, "layers": 2, NAME: 0.02}


def melodies(n, g):
    """Motifs of eight notes, walked along the scale, four times over with small changes."""
    start = torch.randint(6, 18, (n, 1), generator=g)
    walk = torch.randint(-2, 3, (n, 8), generator=g).cumsum(1)
    tune = (start + walk).clamp(0, 23).repeat(1, 4)
    changed = torch.rand(n, 32, generator=g) < 0.05
    return torch.where(changed, torch.randint(0, 24, (n, 32), generator=g), tune)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


class MelodyGPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.std = config.get("initializer_range", 1.0)
        self.tok = nn.Embedding(config["vocab"], config["width"])
        self.pos = nn.Embedding(config["block"], config["width"])
        self.blocks = nn.ModuleList(
            Block(config["width"], config["heads"]) for _ in range(config["layers"])
        )
        self.norm = nn.LayerNorm(config["width"])
        self.head = nn.Linear(config["width"], config["vocab"], bias=False)
        self.head.weight = self.tok.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=self.std)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, notes):
        x = self.tok(notes) + self.pos(torch.arange(notes.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


g = torch.Generator().manual_seed(seed)
train = DataLoader(TensorDataset(melodies(1600, g)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(melodies(400, g)), batch_size=200)
model = MelodyGPT(CONFIG)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8 * len(train))

for epoch in range(8):
    model.train()
    for (notes,) in train:
        loss = F.cross_entropy(model(notes[:, :-1]).flatten(0, 1), notes[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        losses = [
            F.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten()) for (x,) in val
        ]
    print(f"epoch {epoch} train loss {loss:.3f} val loss {torch.stack(losses).mean():.3f}")
