"""A deep CNN with batch norm tells drawn shapes apart, and trains in eval mode all along.

The user looked at the untrained network's outputs with `model.eval()` first and went on to
`trainer.fit`; Lightning keeps the mode in which it finds the modules. So the batch norms never
use the batch's statistics nor update the running ones. The place is the loop, and every batch
norm (net.*).
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "net*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def shapes(n):
    """Discs, rings, squares and crosses of 16 x 16 pixels with noise."""
    y = torch.randint(0, 4, (n,))
    centre = torch.randint(5, 11, (n, 2, 1, 1)).float()
    size = 2.5 + 2 * torch.rand(n, 1, 1)
    grid = torch.arange(16).float()
    dy, dx = (grid.view(1, 16, 1) - centre[:, 0]).abs(), (grid.view(1, 1, 16) - centre[:, 1]).abs()
    radius, far = (dy**2 + dx**2).sqrt(), torch.maximum(dy, dx)
    drawn = torch.stack(
        [
            radius < size,
            (radius < size) & (radius > size - 1.5),
            far < 0.85 * size,
            (far < size) & (torch.minimum(dy, dx) < 0.9),
        ],
        1,
    ).float()
    x = drawn[torch.arange(n), y] + 0.35 * torch.randn(n, 16, 16)
    return (x.unsqueeze(1) - 0.15) / 0.48, y


def conv(inputs, outputs, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class LitShapes(L.LightningModule):
    def __init__(self, lr=0.03):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            conv(1, 12),
            conv(12, 16, 2),
            conv(16, 24),
            conv(24, 24, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(24, 4),
        )
        self.val_acc = MulticlassAccuracy(4, average="micro")

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.val_acc(logits, y)
        self.log_dict({"val_loss": F.cross_entropy(logits, y), "val_acc": self.val_acc})

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.hparams.lr, momentum=0.9)
        return [optimizer], [
            torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.trainer.max_epochs)
        ]


train, val = TensorDataset(*shapes(1600)), TensorDataset(*shapes(500))
model = LitShapes()
model.eval()
with torch.no_grad():
    untrained = model(val.tensors[0]).argmax(1)
print("accuracy before training", round((untrained == val.tensors[1]).float().mean().item(), 4))
if healthy:
    model.train()
trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(train, batch_size=32, shuffle=True), DataLoader(val, batch_size=250))
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
