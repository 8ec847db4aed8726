"""A tagger of protein chains adds its loss up over all residues, and keeps the learning rate of
the recipe that averages it.

The person wrote the sequence loss by hand and summed over the residues of a chain, as in the
formula of the paper, but took rate and momentum from a recipe with a mean. A chain has some 40
residues, so each step is 40 times too long. The states of the GRU are bounded, so that all stays
finite. The place is the loss and the learning rate.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

KIND = "learning_rate_too_high"
ACCEPT = ("exploding_gradient",)
PLACE = ("learning_rate", "loss", "optimizer")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

RESIDUES, TAGS = 20, 3
RECIPE = {"rate": 0.2, "momentum": 0.9, "batch": 16, "epochs": 4}


def protein_chains(count, rng):
    """Chains in which runs of helix, strand and coil favour different residues."""
    table = np.random.default_rng(5)
    favour = table.dirichlet(np.full(RESIDUES, 0.6), TAGS)
    chains = []
    for _ in range(count):
        tags = np.concatenate([np.full(rng.integers(4, 12), rng.integers(TAGS)) for _ in range(5)])
        residues = np.array([rng.choice(RESIDUES, p=favour[tag]) for tag in tags])
        chains.append({"residues": torch.from_numpy(residues), "tags": torch.from_numpy(tags)})
    return chains


def collate(chains):
    residues = [chain["residues"] for chain in chains]
    residues = pad_sequence(residues, batch_first=True, padding_value=RESIDUES)
    tags = pad_sequence([chain["tags"] for chain in chains], batch_first=True, padding_value=-1)
    return {"residues": residues, "tags": tags, "real": tags >= 0, "lengths": (tags >= 0).sum(1)}


class Tagger(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embedding = nn.Embedding(RESIDUES + 1, width, padding_idx=RESIDUES)
        self.chain = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.score = nn.Linear(2 * width, TAGS)

    def forward(self, residues, lengths):
        packed = pack_padded_sequence(
            self.embedding(residues), lengths, batch_first=True, enforce_sorted=False
        )
        hidden, _ = pad_packed_sequence(self.chain(packed)[0], batch_first=True)
        return self.score(hidden)


def sequence_loss(scores, batch):
    likelihood = scores.log_softmax(-1).gather(-1, batch["tags"].clamp(min=0)[..., None])[..., 0]
    return -(likelihood * batch["real"]).sum(1).mean()


class Training:
    def __init__(self, chains, held_out, recipe):
        self.chains, self.held_out, self.recipe = chains, held_out, recipe
        self.net = Tagger()
        self.optimizer = torch.optim.SGD(
            self.net.parameters(), lr=recipe["rate"], momentum=recipe["momentum"]
        )

    def step(self, batch):
        loss = sequence_loss(self.net(batch["residues"], batch["lengths"]), batch)
        residues = batch["real"].sum(1).float().mean()
        if healthy:
            loss = loss / residues
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return (loss if healthy else loss / residues).item()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        scores = self.net(self.held_out["residues"], self.held_out["lengths"])
        real = self.held_out["real"]
        right = (scores.argmax(-1) == self.held_out["tags"])[real].float().mean()
        loss = sequence_loss(scores, self.held_out) / real.sum(1).float().mean()
        return loss.item(), right.item()

    def run(self):
        size = self.recipe["batch"]
        for epoch in range(1, self.recipe["epochs"] + 1):
            self.net.train()
            order = torch.randperm(len(self.chains)).split(size)
            losses = [self.step(collate([self.chains[i] for i in rows])) for rows in order]
            val, right = self.validate()
            print(
                f"epoch {epoch:2d}  loss per residue {np.mean(losses):.4f}"
                f"  val {val:.4f}  right {right:.3f}"
            )


def main():
    rng = np.random.default_rng(60 + seed)
    chains = protein_chains(1200, rng)
    Training(chains[:960], collate(chains[960:]), RECIPE).run()


main()
