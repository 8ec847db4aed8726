"""Each rule compatible with SageMaker Debugger on a real training with its fault, and on its twin.

Those of trees are in tests/original/test_xgboost_rules.py; SimilarAcrossRuns and
StalledTrainingRule have pairs in test_compatible_rules.py and test_stalled.py.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest
from forked import Server

# A convolutional net reads digits; what its images, labels, layers and rate are, the faults say.
IMAGES = """
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

faults = sys.argv[1].split("+")
torch.manual_seed(0)
torch.set_num_threads(1)
data = load_digits()
x, y = torch.tensor(data.images, dtype=torch.float32)[:, None], torch.tensor(data.target)
x = 16 * x if "pixels" in faults else (x - x.mean()) / x.std()
if "few of most classes" in faults:
    keep = (y == 0) | (torch.rand(len(y)) < 0.05)
    x, y = x[keep], y[keep]
model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 32), nn.Tanh(), nn.Linear(32, 10)
)
with torch.no_grad():
    if "bias" in faults:
        model[0].bias.fill_(-1000)
    if "scale" in faults:
        model[3].weight.mul_(1e5)
    if "zeros" in faults:
        model[5].weight.zero_()
if "frozen" in faults:
    model[0].requires_grad_(False)
rate = 1e-12 if "rate" in faults else 1e-2
if "one class" in faults:
    y = torch.where(torch.rand(len(y)) < 0.8, 3, y)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=rate)
for step in range(121):
    rows = torch.randint(0, len(x), (256,))
    batch = x[rows]
    if "nan" in faults and step == 80:
        batch = batch / 0.0
    optimizer.zero_grad()
    F.cross_entropy(model(batch), y[rows]).backward()
    optimizer.step()
"""
# A bag of tokens, padded to a length.
TOKENS = """
import sys

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
length = 400 if "padded" in sys.argv[1] else 20
lengths = torch.randint(12, 21, (512,))
tokens = torch.randint(1, 50, (512, length)) * (torch.arange(length) < lengths[:, None])
labels = (tokens == 7).any(1).float()
embedding, head = nn.EmbeddingBag(50, 16, mode="sum", padding_idx=0), nn.Linear(16, 1)
model = nn.Sequential(embedding, nn.ReLU(), head, nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(61):
    rows = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(tokens[rows]), labels[rows]).backward()
    optimizer.step()
"""
# A net with far more weights than it has samples, evaluated after every twentieth step.
FEW = """
import sys

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
torch.set_num_threads(1)
data = load_breast_cancer()
x, y = torch.tensor(data.data, dtype=torch.float32), torch.tensor(data.target)
x = (x - x.mean(0)) / x.std(0)
order = torch.randperm(len(x))
few = "few" in sys.argv[1]
train, held_out = order[: 60 if few else 400], order[400:]
if few:  # a third of the labels are wrong
    y[train] = torch.where(torch.rand(len(train)) < 0.33, 1 - y[train], y[train])
model = nn.Sequential(nn.Linear(30, 256 if few else 4), nn.ReLU(), nn.Linear(256 if few else 4, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2 if few else 1e-3)
for step in range(400 if few else 240):
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x[train]), y[train]).backward()
    optimizer.step()
    if step % 20 == 19:
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(x[held_out]), y[held_out])
"""
PIXELS = {"regex": "input/.*", "channel": "1"}
# Rule: its parameters, the script, the words that make the fault, and the tensor that shows it.
PAIRS: dict[str, tuple[dict[str, str], str, str, str]] = {
    "AllZero": ({"collection_names": "weights"}, IMAGES, "zeros+rate", "weight/5.weight"),
    "CheckInputImages": (PIXELS, IMAGES, "pixels", "input/"),
    "ClassImbalance": (
        {"samples": "200", "threshold_misprediction": "1"},
        IMAGES, "few of most classes", "classes/",
    ),
    "DeadRelu": ({"tensor_regex": "activation/1"}, IMAGES, "bias", "activation/1"),
    "ExplodingTensor": ({}, IMAGES, "nan", "output/0"),
    "LossNotDecreasing": (
        {"num_steps": "100", "diff_percent": "20", "increase_threshold_percent": "0"},
        IMAGES, "rate", "loss/",
    ),
    "NLPSequenceRatio": ({"tensor_regex": "input/.*"}, TOKENS, "padded", "input/"),
    "Overfit": ({"patience": "3", "start_step": "100"}, FEW, "few", "loss/"),
    "Overtraining": ({"patience_validation": "5", "patience_train": "60"}, FEW, "few", "loss/"),
    "PoorWeightInitialization": (
        {"activation_inputs_regex": "output/[03]"}, IMAGES, "scale", "output/3"
    ),
    "SaturatedActivation": ({}, IMAGES, "scale", "activation/4"),
    "TensorVariance": (
        {"collection_names": "weights", "max_threshold": "100"}, IMAGES, "scale", "weight/3.weight"
    ),
    "UnchangedTensor": (
        {"collection_names": "weights", "num_steps": "3"}, IMAGES, "frozen", "weight/0.weight"
    ),
    "VanishingGradient": ({}, IMAGES, "bias", "gradient/0"),
    "WeightUpdateRatio": ({}, IMAGES, "rate", "weight/"),
}  # fmt: skip


HEALTHY = "none"


Judge = Callable[[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def verdict_of(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> Judge:
    """Of a script with a fault, or without, by all rules that it is for: one training each."""

    @functools.cache
    def verdict_of(source: str, words: str) -> dict[str, Any]:
        folder = tmp_path_factory.mktemp("training")
        script = folder / "train.py"
        script.write_text(source)
        configurations = [
            {
                "RuleConfigurationName": rule,
                "RuleParameters": {"rule_to_invoke": rule, **parameters},
            }
            for rule, (parameters, script_of_rule, fault, _) in PAIRS.items()
            if script_of_rule == source and words in (fault, HEALTHY)
        ]
        (folder / "rules.json").write_text(json.dumps(configurations))
        options = ("--rules-json", str(folder / "rules.json"), "--rules", "non_finite")
        options += ("--raw", "weights,inputs,activations", "--collect", "gradients,outputs")
        options += ("--every", "10", "--no-report")
        outcome = forked.run(folder / "runs", script, words, options=options)
        assert outcome.code == 0, outcome.stderr
        return outcome.verdict

    return verdict_of


@pytest.mark.parametrize("rule", PAIRS)
def test_a_rule_finds_the_fault_and_leaves_the_twin_alone(rule: str, verdict_of: Judge) -> None:
    _, source, fault, tensor = PAIRS[rule]
    for words, state in ((fault, "fired"), (HEALTHY, "clean")):
        verdict = verdict_of(source, words)
        findings = [each for each in verdict["findings"] if each["rule"] == rule]
        (told,) = (each for each in verdict["rules"] if each["rule"] == rule)
        assert told["state"] == state, (words, told, findings)
        assert all(each["tensor"].startswith(tensor) for each in findings), findings
