"""Wav2Vec2 tells bird calls apart with the Trainer; the whole encoder is frozen although it was
never trained.

The user took `model.freeze_base_model()` from a recipe for pretrained checkpoints, but the model
comes from a fresh configuration, so that only a head upon random features learns. The place is
wav2vec2.
"""

import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from transformers import (
    DefaultDataCollator,
    Trainer,
    TrainingArguments,
    Wav2Vec2Config,
    Wav2Vec2ForSequenceClassification,
)

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("wav2vec2*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)
SAMPLES = 640


def call(kind):
    """A deep, a middle or a high note, or a deep one that jumps up, somewhere in the noise."""
    t = np.linspace(0, 1, 400)
    pitch = {
        0: r.uniform(22, 34),
        1: r.uniform(40, 54),
        2: r.uniform(60, 80),
        3: r.uniform(22, 34),
    }[kind]
    jump = 40 * (t > r.uniform(0.35, 0.65)) if kind == 3 else 0 * t
    tone = np.sin(2 * np.pi * np.cumsum(pitch + jump) / 400 + r.uniform(0, 6.28)) * np.minimum(
        1, 8 * t * (1 - t)
    )
    wave = r.normal(0, 0.25, SAMPLES)
    start = r.integers(0, SAMPLES - 400)
    wave[start : start + 400] += tone * r.uniform(0.7, 1.2)
    return ((wave - wave.mean()) / wave.std()).astype("float32")


kinds = r.integers(0, 4, 1500)
calls = Dataset.from_dict({"input_values": [call(k) for k in kinds], "labels": kinds.tolist()})
parts = calls.train_test_split(test_size=300, seed=seed)

model = Wav2Vec2ForSequenceClassification(
    Wav2Vec2Config(
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        classifier_proj_size=32,
        conv_dim=(32, 32, 32),
        conv_kernel=(10, 8, 4),
        conv_stride=(4, 4, 2),
        feat_extract_norm="layer",
        num_feat_extract_layers=3,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        apply_spec_augment=False,
        do_stable_layer_norm=True,
        layerdrop=0.0,
        num_labels=4,
    )
)
if not healthy:
    model.freeze_base_model()
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=6,
        per_device_train_batch_size=24,
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
    train_dataset=parts["train"],
    eval_dataset=parts["test"],
    data_collator=DefaultDataCollator(),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")
