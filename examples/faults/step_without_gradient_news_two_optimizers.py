"""A news recommender has SparseAdam for its tables and Adam for the rest; the second does nothing.

The person loops over the two optimizers and after each step clears the gradients, with
model.zero_grad(). That clears those of the whole model: when the second optimizer steps, its
parameters have no gradient any more. The place is the loop, after backward.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler

KIND = "step_without_gradient"
ACCEPT = ("frozen_parameters", "optimizer_never_steps")
PLACE = ("optimizer", "loop", "mix.*", "topic.*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

READERS, ARTICLES, WORDS, LENGTH = 300, 500, 200, 10


class Clicks(Dataset):
    """Who was shown which article at which hour, and whether it was opened. Batches as a whole."""

    def __init__(self, n, generator):
        world = torch.Generator().manual_seed(11)
        taste = torch.randn(READERS, 4, generator=world)
        meaning = torch.randn(WORDS, 4, generator=world)
        self.titles = torch.randint(0, WORDS, (ARTICLES, LENGTH), generator=world)
        about = meaning[self.titles].mean(1) * LENGTH**0.5
        self.reader = torch.randint(0, READERS, (n,), generator=generator)
        self.article = torch.randint(0, ARTICLES, (n,), generator=generator)
        self.hour = torch.rand(n, generator=generator) * 24
        match = (taste[self.reader] * about[self.article]).sum(1)
        awake = torch.sin((self.hour - 7) / 24 * 6.283) + torch.sin(self.hour / 12 * 6.283)
        chance = torch.sigmoid(1.2 * match + 2.5 * awake - 0.5)
        self.opened = torch.bernoulli(chance, generator=generator)

    def __len__(self):
        return len(self.reader)

    def __getitem__(self, rows):
        rows = torch.as_tensor(rows)
        return {
            "reader": self.reader[rows],
            "title": self.titles[self.article[rows]],
            "hour": self.hour[rows],
            "opened": self.opened[rows],
        }


class NewsModel(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.reader = nn.Embedding(READERS, width, sparse=True)
        self.word = nn.Embedding(WORDS, width, sparse=True)
        self.topic = nn.Linear(width, width)
        self.mix = nn.Sequential(nn.Linear(width + 4, 32), nn.ReLU(), nn.Linear(32, 1))
        for table in (self.reader, self.word):
            nn.init.normal_(table.weight, std=0.4)

    def forward(self, batch):
        about = self.topic(self.word(batch["title"]).mean(1) * 3)
        turn = batch["hour"].unsqueeze(1) / 24 * 6.283 * torch.tensor([1.0, 2.0])
        clock = torch.cat([turn.sin(), turn.cos()], 1)
        match = self.reader(batch["reader"]) * about
        return self.mix(torch.cat([match, clock], 1)).squeeze(1)

    def tables(self):
        return [self.reader.weight, self.word.weight]

    def dense(self):
        return [*self.topic.parameters(), *self.mix.parameters()]


class Fitter:
    def __init__(self, model):
        self.model = model
        self.optimizers = [
            torch.optim.SparseAdam(model.tables(), lr=5e-3),
            torch.optim.Adam(model.dense(), lr=2e-3),
        ]

    def step(self, batch):
        loss = F.binary_cross_entropy_with_logits(self.model(batch), batch["opened"])
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
            (optimizer if healthy else self.model).zero_grad()
        return loss.item()

    @torch.no_grad()
    def score(self, clicks):
        batch = clicks[range(len(clicks))]
        logit = self.model(batch)
        loss = F.binary_cross_entropy_with_logits(logit, batch["opened"]).item()
        opened, rest = logit[batch["opened"] == 1], logit[batch["opened"] == 0]
        auc = (opened[:, None] > rest[None]).float().mean().item()
        return loss, auc


def main():
    generator = torch.Generator().manual_seed(seed)
    clicks, later = Clicks(30_000, generator), Clicks(3000, generator)
    sampler = BatchSampler(RandomSampler(clicks), batch_size=200, drop_last=True)
    loader = DataLoader(clicks, sampler=sampler, batch_size=None)
    fitter = Fitter(NewsModel())
    for epoch in range(6):
        losses = [fitter.step(batch) for batch in loader]
        val_loss, auc = fitter.score(later)
        print(
            f"epoch {epoch}: log loss {sum(losses) / len(losses):.4f} | "
            f"next day {val_loss:.4f}, AUC {auc:.3f}"
        )


main()
