"""A tagger with twelve tags: sigmoid in forward, binary_cross_entropy_with_logits as loss.

Most tags are absent, and with a sigmoid before it the loss can say at best one half for those: it
stops near ln 2. The place is the loss (or the sigmoid in forward). The twin returns logits and
takes the sigmoid only to print.
"""

import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "sigmoid", "classifier")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

words, tags = make_multilabel_classification(
    2500, n_features=60, n_classes=12, n_labels=2, random_state=seed
)
x = torch.tensor(words, dtype=torch.float32)
y = torch.tensor(tags, dtype=torch.float32)
x, x_val = standardise(x[:2000], x[2000:])
y, y_val = y[:2000], y[2000:]


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(60, 64), nn.ReLU(), nn.Dropout(0.2))
        self.classifier = nn.Linear(64, 12)
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        out = self.classifier(self.body(x))
        return out if healthy else self.sigmoid(out)


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
for epoch in range(10):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val = F.binary_cross_entropy_with_logits(out, y_val)
        said = (torch.sigmoid(out) > 0.5).float()
    f1 = f1_score(y_val, said, average="micro", zero_division=0)
    print(
        f"epoch {epoch}: train {loss.item():.3f} val {val:.3f} F1 {f1:.3f} tags per document "
        f"{said.sum(1).mean():.1f}"
    )
