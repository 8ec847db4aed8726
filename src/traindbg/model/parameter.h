// What a user may set of a rule: `--rule vanishing_gradient.ratio=1e-4`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace traindbg::model {

enum class ParameterType : std::uint8_t {
    kNumber,   // from `min` to `max`
    kWhole,    // the same without fractions
    kFlag,     // true or false
    kText,     // any
    kPattern,  // a regular expression, searched in names of tensors
    kTexts,    // separated by commas; of the next two, too
    kChoice,   // one of `choices`
    kPatterns,
    kNumbers,
};
// "number", "whole number", "flag", "text", "pattern", "texts", "choice", "patterns", "numbers"
[[nodiscard]] std::string_view to_string(ParameterType type) noexcept;

// What a parameter is set to: a number, a truth, a text (of patterns, texts and choices, too), or nothing.
class ParameterValue {
  public:
    ParameterValue() = default;
    // A value is given as what it is: {"ratio", "share", 0.5, ...}.
    // NOLINTBEGIN(google-explicit-constructor)
    template <typename Number>
    requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>) ParameterValue(Number number)
        : value_(static_cast<double>(number)) {}
    template <typename Flag>
    requires std::is_same_v<Flag, bool> ParameterValue(Flag flag) : value_(flag) {}
    ParameterValue(std::string text) : value_(std::move(text)) {}
    ParameterValue(const char* text) : value_(std::string(text)) {}
    // NOLINTEND(google-explicit-constructor)

    // Null where it is something else.
    [[nodiscard]] const double* number() const noexcept { return std::get_if<double>(&value_); }
    [[nodiscard]] const bool* flag() const noexcept { return std::get_if<bool>(&value_); }
    [[nodiscard]] const std::string* text() const noexcept { return std::get_if<std::string>(&value_); }
    [[nodiscard]] bool is_nothing() const noexcept { return value_.index() == 0; }

    friend bool operator==(const ParameterValue&, const ParameterValue&) = default;

  private:
    std::variant<std::monostate, double, bool, std::string> value_;
};

struct ParameterInfo {
    std::string name;
    std::string unit;         // "steps", "ratio", "share", ...
    ParameterValue fallback;  // the default; where it is nothing, "none" may be given
    double min = 0;           // of numbers, with `max`
    double max = 0;
    std::string meaning;
    ParameterType type = ParameterType::kNumber;
    std::vector<std::string> choices = {};  // of kChoice
};

// For people: "0.001", "true", ".*relu_output", "none".
[[nodiscard]] std::string to_text(const ParameterValue& value);
// What may be given: "1e-12 to 1", "a regular expression, or none".
[[nodiscard]] std::string range_in_words(const ParameterInfo& parameter);

}  // namespace traindbg::model
