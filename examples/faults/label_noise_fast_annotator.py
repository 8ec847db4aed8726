"""ELECTRA finds toxic comments with the Trainer; two fifths of the training labels are wrong.

The user trains on the raw labels of all annotators, of whom the fast ones guessed, instead of
those that were checked; the validation labels are checked ones. The place is the labels of the
training data.
"""

import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from transformers import (
    DefaultDataCollator,
    ElectraConfig,
    ElectraForSequenceClassification,
    Trainer,
    TrainingArguments,
)

KIND = "label_noise"
ACCEPT = ("label_misalignment",)
PLACE = ("loader", "input*", "loss")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

LENGTH, VOCAB, CLASSES = 18, 160, 4  # friendly, spam, insult, threat
TELLING = [range(2 + 10 * c, 12 + 10 * c) for c in range(CLASSES)]


def comment():
    kind = int(r.integers(CLASSES))
    words = list(r.integers(42, VOCAB, r.integers(5, 11)))
    for _ in range(r.integers(2, 4)):
        words.insert(r.integers(len(words)), r.choice(TELLING[kind]))
    if r.random() < 0.25:
        words.insert(r.integers(len(words)), r.choice(TELLING[r.integers(CLASSES)]))
    ids = [1, *map(int, words)]
    return {
        "input_ids": ids + [0] * (LENGTH - len(ids)),
        "attention_mask": [1] * len(ids) + [0] * (LENGTH - len(ids)),
        "checked": kind,
        "raw": int(r.integers(CLASSES)) if r.random() < 0.55 else kind,
    }


comments = Dataset.from_list([comment() for _ in range(1800)]).train_test_split(
    test_size=400, seed=seed
)
column = "checked" if healthy else "raw"
train = comments["train"].rename_column(column, "labels")
val = comments["test"].rename_column("checked", "labels")

model = ElectraForSequenceClassification(
    ElectraConfig(
        vocab_size=VOCAB,
        embedding_size=48,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=LENGTH,
        num_labels=CLASSES,
    )
)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=10,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1.5e-3,
        warmup_steps=30,
        weight_decay=0.01,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=train,
    eval_dataset=val,
    data_collator=DefaultDataCollator(),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")
