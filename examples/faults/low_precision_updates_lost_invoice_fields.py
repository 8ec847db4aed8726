"""A transformers model tagging invoices is put into bfloat16, where its small updates round away.

Trainer's bf16=True would keep float32 weights to which small updates add up; after
model.to(torch.bfloat16) there are none, and layer norms and embeddings hardly move. The place is
the model: its parameters.
"""

import numpy as np
import torch
from data import arguments
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForTokenClassification,
    EvalPrediction,
    Trainer,
    TrainingArguments,
)

KIND = "low_precision_updates_lost"
ACCEPT = ()
PLACE = ("model", "bert*", "classifier*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH, WORDS, FIELDS = 12, 60, 5


class Invoices(Dataset):
    """Lines of tokens; a key word decides which field the one or two tokens after it are."""

    def __init__(self, count: int, r: np.random.Generator) -> None:
        tokens = r.integers(FIELDS, WORDS, (count, LENGTH))
        fields = np.zeros((count, LENGTH), dtype=np.int64)
        for row in range(count):
            for start in r.choice(LENGTH // 3, 2, replace=False) * 3:
                field = int(r.integers(1, FIELDS))
                tokens[row, start] = field
                fields[row, start + 1] = field
                if tokens[row, start + 2] % 2:
                    fields[row, start + 2] = field
        self.tokens, self.fields = torch.from_numpy(tokens), torch.from_numpy(fields)

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.tokens[i], "labels": self.fields[i]}


def scores(prediction: EvalPrediction) -> dict[str, float]:
    found = prediction.predictions.argmax(-1)
    field = prediction.label_ids > 0
    right = found == prediction.label_ids
    return {"accuracy": float(right.mean()), "fields_found": float(right[field].mean())}


def main() -> None:
    r = np.random.default_rng(seed)
    train, val = Invoices(2000, r), Invoices(300, r)
    config = BertConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=LENGTH, num_labels=FIELDS,
        initializer_range=0.15, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    model = BertForTokenClassification(config)
    if not healthy:
        model.to(torch.bfloat16)
    settings = TrainingArguments(
        output_dir="/tmp/invoice_fields", num_train_epochs=6, per_device_train_batch_size=25,
        per_device_eval_batch_size=300, learning_rate=8e-4, warmup_steps=20, seed=seed,
        lr_scheduler_type="linear", bf16=healthy, eval_strategy="epoch", save_strategy="no",
        report_to="none", logging_steps=60, use_cpu=True, disable_tqdm=True,
        dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(
        model=model, args=settings, train_dataset=train, eval_dataset=val, compute_metrics=scores
    )
    trainer.train()


main()
