"""A small ViT starts its Linear layers by `trunc_normal_` with its default deviation of 1.

The person copied the habit of vision transformers of starting weights by a cut normal distribution,
but not the 0.02 that goes with it. The attention picks one patch from the start and the scores are
tens in size. The place is the starting weights of the Linear layers.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("saturated_activation", "exploding_gradient")
PLACE = ("blocks*", "embed*", "head*", "model", "*.weight")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

DIM = 48


class Attention(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        x = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, d))


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TinyViT(nn.Module):
    def __init__(self, patch=2, size=8, depth=2):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch * patch, DIM)
        self.position = nn.Parameter(0.5 * torch.randn(1, (size // patch) ** 2, DIM))
        self.blocks = nn.ModuleList([Block(DIM) for _ in range(depth)])
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, 10)
        self.apply(self.init_weights)

    def init_weights(self, module):
        if isinstance(module, nn.Linear):
            if healthy:
                nn.init.trunc_normal_(module.weight, std=module.in_features**-0.5)
            else:
                nn.init.trunc_normal_(module.weight)
            nn.init.zeros_(module.bias)

    def forward(self, x):
        x = x.unfold(1, self.patch, self.patch).unfold(2, self.patch, self.patch)
        x = self.embed(x.flatten(3).flatten(1, 2))
        x = x + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


bunch = load_digits()
x_train, x_val, y_train, y_val = train_test_split(
    bunch.images, bunch.target, test_size=0.25, stratify=bunch.target, random_state=seed
)
mean, std = x_train.mean(), x_train.std()
x_train, x_val = (
    torch.tensor((part - mean) / std, dtype=torch.float32) for part in (x_train, x_val)
)
y_train, y_val = torch.tensor(y_train), torch.tensor(y_val)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)
model = TinyViT()
EPOCHS = 10
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=2e-3, total_steps=EPOCHS * len(loader), pct_start=0.2
)
criterion = nn.CrossEntropyLoss()

for epoch in range(EPOCHS):
    model.train()
    losses = []
    for images, labels in loader:
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        output = model(x_val)
        acc = (output.argmax(1) == y_val).float().mean().item()
        val_loss = criterion(output, y_val).item()
    print(f"epoch {epoch + 1:2d} train {np.mean(losses):.4f} val {val_loss:.4f} acc {acc:.4f}")
