#include "traindbg/model/parameter.h"

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::model {

std::string_view to_string(ParameterType type) noexcept {
    switch (type) {
        case ParameterType::kNumber: return "number";
        case ParameterType::kWhole: return "whole number";
        case ParameterType::kFlag: return "flag";
        case ParameterType::kText: return "text";
        case ParameterType::kPattern: return "pattern";
        case ParameterType::kTexts: return "texts";
        case ParameterType::kChoice: return "choice";
        case ParameterType::kPatterns: return "patterns";
        case ParameterType::kNumbers: return "numbers";
    }
    return "unknown";
}

std::string to_text(const ParameterValue& value) {
    if (const double* number = value.number()) return base::human_number(*number);
    if (const bool* flag = value.flag()) return *flag ? "true" : "false";
    if (const std::string* text = value.text()) return base::printable(*text);
    return "none";
}

std::string range_in_words(const ParameterInfo& parameter) {
    const auto numbers = [&] {
        return base::format("{} to {}", base::human_number(parameter.min), base::human_number(parameter.max));
    };
    std::string words;
    switch (parameter.type) {
        case ParameterType::kNumber: words = numbers(); break;
        case ParameterType::kWhole: words = "whole, " + numbers(); break;
        case ParameterType::kFlag: words = "true or false"; break;
        case ParameterType::kText: words = "a text"; break;
        case ParameterType::kPattern: words = "a regular expression"; break;
        case ParameterType::kTexts: words = "texts, separated by commas"; break;
        case ParameterType::kChoice: words = base::join(parameter.choices, ", "); break;
        case ParameterType::kPatterns: words = "regular expressions, separated by commas"; break;
        case ParameterType::kNumbers: words = "numbers, separated by commas"; break;
    }
    return parameter.fallback.is_nothing() ? words + ", or none" : words;
}

}  // namespace traindbg::model
