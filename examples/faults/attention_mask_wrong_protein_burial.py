"""Per-residue burial of proteins by a small transformer; the padding mask is read the wrong way.

The collate function returns a mask that is True where there is a residue, as tokenizers do. The
attention block fills those places with a very low score, as if True meant "leave out". Every
residue then attends to the padding of its row and learns nothing about the rest of the chain.
The place is the attention of the encoder's blocks, "blocks.0.attn" and "blocks.1.attn".
The twin fills the places that are padding.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("blocks.0.attn", "blocks.1.attn", "blocks.0", "blocks.1", "attn", "blocks")
SILENT = True
EXACT = False
EARLY = True

PAD = 0
N_AMINO = 20
IGNORE = -100


class Chains(Dataset):
    """Made-up chains: a residue is buried if it and its chain are hydrophobic together."""

    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        scale = torch.linspace(-1, 1, N_AMINO)
        self.items = []
        for _ in range(n):
            length = int(torch.randint(10, 31, (1,), generator=g))
            lean = torch.randn(1, generator=g) * 1.2
            p = torch.softmax(scale * lean, 0)
            seq = torch.multinomial(p, length, replacement=True, generator=g)
            own = scale[seq]
            noise = 0.2 * torch.randn(length, generator=g)
            buried = (own + 2.0 * own.mean() + noise > 0).long()
            self.items.append((seq + 1, buried))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate(items):
    seqs, labels = zip(*items, strict=False)
    tokens = pad_sequence(seqs, batch_first=True, padding_value=PAD)
    labels = pad_sequence(labels, batch_first=True, padding_value=IGNORE)
    return tokens, tokens != PAD, labels


class SelfAttention(nn.Module):
    def __init__(self, dim, heads, healthy):
        super().__init__()
        self.heads, self.healthy = heads, healthy
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(d // self.heads)
        hidden = ~mask if self.healthy else mask
        scores = scores.masked_fill(hidden[:, None, None, :], -1e9)
        out = torch.softmax(scores, -1) @ v
        return self.proj(out.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, healthy):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, heads, healthy)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, mask):
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class BurialNet(nn.Module):
    def __init__(self, healthy, dim=32, heads=4, depth=2):
        super().__init__()
        self.embed = nn.Embedding(N_AMINO + 1, dim, padding_idx=PAD)
        self.blocks = nn.ModuleList(Block(dim, heads, healthy) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, tokens, mask):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for tokens, mask, labels in loader:
        loss = criterion(model(tokens, mask).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    right = count = 0
    for tokens, mask, labels in loader:
        said = model(tokens, mask).argmax(-1)
        right += (said == labels)[mask].sum().item()
        count += mask.sum().item()
    return right / count


def main():
    healthy, seed = arguments(__doc__)
    train = DataLoader(Chains(800, 50 + seed), 32, shuffle=True, collate_fn=collate)
    val = DataLoader(Chains(200, 950 + seed), 64, collate_fn=collate)
    model = BurialNet(healthy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=IGNORE)
    for epoch in range(10):
        loss = train_one_epoch(model, train, optimizer, criterion)
        print(f"epoch {epoch}: loss {loss:.3f}, residues right {validate(model, val):.3f}")


if __name__ == "__main__":
    main()
