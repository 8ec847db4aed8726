"""A transformer for protein families is pre-trained, then adapted to new families by LoRA; both
factors of the adapters start at zero.

lora_b must be zero, but reset_parameters() sets lora_a to zero too. Their product and both
gradients are zero for ever; only the new head learns. The place is the adapters (*lora_a,
*lora_b).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient", "frozen_parameters")
PLACE = ("*lora_a", "*lora_b", "*lora*", "layers*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

RESIDUES, LENGTH, DIM = 20, 20, 48


def families(n_families, n, gen, motif_len):
    """A family has two motifs that occur in an order; everything else is background. Decoys carry one of the motifs only."""  # noqa: E501
    motifs = torch.randint(0, RESIDUES, (n_families, motif_len), generator=gen)
    pairs = torch.stack([torch.randperm(n_families, generator=gen)[:2] for _ in range(n_families)])
    pairs[:, 0] = torch.arange(n_families)
    pairs[:, 1] = (torch.arange(n_families) + 1) % n_families

    def draw(count):
        y = torch.randint(0, n_families, (count,), generator=gen)
        x = torch.randint(0, RESIDUES, (count, LENGTH), generator=gen)
        first = torch.randint(0, LENGTH // 2 - motif_len + 1, (count,), generator=gen)
        second = torch.randint(LENGTH // 2, LENGTH - motif_len + 1, (count,), generator=gen)
        for k in range(motif_len):
            x[torch.arange(count), first + k] = motifs[pairs[y, 0], k]
            x[torch.arange(count), second + k] = motifs[pairs[y, 1], k]
        noise = torch.rand(count, LENGTH, generator=gen) < 0.03
        return torch.where(noise, torch.randint(0, RESIDUES, (count, LENGTH), generator=gen), x), y

    return draw(n), draw(500)


class LoRALinear(nn.Module):
    def __init__(self, base, rank=8, alpha=16):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.empty(base.out_features, rank))
        self.scaling = alpha / rank
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5)) if healthy else nn.init.zeros_(
            self.lora_a
        )
        nn.init.zeros_(self.lora_b)

    def forward(self, x):
        return self.base(x) + self.scaling * (x @ self.lora_a.T) @ self.lora_b.T


class Layer(nn.Module):
    def __init__(self, dim, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ProteinModel(nn.Module):
    def __init__(self, n_out, dim=DIM, depth=2):
        super().__init__()
        self.embed = nn.Embedding(RESIDUES, dim)
        self.local = nn.Conv1d(dim, dim, 5, padding=2)
        self.pos = nn.Parameter(0.02 * torch.randn(LENGTH, dim))
        self.layers = nn.ModuleList(Layer(dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, n_out)

    def forward(self, x):
        h = self.embed(x)
        h = F.gelu(self.local(h.transpose(1, 2))).transpose(1, 2) + self.pos
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h).amax(1))


def train(model, data, steps, lr, tag):
    (x, y), (xv, yv) = data
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=lr, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    for step in range(1, steps + 1):
        model.train()
        rows = torch.randint(0, len(x), (48,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        sched.step()
        if step % 60 == 0:
            model.eval()
            with torch.no_grad():
                acc = (model(xv).argmax(1) == yv).float().mean().item()
            print(f"{tag} {step} loss {loss.item():.3f} val acc {acc:.3f}")


gen = torch.Generator().manual_seed(seed)
model = ProteinModel(12)
train(model, families(12, 8000, gen, 4), 260, 3e-3, "pretrain")
for p in model.parameters():
    p.requires_grad_(False)
for layer in model.layers:
    for name in ("qkv", "proj", "up", "down"):
        setattr(layer, name, LoRALinear(getattr(layer, name)))
model.head = nn.Linear(DIM, 16)
train(model, families(16, 8000, gen, 4), 300, 4e-3, "adapt")
