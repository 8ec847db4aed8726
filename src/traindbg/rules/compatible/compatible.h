// Rules that mean what those of the SageMaker Debugger service of the same names are documented to mean, one
// line each, sorted by name: each is defined in `compatible/<name>.cc`. `registry.cc` holds them in the same
// order. They are never on by default; ours judge with more care.
#pragma once

#include "traindbg/rules/rule.h"

namespace traindbg::rules::compatible {

[[nodiscard]] RuleEntry all_zero();
[[nodiscard]] RuleEntry check_input_images();
[[nodiscard]] RuleEntry class_imbalance();
[[nodiscard]] RuleEntry confusion();
[[nodiscard]] RuleEntry dead_relu();
[[nodiscard]] RuleEntry exploding_tensor();
[[nodiscard]] RuleEntry feature_importance_overweight();
[[nodiscard]] RuleEntry loss_not_decreasing();
[[nodiscard]] RuleEntry nlp_sequence_ratio();
[[nodiscard]] RuleEntry overfit();
[[nodiscard]] RuleEntry overtraining();
[[nodiscard]] RuleEntry poor_weight_initialization();
[[nodiscard]] RuleEntry saturated_activation();
[[nodiscard]] RuleEntry similar_across_runs();
[[nodiscard]] RuleEntry stalled_training_rule();
[[nodiscard]] RuleEntry tensor_variance();
[[nodiscard]] RuleEntry tree_depth();
[[nodiscard]] RuleEntry unchanged_tensor();
[[nodiscard]] RuleEntry vanishing_gradient();
[[nodiscard]] RuleEntry weight_update_ratio();

}  // namespace traindbg::rules::compatible
