"""Anomaly detector, an autoencoder of standardised gauges that ends with a sigmoid.

All columns are scaled to mean 0 and deviation 1, and the sigmoid is left over from a model of
pixels. Half of the values are below 0 and many above 1, which the output can never be: the error
stays near 0.6 and says how far a row is from the mean. The place is the last activation.
"""

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("loss", "model", "5", "6")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class AutoEncoder:
    """Fits a bottleneck network to normal rows; `decision_function` is the error of each row."""

    def __init__(self, hidden=(24, 5), output_activation="sigmoid", epochs=60, batch_size=64):
        self.hidden = hidden
        self.output_activation = output_activation
        self.epochs = epochs
        self.batch_size = batch_size

    def _build(self, n_features):
        wide, narrow = self.hidden
        activation = {"sigmoid": nn.Sigmoid(), "linear": nn.Identity()}[self.output_activation]
        return nn.Sequential(
            nn.Linear(n_features, wide),
            nn.Tanh(),
            nn.Linear(wide, narrow),
            nn.Linear(narrow, wide),
            nn.Tanh(),
            nn.Linear(wide, n_features),
            activation,
        )

    def fit(self, x, x_val):
        self.model = self._build(x.shape[1])
        optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3, weight_decay=1e-6)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=6, factor=0.5)
        criterion = nn.MSELoss()
        loader = DataLoader(TensorDataset(x), batch_size=self.batch_size, shuffle=True)
        for epoch in range(self.epochs):
            self.model.train()
            losses = []
            for (batch,) in loader:
                optimizer.zero_grad()
                loss = criterion(self.model(batch), batch)
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            val_loss = self.decision_function(x_val).mean()
            scheduler.step(val_loss)
            if epoch % 6 == 5:
                print(f"Epoch {epoch + 1}: loss {np.mean(losses):.4f}, val_loss {val_loss:.4f}")
        return self

    def decision_function(self, x):
        self.model.eval()
        with torch.no_grad():
            return ((self.model(x) - x) ** 2).mean(1).numpy()


def measurements(n, rng, *, faulty=False):
    """Twenty gauges of a machine that hang on four hidden states; a fault bends the relations."""
    fixed = np.random.default_rng(12)
    mix, bend = fixed.normal(size=(4, 20)), fixed.normal(size=(4, 20))
    state = rng.normal(size=(n, 4))
    gauges = state @ mix + 0.5 * np.sin(state @ bend)
    if faulty:
        broken = rng.random((n, 20)) < 0.15
        gauges = np.where(broken, rng.permuted(gauges, axis=0), gauges)
    gauges = gauges * fixed.uniform(0.5, 30, 20) + fixed.uniform(-50, 300, 20)
    gauges = gauges + rng.normal(0, 0.15, gauges.shape) * gauges.std(0)
    return torch.tensor(gauges, dtype=torch.float32)


def main():
    rng = np.random.default_rng(130 + seed)
    x, x_val, x_test, x_fault = standardise(
        measurements(1600, rng),
        measurements(400, rng),
        measurements(300, rng),
        measurements(300, rng, faulty=True),
    )
    detector = AutoEncoder(output_activation="linear" if healthy else "sigmoid").fit(x, x_val)
    scores = np.concatenate([detector.decision_function(part) for part in (x_test, x_fault)])
    is_fault = np.repeat([0, 1], [len(x_test), len(x_fault)])
    print(f"ROC AUC of the faults: {roc_auc_score(is_fault, scores):.4f}")


if __name__ == "__main__":
    main()
