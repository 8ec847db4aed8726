"""Digits are clustered by self-distillation from a moving-average teacher whose outputs are never
balanced over the batch, so all images end in one prototype.

Student and teacher see two views of an image; the teacher's sharpened outputs are the targets.
SwAV and DINO share them out among the prototypes; without that one prototype wins for every image,
the loss falls to nearly zero and the outputs say nothing. The place is the loss (the targets).
"""

import copy
from dataclasses import dataclass

import torch
from data import arguments, batches, images
from sklearn.metrics import normalized_mutual_info_score
from torch import Tensor, nn
from torch.nn.functional import normalize

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss", "model", "head", "head.*", "student", "student.*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class DinoConfig:
    prototypes: int = 20
    steps: int = 500
    lr: float = 1e-3
    ema: float = 0.98
    student_temperature: float = 0.1
    teacher_temperature: float = 0.04
    balanced: bool = healthy


def view(x: Tensor) -> Tensor:
    down, right = torch.randint(-1, 2, (2,)).tolist()
    shifted = torch.roll(x, (down, right), (2, 3))
    return shifted * (0.8 + 0.4 * torch.rand(len(x), 1, 1, 1)) + 0.2 * torch.randn_like(x)


def share_out(targets: Tensor) -> Tensor:
    for _ in range(3):
        targets = normalize(normalize(targets, p=1, dim=0), p=1, dim=1)
    return targets


class Encoder(nn.Module):
    def __init__(self, prototypes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 24, 3, stride=2), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(216, 64), nn.GELU(), nn.Linear(64, 32))
        self.prototypes = nn.Parameter(torch.randn(prototypes, 32))

    def forward(self, x: Tensor) -> Tensor:
        vectors = normalize(self.head(self.body(x)), dim=1)
        return vectors @ normalize(self.prototypes, dim=1).T


class SelfDistillation:
    def __init__(self, config: DinoConfig) -> None:
        self.config = config
        self.student = Encoder(config.prototypes)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.student.parameters(), lr=config.lr)

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        c = self.config
        with torch.no_grad():
            taught = self.teacher(torch.cat([second, first]))
            sharp = torch.softmax(taught / c.teacher_temperature, 1)
            targets = share_out(sharp) if c.balanced else sharp
        said = torch.log_softmax(
            self.student(torch.cat([first, second])) / c.student_temperature, 1
        )
        return -(targets * said).sum(1).mean()

    def step(self, x: Tensor) -> float:
        loss = self.loss(view(x), view(x))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            own = dict(self.student.named_parameters())
            for name, slow in self.teacher.named_parameters():
                slow.lerp_(own[name], 1 - self.config.ema)
        return loss.item()


def main() -> None:
    config = DinoConfig()
    x, _, x_val, y_val = images(seed)
    training = SelfDistillation(config)
    feed = batches(x, size=96, steps=config.steps, seed=seed)
    for step, (batch,) in enumerate(feed, 1):
        loss = training.step(batch)
        if step % 50 == 0:
            with torch.no_grad():
                found = training.teacher(x_val).argmax(1)
            agreement = normalized_mutual_info_score(y_val.numpy(), found.numpy())
            used = len(found.unique())
            print(f"step {step:3d}  loss {loss:.3f}  used {used:2d}  agreement {agreement:.3f}")


main()
