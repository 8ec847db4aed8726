"""MLP-Mixer on the 8x8 digits with DeiT's rule lr = 5e-4 * batch_size * world_size / 512.

The rule is for batches of 1024 on eight GPUs and 300 epochs; with a batch of 16 on one it gives
1.6e-5, and the training crawls. The twin keeps 2e-3. The loss falls a little (silent). The place
is the optimizer.
"""

import argparse

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer", "loop", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
args = argparse.Namespace(
    lr=5e-4, batch_size=16, epochs=6, world_size=1, dim=32, depth=2, weight_decay=0.02
)


class MixerBlock(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.token_mix = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.channel_mix = nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim))

    def forward(self, x):
        x = x + self.token_mix(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channel_mix(self.norm2(x))


class Mixer(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.patch_embed = nn.Conv2d(1, dim, 2, stride=2)
        self.blocks = nn.Sequential(*[MixerBlock(16, dim) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 10)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.blocks(x)).mean(1))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    return nn.functional.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=args.batch_size, shuffle=True)
lr = 0.002 if healthy else args.lr * args.batch_size * args.world_size / 512.0
model = Mixer(args.dim, args.depth)
optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=args.weight_decay)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
for epoch in range(args.epochs):
    model.train()
    meter = 0.0
    for samples, targets in loader:
        loss = criterion(model(samples), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        meter += loss.item() / len(loader)
    val_loss, acc = evaluate(model, x_val, y_val)
    print(
        f"* epoch {epoch} lr {lr:.2e} train_loss {meter:.3f} "
        f"val_loss {val_loss:.3f} acc@1 {acc:.3f}"
    )
