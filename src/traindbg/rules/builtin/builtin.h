// The built-in rules, one line each, sorted by name: each is defined in `builtin/<name>.cc`.
// `registry.cc` holds them in the same order; a test compares the two. `tools/new_rule.py` adds a
// line to both.
#pragma once

#include "traindbg/rules/rule.h"

namespace traindbg::rules::builtin {

[[nodiscard]] RuleEntry bad_optimizer_settings();
[[nodiscard]] RuleEntry class_imbalance();
[[nodiscard]] RuleEntry dead_relu();
[[nodiscard]] RuleEntry embedding_rows_unused();
[[nodiscard]] RuleEntry exploding_gradient();
[[nodiscard]] RuleEntry gradient_clipped_to_nothing();
[[nodiscard]] RuleEntry gradients_not_cleared();
[[nodiscard]] RuleEntry learning_rate_too_high();
[[nodiscard]] RuleEntry learning_rate_too_low();
[[nodiscard]] RuleEntry loss_not_decreasing();
[[nodiscard]] RuleEntry loss_scale_overflow();
[[nodiscard]] RuleEntry low_precision_updates_lost();
[[nodiscard]] RuleEntry non_finite();
[[nodiscard]] RuleEntry over_regularized();
[[nodiscard]] RuleEntry overfit();
[[nodiscard]] RuleEntry poor_weight_init();
[[nodiscard]] RuleEntry saturated_activation();
[[nodiscard]] RuleEntry schedule_collapsed();
[[nodiscard]] RuleEntry stopped_too_early();
[[nodiscard]] RuleEntry vanishing_gradient();

}  // namespace traindbg::rules::builtin
