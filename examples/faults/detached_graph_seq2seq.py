"""A seq2seq GRU forecasts 8 steps of an electric motor's current; the encoder's state is detached.

The user had read that hidden states must be detached (as in truncated backpropagation) and does
it between encoder and decoder, so that nothing reaches the encoder. The place is `encoder`.
"""

import lightning as L
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.regression import MeanSquaredError

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("encoder*", "embed*", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def currents(n, past=24, future=8):
    """Two tones of each motor's own frequency and phase, with noise on the past."""
    t = torch.arange(past + future).float()
    f = 0.25 + 0.35 * torch.rand(n, 1)
    x = torch.sin(f * t + 6.28 * torch.rand(n, 1)) + 0.4 * torch.sin(
        2 * f * t + 6.28 * torch.rand(n, 1)
    )
    x = x / x.std()
    return (x[:, :past] + 0.1 * torch.randn(n, past)).unsqueeze(-1), x[:, past:].unsqueeze(-1)


class Seq2Seq(L.LightningModule):
    def __init__(self, hidden: int = 32, lr: float = 5e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.GRU(1, hidden, batch_first=True)
        self.decoder = nn.GRUCell(1, hidden)
        self.head = nn.Linear(hidden, 1)
        self.criterion = nn.MSELoss()
        self.val_rmse = MeanSquaredError(squared=False)

    def forward(self, past, steps=8):
        _, h = self.encoder(past)
        state = h[-1] if healthy else h[-1].detach()
        value, out = past[:, -1], []
        for _ in range(steps):
            state = self.decoder(value, state)
            value = self.head(state)
            out.append(value)
        return torch.stack(out, 1)

    def training_step(self, batch, batch_idx):
        past, future = batch
        loss = self.criterion(self(past), future)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        past, future = batch
        guess = self(past)
        self.val_rmse(guess.flatten(), future.flatten())
        self.log("val_rmse", self.val_rmse)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


trainer = L.Trainer(
    max_epochs=15,
    accelerator="cpu",
    gradient_clip_val=1.0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(
    Seq2Seq(),
    DataLoader(TensorDataset(*currents(1500)), batch_size=64, shuffle=True),
    DataLoader(TensorDataset(*currents(400)), batch_size=400),
)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
