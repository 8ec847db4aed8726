// What a user has written down beside the command line: `traindbg.toml`, `[tool.traindbg]` of a
// `pyproject.toml`.
//
//   on-finding = "stop"              # an option of the program, without its dashes
//   collect = ["gradients"]
//   every = 20
//
//   [rule.vanishing_gradient]        # parameters of a rule
//   ratio = 1e-5
//
//   [collection]                     # collections of one's own: regular expressions
//   heads = "attention.*weight"
//   blocks = {include = ["block"], exclude = ["bias$"]}
//
//   [[capture]]                      # what the options cannot say: each collection with its own steps
//   collection = "heads"
//   what = ["statistics", "histogram"]
//   mode = "eval"
//   steps = [0, 10, 100]
//   seconds = 60
//
// This module knows the form of such a file; which options there are is known to `options`. Nothing of it is
// ever run. Errors are kInvalidArgument and name the file, the line and the key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/requirement.h"

namespace traindbg::settings {

// A value for an option.
struct Setting {
    std::string name;                 // "on-finding"; underscores were made dashes
    std::vector<std::string> values;  // as on the command line; several where a list was given
    std::string origin;               // where it stands: "traindbg.toml:3"

    friend bool operator==(const Setting&, const Setting&) = default;
};

struct Settings {
    std::string name = {};  // what messages call the file
    std::vector<Setting> options = {};
    std::vector<std::string> rule_settings =
        {};  // "vanishing_gradient.ratio=1e-05"; a name: with its defaults
    std::vector<model::CollectionSpec> collections = {};  // of [collection]
    std::vector<model::Requirement> captures = {};        // of [[capture]], asked for by "user"
};

enum class Form {
    kTraindbg,   // traindbg.toml
    kPyproject,  // only its table [tool.traindbg], which may be missing
};

// Files of more are refused.
inline constexpr std::size_t kMostBytes = std::size_t{1} << 20;

// `name` is what messages call the file. kUnsupported: a pyproject.toml that is no TOML.
[[nodiscard]] base::Result<Settings> parse(std::string_view text, const std::string& name, Form form);

}  // namespace traindbg::settings
