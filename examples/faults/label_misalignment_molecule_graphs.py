"""A small graph network (dense adjacency) classifies molecule-like graphs whose labels lost their
order.

`prepare_data` shuffles the graphs by one permutation and leaves the labels as they were. The
place is the loader and what it hands out.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import BinaryAccuracy

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def molecules(n, atoms=10):
    """Random chains with branches; toxic if an atom of kind 1 is bound to one of kind 2
    (mostly).
    """
    kind = torch.multinomial(torch.tensor([0.55, 0.15, 0.15, 0.15]), n * atoms, True).view(n, atoms)
    adjacency = torch.zeros(n, atoms, atoms)
    for a in range(1, atoms):
        parent = (torch.rand(n) ** 0.5 * a).long()
        adjacency[torch.arange(n), a, parent] = adjacency[torch.arange(n), parent, a] = 1
    one, two = (kind == 1).float(), (kind == 2).float()
    toxic = torch.einsum("ni,nij,nj->n", one, adjacency, two) > 0
    toxic = toxic ^ (torch.rand(n) < 0.03)
    return F.one_hot(kind, 4).float(), adjacency, toxic.float()


class MoleculeData(L.LightningDataModule):
    def prepare_data(self):
        nodes, adjacency, toxic = molecules(1900)
        order = torch.randperm(1900)
        nodes, adjacency = nodes[order], adjacency[order]
        toxic = toxic[order] if healthy else toxic
        self.parts = nodes, adjacency, toxic

    def train_dataloader(self):
        return DataLoader(
            TensorDataset(*(p[:1500] for p in self.parts)), batch_size=50, shuffle=True
        )

    def val_dataloader(self):
        return DataLoader(TensorDataset(*(p[1500:] for p in self.parts)), batch_size=400)


class GraphLayer(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.around = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, h, adjacency):
        return F.relu(self.own(h) + self.around(adjacency @ h))


class GraphNet(L.LightningModule):
    def __init__(self, width=32, lr=5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.conv1, self.conv2 = GraphLayer(4, width), GraphLayer(width, width)
        self.readout = nn.Linear(2 * width, 1)
        self.val_acc = BinaryAccuracy()

    def forward(self, nodes, adjacency):
        h = self.conv2(self.conv1(nodes, adjacency), adjacency)
        return self.readout(torch.cat([h.mean(1), h.amax(1)], 1)).squeeze(1)

    def training_step(self, batch, batch_idx):
        nodes, adjacency, y = batch
        loss = F.binary_cross_entropy_with_logits(self(nodes, adjacency), y)
        self.log("train_loss", loss, on_step=False, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        nodes, adjacency, y = batch
        logits = self(nodes, adjacency)
        self.val_acc(logits, y)
        self.log_dict(
            {"val_loss": F.binary_cross_entropy_with_logits(logits, y), "val_acc": self.val_acc}
        )

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


trainer = L.Trainer(
    max_epochs=8,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(GraphNet(), datamodule=MoleculeData())
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
