// The built-in rules, one line each, sorted by name: each is defined in `builtin/<name>.cc`.
// `registry.cc` holds them in the same order; a test compares the two. `tools/new_rule.py` adds a
// line to both.
#pragma once

#include "traindbg/rules/rule.h"

namespace traindbg::rules::builtin {

[[nodiscard]] RuleEntry accumulation_not_averaged();
[[nodiscard]] RuleEntry attention_mask_wrong();
[[nodiscard]] RuleEntry bad_optimizer_settings();
[[nodiscard]] RuleEntry batchnorm_momentum();
[[nodiscard]] RuleEntry best_weights_not_kept();
[[nodiscard]] RuleEntry class_imbalance();
[[nodiscard]] RuleEntry constant_feature();
[[nodiscard]] RuleEntry constant_output();
[[nodiscard]] RuleEntry dead_relu();
[[nodiscard]] RuleEntry detached_graph();
[[nodiscard]] RuleEntry detached_loss();
[[nodiscard]] RuleEntry divergence_ahead();
[[nodiscard]] RuleEntry duplicate_shards();
[[nodiscard]] RuleEntry duplicated_rows();
[[nodiscard]] RuleEntry embedding_rows_unused();
[[nodiscard]] RuleEntry eval_mode_while_training();
[[nodiscard]] RuleEntry evaluation_at_chance();
[[nodiscard]] RuleEntry exploding_gradient();
[[nodiscard]] RuleEntry frozen_parameters();
[[nodiscard]] RuleEntry future_leak();
[[nodiscard]] RuleEntry gradient_clipped_to_nothing();
[[nodiscard]] RuleEntry gradient_underflow();
[[nodiscard]] RuleEntry gradients_not_cleared();
[[nodiscard]] RuleEntry indistinguishable_classes();
[[nodiscard]] RuleEntry input_not_normalized();
[[nodiscard]] RuleEntry label_noise();
[[nodiscard]] RuleEntry labels_of_others();
[[nodiscard]] RuleEntry labels_out_of_range();
[[nodiscard]] RuleEntry learning_rate_too_high();
[[nodiscard]] RuleEntry learning_rate_too_low();
[[nodiscard]] RuleEntry loss_input_range();
[[nodiscard]] RuleEntry loss_not_decreasing();
[[nodiscard]] RuleEntry loss_scale_overflow();
[[nodiscard]] RuleEntry loss_shape_broadcast();
[[nodiscard]] RuleEntry loss_sign_flipped();
[[nodiscard]] RuleEntry loss_spike();
[[nodiscard]] RuleEntry low_capacity();
[[nodiscard]] RuleEntry low_feature_importance();
[[nodiscard]] RuleEntry low_precision_updates_lost();
[[nodiscard]] RuleEntry memory_leak();
[[nodiscard]] RuleEntry metric_contradicts_loss();
[[nodiscard]] RuleEntry no_nonlinearity();
[[nodiscard]] RuleEntry non_finite();
[[nodiscard]] RuleEntry optimizer_never_steps();
[[nodiscard]] RuleEntry output_activation_range();
[[nodiscard]] RuleEntry over_regularized();
[[nodiscard]] RuleEntry overfit();
[[nodiscard]] RuleEntry parameters_not_in_optimizer();
[[nodiscard]] RuleEntry plateau();
[[nodiscard]] RuleEntry poor_weight_init();
[[nodiscard]] RuleEntry posterior_collapse();
[[nodiscard]] RuleEntry rank_collapse();
[[nodiscard]] RuleEntry repeated_batch();
[[nodiscard]] RuleEntry replica_divergence();
[[nodiscard]] RuleEntry representation_collapse();
[[nodiscard]] RuleEntry resume_lost_optimizer_state();
[[nodiscard]] RuleEntry samples_mixed();
[[nodiscard]] RuleEntry saturated_activation();
[[nodiscard]] RuleEntry schedule_collapsed();
[[nodiscard]] RuleEntry schedule_never_steps();
[[nodiscard]] RuleEntry step_without_gradient();
[[nodiscard]] RuleEntry stopped_too_early();
[[nodiscard]] RuleEntry target_leak();
[[nodiscard]] RuleEntry target_not_normalized();
[[nodiscard]] RuleEntry targets_in_order();
[[nodiscard]] RuleEntry train_mode_in_validation();
[[nodiscard]] RuleEntry train_val_mismatch();
[[nodiscard]] RuleEntry train_val_overlap();
[[nodiscard]] RuleEntry underfit();
[[nodiscard]] RuleEntry unregistered_parameters();
[[nodiscard]] RuleEntry update_noise();
[[nodiscard]] RuleEntry vanishing_gradient();
[[nodiscard]] RuleEntry wrong_loss();

}  // namespace traindbg::rules::builtin
