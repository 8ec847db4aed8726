// The options that say which rules judge and what is captured; `run`, `check` and `watch` share them.
//
// Every name is looked up before anything is started; errors name the nearest one, and the option as it was
// given: "--collect", or "traindbg.toml:3: collect". With `declare`, the set must outlive the options.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/requirement.h"
#include "traindbg/options/option_set.h"
#include "traindbg/rules/rule.h"
#include "traindbg/settings/rules_json.h"
#include "traindbg/settings/settings.h"

namespace traindbg::options {

// Rules of the user's own, to be loaded before any rule is named. The extension cannot.
struct CustomRuleOptions {
    std::vector<std::string> plugins;  // --rule-plugin libmine.so
    std::vector<std::string> python;   // --rule-python mine.py
    double timeout = 5;                // --rule-timeout SECONDS
    std::string memory;                // --rule-memory 1GiB

    void declare(OptionSet& options);
    [[nodiscard]] bool any() const noexcept { return !plugins.empty() || !python.empty(); }
    // What --rule-memory says; 0: no limit.
    [[nodiscard]] base::Result<std::uint64_t> memory_bytes() const;
};

struct RuleOptions {
    std::vector<std::string> only;      // --rules a,b
    std::vector<std::string> without;   // --no-rule a
    std::vector<std::string> settings;  // --rule a.parameter=0.1, --rule a
    std::string hold;                   // --hold 20, --hold 30s
    std::string rules_json;             // --rules-json rules.json
    CustomRuleOptions custom;
    std::uint64_t processes = 1;             // --processes N
    double process_timeout = 60;             // --process-timeout SECONDS
    settings::Settings file;                 // a settings file's: of rules that are not chosen, too
    const OptionSet* declared_in = nullptr;  // says where a value stood

    // `settable`: they may stand in a settings file as well.
    void declare(OptionSet& options, bool settable = false);
    [[nodiscard]] bool any() const noexcept {
        return !only.empty() || !without.empty() || !settings.empty() || !hold.empty() || !rules_json.empty();
    }
    // Beginning from `all` (the default set, or what a run was judged by), with the custom rules.
    [[nodiscard]] base::Result<std::vector<rules::RuleChoice>> choices(
        std::vector<rules::RuleChoice> all = rules::default_rules()) const;
    // Those of --rules-json, as they stand there.
    [[nodiscard]] base::Result<std::vector<settings::RuleConfiguration>> configurations() const;
    // Which of these judge nothing here, and why: a text for each, for the user.
    [[nodiscard]] std::vector<std::string> set_aside() const;
    // The collections that these want saved: CaptureOptions::of_rules.
    [[nodiscard]] base::Result<std::vector<settings::Settings>> collections() const;

  private:
    [[nodiscard]] base::Status add_configurations(std::vector<rules::RuleChoice>& chosen) const;
    [[nodiscard]] std::string place(std::string_view option) const { return place_of(declared_in, option); }
};

struct CaptureOptions {
    std::vector<std::string> collect;         // --collect gradients,weights
    std::vector<std::string> raw;             // --raw losses
    std::vector<std::string> histograms;      // --histograms gradients
    std::vector<std::string> collections;     // --collection NAME=REGEX
    std::uint64_t every = 0;                  // 0: 10, or never by interval where the next two say when
    std::vector<std::string> at_steps;        // --at-steps 0,100
    double every_seconds = 0;                 // --every-seconds 60
    std::uint64_t first_step = 0;             // --first-step 1000
    std::uint64_t end_step = UINT64_MAX;      // --end-step 2000
    std::string mode;                         // --capture-in eval
    std::string hook_config;                  // --hook-config debughookconfig.json
    settings::Settings file;                  // a settings file's collections and captures
    std::string compiled;                     // --compiled eager
    std::string micro_batches;                // --micro-batches all
    std::string budget;                       // --budget 2%
    bool probe = false;                       // --probe
    std::uint64_t flight_steps = 0;           // --flight-recorder 20
    std::vector<std::string> flight_collect;  // --flight-collect gradients
    std::vector<std::string> flight_raw;      // --flight-raw gradients
    std::vector<std::string> defined;  // collections that are there already: of the run that `set` changes
    std::vector<settings::Settings> of_rules;  // what rule configurations want saved
    // Collections of who asks for them elsewhere. They count before a file's of the same names.
    std::vector<model::CollectionSpec> given;
    const OptionSet* declared_in = nullptr;

    // `of_running`: of a training that runs; what it cannot take on any more is not listed.
    void declare(OptionSet& options, bool of_running = false);
    // The share that --budget says; nothing where it is not given.
    [[nodiscard]] base::Result<std::optional<double>> budget_share() const;
    [[nodiscard]] bool has_flight() const noexcept {
        return flight_steps != 0 || !flight_collect.empty() || !flight_raw.empty();
    }
    // Whether they name something to capture.
    [[nodiscard]] bool has_names() const noexcept;
    // Whether they say when it is captured.
    [[nodiscard]] bool has_schedule() const noexcept;
    // What --collect and its like ask for of a collection, but for its name and what is taken of it.
    [[nodiscard]] base::Result<model::Requirement> form() const;
    // Whether what they say of steps comes to anything. kInvalidArgument: no step is due, or it is not said
    // of what they are the steps. Where the latter stands in a file or the environment, for other calls it
    // may be, it is no error: given in words, else these are empty.
    [[nodiscard]] base::Result<std::string> check_schedule() const;
    // What these options and the rules need together.
    [[nodiscard]] base::Result<model::CaptureConfig> config(
        const std::vector<rules::RuleChoice>& choices) const;

  private:
    [[nodiscard]] base::Status check_that_a_step_is_due() const;
    [[nodiscard]] std::string place(std::string_view option) const { return place_of(declared_in, option); }
};

}  // namespace traindbg::options
