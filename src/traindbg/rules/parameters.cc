#include "traindbg/rules/parameters.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "traindbg/base/format.h"
#include "traindbg/base/pattern.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/hold.h"

namespace traindbg::rules {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::ParameterInfo;
using model::ParameterType;
using model::ParameterValue;

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

// What makes a value wrong, to be put behind the parameter's name.
Status wrong(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

Result<ParameterValue> number_of(std::string_view text) {
    double value = 0;
    const std::string_view digits = trimmed(text);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() ||
        !std::isfinite(value))
        return wrong(base::format("'{}' is not a number", base::printable(text)));
    return ParameterValue(value);
}

// Of the parameter's type; whether it is in range is not looked at.
Result<ParameterValue> value_of(const ParameterInfo& parameter, const std::string& text) {
    const std::string word = lower(trimmed(text));
    const bool is_optional = parameter.fallback.is_nothing();
    if (is_optional && (word.empty() || word == "none")) return ParameterValue();
    switch (parameter.type) {
        case ParameterType::kNumber:
        case ParameterType::kWhole: return number_of(text);
        case ParameterType::kFlag:
            if (word == "true") return ParameterValue(true);
            if (word == "false") return ParameterValue(false);
            return wrong(base::format("'{}' is neither true nor false", base::printable(text)));
        case ParameterType::kChoice:
            for (const std::string& choice : parameter.choices)
                if (lower(choice) == word) return ParameterValue(choice);
            return wrong(base::format("'{}' is not one of {}{}", base::printable(text),
                                      base::join(parameter.choices, ", "),
                                      base::did_you_mean(text, parameter.choices)));
        default: return ParameterValue(text);
    }
}

Status check(const ParameterInfo& parameter, const ParameterValue& value) {
    if (value.is_nothing()) return parameter.fallback.is_nothing() ? Status::ok() : wrong("needs a value");
    switch (parameter.type) {
        case ParameterType::kNumber:
        case ParameterType::kWhole: {
            const double* number = value.number();
            if (number == nullptr) return wrong("is not a number");
            if (!(*number >= parameter.min && *number <= parameter.max))  // also refuses NaN
                return wrong(base::format("{} is out of range; give a number from {} to {}",
                                          base::human_number(*number), base::human_number(parameter.min),
                                          base::human_number(parameter.max)));
            if (parameter.type == ParameterType::kWhole && *number != std::floor(*number))
                return wrong(base::format("{} is not a whole number", base::human_number(*number)));
            return Status::ok();
        }
        case ParameterType::kFlag:
            return value.flag() != nullptr ? Status::ok() : wrong("is neither true nor false");
        case ParameterType::kPattern:
            if (value.text() == nullptr) return wrong("is not a text");
            return base::Pattern::make(*value.text()).status();
        case ParameterType::kPatterns:
            if (value.text() == nullptr) return wrong("is not a text");
            for (const std::string& pattern : split_texts(*value.text()))
                TRAINDBG_RETURN_IF_ERROR(base::Pattern::make(pattern).status());
            return Status::ok();
        case ParameterType::kNumbers:
            if (value.text() == nullptr) return wrong("is not a text");
            for (const std::string& number : split_texts(*value.text()))
                TRAINDBG_RETURN_IF_ERROR(number_of(number).status());
            return Status::ok();
        default: return value.text() != nullptr ? Status::ok() : wrong("is not a text");
    }
}

}  // namespace

const ParameterValue& Parameters::value(std::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::out_of_range(base::format("no parameter {}", name));
    return found->second;
}

double Parameters::at(std::string_view name) const {
    const double* number = value(name).number();
    if (number == nullptr) throw std::out_of_range(base::format("parameter {} is no number", name));
    return *number;
}

bool Parameters::flag(std::string_view name) const {
    const bool* flag = value(name).flag();
    if (flag == nullptr) throw std::out_of_range(base::format("parameter {} is no flag", name));
    return *flag;
}

const std::string& Parameters::text(std::string_view name) const {
    const std::string* text = value(name).text();
    if (text == nullptr) throw std::out_of_range(base::format("parameter {} is no text", name));
    return *text;
}

std::vector<std::string> Parameters::texts(std::string_view name) const {
    const std::string* text = value(name).text();
    return text == nullptr ? std::vector<std::string>() : split_texts(*text);
}

std::vector<double> Parameters::numbers(std::string_view name) const {
    std::vector<double> out;
    for (const std::string& text : texts(name))
        if (const Result<ParameterValue> number = number_of(text); number.is_ok())
            out.push_back(*number->number());
    return out;
}

std::optional<double> Parameters::number_if_any(std::string_view name) const {
    const double* number = value(name).number();
    return number == nullptr ? std::nullopt : std::optional(*number);
}

std::vector<std::string> split_texts(std::string_view text) {
    std::vector<std::string> parts;
    while (true) {
        const std::size_t comma = std::min(text.find(','), text.size());
        if (const std::string_view part = trimmed(text.substr(0, comma)); !part.empty())
            parts.emplace_back(part);
        if (comma == text.size()) return parts;
        text.remove_prefix(comma + 1);
    }
}

Parameters defaults_of(const model::RuleInfo& info) {
    Parameters defaults;
    for (const ParameterInfo& parameter : info.parameters) defaults[parameter.name] = parameter.fallback;
    return defaults;
}

Result<Parameters> complete_parameters(const model::RuleInfo& info, const Parameters& given) {
    Parameters complete = defaults_of(info);
    TRAINDBG_RETURN_IF_ERROR(hold_of(info, given).status());
    for (const auto& [name, value] : given) {
        if (is_hold(info, name)) continue;
        const auto parameter = std::find_if(info.parameters.begin(), info.parameters.end(),
                                            [&name = name](const auto& known) { return known.name == name; });
        if (parameter == info.parameters.end()) {
            std::vector<std::string> names;
            for (const ParameterInfo& known : info.parameters) names.push_back(known.name);
            names.emplace_back(kHoldParameter);
            return Status(Code::kInvalidArgument,
                          base::format("rule {}: no parameter is called '{}'{}; there {} {}, see traindbg "
                                       "rules explain {}",
                                       info.name, base::printable(name), base::did_you_mean(name, names),
                                       names.size() == 1 ? "is" : "are", base::join(names, ", "), info.name));
        }
        Result<ParameterValue> typed = value;
        // One number where several may stand.
        if (parameter->type == ParameterType::kNumbers && value.number() != nullptr)
            typed = ParameterValue(base::format("{}", *value.number()));
        if (const std::string* text = value.text()) typed = value_of(*parameter, *text);
        Status status = typed.is_ok() ? check(*parameter, *typed) : typed.status();
        if (!status.is_ok())
            return Status(status.code(), base::format("{}.{}: {}", info.name, name, status.message()));
        complete[name] = std::move(typed).value();
    }
    return complete;
}

}  // namespace traindbg::rules
