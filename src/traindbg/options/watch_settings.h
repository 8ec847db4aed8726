// A settings file for a training that is not started by the program: what `traindbg.watch` records and by
// which rules it is judged. Arguments of the call count before the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/requirement.h"
#include "traindbg/options/settings_file.h"
#include "traindbg/rules/rule.h"

namespace traindbg::options {

// What the caller says itself, as far as it takes the place of what the file says.
struct WatchArguments {
    std::vector<std::string> options = {};  // names of options; the file's values of them count nothing
    std::uint64_t every = 0;                // for the file's --every; 0: that counts
    // Collections that the caller defines, for the file's of the same names. The caller asks for them itself.
    std::vector<model::CollectionSpec> collections = {};
    // For the file's --rules and --no-rule. Parameters that the file sets are added where they say nothing.
    std::optional<std::vector<rules::RuleChoice>> rules = {};
};

struct WatchSettings {
    std::string path;                                     // of the file, printable
    model::CaptureConfig plan;                            // what the file and the rules need
    std::optional<std::vector<rules::RuleChoice>> rules;  // that judge; nothing: the default ones
    std::vector<std::string> supervisor;                  // for `traindbg watch`: "--on-finding", "stop"
    std::vector<std::string> left_out;                    // options that only the program can follow
    std::uint64_t every = 0;                              // what is captured so often; 0: nobody said
    // When and in which steps the file has things captured, for what the caller asks for. Its interval is 10
    // where nobody said another.
    model::Requirement form;
    bool names_something = false;  // whether the file's --every is of something
};

// kInvalidArgument names the file and, for an option, the line and the key; kNotFound a hook configuration
// that is not there.
[[nodiscard]] base::Result<WatchSettings> settings_for_watch(const SettingsFile& file,
                                                             const WatchArguments& arguments);

}  // namespace traindbg::options
