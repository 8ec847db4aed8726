// What a training says about itself that speaks for a cause or against it: learning rates, kinds of modules,
// how its loader is set.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/run_meta.h"

namespace traindbg::diagnose {

// A learning rate, and where it stands among those that are usual for the optimizer.
struct Rate {
    std::string_view optimizer;  // its type; lives in the meta
    double value = 0;
    bool is_far_above = false;  // hardly any training converges with it
    bool is_low = false;        // no update is too large because of it
    bool is_far_below = false;  // hardly any training gets far with it
};

// Of all groups of all optimizers, those farthest above and farthest below what is usual for their optimizer.
// Nothing where no rate is known.
[[nodiscard]] std::optional<Rate> highest_rate(const model::WorkerMeta& meta);
[[nodiscard]] std::optional<Rate> lowest_rate(const model::WorkerMeta& meta);

struct Fact {
    std::string text;  // a sentence
    bool supports = true;
    bool is_weighed = false;  // the hypothesis counts it already: it moves its confidence no more
};
// What is known that speaks for or against the cause of that name.
[[nodiscard]] std::vector<Fact> facts_about(std::string_view cause, const model::WorkerMeta& meta);

}  // namespace traindbg::diagnose
