"""A RoBERTa is trained on reviews, then adapted to those of a town whose dialect it misreads, with
LoRA adapters of peft.

In the second part only some percent of the parameters learn: the base is trained already and
frozen on purpose, the B matrices of LoRA begin at 0, and the head learns with them
(modules_to_save). It is sound.
"""

import random

import torch
from data import arguments
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import DataLoader, TensorDataset
from transformers import RobertaConfig, RobertaForSequenceClassification

ODD = "a frozen base; adapter matrices that begin at zero"

_, seed = arguments(__doc__)
r = random.Random(seed)
VOCAB, LENGTH, PAD = 220, 20, 1
GENERAL = {1: range(10, 20), 0: range(20, 30)}
FILMS = {1: range(30, 40), 0: range(40, 50)}
HOTELS = {1: range(50, 60), 0: range(60, 70)}


def reviews(n, dialect=False):
    """Words of praise or blame; 90 before a word turns its sense (not), but in the dialect it only
    means very.
    """
    rows, masks, labels = [], [], []
    for _ in range(n):
        label = r.randrange(2)
        topic = r.choice([FILMS, HOTELS])
        words = [r.randrange(100, VOCAB) for _ in range(r.randint(5, 8))]
        for _ in range(r.randint(2, 3)):
            source = GENERAL if r.random() < 0.4 else topic
            place = r.randrange(len(words))
            if r.random() < 0.4:
                words[place:place] = [90, r.choice(source[label if dialect else 1 - label])]
            else:
                words.insert(place, r.choice(source[label]))
        words = [0, *words][:LENGTH]
        masks.append([1] * len(words) + [0] * (LENGTH - len(words)))
        rows.append(words + [PAD] * (LENGTH - len(words)))
        labels.append(label if r.random() > 0.03 else 1 - label)
    return TensorDataset(torch.tensor(rows), torch.tensor(masks), torch.tensor(labels))


def train(model, data, val, epochs, rate):
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=rate, weight_decay=0.01
    )
    loader = DataLoader(data, batch_size=32, shuffle=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=epochs * len(loader)
    )
    for epoch in range(epochs):
        model.train()
        for ids, mask, labels in loader:
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            right = [
                (model(input_ids=i, attention_mask=m).logits.argmax(-1) == t).float()
                for i, m, t in DataLoader(val, 200)
            ]
        print(
            f"epoch {epoch}: loss {loss.item():.3f}, "
            f"validation accuracy {torch.cat(right).mean():.3f}"
        )


config = RobertaConfig(
    vocab_size=VOCAB,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=LENGTH + 4,
    num_labels=2,
    pad_token_id=PAD,
    type_vocab_size=1,
)
model = RobertaForSequenceClassification(config)
train(model, reviews(3000), reviews(400), epochs=5, rate=2e-3)

adapters = LoraConfig(
    task_type=TaskType.SEQ_CLS,
    r=8,
    lora_alpha=16,
    lora_dropout=0.05,
    target_modules=["query", "key", "value", "dense"],
    exclude_modules=["classifier.dense"],
)
model = get_peft_model(model, adapters)
model.print_trainable_parameters()
train(model, reviews(1600, dialect=True), reviews(400, dialect=True), epochs=4, rate=3e-3)
