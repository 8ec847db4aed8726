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

// A log says how many elements a tensor has, not its shape; rules about depth need to know which gradients
// are those of weight matrices. Where a layer's bias is in the log as well, the shape of its weight follows
// ([bias, rest], or [bias] where both are of one size, as in a normalisation); else one that is named weight
// or kernel, of no layer named as a normalisation, counts as a matrix of one row. `tensors` have one extent,
// or none for scalars.
void infer_shapes(std::vector<model::TensorInfo>& tensors);

}  // namespace traindbg::exchange
