"""A CNN learns an embedding of digits by triplets with pytorch-metric-learning, as in its MNIST
tutorial.

Looks odd: the loss hardly falls after the first epoch (the miner hands on only triplets that are
still wrong, of which there are fewer and fewer), and the embeddings are never classified. It is
sound: the precision at 1 rises to nearly 1.
"""

import torch
from data import arguments, images
from pytorch_metric_learning import distances, losses, miners, reducers
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss hardly falls, as only wrong triplets are kept"

_, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1, padding=1)
        self.dropout1 = nn.Dropout2d(0.1)
        self.fc1 = nn.Linear(512, 64)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = nn.functional.max_pool2d(x, 2)
        x = self.dropout1(x)
        return self.fc1(torch.flatten(x, 1))


def train(model, loss_func, mining_func, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, labels) in enumerate(train_loader):
        optimizer.zero_grad()
        embeddings = model(data)
        indices_tuple = mining_func(embeddings, labels)
        loss = loss_func(embeddings, labels, indices_tuple)
        loss.backward()
        optimizer.step()
        if batch_idx % 10 == 0:
            print(
                f"Epoch {epoch} Iteration {batch_idx}: Loss = {loss.item():.4f}, "
                f"Number of mined triplets = {mining_func.num_triplets}"
            )


@torch.no_grad()
def get_all_embeddings(loader, model):
    model.eval()
    pairs = [(model(data), labels) for data, labels in loader]
    return torch.cat([e for e, _ in pairs]), torch.cat([labels for _, labels in pairs])


def test(train_loader, val_loader, model, accuracy_calculator):
    reference, reference_labels = get_all_embeddings(train_loader, model)
    query, query_labels = get_all_embeddings(val_loader, model)
    return accuracy_calculator.get_accuracy(query, query_labels, reference, reference_labels, False)


x, y, x_val, y_val = images(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=64)
model = Net()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
distance = distances.CosineSimilarity()
reducer = reducers.ThresholdReducer(low=0)
loss_func = losses.TripletMarginLoss(margin=0.2, distance=distance, reducer=reducer)
mining_func = miners.TripletMarginMiner(margin=0.2, distance=distance, type_of_triplets="semihard")
accuracy_calculator = AccuracyCalculator(
    include=("precision_at_1", "mean_average_precision_at_r"),
    knn_func=CustomKNN(distance),
    device=torch.device("cpu"),
)

for epoch in range(1, 11):
    train(model, loss_func, mining_func, train_loader, optimizer, epoch)
    accuracies = test(train_loader, val_loader, model, accuracy_calculator)
    print(f"Epoch {epoch}: {accuracies}")
print(f"validation precision at 1 {accuracies['precision_at_1']:.3f}")
