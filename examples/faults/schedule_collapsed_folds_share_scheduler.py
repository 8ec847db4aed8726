"""A five-fold study resets the network for each fold but keeps optimizer and scheduler, so the
rate has decayed to nothing by the third.

The person moved the making of the optimizer out of the loop over the folds, since the network
object stays the same and only its parameters are drawn anew. The exponential schedule goes on
falling from fold to fold, and the last folds hardly learn. The place is the learning rate.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from torch import nn

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("learning_rate", "optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

EPOCHS, FOLDS, BATCH = 7, 5, 48


class StrokeNet(nn.Module):
    """Reads the rows of a digit from top to bottom and its columns from left to right."""

    def __init__(self, width=32):
        super().__init__()
        self.rows = nn.GRU(8, width, batch_first=True)
        self.columns = nn.GRU(8, width, batch_first=True)
        self.classes = nn.Linear(2 * width, 10)

    def forward(self, image):
        rows = self.rows(image)[1][0]
        columns = self.columns(image.transpose(1, 2))[1][0]
        return self.classes(torch.cat([rows, columns], 1))

    def draw_anew(self):
        for part in (self.rows, self.columns, self.classes):
            part.reset_parameters()


def negative_log_likelihood(scores, digit):
    return (scores.logsumexp(1) - scores.gather(1, digit[:, None])[:, 0]).mean()


class FoldStudy:
    def __init__(self):
        self.net = StrokeNet()
        self.new_optimizer()

    def new_optimizer(self):
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.7)

    def run_fold(self, train, held_out):
        self.net.draw_anew()
        if healthy:
            self.new_optimizer()
        image, digit = train
        for _ in range(EPOCHS):
            self.net.train()
            losses = []
            for rows in torch.randperm(len(digit)).split(BATCH):
                loss = negative_log_likelihood(self.net(image[rows]), digit[rows])
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.net.parameters(), 5.0)
                self.optimizer.step()
                losses.append(loss.item())
            self.scheduler.step()
        return np.mean(losses), *self.score(*held_out)

    @torch.no_grad()
    def score(self, image, digit):
        self.net.eval()
        scores = self.net(image)
        right = (scores.argmax(1) == digit).float().mean().item()
        return negative_log_likelihood(scores, digit).item(), right


def main():
    bunch = load_digits()
    image = torch.tensor(bunch.images, dtype=torch.float32)
    digit = torch.tensor(bunch.target)
    study, accuracies = FoldStudy(), []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    for number, (train, held_out) in enumerate(folds.split(image, digit), 1):
        mean, std = image[train].mean(), image[train].std()
        scaled = (image - mean) / std
        loss, val, right = study.run_fold(
            (scaled[train], digit[train]), (scaled[held_out], digit[held_out])
        )
        accuracies.append(right)
        print(f"fold {number}  train {loss:.4f}  val {val:.4f}  accuracy {right:.4f}")
    print(f"accuracy {np.mean(accuracies):.4f} +- {np.std(accuracies):.4f}")


main()
