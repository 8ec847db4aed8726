// How long a fault must last before its finding fires: a parameter that every rule has, `hold`.
//
// The engine waits, not the rule: what a rule sees lasts from its `fire` until its `clear`. Silence says
// nothing, because some rules look at every step and others now and then, and some fire once while the fault
// stays.
#pragma once

#include <cstdint>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/model/rule_info.h"
#include "traindbg/rules/parameters.h"

namespace traindbg::rules {

inline constexpr std::string_view kHoldParameter = "hold";
// What it means, after how it is set, as pages and the command line say it.
inline constexpr std::string_view kHoldInWords =
    "which every rule takes, lets its findings wait until the fault has lasted for 20 steps, or for a time "
    "such as `30s`";

// At most one of them is above 0.
struct Hold {
    std::uint64_t steps = 0;
    std::int64_t nanos = 0;  // by the times at which steps were recorded

    [[nodiscard]] bool is_none() const noexcept { return steps == 0 && nanos == 0; }
    friend bool operator==(const Hold&, const Hold&) = default;
};

// "20": steps; "30s", "5min": a time. kInvalidArgument says what may be given.
[[nodiscard]] base::Result<Hold> parse_hold(std::string_view text);
// Whether `name` is that parameter: a rule that has one of its own by that name keeps it.
[[nodiscard]] bool is_hold(const model::RuleInfo& info, std::string_view name);
// What is given for a rule, or none. kInvalidArgument names the rule.
[[nodiscard]] base::Result<Hold> hold_of(const model::RuleInfo& info, const Parameters& given);

}  // namespace traindbg::rules
