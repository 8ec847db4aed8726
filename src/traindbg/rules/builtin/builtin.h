// The built-in rules, one line each, sorted by name: each is defined in `builtin/<name>.cc`.
// `registry.cc` holds them in the same order; a test compares the two. `tools/new_rule.py` adds a
// line to both.
#pragma once

#include "traindbg/rules/rule.h"

namespace traindbg::rules::builtin {

[[nodiscard]] RuleEntry class_imbalance();
[[nodiscard]] RuleEntry constant_output();
[[nodiscard]] RuleEntry dead_relu();
[[nodiscard]] RuleEntry exploding_gradient();
[[nodiscard]] RuleEntry gradients_not_cleared();
[[nodiscard]] RuleEntry input_not_normalized();
[[nodiscard]] RuleEntry labels_out_of_range();
[[nodiscard]] RuleEntry loss_input_range();
[[nodiscard]] RuleEntry loss_not_decreasing();
[[nodiscard]] RuleEntry loss_shape_broadcast();
[[nodiscard]] RuleEntry non_finite();
[[nodiscard]] RuleEntry output_activation_range();
[[nodiscard]] RuleEntry overfit();
[[nodiscard]] RuleEntry repeated_batch();
[[nodiscard]] RuleEntry saturated_activation();
[[nodiscard]] RuleEntry target_leak();
[[nodiscard]] RuleEntry target_not_normalized();
[[nodiscard]] RuleEntry train_val_mismatch();
[[nodiscard]] RuleEntry vanishing_gradient();
[[nodiscard]] RuleEntry wrong_loss();

}  // namespace traindbg::rules::builtin
