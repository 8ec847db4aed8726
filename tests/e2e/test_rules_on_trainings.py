"""Each default rule on a real training with its fault, and on the healthy twin.

The programs are of the gallery (examples/faults), recorded and judged as a user's are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Server
from trainings import ROOT

from traindbg import _core

FAULTS = ROOT / "examples" / "faults"

PROGRAMS = {
    "accumulation_not_averaged": "accumulation_not_averaged_digits",
    "attention_mask_wrong": "attention_mask_wrong_left_padding",
    "bad_optimizer_settings": "bad_optimizer_settings_betas_by_position",
    "batchnorm_momentum": "batchnorm_momentum_digits",
    "best_weights_not_kept": "best_weights_not_kept_early_stopping",
    "class_imbalance": "class_imbalance_digits",
    "constant_output": "softmax_single_unit_cancer",
    "dead_relu": "input_not_normalized_wine",
    "detached_graph": "detached_graph_scatter_helper",
    "detached_loss": "detached_loss_summed_as_tensor",
    "duplicated_rows": "duplicated_rows_joined_by_site",
    "duplicate_shards": "duplicate_shards_sampler_forgotten",
    "embedding_rows_unused": "embedding_rows_unused_subword_marker",
    "eval_mode_while_training": "eval_mode_while_training_train_overridden",
    "evaluation_at_chance": "train_val_mismatch_log_only_when_augmenting",
    "exploding_gradient": "exploding_gradient_rnn",
    "frozen_parameters": "frozen_parameters_transfer",
    "future_leak": "future_leak_bidirectional",
    "gradient_clipped_to_nothing": "gradient_clipped_to_nothing_cancer",
    "gradient_underflow": "gradient_underflow_autocast",
    "gradients_not_cleared": "gradients_not_cleared_cnn",
    "indistinguishable_classes": "destructive_augmentation_road_arrows",
    "input_not_normalized": "input_not_normalized_houses",
    "label_noise": "label_misalignment_two_loaders",
    "labels_of_others": "label_misalignment_frames_and_masks",
    "labels_out_of_range": "labels_out_of_range_yields_in_percent",
    "learning_rate_too_high": "input_not_normalized_wine",
    "learning_rate_too_low": "learning_rate_too_low_sum_to_mean",
    "loss_input_range": "redundant_sigmoid_link_decoder",
    "loss_not_decreasing": "detached_loss_summed_as_tensor",
    "loss_scale_overflow": "loss_scale_overflow_static",
    "loss_shape_broadcast": "loss_shape_broadcast_houses",
    "loss_sign_flipped": "loss_sign_flipped_nll",
    "loss_spike": "loss_spike_unit",
    "low_capacity": "low_capacity_hidden_from_expansion",
    "low_precision_updates_lost": "low_precision_updates_lost_bf16",
    "memory_leak": "memory_leak_validation_graph",
    "no_nonlinearity": "no_nonlinearity_leaky_relu_inplace",
    "non_finite": "nan_input_missing_values",
    "optimizer_never_steps": "optimizer_never_steps_accumulation",
    "output_activation_range": "output_activation_range_noise_predictor",
    "over_regularized": "over_regularized_lasso_summed_over_the_net",
    "overfit": "train_val_mismatch_houses",
    "parameters_not_in_optimizer": "parameters_not_in_optimizer_decoder",
    "poor_weight_init": "poor_weight_init_constant_own_dense_layer",
    "posterior_collapse": "posterior_collapse_text",
    "replica_divergence": "replica_divergence_head_after_wrapping",
    "repeated_batch": "repeated_batch_index",
    "representation_collapse": "representation_collapse_siamese",
    "resume_lost_optimizer_state": "resume_lost_optimizer_state_digits",
    "samples_mixed": "samples_mixed_gait_view_for_transpose",
    "saturated_activation": "input_not_normalized_houses",
    "schedule_collapsed": "schedule_collapsed_per_batch",
    "schedule_never_steps": "schedule_never_steps_interval_key",
    "step_without_gradient": "step_without_gradient_order",
    "stopped_too_early": "stopped_too_early_digits",
    "target_leak": "target_leak_lag_zero",
    "target_not_normalized": "target_not_normalized_houses",
    "targets_in_order": "unshuffled_data_order_by_price",
    "train_mode_in_validation": "train_mode_in_validation_dropout",
    "train_val_mismatch": "train_val_mismatch_log",
    "train_val_overlap": "train_val_overlap_slice",
    "unregistered_parameters": "unregistered_parameters_list",
    "vanishing_gradient": "vanishing_gradient_deep_sigmoid",
    "wrong_loss": "wrong_loss_digits",
}
# Notes: what a training is told that may be well as it is.
NOTES = {
    "plateau": "duplicated_rows_packets_sent_again",
    "rank_collapse": "dead_relu_prior_bias_of_frauds",
    "underfit": "embedding_rows_unused_subword_marker",
    "update_noise": "bad_optimizer_settings_betas_by_position",
}
ELSEWHERE = {  # a pair, too
    "constant_feature": "below",
    "divergence_ahead": "tests/e2e/test_corrections.py",
    "low_feature_importance": "tests/original/test_xgboost_rules.py",
    "metric_contradicts_loss": "tests/e2e/test_loss_and_metric.py",
}


Findings = list[dict[str, Any]]
FindingsOf = Callable[[str, bool], Findings]


@pytest.fixture(scope="module")
def findings_of(tmp_path_factory: pytest.TempPathFactory, forked: Server) -> FindingsOf:
    """Of a program, with its fault or without: one training each."""

    @functools.cache
    def findings_of(name: str, is_faulty: bool) -> Findings:
        script = FAULTS / f"{name}.py"
        options = ["--no-report"]
        if "\nPROBE = True\n" in script.read_text():
            options.append("--probe")
        words = ["--seed", "0"] if is_faulty else ["--healthy", "--seed", "0"]
        outcome = forked.run(tmp_path_factory.mktemp(name), script, *words, options=tuple(options))
        assert outcome.code == 0, outcome.stderr
        return list(outcome.verdict["findings"])

    return findings_of


def severities(findings: Findings, rule: str) -> set[str]:
    return {each["severity"] for each in findings if each["rule"] == rule}


@pytest.mark.parametrize("rule", PROGRAMS)
def test_a_rule_finds_the_fault_and_leaves_the_twin_alone(
    rule: str, findings_of: FindingsOf
) -> None:
    name = PROGRAMS[rule]
    assert severities(findings_of(name, True), rule) - {"info"}
    assert severities(findings_of(name, False), rule) - {"info"} == set()


@pytest.mark.parametrize("rule", NOTES)
def test_a_note_is_made_of_the_fault_alone(rule: str, findings_of: FindingsOf) -> None:
    name = NOTES[rule]
    assert severities(findings_of(name, True), rule) == {"info"}
    assert severities(findings_of(name, False), rule) == set()


WINES = """
import sys

import torch
from sklearn.datasets import load_wine

torch.manual_seed(0)
data = load_wine()
x, y = torch.tensor(data.data, dtype=torch.float32), torch.tensor(data.target)
x = (x - x.mean(0)) / x.std(0)
if sys.argv[1] == "joined wrongly":
    x[:, 4] = -1.0
model = torch.nn.Sequential(torch.nn.Linear(13, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(100):
    rows = torch.randint(0, len(x), (64,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("word", "expected"), [("joined wrongly", {"warning"}), ("rightly", set())]
)
def test_a_column_that_is_always_the_same_is_found(
    tmp_path: Path, forked: Server, word: str, expected: set[str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(WINES)
    outcome = forked.run(tmp_path / "runs", script, word)
    assert outcome.code == 0, outcome.stderr
    assert severities(outcome.verdict["findings"], "constant_feature") == expected


def test_each_default_rule_has_a_training() -> None:
    assert {*PROGRAMS, *NOTES, *ELSEWHERE} == set(_core.default_rules())
