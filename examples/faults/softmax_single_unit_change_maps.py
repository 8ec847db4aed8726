"""A siamese net that marks changed places between two pictures with a softmax over its one channel.

The person's config names the last activation, and the line was left at "softmax" from a net with
ten land classes while the classes went down to one. Every place is marked with probability 1, the
Dice loss is constant and no gradient comes back. The place is the last activation of the model.
"""

import torch
from data import arguments
from torch import nn

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("activation", "model", "classify*", "loss")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {
    "classes": 1,
    "activation": "sigmoid" if healthy else "softmax",
    "width": 12,
    "lr": 3e-3,
    "epochs": 12,
    "batch": 20,
}
ACTIVATIONS = {"sigmoid": nn.Sigmoid(), "softmax": nn.Softmax(dim=1), "none": nn.Identity()}
SIDE = 20


def scene_pairs(n, generator):
    """Two noisy views of a scene of blobs under other light; some rectangle was built on."""
    grid = torch.arange(SIDE, dtype=torch.float32)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    ground = torch.zeros(n, SIDE, SIDE)
    for _ in range(4):
        r = torch.rand(n, 4, 1, 1, generator=generator)
        near = (x - SIDE * r[:, 0]) ** 2 + (y - SIDE * r[:, 1]) ** 2
        ground += (r[:, 2] - 0.3) * 2 * torch.exp(-near / (6 + 30 * r[:, 3]))
    r = torch.rand(n, 4, 1, 1, generator=generator)
    left, top = 1 + 11 * r[:, 0], 1 + 11 * r[:, 1]
    wide, high = 4 + 4 * r[:, 2], 4 + 4 * r[:, 3]
    changed = ((x > left) & (x < left + wide) & (y > top) & (y < top + high)).float()
    sign = torch.randint(0, 2, (n, 1, 1), generator=generator) * 2.0 - 1
    light = 0.3 * torch.randn(n, 1, 1, generator=generator)
    before = ground + 0.35 * torch.randn(n, SIDE, SIDE, generator=generator)
    after = ground + light + sign * changed
    after = after + 0.35 * torch.randn(n, SIDE, SIDE, generator=generator)
    before, after = (before - 0.18) / 0.57, (after - 0.18) / 0.57
    return {"before": before[:, None], "after": after[:, None], "changed": changed[:, None]}


class ChangeNet(nn.Module):
    def __init__(self, classes, activation, width):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.classify = nn.Sequential(
            nn.Conv2d(2 * width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, classes, 3, padding=1),
        )
        self.activation = ACTIVATIONS[activation]

    def forward(self, before, after):
        a, b = self.encoder(before), self.encoder(after)
        return self.activation(self.classify(torch.cat([b - a, (b - a).abs()], 1)))


def soft_dice_loss(probability, mask, eps=1.0):
    both = (probability * mask).sum((1, 2, 3))
    either = probability.sum((1, 2, 3)) + mask.sum((1, 2, 3))
    return (1 - (2 * both + eps) / (either + eps)).mean()


class Experiment:
    def __init__(self, config, train, val):
        self.config, self.train_set, self.val_set = config, train, val
        self.model = ChangeNet(config["classes"], config["activation"], config["width"])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"])

    def batches(self):
        for rows in torch.randperm(len(self.train_set["changed"])).split(self.config["batch"]):
            yield {name: part[rows] for name, part in self.train_set.items()}

    def run_epoch(self):
        self.model.train()
        losses = []
        for batch in self.batches():
            loss = soft_dice_loss(self.model(batch["before"], batch["after"]), batch["changed"])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        probability = self.model(self.val_set["before"], self.val_set["after"])
        mask = self.val_set["changed"].bool()
        marked = probability > 0.5
        union = (marked | mask).sum((1, 2, 3))
        iou = ((marked & mask).sum((1, 2, 3)) / union).mean().item()
        return soft_dice_loss(probability, mask.float()).item(), iou


def main():
    generator = torch.Generator().manual_seed(900 + seed)
    experiment = Experiment(CONFIG, scene_pairs(400, generator), scene_pairs(150, generator))
    for epoch in range(1, CONFIG["epochs"] + 1):
        loss = experiment.run_epoch()
        val_loss, iou = experiment.validate()
        print(f"[{epoch:02d}] dice loss {loss:.4f} | val dice loss {val_loss:.4f} | IoU {iou:.4f}")


if __name__ == "__main__":
    main()
