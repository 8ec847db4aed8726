// What a rule says about itself: enough to document it, to list it and to check its parameters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/parameter.h"

namespace traindbg::model {

enum class Severity : std::uint8_t { kInfo = 0, kWarning = 1, kError = 2 };
[[nodiscard]] std::string_view to_string(Severity severity) noexcept;  // "info", "warning", "error"
[[nodiscard]] std::optional<Severity> parse_severity(std::string_view word) noexcept;

struct RuleInfo {
    std::string name;     // named after the fault: "vanishing_gradient"
    std::string title;    // "Vanishing gradient"
    std::string summary;  // one sentence: what is wrong when it fires
    // The exact condition, with the parameters by name: in short, and what is more than a few lines in items,
    // each a line of its own that begins with "- ".
    std::string when;
    std::string why;       // why it matters to the training
    std::string fix;       // what a user changes, most likely remedy first
    std::string healthy;   // what looks alike and does not make it fire
    std::string cost;      // what it needs captured, in words
    std::string original;  // name of the SageMaker Debugger rule that it is kin to, or empty
    std::string source;    // paper or document behind the condition, or empty
    Severity severity = Severity::kWarning;  // the most severe that it gives
    std::vector<ParameterInfo> parameters;
    // Of a rule that is compatible with one of SageMaker Debugger: how its documents are read where they say
    // too little or two things. Empty for our own.
    std::string readings = {};
};

}  // namespace traindbg::model
