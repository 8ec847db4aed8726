// Options about how a run is kept: on overflow, in size, by age. The same words as in plan.json.
#pragma once

#include <string>

#include "traindbg/base/status.h"
#include "traindbg/model/requirement.h"
#include "traindbg/options/option_set.h"

namespace traindbg::options {

// What of old steps is kept; of `run` and of `gc`.
struct RetentionOptions {
    std::uint64_t keep_last = 0;             // --keep-last 5000
    std::uint64_t thin = 0;                  // --thin 100
    std::uint64_t keep_tensors = 0;          // --keep-tensors 50
    std::string quota;                       // --quota 10GiB
    const OptionSet* declared_in = nullptr;  // says where a value stood

    void declare(OptionSet& options);
    // Into `retention`, as far as they were given.
    [[nodiscard]] base::Status apply(model::Retention& retention) const;
};

struct StoreOptions {
    std::string overflow;   // --overflow drop_newest
    std::string block_for;  // --block-for 0.05s
    std::string arena;      // --arena 256MiB
    RetentionOptions retention;
    const OptionSet* declared_in = nullptr;

    void declare(OptionSet& options);
    [[nodiscard]] base::Status apply(model::CaptureConfig& config) const;
};

}  // namespace traindbg::options
