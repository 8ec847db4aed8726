// Instances of one rule, each with parameters of its own: "UnchangedTensor:weights" and
// "UnchangedTensor:gradients" are two of the rule UnchangedTensor. Such a name stands wherever a rule's does:
// in options, findings, outcomes and verdicts.
#pragma once

#include <string_view>

namespace traindbg::model {

inline constexpr char kInstanceMark = ':';  // no rule's name has one

// The rule that `name` is an instance of; that of an instance without a name of its own is the rule's.
[[nodiscard]] constexpr std::string_view rule_of(std::string_view name) noexcept {
    return name.substr(0, name.find(kInstanceMark));
}
// Whether `name` is the rule `rule` or one of its instances; of an instance only itself is one.
[[nodiscard]] constexpr bool is_instance_of(std::string_view name, std::string_view rule) noexcept {
    return name == rule || rule_of(name) == rule;
}

}  // namespace traindbg::model
