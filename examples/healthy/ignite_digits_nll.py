"""A small CNN reads digits with pytorch-ignite's supervised trainer and evaluator, as in its MNIST
example.

Looks odd: the network ends in log_softmax and the loss is nll_loss, Dropout2d makes the training
loss higher than the validation loss, and a PiecewiseLinear handler lets the rate rise from nearly
nothing and fall again. It is sound.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import EarlyStopping, PiecewiseLinear
from ignite.metrics import Accuracy, Loss, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "outputs are logarithms; dropout keeps training loss above validation's"

_, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1)
        self.conv2_drop = nn.Dropout2d(0.25)
        self.fc1 = nn.Linear(128, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.flatten(1)))
        x = F.dropout(x, 0.3, training=self.training)
        return F.log_softmax(self.fc2(x), dim=-1)


def get_data_loaders(train_batch_size, val_batch_size):
    x, y, x_val, y_val = images(seed)
    return (
        DataLoader(TensorDataset(x, y), batch_size=train_batch_size, shuffle=True),
        DataLoader(TensorDataset(x_val, y_val), batch_size=val_batch_size, shuffle=False),
    )


def run(epochs=20, lr=0.05, momentum=0.9):
    train_loader, val_loader = get_data_loaders(32, 256)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=momentum)
    trainer = create_supervised_trainer(model, optimizer, F.nll_loss, device="cpu")
    RunningAverage(output_transform=lambda out: out).attach(trainer, "loss")
    evaluator = create_supervised_evaluator(
        model, metrics={"accuracy": Accuracy(), "nll": Loss(F.nll_loss)}, device="cpu"
    )
    total = epochs * len(train_loader)
    schedule = PiecewiseLinear(optimizer, "lr", [(0, 1e-3), (total // 5, lr), (total, 1e-4)])
    trainer.add_event_handler(Events.ITERATION_STARTED, schedule)
    stopper = EarlyStopping(
        patience=8, score_function=lambda e: -e.state.metrics["nll"], trainer=trainer
    )
    evaluator.add_event_handler(Events.COMPLETED, stopper)

    @trainer.on(Events.EPOCH_COMPLETED)
    def log_validation_results(engine):
        evaluator.run(val_loader)
        metrics = evaluator.state.metrics
        print(
            f"epoch {engine.state.epoch}: train loss {engine.state.metrics['loss']:.3f}, "
            f"val nll {metrics['nll']:.3f}, val accuracy {metrics['accuracy']:.3f}"
        )

    trainer.run(train_loader, max_epochs=epochs)
    print(f"validation accuracy {evaluator.state.metrics['accuracy']:.3f}")


if __name__ == "__main__":
    run()
