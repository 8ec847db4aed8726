"""A skorch NeuralNetClassifier inside a scikit-learn Pipeline and a GridSearchCV tells benign from
malignant tumours.

Looks odd: the module returns softmax probabilities while the criterion is NLLLoss (skorch's
default: it takes the logarithm by itself), and one process trains many fresh networks one after
the other. It is sound, as in skorch's README.
"""

import numpy as np
import torch
from data import arguments, cancer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier
from skorch.callbacks import EarlyStopping, EpochScoring, LRScheduler
from torch import nn

ODD = "probabilities go to a likelihood loss; many fresh networks in one process"

_, seed = arguments(__doc__)

x, y, x_val, y_val = (part.numpy() for part in cancer(seed, raw=True))


class MyModule(nn.Module):
    def __init__(self, num_units=16, nonlin=nn.ReLU(), dropout=0.3):  # noqa: B008
        super().__init__()
        self.dense0 = nn.Linear(30, num_units)
        self.nonlin = nonlin
        self.dropout = nn.Dropout(dropout)
        self.dense1 = nn.Linear(num_units, num_units)
        self.output = nn.Linear(num_units, 2)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x, **kwargs):
        x = self.nonlin(self.dense0(x))
        x = self.dropout(x)
        x = self.nonlin(self.dense1(x))
        return self.softmax(self.output(x))


net = NeuralNetClassifier(
    MyModule,
    max_epochs=25,
    lr=0.02,
    batch_size=32,
    optimizer=torch.optim.SGD,
    optimizer__momentum=0.9,
    optimizer__weight_decay=1e-3,
    iterator_train__shuffle=True,
    callbacks=[
        ("auc", EpochScoring("roc_auc", lower_is_better=False)),
        ("lr", LRScheduler("CosineAnnealingLR", T_max=25)),
        ("stop", EarlyStopping(patience=10)),
    ],
    verbose=0,
)
pipe = Pipeline([("scale", StandardScaler()), ("net", net)])
params = {"net__lr": [0.01, 0.02], "net__module__num_units": [10, 20]}
search = GridSearchCV(pipe, params, refit=True, cv=3, scoring="accuracy")
search.fit(x.astype(np.float32), y.astype(np.int64))
print(search.best_score_, search.best_params_)
history = search.best_estimator_["net"].history
print(
    "last epoch: train loss {:.3f}, valid loss {:.3f}".format(
        *history[-1, ("train_loss", "valid_loss")]
    )
)
print(f"validation accuracy {search.score(x_val, y_val):.3f}")
