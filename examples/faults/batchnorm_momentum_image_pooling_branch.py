"""A segmentation head with batch norm in its image pooling branch is trained with two images per
batch, so that norm sees two numbers per channel.

As in DeepLab one branch pools the whole image to a point and normalises it. Over a batch of two its
outputs are plus or minus one, whatever the images are, so the training gets little out of them and
validation is far worse. The place is the norm of the pooling branch, net.pool_norm.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("net.pool_norm", "pool_norm", "net.*", "loader", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

BATCH_SIZE = 16 if healthy else 2
STEPS = 300


def scenes(n: int) -> TensorDataset:
    """The sign of one small patch decides if the bright or the dark disc is the one to find."""
    rows, cols = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    bright = torch.rand(n) < 0.5
    images = 0.25 * torch.randn(n, 2, 16, 16)
    masks = torch.zeros(n, 1, 16, 16)
    for i in range(n):
        row, col = torch.randint(0, 13, (2,)).tolist()
        strength = float(1 + 3 * torch.rand(()))
        images[i, 1, row : row + 4, col : col + 4] += strength if bright[i] else -strength
        for sign in (1.0, -1.0):
            a, b = (3 + 10 * torch.rand(2)).tolist()
            disc = ((rows - a) ** 2 + (cols - b) ** 2) < 9
            images[i, 0][disc] = sign + 0.2 * torch.randn(int(disc.sum()))
            masks[i, 0][disc] = float((sign > 0) == bool(bright[i]))
    return TensorDataset(images, masks)


class PoolingHead(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(2, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)
        )
        self.pool_conv = nn.Conv2d(width, width, 1, bias=False)
        self.pool_norm = nn.BatchNorm2d(width)
        self.out = nn.Sequential(nn.Conv2d(2 * width, width, 1), nn.ReLU(), nn.Conv2d(width, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.body(x))
        whole = F.relu(self.pool_norm(self.pool_conv(x.mean((2, 3), keepdim=True))))
        return self.out(torch.cat([x, whole.expand_as(x)], 1))


class Segmenter(L.LightningModule):
    def __init__(self, lr: float = 3e-3) -> None:
        super().__init__()
        self.net, self.lr = PoolingHead(), lr

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        images, masks = batch
        loss = F.binary_cross_entropy_with_logits(self.net(images), masks)
        self.log("loss", loss)
        return loss

    def on_validation_epoch_start(self) -> None:
        self.loss, self.common, self.union = 0.0, 0, 0

    def validation_step(self, batch: list[Tensor], _: int) -> None:
        logits = self.net(batch[0])
        found, wanted = logits > 0, batch[1] > 0.5
        self.loss += F.binary_cross_entropy_with_logits(logits, batch[1]).item() * len(logits)
        self.common += (found & wanted).sum().item()
        self.union += (found | wanted).sum().item()

    def on_validation_epoch_end(self) -> None:
        print(
            f"step {self.global_step:3d}  loss {self.trainer.callback_metrics['loss']:.3f}  "
            f"validation loss {self.loss / 200:.3f}  IoU {self.common / self.union:.3f}"
        )

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.net.parameters(), lr=self.lr, weight_decay=1e-3)


quiet = dict.fromkeys(
    ("enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
)
trainer = L.Trainer(
    max_steps=STEPS,
    val_check_interval=50,
    check_val_every_n_epoch=None,
    num_sanity_val_steps=0,
    accelerator="cpu",
    logger=False,
    **quiet,
)
loader = DataLoader(scenes(800), BATCH_SIZE, shuffle=True, drop_last=True)
trainer.fit(Segmenter(), loader, DataLoader(scenes(200), 50))
