"""A skorch NeuralNetRegressor predicts standardised house prices, but its head ends in a sigmoid.

The targets have mean 0 and spread 1 (TransformedTargetRegressor), the head can give only 0 to 1:
half of the targets cannot be reached. The place is the head (`out`) and the loss.
"""

import numpy as np
import torch
from data import arguments, houses
from sklearn.compose import TransformedTargetRegressor
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetRegressor
from skorch.callbacks import EarlyStopping, LRScheduler
from torch import nn

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("out*", "*out*", "loss", "module*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

x, y, x_val, y_val = (part.numpy() for part in houses(seed, raw=True, raw_target=True))


class RegressorModule(nn.Module):
    def __init__(self, num_units=32, nonlin=nn.SiLU):
        super().__init__()
        self.dense0 = nn.Linear(6, num_units)
        self.dense1 = nn.Linear(num_units, num_units)
        self.nonlin = nonlin()
        self.out = nn.Sequential(
            nn.Linear(num_units, 1), nn.Identity() if healthy else nn.Sigmoid()
        )

    def forward(self, x):
        x = self.nonlin(self.dense0(x))
        x = self.nonlin(self.dense1(x))
        return self.out(x)


class FloatRegressor(NeuralNetRegressor):
    def fit(self, X, y, **params):  # noqa: N803
        return super().fit(
            np.asarray(X, np.float32), np.asarray(y, np.float32).reshape(-1, 1), **params
        )

    def predict(self, X):  # noqa: N803
        return super().predict(np.asarray(X, np.float32))


net = FloatRegressor(
    RegressorModule,
    optimizer=torch.optim.Adam,
    lr=4e-3,
    max_epochs=30,
    batch_size=64,
    iterator_train__shuffle=True,
    callbacks=[LRScheduler("ExponentialLR", gamma=0.93), EarlyStopping(patience=10)],
    verbose=0,
)
model = TransformedTargetRegressor(
    make_pipeline(StandardScaler(), net), transformer=StandardScaler()
)
model.fit(x, y)
history = model.regressor_[-1].history
for row in history[4::5]:
    print("epoch {epoch}: train {train_loss:.4f}, valid {valid_loss:.4f}".format(**row))
print(f"validation R2 {r2_score(y_val, model.predict(x_val)):.3f}")
