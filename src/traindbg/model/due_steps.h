// The first step at which something is due, and whether there is any. Plain functions of values.
#pragma once

#include <algorithm>
#include <optional>

#include "traindbg/model/requirement.h"

namespace traindbg::model {

// The first step >= `from` that is late enough for the schedule. `began`: of the training (Schedule).
[[nodiscard]] inline StepIndex first_held(const Schedule& schedule, StepIndex from,
                                          StepIndex began) noexcept {
    StepIndex start = 0;
    if (__builtin_add_overflow(began, schedule.start, &start)) start = UINT64_MAX;
    return std::max(from, start);
}

// The first step >= `from` at which the schedule is due by interval.
[[nodiscard]] inline std::optional<StepIndex> next_by_interval(const Schedule& schedule, StepIndex from,
                                                               StepIndex began = 0) noexcept {
    StepIndex step = first_held(schedule, from, began);
    if (step - began >= schedule.dense_until) {
        if (schedule.every == 0) return std::nullopt;
        const StepIndex past = step % schedule.every;
        if (past != 0 && __builtin_add_overflow(step, schedule.every - past, &step)) return std::nullopt;
    }
    return schedule.holds(step, began) ? std::optional(step) : std::nullopt;
}

// The same of all that it says of steps; by time it may be due at each.
[[nodiscard]] inline std::optional<StepIndex> next_due(const Requirement& requirement, StepIndex from,
                                                       StepIndex began = 0) noexcept {
    const Schedule& schedule = requirement.schedule;
    const StepIndex first = first_held(schedule, from, began);
    if (requirement.every_ms != 0) return schedule.holds(first, began) ? std::optional(first) : std::nullopt;
    std::optional<StepIndex> next = next_by_interval(schedule, from, began);
    const auto named = std::lower_bound(requirement.steps.begin(), requirement.steps.end(), first);
    if (named != requirement.steps.end() && schedule.holds(*named, began) && (!next || *named < *next))
        next = *named;
    return next;
}

}  // namespace traindbg::model
