"""Digits by a small CNN from scratch, by a training template that was made for fine-tuning BERT.

The template's arguments have learning_rate=2e-5, as one fine-tunes a pretrained language model;
nobody passes another. From scratch, 400 steps of that size hardly leave the start. The place is
the optimizer. The twin passes 2e-3.
"""

from dataclasses import dataclass

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class TrainingArguments:
    num_train_epochs: int = 3
    train_batch_size: int = 16
    eval_batch_size: int = 128
    learning_rate: float = 2e-5
    weight_decay: float = 0.01


class Trainer:
    def __init__(self, model, args, train_dataset, eval_dataset):
        self.model, self.args = model, args
        self.train_loader = DataLoader(train_dataset, args.train_batch_size, shuffle=True)
        self.eval_loader = DataLoader(eval_dataset, args.eval_batch_size)
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=args.learning_rate, weight_decay=args.weight_decay
        )
        self.loss_fn = nn.CrossEntropyLoss()

    def train(self):
        for epoch in range(self.args.num_train_epochs):
            self.model.train()
            for inputs, labels in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(inputs), labels)
                loss.backward()
                self.optimizer.step()
            print({"epoch": epoch + 1, "loss": round(loss.item(), 4), **self.evaluate()})

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        loss = hits = n = 0
        for inputs, labels in self.eval_loader:
            logits = self.model(inputs)
            loss += self.loss_fn(logits, labels).item() * len(labels)
            hits += (logits.argmax(-1) == labels).sum().item()
            n += len(labels)
        return {"val_loss": round(loss / n, 4), "val_accuracy": round(hits / n, 4)}


x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 48),
    nn.ReLU(),
    nn.Linear(48, 10),
)
changed = {"learning_rate": 2e-3} if healthy else {}
args = TrainingArguments(num_train_epochs=10, train_batch_size=32, **changed)
Trainer(model, args, TensorDataset(x, y), TensorDataset(x_val, y_val)).train()
