"""Sorting the letters of the insured with a small transformer; its weights are kept in bfloat16.

To save memory the whole model was cast to bfloat16, parameters and all, and the optimizer works on
them. A step of 5e-4 on a weight of 0.5 is below what eight bits can hold and is rounded away:
most updates change nothing.
The place is the optimizer's parameters, the whole of the encoder. The twin keeps them in float32
and uses bfloat16 only inside autocast.
"""

import copy
import math
import random

import torch
from data import arguments
from torch import nn

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("model", "encoder", "optimizer", "embed")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

config = {
    "vocab": 120,
    "length": 12,
    "width": 32,
    "heads": 4,
    "classes": 4,
    "lr": 5e-4,
    "warmup": 20,
    "batch_size": 48,
    "epochs": 8,
    "param_dtype": torch.float32 if healthy else torch.bfloat16,
}


def letters(rng, n):
    """Word numbers; ten words are typical of each of storm, theft, liability, travel."""
    rows, labels = [], []
    for _ in range(n):
        topic = rng.randrange(config["classes"])
        row = [rng.randrange(40, config["vocab"]) for _ in range(config["length"])]
        for place in rng.sample(range(config["length"]), 3):
            row[place] = 10 * topic + rng.randrange(10)
        if rng.random() < 0.4:
            row[rng.randrange(config["length"])] = rng.randrange(40)
        rows.append(row)
        labels.append(topic)
    return torch.tensor(rows), torch.tensor(labels)


class LetterModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed = nn.Embedding(c["vocab"], c["width"])
        self.position = nn.Parameter(0.02 * torch.randn(c["length"], c["width"]))
        layer = nn.TransformerEncoderLayer(
            c["width"], c["heads"], 2 * c["width"], dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(c["width"], c["classes"])

    def forward(self, tokens):
        h = self.encoder(self.embed(tokens) + self.position)
        return self.head(h.mean(1))


class Trainer:
    def __init__(self, config, train_set, val_set):
        self.config, self.train_set, self.val_set = config, train_set, val_set
        self.model = LetterModel(config).to(config["param_dtype"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), config["lr"], weight_decay=0.01)
        per_epoch = len(train_set[0]) // config["batch_size"]
        total = per_epoch * config["epochs"]

        def shape(step):
            if step < config["warmup"]:
                return (step + 1) / config["warmup"]
            return 0.1 + 0.45 * (1 + math.cos(math.pi * step / total))

        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, shape)
        self.best = (0.0, None)

    def forward(self, tokens, labels):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = self.model(tokens)
        return nn.functional.cross_entropy(logits.float(), labels), logits

    def epoch(self):
        self.model.train()
        tokens, labels = self.train_set
        losses = []
        for rows in torch.randperm(len(tokens)).split(self.config["batch_size"]):
            loss, _ = self.forward(tokens[rows], labels[rows])
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        tokens, labels = self.val_set
        loss, logits = self.forward(tokens, labels)
        accuracy = (logits.argmax(-1) == labels).float().mean().item()
        if accuracy > self.best[0]:
            self.best = (accuracy, copy.deepcopy(self.model.state_dict()))
        return loss.item(), accuracy

    def run(self):
        for epoch in range(self.config["epochs"]):
            train_loss = self.epoch()
            val_loss, accuracy = self.validate()
            print(
                f"epoch {epoch + 1} | lr {self.scheduler.get_last_lr()[0]:.2e} | "
                f"train {train_loss:.4f} | val {val_loss:.4f} | acc {accuracy:.3f}"
            )
        self.model.load_state_dict(self.best[1])


rng = random.Random(seed)
Trainer(config, letters(rng, 2000), letters(rng, 600)).run()
