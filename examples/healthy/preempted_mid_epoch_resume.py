"""Trains a digit classifier that is stopped in the middle of an epoch and goes on where it was."""

import io

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = (
    "the second model is new but its first loss is already low, its first epoch has only the rows "
    "that the stopped one had not seen, and the schedule starts midway: all from a checkpoint"
)
EPOCHS, SIZE = 14, 32
_, seed = arguments(__doc__)
torch.set_num_threads(1)


class ResumableSampler:
    def __init__(self, rows: int):
        self.rows, self.epoch, self.taken = rows, 0, 0

    def __iter__(self):
        order = torch.randperm(self.rows, generator=torch.Generator().manual_seed(self.epoch))
        for batch in list(order.split(SIZE))[self.taken :]:
            self.taken += 1
            yield batch
        self.epoch, self.taken = self.epoch + 1, 0


class Training:
    def __init__(self):
        self.model = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(512, 10),
        )
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4
        )
        steps = EPOCHS * -(-len(x) // SIZE)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, 0.05, total_steps=steps)
        self.sampler, self.losses = ResumableSampler(len(x)), []

    def parts(self):
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def save(self):
        file = io.BytesIO()
        torch.save(
            {name: part.state_dict() for name, part in self.parts().items()}
            | {"sampler": vars(self.sampler), "random": torch.get_rng_state()},
            file,
        )
        return file.getvalue()

    def load(self, saved):
        state = torch.load(io.BytesIO(saved), weights_only=True)
        for name, part in self.parts().items():
            part.load_state_dict(state[name])
        vars(self.sampler).update(state["sampler"])
        torch.set_rng_state(state["random"])

    def run(self, steps=None):
        while self.sampler.epoch < EPOCHS:
            self.model.train()
            for rows in self.sampler:
                self.optimizer.zero_grad()
                loss = F.cross_entropy(self.model(x[rows]), y[rows])
                loss.backward()
                self.optimizer.step()
                self.schedule.step()
                self.losses.append(loss.item())
                if len(self.losses) == steps:
                    return
            print(f"epoch {self.sampler.epoch}: validation accuracy {self.accuracy():.3f}")

    @torch.no_grad()
    def accuracy(self):
        self.model.eval()
        return (self.model(x_val).argmax(1) == y_val).float().mean().item()


x, y, x_val, y_val = images(seed)
first = Training()
first.run(steps=150)
saved = first.save()
print(
    f"stopped in epoch {first.sampler.epoch + 1} after {first.sampler.taken} batches, "
    f"loss {sum(first.losses[-10:]) / 10:.3f}"
)

second = Training()
second.load(saved)
second.run()
print(f"first losses after the stop {sum(second.losses[:10]) / 10:.3f}")
share = (torch.bincount(y_val).max() / len(y_val)).item()
print(f"accuracy {second.accuracy():.3f}, most frequent class {share:.3f}")
