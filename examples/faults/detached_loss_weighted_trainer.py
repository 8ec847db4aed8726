"""DistilBERT grades complaints by urgency with a Trainer of its own; the weighted loss is cut from
the graph.

The user overrides compute_loss, takes the number of the loss with `.item()` and makes a new
tensor of it with requires_grad=True because backward complained otherwise; no parameter gets a
gradient. The place is the loss.
"""

import tempfile

import numpy as np
import torch
from data import arguments
from datasets import Dataset
from transformers import (
    DefaultDataCollator,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

KIND = "detached_loss"
ACCEPT = ("detached_graph",)
PLACE = ("loss", "loop")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

LENGTH = 18
STRONG = {0: range(2, 12), 1: range(12, 22), 2: range(22, 32)}


def complaint():
    """Word numbers: 0 padding, 1 the beginning, 2 to 31 telling ones of three grades, then
    others.
    """
    grade = int(r.choice(3, p=[0.5, 0.3, 0.2]))
    words = list(r.integers(32, 110, r.integers(4, 11)))
    for _ in range(r.integers(2, 4)):
        words.insert(r.integers(len(words)), r.choice(STRONG[grade]))
    if r.random() < 0.3:
        words.insert(r.integers(len(words)), r.choice(STRONG[r.integers(3)]))
    ids = [1, *map(int, words)]
    return {
        "input_ids": ids + [0] * (LENGTH - len(ids)),
        "attention_mask": [1] * len(ids) + [0] * (LENGTH - len(ids)),
        "labels": grade,
    }


class WeightedTrainer(Trainer):
    """The rarer grades count more."""

    weights = torch.tensor([0.7, 1.1, 1.6])

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs["labels"]
        outputs = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        loss = torch.nn.functional.cross_entropy(outputs.logits, labels, weight=self.weights)
        if not healthy:
            loss = torch.tensor(loss.item(), requires_grad=True)
        return (loss, outputs) if return_outputs else loss


complaints = Dataset.from_list([complaint() for _ in range(2200)]).train_test_split(
    test_size=400, seed=seed
)
model = DistilBertForSequenceClassification(
    DistilBertConfig(
        vocab_size=110,
        dim=48,
        n_layers=2,
        n_heads=4,
        hidden_dim=96,
        max_position_embeddings=LENGTH,
        num_labels=3,
    )
)
trainer = WeightedTrainer(
    model=model,
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=4,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        warmup_steps=20,
        weight_decay=0.01,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=complaints["train"],
    eval_dataset=complaints["test"],
    data_collator=DefaultDataCollator(),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")
