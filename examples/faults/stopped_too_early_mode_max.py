"""A recurrent net predicts the next state of noisy machine traces; its early stopping watches the
validation loss with mode "max".

The callback was set up for accuracy; with a loss each better epoch counts as a bad one, so that
the training ends after `patience` epochs, while the loss is falling steeply. The place is the
loop (the EarlyStopping callback).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


# ------------------------------------------------------------------ a small "lightning"
class Callback:
    def on_validation_end(self, trainer, metrics): ...


class EarlyStopping(Callback):
    def __init__(self, monitor, patience=3, min_delta=0.0, mode="min"):
        self.monitor, self.patience, self.min_delta = monitor, patience, min_delta
        self.sign = 1.0 if mode == "max" else -1.0
        self.best, self.wait = -math.inf, 0

    def on_validation_end(self, trainer, metrics):
        score = self.sign * metrics[self.monitor]
        if score > self.best + self.min_delta:
            self.best, self.wait = score, 0
        else:
            self.wait += 1
            trainer.should_stop = trainer.should_stop or self.wait >= self.patience


class Printer(Callback):
    def on_validation_end(self, trainer, metrics):
        print(f"epoch {trainer.epoch:2d} " + " ".join(f"{k} {v:.4f}" for k, v in metrics.items()))


class Module(nn.Module):
    def training_step(self, batch):
        raise NotImplementedError

    def validation_step(self, batch):
        raise NotImplementedError


class Trainer:
    def __init__(self, max_epochs, callbacks, gradient_clip_val=1.0):
        self.max_epochs, self.callbacks, self.clip = max_epochs, callbacks, gradient_clip_val
        self.should_stop, self.epoch = False, 0

    def fit(self, module, train_loader, val_loader):
        opt = module.configure_optimizers()
        for self.epoch in range(self.max_epochs):  # noqa: B020
            module.train()
            train = []
            for batch in train_loader:
                loss = module.training_step(batch)
                opt.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(module.parameters(), self.clip)
                opt.step()
                train.append(loss.item())
            module.eval()
            with torch.no_grad():
                outs = [module.validation_step(batch) for batch in val_loader]
            metrics = {"train_loss": sum(train) / len(train)}
            metrics |= {k: sum(o[k] for o in outs) / len(outs) for k in outs[0]}
            for callback in self.callbacks:
                callback.on_validation_end(self, metrics)
            if self.should_stop:
                print(f"EarlyStopping: stopped after epoch {self.epoch}")
                break


# ------------------------------------------------------------------ the task
def traces(n, length, g):
    """A machine cycles through modes with own periods; a mode change depends on the parity of the pulses seen so far."""  # noqa: E501
    x = torch.zeros(n, length, 3)
    y = torch.zeros(n, length, dtype=torch.long)
    state = torch.randint(0, 4, (n,), generator=g)
    for t in range(length):
        a = (torch.rand(n, generator=g) < 0.3).long()
        b = (torch.rand(n, generator=g) < 0.3).long()
        state = torch.where(b == 1, (state * 3 + 1) % 4, (state + a) % 4)
        state = torch.where((a == 1) & (b == 1), torch.zeros_like(state), state)
        x[:, t, 0] = a + 0.15 * torch.randn(n, generator=g)
        x[:, t, 1] = b + 0.15 * torch.randn(n, generator=g)
        x[:, t, 2] = (state % 2) * (t == 0) + 0.1 * torch.randn(n, generator=g)
        y[:, t] = state
    return x - torch.tensor([0.3, 0.3, 0.0]), y


class StateTracker(Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.GRU(3, hidden, batch_first=True)
        self.norm = nn.LayerNorm(hidden)
        self.out = nn.Linear(hidden, 4)

    def forward(self, x):
        return self.out(self.norm(self.rnn(x)[0]))

    def training_step(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self(x).flatten(0, 1), y.flatten())

    def validation_step(self, batch):
        x, y = batch
        logits = self(x)
        return {
            "val_loss": nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()).item(),
            "val_acc": (logits.argmax(-1) == y).float().mean().item(),
        }

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=5e-3)


g = torch.Generator().manual_seed(90 + seed)
train_loader = DataLoader(TensorDataset(*traces(5000, 16, g)), 64, shuffle=True)
val_loader = DataLoader(TensorDataset(*traces(400, 16, g)), 200)
stopper = EarlyStopping("val_loss", patience=3, mode="min" if healthy else "max")
Trainer(max_epochs=24, callbacks=[Printer(), stopper]).fit(StateTracker(), train_loader, val_loader)
