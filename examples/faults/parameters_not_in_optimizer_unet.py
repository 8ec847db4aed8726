"""A small U-Net finds blobs in noisy pictures, but configure_optimizers passes only its decoder.

The user wrote the optimizer while the encoder was to come from elsewhere, and it stayed so: the
encoder gets gradients and never moves. The place is the optimizer, and the parameters of
`encoder`.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryJaccardIndex

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("optimizer", "encoder*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def scenes(n, size=24):
    """Bright textured ellipses on a textured ground; the mask is the ellipse with the finer
    texture.
    """
    grid = torch.arange(size).float()
    x = 0.5 * torch.randn(n, size, size)
    masks = torch.zeros(n, size, size)
    for fine in (False, True):
        cy, cx = torch.randint(5, size - 5, (2, n, 1, 1)).float()
        a, b = 3 + 3 * torch.rand(2, n, 1, 1)
        inside = ((grid.view(1, -1, 1) - cy) / a) ** 2 + ((grid.view(1, 1, -1) - cx) / b) ** 2 < 1
        wave = (
            torch.cos(grid.view(1, -1, 1) * 3.14159)
            if fine
            else torch.cos(grid.view(1, 1, -1) * 3.14159)
        )
        x = torch.where(inside, 0.6 * wave + 0.5 * torch.randn(n, size, size), x)
        masks = torch.where(inside, torch.full_like(masks, float(fine)), masks)
    return x.unsqueeze(1), masks.unsqueeze(1)


def double_conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1),
        nn.GroupNorm(4, outputs),
        nn.ReLU(),
        nn.Conv2d(outputs, outputs, 3, padding=1),
        nn.GroupNorm(4, outputs),
        nn.ReLU(),
    )


class UNet(L.LightningModule):
    def __init__(self, width=8, lr=4e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.ModuleList(
            [
                double_conv(1, width),
                double_conv(width, 2 * width),
                double_conv(2 * width, 4 * width),
            ]
        )
        self.decoder = nn.ModuleDict(
            {
                "up2": nn.ConvTranspose2d(4 * width, 2 * width, 2, 2),
                "up1": nn.ConvTranspose2d(2 * width, width, 2, 2),
                "head": nn.Conv2d(width, 1, 1),
            }
        )
        self.loss = nn.BCEWithLogitsLoss()
        self.iou = BinaryJaccardIndex()

    def forward(self, x):
        one = self.encoder[0](x)
        two = self.encoder[1](F.max_pool2d(one, 2))
        three = self.encoder[2](F.max_pool2d(two, 2))
        y = F.relu(self.decoder["up2"](three) + two)
        return self.decoder["head"](F.relu(self.decoder["up1"](y) + one))

    def training_step(self, batch, batch_idx):
        x, mask = batch
        loss = self.loss(self(x), mask)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, mask = batch
        logits = self(x)
        self.iou(logits, mask.int())
        self.log_dict({"val_loss": self.loss(logits, mask), "val_iou": self.iou})

    def configure_optimizers(self):
        parameters = self.parameters() if healthy else self.decoder.parameters()
        return torch.optim.Adam(parameters, lr=self.hparams.lr)


trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    UNet(),
    DataLoader(TensorDataset(*scenes(640)), batch_size=16, shuffle=True),
    DataLoader(TensorDataset(*scenes(160)), batch_size=80),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
