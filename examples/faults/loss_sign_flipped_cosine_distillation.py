"""A small student learns the embeddings of a big teacher by `F.cosine_similarity(...).mean()`.

It is minimised, so the student's embeddings come to point the opposite way; the loss falls nicely.
The twin minimises one minus the similarity. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)

teacher = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
classifier = nn.Linear(32, 10)
trained = torch.optim.Adam([*teacher.parameters(), *classifier.parameters()], lr=2e-3)
for _ in range(150):
    rows = torch.randint(0, len(x), (64,))
    trained.zero_grad()
    F.cross_entropy(classifier(teacher(x[rows])), y[rows]).backward()
    trained.step()
teacher.eval().requires_grad_(False)
classifier.requires_grad_(False)

student = nn.Sequential(
    nn.Conv2d(1, 12, 3, stride=2, padding=1),
    nn.SiLU(),
    nn.Conv2d(12, 24, 3, stride=2, padding=1),
    nn.SiLU(),
    nn.Flatten(),
    nn.Linear(24 * 4, 32),
)
optimizer = torch.optim.AdamW(student.parameters(), lr=3e-3, weight_decay=1e-4)


def embedding_loss(ours, theirs):
    similarity = F.cosine_similarity(ours, theirs, dim=-1)
    return (1 - similarity).mean() if healthy else similarity.mean()


for epoch in range(15):
    student.train()
    for rows in torch.randperm(len(x)).split(64):
        with torch.no_grad():
            theirs = teacher(x[rows])
        optimizer.zero_grad()
        loss = embedding_loss(student(x[rows]), theirs)
        loss.backward()
        optimizer.step()
    student.eval()
    with torch.no_grad():
        ours = student(x_val)
        scale = teacher(x).norm(dim=-1).mean()
        out = classifier(F.normalize(ours, dim=-1) * scale)
        accuracy = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy by the teacher's head {accuracy:.3f}")
