"""A recurrent classifier of noisy waves in a home-made Lightning; OneCycle is stepped in a hook
nobody calls.

The module steps its scheduler in on_batch_end, as in an older version of the trainer; the trainer
of today calls on_train_batch_end. OneCycleLR thus stays at its first rate, max_lr / 25, for all
of the training. The place is the loop/scheduler (optimizer).
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class LitModule(nn.Module):
    def on_train_start(self): ...
    def on_train_batch_end(self): ...
    def on_validation_end(self, metrics): ...


class WaveClassifier(LitModule):
    def __init__(self, hidden=32, max_lr=4e-3):
        super().__init__()
        self.max_lr = max_lr
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 3))
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out.mean(1))

    def training_step(self, batch):
        x, y = batch
        return self.loss(self(x), y)

    def validation_step(self, batch):
        x, y = batch
        out = self(x)
        return {
            "val_loss": self.loss(out, y).item() * len(y),
            "val_acc": (out.argmax(1) == y).sum().item(),
            "n": len(y),
        }

    def configure_optimizers(self, total_steps):
        self.optimizer = torch.optim.AdamW(self.parameters(), lr=self.max_lr, weight_decay=1e-2)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=self.max_lr, total_steps=total_steps
        )
        return self.optimizer

    def step_schedule(self):
        self.scheduler.step()

    def on_validation_end(self, metrics):
        print("  ".join(f"{k} {v:.4f}" for k, v in metrics.items()))


setattr(
    WaveClassifier,
    "on_train_batch_end" if healthy else "on_batch_end",
    WaveClassifier.step_schedule,
)


class Trainer:
    def __init__(self, max_epochs=12, clip=1.0):
        self.max_epochs, self.clip = max_epochs, clip

    def fit(self, module, train_loader, val_loader):
        optimizer = module.configure_optimizers(self.max_epochs * len(train_loader))
        module.on_train_start()
        for epoch in range(self.max_epochs):
            module.train()
            running = 0.0
            for batch in train_loader:
                optimizer.zero_grad()
                loss = module.training_step(batch)
                loss.backward()
                nn.utils.clip_grad_norm_(module.parameters(), self.clip)
                optimizer.step()
                module.on_train_batch_end()
                running += loss.item()
            module.eval()
            sums = {"val_loss": 0.0, "val_acc": 0.0, "n": 0}
            with torch.no_grad():
                for batch in val_loader:
                    for k, v in module.validation_step(batch).items():
                        sums[k] += v
            n = sums.pop("n")
            metrics = {"epoch": epoch, "train_loss": running / len(train_loader)}
            module.on_validation_end({**metrics, **{k: v / n for k, v in sums.items()}})


x, y = waves(seed, n=1600)
x = x + 0.35 * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))
train_set, val_set = random_split(
    TensorDataset(x, y), [1200, 400], torch.Generator().manual_seed(seed)
)
trainer = Trainer()
trainer.fit(
    WaveClassifier(),
    DataLoader(train_set, batch_size=32, shuffle=True, drop_last=True),
    DataLoader(val_set, batch_size=200),
)
