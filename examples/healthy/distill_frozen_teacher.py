"""A small student learns digits from a teacher that was trained just before; sound.

It looks odd: the teacher is frozen, in eval mode and no part of the optimizer, the loss gets
softened softmax outputs and is multiplied by T squared. That is Hinton's distillation; the
teacher is trained.
"""

import lightning as L
import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.functional.classification import multiclass_accuracy

ODD = "a frozen teacher in no optimizer; a softened loss times sixteen"

_, seed = arguments(__doc__)


class Base(L.LightningModule):
    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y))
        self.log("val_acc", multiclass_accuracy(logits, y, num_classes=10, average="micro"))


class Teacher(Base):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.3),
            nn.Linear(64 * 16, 10),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        return F.cross_entropy(self(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Student(Base):
    def __init__(self, teacher, temperature=4.0, alpha=0.7):
        super().__init__()
        self.save_hyperparameters(ignore="teacher")
        self.teacher = teacher
        self.teacher.freeze()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.ReLU(), nn.Linear(40, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        with torch.no_grad():
            wanted = self.teacher(x)
        logits, t = self(x), self.hparams.temperature
        soft = (
            F.kl_div(
                F.log_softmax(logits / t, 1),
                F.log_softmax(wanted / t, 1),
                log_target=True,
                reduction="batchmean",
            )
            * t**2
        )
        loss = self.hparams.alpha * soft + (1 - self.hparams.alpha) * F.cross_entropy(logits, y)
        self.log_dict({"soft": soft, "loss": loss})
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.net.parameters(), lr=0.02, momentum=0.9, nesterov=True)
        return [optimizer], [torch.optim.lr_scheduler.MultiStepLR(optimizer, [9, 13], gamma=0.2)]


x, y, x_val, y_val = images(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=225)
quiet = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
teacher = Teacher()
L.Trainer(max_epochs=6, **quiet).fit(teacher, loader, val_loader)
trainer = L.Trainer(max_epochs=16, **quiet)
trainer.fit(Student(teacher), loader, val_loader)
print({k: round(v.item(), 4) for k, v in trainer.callback_metrics.items()})
