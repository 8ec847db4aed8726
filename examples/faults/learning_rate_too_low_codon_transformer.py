"""Trains a small transformer on codon sequences from scratch with the 2e-5 of a fine-tuning
recipe.

The person took optimizer, warm-up and rate from a script that fine-tunes a large language model,
but this model starts from random weights. After all the epochs the loss has hardly come down from
that of guessing. The place is the learning rate of the optimizer.
"""

import argparse

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("learning_rate", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CODONS, LENGTH, HOSTS = 64, 30, 5
ARGS = argparse.Namespace(
    learning_rate=1e-3 if healthy else 2e-5,
    weight_decay=0.01,
    warmup_ratio=0.06,
    num_train_epochs=7,
    per_device_batch_size=32,
    max_grad_norm=1.0,
)


def genes(count, rng):
    """Codon sequences of five hosts, each with its own taste among synonymous codons."""
    amino_of = np.arange(CODONS) // 3
    usage = rng.dirichlet(np.full(22, 3.0))
    taste = np.exp(rng.normal(0, 1.1, (HOSTS, CODONS)))
    labels = rng.integers(0, HOSTS, count)
    rows = np.zeros((count, LENGTH), dtype=np.int64)
    for row, host in zip(rows, labels, strict=True):
        weight = taste[host] / np.bincount(amino_of, taste[host])[amino_of]
        weight = weight * usage[amino_of]
        row[:] = rng.choice(CODONS, LENGTH, p=weight / weight.sum())
    return torch.tensor(rows), torch.tensor(labels)


class CodonClassifier(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.tokens = nn.Embedding(CODONS, width)
        self.positions = nn.Parameter(torch.randn(1, LENGTH, width) * 0.02)
        layer = nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.classifier = nn.Linear(width, HOSTS)

    def forward(self, ids):
        hidden = self.encoder(self.tokens(ids) + self.positions)
        return self.classifier(hidden.mean(1))


def linear_schedule_with_warmup(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (total - step) / (total - warmup))

    return LambdaLR(optimizer, factor)


def evaluate(model, ids, labels):
    model.eval()
    with torch.no_grad():
        logits = model(ids)
    loss = nn.functional.cross_entropy(logits, labels).item()
    return loss, (logits.argmax(-1) == labels).float().mean().item()


def main():
    ids, labels = genes(2000, np.random.default_rng(seed))
    train = TensorDataset(ids[:1600], labels[:1600])
    loader = DataLoader(train, batch_size=ARGS.per_device_batch_size, shuffle=True)
    model = CodonClassifier()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=ARGS.learning_rate, weight_decay=ARGS.weight_decay
    )
    total = len(loader) * ARGS.num_train_epochs
    scheduler = linear_schedule_with_warmup(optimizer, int(total * ARGS.warmup_ratio), total)
    for epoch in range(ARGS.num_train_epochs):
        model.train()
        running = 0.0
        for batch, target in loader:
            loss = nn.functional.cross_entropy(model(batch), target)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), ARGS.max_grad_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            running += loss.item() / len(loader)
        eval_loss, eval_acc = evaluate(model, ids[1600:], labels[1600:])
        print(
            {
                "epoch": epoch + 1,
                "loss": round(running, 4),
                "eval_loss": round(eval_loss, 4),
                "eval_accuracy": round(eval_acc, 4),
            }
        )


if __name__ == "__main__":
    main()
