"""F.kl_div takes log-probabilities of the student; here it is given the probabilities.

The "divergence" becomes smaller all the same (silent). The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "missing_softmax"
ACCEPT = ()
PLACE = ("loss*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
bunch = load_digits()
x = torch.tensor(bunch.data / 8 - 1, dtype=torch.float32)
y = torch.tensor(bunch.target)
T = 2.0


def mlp(width):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


teacher = mlp(100)
opt = torch.optim.Adam(teacher.parameters(), lr=3e-3)
for _ in range(150):
    i = torch.randint(len(x), (64,))
    loss = F.cross_entropy(teacher(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
teacher.eval()

student = mlp(16)
opt = torch.optim.Adam(student.parameters(), lr=3e-3)
for step in range(300):
    i = torch.randint(len(x), (64,))
    with torch.no_grad():
        soft = F.softmax(teacher(x[i]) / T, dim=1)
    out = student(x[i]) / T
    told = F.log_softmax(out, dim=1) if healthy else F.softmax(out, dim=1)
    loss = F.kl_div(told, soft, reduction="batchmean") * T * T
    opt.zero_grad()
    loss.backward()
    opt.step()
accuracy = (student(x).argmax(1) == y).float().mean()
print(f"student: loss {loss.item():.3f}, accuracy {accuracy:.3f}")
