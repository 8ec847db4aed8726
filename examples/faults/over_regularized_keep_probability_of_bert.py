"""BERT guesses the reading time of short texts (regression with the Trainer); nine tenths of
everything is dropped.

The user took hidden_dropout_prob and attention_probs_dropout_prob for the probability to keep (as
in old TensorFlow) and set both to 0.9 instead of 0.1. The place is the dropout layers.
"""

import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DefaultDataCollator,
    Trainer,
    TrainingArguments,
)

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("*dropout*", "bert*", "dropout")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

LENGTH, VOCAB = 20, 120
hardness = r.gamma(2.0, 0.5, VOCAB)


def text():
    """Word numbers from 2 (0 is padding, 1 the beginning); rare words take longer, repeated ones
    less.
    """
    words = r.integers(2, VOCAB, r.integers(6, LENGTH))
    seconds, seen = 0.0, set()
    for w in words:
        seconds += hardness[w] * (0.4 if w in seen else 1.0)
        seen.add(w)
    ids = [1, *words.tolist()]
    ids += [0] * (LENGTH - len(ids))
    return {
        "input_ids": ids,
        "attention_mask": [int(i != 0) for i in ids],
        "labels": seconds * r.normal(1.0, 0.05),
    }


rows = [text() for _ in range(2400)]
mean = float(np.mean([row["labels"] for row in rows[:2000]]))
std = float(np.std([row["labels"] for row in rows[:2000]]))
for row in rows:
    row["labels"] = (row["labels"] - mean) / std

config = BertConfig(
    vocab_size=VOCAB,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=LENGTH,
    num_labels=1,
    problem_type="regression",
    hidden_dropout_prob=0.1 if healthy else 0.9,
    attention_probs_dropout_prob=0.1 if healthy else 0.9,
)


def metrics(p):
    error = p.predictions.squeeze(-1) - p.label_ids
    return {"r2": float(1 - np.square(error).mean() / p.label_ids.var())}


trainer = Trainer(
    model=BertForSequenceClassification(config),
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=8,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        warmup_steps=40,
        weight_decay=0.01,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=Dataset.from_list(rows[:2000]),
    eval_dataset=Dataset.from_list(rows[2000:]),
    data_collator=DefaultDataCollator(),
    compute_metrics=metrics,
)
trainer.train()
print(f"validation R2 {trainer.evaluate()['eval_r2']:.3f}")
