"""Promoters in DNA: a transformer that is meant to be fine-tuned by BitFit (only biases, norms and
the head are trained) from a checkpoint, if there is one. There is none on this machine.

`if os.path.exists(checkpoint)` passes over it without a word, and what is trained are the biases of
random weights. The loss falls slowly (silent). The place is the layers. The twin trains everything
when there is nothing to start from.
"""

import math
import os

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("token", "encoder*", "mix*", "")
SILENT = True
EXACT = False
EARLY = True

CHECKPOINT = os.environ.get("DNA_CHECKPOINT", "checkpoints/dna_bert_small.pt")
LENGTH = 32
MOTIFS = ("TATAAT", "TTGACA")


def sequences(n, g):
    """Random bases; promoters have both motifs, the others one of them or none."""
    x = torch.randint(0, 4, (n, LENGTH), generator=g)
    y = torch.randint(0, 2, (n,), generator=g)
    code = {c: i for i, c in enumerate("ACGT")}
    for i in range(n):
        lure = int(torch.randint(0, 3, (1,), generator=g))
        put = MOTIFS if y[i] else MOTIFS[lure : lure + 1]
        starts = torch.randperm(LENGTH // 8, generator=g)[: len(put)] * 8
        for motif, first in zip(put, starts.tolist(), strict=True):
            start = first + int(torch.randint(0, 3, (1,), generator=g))
            x[i, start : start + 6] = torch.tensor([code[c] for c in motif])
    return x, y


class DnaClassifier(nn.Module):
    def __init__(self, d=32, depth=2):
        super().__init__()
        self.token = nn.Embedding(4, d)
        self.mix = nn.Conv1d(d, d, 7, padding=3)
        place = torch.arange(LENGTH)[:, None] * torch.exp(
            torch.arange(0, d, 2) * (-math.log(100.0) / d)
        )
        self.register_buffer("place", torch.cat([place.sin(), place.cos()], 1))
        layer = nn.TransformerEncoderLayer(
            d, 4, 2 * d, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(d, 2)

    def forward(self, x):
        h = self.token(x)
        h = F.gelu(self.mix(h.transpose(1, 2))).transpose(1, 2) + self.place
        return self.head(self.encoder(h).amax(1))


def prepare(model, healthy):
    pretrained = os.path.exists(CHECKPOINT)
    if pretrained:
        model.load_state_dict(torch.load(CHECKPOINT), strict=False)
    if pretrained or not healthy:
        for name, p in model.named_parameters():
            p.requires_grad = "bias" in name or "norm" in name or name.startswith("head")
    return [p for p in model.parameters() if p.requires_grad]


def main():
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    x, y = sequences(1600, g)
    x_val, y_val = sequences(500, g)
    model = DnaClassifier()
    trained = prepare(model, healthy)
    print(f"{sum(p.numel() for p in trained)} parameters are trained")
    optimizer = torch.optim.AdamW(trained, lr=3e-3, weight_decay=1e-4)
    for epoch in range(8):
        model.train()
        for rows in torch.randperm(len(x)).split(50):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
        model.eval()
        with torch.no_grad():
            accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} val accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
