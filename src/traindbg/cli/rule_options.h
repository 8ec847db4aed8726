// The options that say which rules judge and what is captured; `run`, `check` and `watch` share them.
//
// Every name is looked up before anything is started; errors name the nearest one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/cli/option_set.h"
#include "traindbg/model/requirement.h"
#include "traindbg/rules/rule.h"

namespace traindbg::cli {

struct RuleOptions {
    std::vector<std::string> only;      // --rules a,b
    std::vector<std::string> without;   // --no-rule a
    std::vector<std::string> settings;  // --rule a.parameter=0.1

    void declare(OptionSet& options);
    [[nodiscard]] bool any() const noexcept { return !only.empty() || !without.empty() || !settings.empty(); }
    // Beginning from `all` (the default set, or what a run was judged by).
    [[nodiscard]] base::Result<std::vector<rules::RuleChoice>> choices(
        std::vector<rules::RuleChoice> all = rules::default_rules()) const;
};

struct CaptureOptions {
    std::vector<std::string> collect;      // --collect gradients,weights
    std::vector<std::string> raw;          // --raw losses
    std::vector<std::string> histograms;   // --histograms gradients
    std::vector<std::string> collections;  // --collection NAME=REGEX
    std::uint64_t every = 10;
    std::string compiled;  // --compiled eager

    void declare(OptionSet& options);
    // What these options and the rules need together.
    [[nodiscard]] base::Result<model::CaptureConfig> config(
        const std::vector<rules::RuleChoice>& choices) const;
};

}  // namespace traindbg::cli
