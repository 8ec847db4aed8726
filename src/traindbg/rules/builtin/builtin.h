// The built-in rules, one line each, sorted by name: each is defined in `builtin/<name>.cc`.
// `registry.cc` holds them in the same order; a test compares the two. `tools/new_rule.py` adds a
// line to both.
#pragma once

#include "traindbg/rules/rule.h"

namespace traindbg::rules::builtin {

[[nodiscard]] RuleEntry class_imbalance();
[[nodiscard]] RuleEntry dead_relu();
[[nodiscard]] RuleEntry exploding_gradient();
[[nodiscard]] RuleEntry gradients_not_cleared();
[[nodiscard]] RuleEntry loss_not_decreasing();
[[nodiscard]] RuleEntry non_finite();
[[nodiscard]] RuleEntry overfit();
[[nodiscard]] RuleEntry saturated_activation();
[[nodiscard]] RuleEntry vanishing_gradient();

}  // namespace traindbg::rules::builtin
