// What the training may change by itself: the options of `run`. What they stand for: model::Corrections.
#pragma once

#include <cstdint>
#include <string_view>

#include "traindbg/model/requirement.h"
#include "traindbg/options/option_set.h"

namespace traindbg::options {

struct CorrectionOptions {
    bool skip_bad_steps = false;  // --skip-bad-steps
    static constexpr std::uint64_t kByAction =
        UINT64_MAX;  // so often as what is done about findings needs it

    // --snapshot-every STEPS; 0: never
    std::uint64_t snapshot_every = kByAction;
    double lr_factor = 0.5;   // --lr-factor 0.5
    std::uint64_t most = 10;  // --max-corrections N

    void declare(OptionSet& options);
    // `on_finding`: the word of --on-finding. `dry_run`: of --dry-run.
    [[nodiscard]] model::Corrections corrections(std::string_view on_finding, bool dry_run) const;
};

}  // namespace traindbg::options
