// What `traindbg set` makes of a plan. Decisions only; nothing is read or written.
#pragma once

#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/requirement.h"
#include "traindbg/options/rule_options.h"

namespace traindbg::cli {

struct PlanEdit {
    options::CaptureOptions capture;  // what is wished for; `defined` need not be filled
    std::vector<std::string> drop;    // collections of which the user's wishes are taken back, first
    bool drop_all = false;            // or all of them

    [[nodiscard]] bool is_empty() const noexcept {
        return !capture.has_names() && !capture.has_schedule() && capture.compiled.empty() &&
               capture.micro_batches.empty() && capture.budget.empty() && !capture.probe &&
               !capture.has_flight() && drop.empty() && !drop_all;
    }
};

// `plan` with the change. What rules need stays. A wish takes the place of the user's earlier one of the same
// collection, kind (statistics, histograms, whole tensors) and mode; a schedule without names is that of all
// the user's wishes from then on. Errors name the option, as those of `run` do.
[[nodiscard]] base::Result<model::CaptureConfig> edited(const model::CaptureConfig& plan,
                                                        const PlanEdit& edit);

// "statistics, whole tensors of 'weights' in train, at every 10th step, for user"
[[nodiscard]] std::string in_words(const model::Requirement& requirement);
// "collection 'head': tensors whose names match ^fc and not bias$"
[[nodiscard]] std::string in_words(const model::CollectionSpec& collection);
// What `after` has and `before` has not, as lines that begin with "+ ", and the other way round with "- ".
[[nodiscard]] std::vector<std::string> differences(const model::CaptureConfig& before,
                                                   const model::CaptureConfig& after);

}  // namespace traindbg::cli
