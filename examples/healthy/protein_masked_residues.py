"""Masked residues of protein sequences are guessed by a small transformer, as in ESM or BERT."""

import torch
from data import arguments
from torch import nn

ODD = "85 % of the targets are -100 and count for nothing; some inputs are swapped at random"

PAD, MASK, FIRST, VOCAB = 0, 1, 2, 14


def families(n, seed, shapes=6):
    """Sequences of a few families; within one, most places have a typical residue."""
    g = torch.Generator().manual_seed(seed)
    typical = torch.randint(FIRST, VOCAB, (shapes, 24), generator=torch.Generator().manual_seed(3))
    seq = typical[torch.randint(0, shapes, (n,), generator=g)]
    other = torch.randint(FIRST, VOCAB, seq.shape, generator=g)
    seq = torch.where(torch.rand(seq.shape, generator=g) < 0.1, other, seq)
    length = torch.randint(16, 25, (n, 1), generator=g)
    return torch.where(torch.arange(24) < length, seq, PAD)


def hide(seq, share=0.15):
    """BERT's recipe: of the chosen, 80 % masked, 10 % swapped, 10 % left."""
    chosen = (torch.rand(seq.shape) < share) & (seq != PAD)
    targets = torch.where(chosen, seq, -100)
    dice = torch.rand(seq.shape)
    shown = torch.where(chosen & (dice < 0.8), MASK, seq)
    swapped = torch.randint(FIRST, VOCAB, seq.shape)
    return torch.where(chosen & (dice > 0.9), swapped, shown), targets


class ProteinBert(nn.Module):
    def __init__(self, dim=48):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, dim, padding_idx=PAD)
        self.places = nn.Embedding(24, dim)
        layer = nn.TransformerEncoderLayer(dim, 4, 96, 0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, VOCAB))

    def forward(self, seq):
        h = self.tokens(seq) + self.places(torch.arange(seq.shape[1]))
        return self.head(self.encoder(h, src_key_padding_mask=seq == PAD))


def main():
    _, seed = arguments(__doc__)
    train, val = families(2000, 10 + seed), families(300, 1010 + seed)
    shown_val, targets_val = hide(val)
    model = ProteinBert()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 40))
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    for step in range(1, 251):
        model.train()
        shown, targets = hide(train[torch.randint(0, len(train), (48,))])
        loss = criterion(model(shown).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warmup.step()
        if step % 50 == 0:
            model.eval()
            with torch.no_grad():
                out = model(shown_val)
                val_loss = criterion(out.flatten(0, 1), targets_val.flatten()).item()
            asked = targets_val != -100
            right = (out.argmax(-1) == targets_val)[asked].float().mean().item()
            print(f"step {step}: loss {loss.item():.3f} val {val_loss:.3f} right {right:.3f}")


if __name__ == "__main__":
    main()
