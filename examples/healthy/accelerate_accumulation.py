"""A GRU judges short reviews with accelerate, its gradients gathered over four micro-batches.

Looks odd: three of four backward passes are followed by no step and the gradients are then not
zero, `optimizer.step()` and `zero_grad()` are called at every micro-batch all the same. It is
sound: `accelerator.accumulate` skips and scales by itself.
"""

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "three of four backward passes are followed by no real step"

_, seed = arguments(__doc__)
set_seed(seed)


class ReviewModel(nn.Module):
    def __init__(self, vocabulary, width=32):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=0)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.2)
        self.classifier = nn.Linear(2 * width, 2)

    def forward(self, input_ids, labels=None):
        mask = (input_ids > 0).unsqueeze(-1)
        hidden, _ = self.gru(self.embedding(input_ids))
        pooled = hidden.masked_fill(~mask, -1e4).max(dim=1).values
        logits = self.classifier(self.dropout(pooled))
        return logits, nn.functional.cross_entropy(logits, labels)


def get_dataloaders(accelerator, batch_size=8):
    x, y, vocabulary = reviews(seed, 1600)
    train, val = TensorDataset(x[:1200], y[:1200]), TensorDataset(x[1200:], y[1200:])
    return (
        DataLoader(train, batch_size=batch_size, shuffle=True),
        DataLoader(val, batch_size=64),
        vocabulary,
    )


def training_function(num_epochs=8, lr=3e-3, gradient_accumulation_steps=4):
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=gradient_accumulation_steps)
    train_dataloader, eval_dataloader, vocabulary = get_dataloaders(accelerator)
    model = ReviewModel(vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
    lr_scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        max_lr=lr,
        total_steps=num_epochs * len(train_dataloader) // gradient_accumulation_steps + num_epochs,
    )
    model, optimizer, train_dataloader, eval_dataloader, lr_scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, lr_scheduler
    )
    for epoch in range(num_epochs):
        model.train()
        total = 0.0
        for batch in train_dataloader:
            with accelerator.accumulate(model):
                _, loss = model(*batch)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                lr_scheduler.step()
                optimizer.zero_grad()
            total += loss.detach().item()
        model.eval()
        right = count = 0
        val_loss = 0.0
        for batch in eval_dataloader:
            with torch.no_grad():
                logits, loss = model(*batch)
            predictions, references = accelerator.gather_for_metrics(
                (logits.argmax(dim=-1), batch[1])
            )
            right += (predictions == references).sum().item()
            count += len(references)
            val_loss += loss.item() / len(eval_dataloader)
        accelerator.print(
            f"epoch {epoch}: train {total / len(train_dataloader):.3f}, val {val_loss:.3f}, "
            f"accuracy {right / count:.3f}"
        )
    accelerator.print(f"validation accuracy {right / count:.3f}")


if __name__ == "__main__":
    training_function()
