"""A soil classifier is trained on the merged labels of two laboratories that number the classes
differently.

One laboratory counts the seven classes from 0, the other from 1, and the files were joined as they
are: a third of the rows say the class above. Nothing fails, as the head has max + 1 outputs. The
training loss cannot get far down and the checked validation rows are worse. The twin subtracts 1
from the second file. The place is the labels.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("label_misalignment",)
PLACE = ("label*", "classes*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y = make_classification(
    n_samples=4000,
    n_features=16,
    n_informative=12,
    n_redundant=0,
    n_classes=7,
    n_clusters_per_class=1,
    class_sep=1.6,
    flip_y=0.0,
    random_state=seed,
)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
x, x_val = standardise(x[:3000], x[3000:])
y, y_val = y[:3000], y[3000:]

lab_a = TensorDataset(x[:1800], y[:1800])
written_b = y[1800:] + 1  # the file of laboratory B: 1 to 7
if healthy:
    written_b = written_b - 1
lab_b = TensorDataset(x[1800:], written_b)
loader = DataLoader(ConcatDataset([lab_a, lab_b]), batch_size=128, shuffle=True)
classes = int(max(y[:1800].max(), written_b.max())) + 1


class SoilNet(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.layer1 = nn.Linear(inputs, hidden)
        self.layer2 = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, outputs)

    def forward(self, x):
        x = nn.functional.leaky_relu(self.layer1(x), 0.1)
        x = nn.functional.leaky_relu(self.layer2(x), 0.1)
        return self.out(x)


net = SoilNet(16, 64, classes)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.02)
for epoch in range(24):
    net.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val_loss = nn.functional.cross_entropy(out, y_val).item()
        acc = (out.argmax(1) == y_val).float().mean().item()
    if epoch % 4 == 3:
        print(
            f"epoch {epoch + 1} train {sum(losses) / len(losses):.3f} "
            f"val {val_loss:.3f} acc {acc:.3f}"
        )
