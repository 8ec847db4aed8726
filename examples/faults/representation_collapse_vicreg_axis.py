"""VICReg on digits in two views; the variance term measures the spread along the features, not
along the batch.

`z.std(dim=1)` in place of `z.std(dim=0)` is at least one for a single constant vector with unlike
entries, so that the term no longer forbids the solution in which all pictures get the same
embedding. The loss falls to nearly nothing. The place is the loss (`vicreg_loss`) and the
projector's output.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss", "projector*", "encoder*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class LitModule(nn.Module):
    """The hooks of a well-known library, as far as this script needs them."""

    def fit(self, loader, epochs):
        optimizer, scheduler = self.configure_optimizers(epochs * len(loader))
        for epoch in range(epochs):
            self.train()
            logs = []
            for batch in loader:
                loss = self.training_step(batch)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.parameters(), 5.0)
                optimizer.step()
                scheduler.step()
                logs.append(loss.item())
            if (epoch + 1) % 10 == 0:
                self.eval()
                with torch.no_grad():
                    self.on_validation(epoch, sum(logs) / len(logs))


class VICReg(LitModule):
    def __init__(self, validation, width=48, dim=32, weights=(25.0, 25.0, 1.0)):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(),  # noqa: E501
            nn.Flatten(), nn.Linear(32 * 16, width), nn.ReLU(),
        )  # fmt: skip
        self.projector = nn.Sequential(nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, dim))
        self.weights, self.validation = weights, validation

    def view(self, x):
        """A random shift by one pixel, contrast, grain and a small hole."""
        n = len(x)
        shift = torch.zeros(n, 2, 3)
        shift[:, 0, 0] = shift[:, 1, 1] = 1
        shift[:, 0, 1] = 0.1 * torch.randn(n)
        shift[:, :, 2] = 0.15 * (2 * torch.rand(n, 2) - 1)
        grid = F.affine_grid(shift, list(x.shape), align_corners=False)
        x = F.grid_sample(x, grid, padding_mode="border", align_corners=False)
        x = x * (0.8 + 0.4 * torch.rand(n, 1, 1, 1)) + 0.2 * torch.randn_like(x)
        hole = torch.rand(n, 1, 4, 4) > 0.05
        return x * F.interpolate(hole.float(), scale_factor=2)

    def vicreg_loss(self, a, b):
        axis = 0 if healthy else 1
        n, d = a.shape
        invariance = F.mse_loss(a, b)
        variance = sum(F.relu(1 - torch.sqrt(z.var(dim=axis) + 1e-4)).mean() for z in (a, b)) / 2
        covariance = 0.0
        for z in (a, b):
            z = z - z.mean(0)  # noqa: PLW2901
            c = z.T @ z / (n - 1)
            covariance = covariance + (c - torch.diag(torch.diagonal(c))).pow(2).sum() / d
        wi, wv, wc = self.weights
        return wi * invariance + wv * variance + wc * covariance

    def training_step(self, batch):
        (x,) = batch
        z = self.projector(self.encoder(torch.cat([self.view(x), self.view(x)])))
        return self.vicreg_loss(*z.chunk(2))

    def configure_optimizers(self, steps):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3, weight_decay=1e-4)
        return optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)

    def on_validation(self, epoch, loss):
        x, y, x_val, y_val = self.validation
        base, query = self.projector(self.encoder(x)), self.projector(self.encoder(x_val))
        nearest = torch.cdist(query, base).topk(5, largest=False).indices
        accuracy = (y[nearest].mode(1).values == y_val).float().mean()
        print(
            f"epoch {epoch + 1}: loss {loss:.3f}, spread {query.std(0).mean():.4f}, 5-NN accuracy {accuracy:.3f}"  # noqa: E501
        )


x, y, x_val, y_val = images(seed)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x), batch_size=64, shuffle=True, drop_last=True
)
VICReg((x, y, x_val, y_val)).fit(loader, epochs=30)
