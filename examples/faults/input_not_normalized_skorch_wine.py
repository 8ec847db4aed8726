"""A skorch NeuralNetClassifier sorts wines by thirteen raw measurements, of which one goes to
1,700 and one to 0.6.

The StandardScaler was left out of the scikit-learn Pipeline, so proline and magnesium drown
everything and the network sees inputs of spreads from 0.1 to 300. The place is the input (and the
first layer, hidden0).
"""

import numpy as np
import torch
from data import arguments, wine
from sklearn.metrics import accuracy_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from skorch import NeuralNetClassifier
from skorch.callbacks import EpochScoring
from torch import nn

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "hidden0*", "*hidden0*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

x, y, x_val, y_val = (part.numpy() for part in wine(seed, raw=True))


class ClassifierModule(nn.Module):
    def __init__(self, num_units=24, dropout=0.1):
        super().__init__()
        self.hidden0 = nn.Linear(13, num_units)
        self.hidden1 = nn.Linear(num_units, num_units)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(num_units, 3)

    def forward(self, x):
        x = torch.relu(self.hidden0(x))
        x = self.dropout(torch.relu(self.hidden1(x)))
        return self.output(x)


net = NeuralNetClassifier(
    ClassifierModule,
    criterion=nn.CrossEntropyLoss,
    optimizer=torch.optim.SGD,
    optimizer__momentum=0.9,
    lr=0.005,
    max_epochs=25,
    batch_size=16,
    iterator_train__shuffle=True,
    callbacks=[
        EpochScoring("accuracy", lower_is_better=False, on_train=True, name="train_acc"),
    ],
    verbose=0,
)
scale = StandardScaler() if healthy else FunctionTransformer()
pipe = Pipeline([("scale", scale), ("net", net)])
pipe.fit(x.astype(np.float32), y.astype(np.int64))
for row in pipe["net"].history[4::5]:
    print(
        (
            "epoch {epoch}: train {train_loss:.3f} / {train_acc:.3f}, "
            "valid {valid_loss:.3f} / {valid_acc:.3f}"
        ).format(**row)
    )
print(f"validation accuracy {accuracy_score(y_val, pipe.predict(x_val)):.3f}")
