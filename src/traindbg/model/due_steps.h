// The first step at which something is due, and whether there is any. Plain functions of values.
#pragma once

#include <algorithm>
#include <optional>

#include "traindbg/model/requirement.h"

namespace traindbg::model {

// The first step >= `from` at which the schedule is due by interval.
[[nodiscard]] inline std::optional<StepIndex> next_by_interval(const Schedule& schedule,
                                                               StepIndex from) noexcept {
    StepIndex step = std::max(from, schedule.start);
    if (step >= schedule.dense_until) {
        if (schedule.every == 0) return std::nullopt;
        const StepIndex past = step % schedule.every;
        if (past != 0 && __builtin_add_overflow(step, schedule.every - past, &step)) return std::nullopt;
    }
    return step < schedule.end ? std::optional(step) : std::nullopt;
}

// The same of all that it says of steps; by time it may be due at each.
[[nodiscard]] inline std::optional<StepIndex> next_due(const Requirement& requirement,
                                                       StepIndex from) noexcept {
    const Schedule& schedule = requirement.schedule;
    const StepIndex first = std::max(from, schedule.start);
    if (requirement.every_ms != 0) return first < schedule.end ? std::optional(first) : std::nullopt;
    std::optional<StepIndex> next = next_by_interval(schedule, from);
    const auto named = std::lower_bound(requirement.steps.begin(), requirement.steps.end(), first);
    if (named != requirement.steps.end() && *named < schedule.end && (!next || *named < *next)) next = *named;
    return next;
}

}  // namespace traindbg::model
