"""A digit embedding is learned with pytorch-metric-learning's TripletMarginLoss, by Adam with a
rate of 0.1.

The rate was taken over from a recipe for SGD; 0.001 would do. The loss jumps at once and never
recovers what it costs. The place is the optimizer.
"""

import torch
from data import arguments, images
from pytorch_metric_learning import distances, losses, miners
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
trunk = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
)
embedder = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 32))
model = nn.Sequential(trunk, embedder)
distance = distances.LpDistance(normalize_embeddings=False)
loss_func = losses.TripletMarginLoss(margin=1.0, distance=distance)
miner = miners.TripletMarginMiner(margin=1.0, distance=distance, type_of_triplets="all")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 if healthy else 0.1)
calculator = AccuracyCalculator(
    include=("precision_at_1",), knn_func=CustomKNN(distance), device=torch.device("cpu")
)


def evaluate():
    model.eval()
    with torch.no_grad():
        reference, query = model(x), model(x_val)
    return calculator.get_accuracy(query, y_val, reference, y, False)["precision_at_1"]


for epoch in range(12):
    model.train()
    total = 0.0
    for pictures, labels in loader:
        optimizer.zero_grad()
        embeddings = model(pictures)
        loss = loss_func(embeddings, labels, miner(embeddings, labels))
        loss.backward()
        optimizer.step()
        total += loss.item()
    precision = evaluate()
    print(f"epoch {epoch}: loss {total / len(loader):.3f}, precision at 1 {precision:.3f}")
print(f"validation precision at 1 {precision:.3f}")
