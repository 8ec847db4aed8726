// Where in a training something happened: the mode, the step in that mode, the worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace traindbg::model {

// The numbers are written into run files: never change one, only add.
enum class Mode : std::uint8_t {
    kTrain = 1,    // forward, backward, optimizer step
    kEval = 2,     // validation: `model.eval()`
    kPredict = 3,  // inference without labels
    kGlobal = 4,   // of no particular mode
};
inline constexpr std::uint8_t kModeCount = 5;  // array size for tables indexed by Mode

[[nodiscard]] std::string_view to_string(Mode mode) noexcept;  // "train", "eval", ...
[[nodiscard]] std::optional<Mode> parse_mode(std::string_view word) noexcept;

// A step of one mode, counted from 0. In TRAIN, a step is one optimizer step.
using StepIndex = std::uint64_t;
// A process of the training, numbered by its rank.
using WorkerId = std::uint32_t;

}  // namespace traindbg::model
