"""BERT sorts mails into folders by subject and text (pairs with token types, accelerate); dropout
is on in validation.

The evaluation turns the gradients off but the user forgot `model.eval()`, so that the validation
accuracy is measured with three tenths of everything dropped. The place is the loop (the
validation), the dropout layers.
"""

import random

import torch
from accelerate import Accelerator
from data import arguments
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "*dropout*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)
r = random.Random(seed)

FOLDERS, TELLING, LENGTH = 5, 12, 20


def mail():
    """[CLS] subject [SEP] text [SEP]: both have words of the folder, and at times one of
    another.
    """
    folder = r.randrange(FOLDERS)

    def part(count, telling):
        words = [r.randrange(70, 150) for _ in range(count)]
        for _ in range(telling):
            of = folder if r.random() < 0.8 else r.randrange(FOLDERS)
            words.insert(r.randrange(len(words)), 3 + of * TELLING + r.randrange(TELLING))
        return words

    subject, text = part(r.randint(1, 3), 1), part(r.randint(4, 8), 3)
    ids = [1, *subject, 2, *text, 2]
    types = [0] * (len(subject) + 2) + [1] * (len(text) + 1)
    space = LENGTH - len(ids)
    return ids + [0] * space, types + [0] * space, [1] * len(ids) + [0] * space, folder


mails = [torch.tensor(column) for column in zip(*(mail() for _ in range(3000)), strict=True)]
train = TensorDataset(*(column[:2500] for column in mails))
val = TensorDataset(*(column[2500:] for column in mails))

accelerator = Accelerator(cpu=True)
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=150,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=LENGTH,
        num_labels=FOLDERS,
        hidden_dropout_prob=0.3,
        attention_probs_dropout_prob=0.2,
        classifier_dropout=0.3,
    )
)
epochs = 6
loader, val_loader = DataLoader(train, batch_size=32, shuffle=True), DataLoader(val, batch_size=100)
optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3, weight_decay=0.01)
schedule = get_linear_schedule_with_warmup(optimizer, 50, epochs * len(loader))
model, optimizer, loader, val_loader, schedule = accelerator.prepare(
    model, optimizer, loader, val_loader, schedule
)


def forward(batch):
    ids, types, mask, labels = batch
    return model(input_ids=ids, token_type_ids=types, attention_mask=mask, labels=labels)


def evaluate():
    if healthy:
        model.eval()
    right, loss = [], 0.0
    with torch.no_grad():
        for batch in val_loader:
            out = forward(batch)
            loss += out.loss.item() / len(val_loader)
            right.append((out.logits.argmax(-1) == batch[3]).float())
    return loss, torch.cat(right).mean().item()


for epoch in range(epochs):
    model.train()
    for batch in loader:
        out = forward(batch)
        accelerator.backward(out.loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    loss, accuracy = evaluate()
    print(
        f"epoch {epoch}: loss {out.loss.item():.3f}, validation loss {loss:.3f}, "
        f"accuracy {accuracy:.3f}"
    )
