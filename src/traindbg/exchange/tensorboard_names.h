// What a tag of a TensorBoard log stands for. docs/export.md tells users these rules; they can be overridden.
//
// Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/step.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::exchange {

// Somebody's own answer for a tag.
struct RoleChoice {
    model::Role role = model::Role::kOther;
    bool ignore = false;  // do not import it at all
};
using RoleChooser = std::function<std::optional<RoleChoice>(std::string_view tag)>;

// Which mode a word means: "train", "val", "test", ...; nothing for other words. Case does not matter.
[[nodiscard]] std::optional<model::Mode> mode_of_word(std::string_view word);

// A directory of event files below the log directory, taken apart: "run7/w1/validation".
struct SubRun {
    model::WorkerId worker = 0;
    std::optional<model::Mode> mode;
    std::string name;  // what is neither: "run7"
};
[[nodiscard]] SubRun parse_sub_run(std::string_view relative);

struct TagMeaning {
    std::optional<model::Mode> mode;  // that the tag itself says
    model::TensorInfo info;           // name, role, activation, module
};
[[nodiscard]] TagMeaning meaning_of_scalar(std::string_view tag, std::optional<model::Role> chosen);
[[nodiscard]] TagMeaning meaning_of_histogram(std::string_view tag, std::optional<model::Role> chosen);

}  // namespace traindbg::exchange
