"""A tiny BERT of the transformers Trainer finds urgent tickets, by a softmax over its one logit.

The head has `num_labels=1`. The loss takes a softmax over that single unit before the binary cross
entropy: each ticket has probability 1, whatever the text, and the gradient is nought. The loss
stays where it was and all tickets are urgent. The place is the loss, after `classifier`.
"""

from __future__ import annotations

import os
import random
import tempfile

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers.utils import logging

KIND = "softmax_single_unit"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "classifier", "model")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
logging.set_verbosity_error()
os.environ["TOKENIZERS_PARALLELISM"] = "false"

CALM = ["invoice", "copy", "question", "colour", "password", "manual", "feature", "thanks"]
HOT = ["down", "fire", "leak", "stopped", "blocked", "lost", "outage", "unsafe"]
FILLER = [f"word{i}" for i in range(60)]
VOCABULARY = {word: i + 2 for i, word in enumerate([*CALM, *HOT, "not", *FILLER])}


class Tickets(Dataset):
    """Texts of up to 14 words; "not" before a hot word makes it harmless."""

    def __init__(self, n: int, r: random.Random) -> None:
        self.rows = [self._ticket(r) for _ in range(n)]

    @staticmethod
    def _ticket(r: random.Random) -> dict[str, Tensor]:
        urgent = r.random() < 0.5
        words = r.choices(FILLER, k=r.randint(5, 9))
        words.insert(r.randrange(len(words)), r.choice(CALM))
        place = r.randrange(len(words))
        words[place:place] = [r.choice(HOT)] if urgent else ["not", r.choice(HOT)]
        if not urgent and r.random() < 0.4:
            words = [word for word in words if word not in HOT]
        numbers = [1, *(VOCABULARY[word] for word in words)][:14]
        padded = torch.tensor(numbers + [0] * (14 - len(numbers)))
        return {
            "input_ids": padded,
            "attention_mask": (padded > 0).long(),
            "labels": torch.tensor(float(urgent)),
        }

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return self.rows[index]


class UrgencyTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        labels = inputs.pop("labels")
        outputs = model(**inputs)
        logit = outputs.logits
        probability = logit.sigmoid() if healthy else logit.softmax(-1)
        loss = nn.functional.binary_cross_entropy(probability.squeeze(-1), labels)
        return (loss, outputs) if return_outputs else loss


def main() -> None:
    r = random.Random(seed)
    train, held_out = Tickets(1600, r), Tickets(400, r)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=len(VOCABULARY) + 2,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            max_position_embeddings=16,
            num_labels=1,
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            folder,
            num_train_epochs=5,
            per_device_train_batch_size=32,
            learning_rate=3e-3,
            lr_scheduler_type="cosine",
            warmup_steps=20,
            logging_steps=50,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            seed=seed,
            use_cpu=True,
        )
        trainer = UrgencyTrainer(model=model, args=settings, train_dataset=train)
        trainer.train()
    model.eval()
    with torch.no_grad():
        logits = (
            model(
                torch.stack([row["input_ids"] for row in held_out]),
                torch.stack([row["attention_mask"] for row in held_out]),
            )
            .logits.squeeze(-1)
            .numpy()
        )
    labels = np.array([row["labels"].item() for row in held_out])
    print(f"held-out AUC {roc_auc_score(labels, logits):.3f}")


main()
