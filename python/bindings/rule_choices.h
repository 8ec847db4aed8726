// Rules with their parameters, as Python has them: (name, {parameter: value}).
#pragma once

#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "traindbg/rules/rule.h"

namespace traindbg::bindings {

using RuleChoices =
    std::vector<std::pair<std::string, std::map<std::string, std::variant<bool, double, std::string>>>>;

inline std::vector<rules::RuleChoice> from_python(const RuleChoices& choices) {
    std::vector<rules::RuleChoice> out;
    for (const auto& [name, parameters] : choices) {
        rules::RuleChoice& choice = out.emplace_back(rules::RuleChoice{name, {}});
        for (const auto& [parameter, given] : parameters)
            choice.parameters[parameter] =
                std::visit([](const auto& value) { return model::ParameterValue(value); }, given);
    }
    return out;
}

inline RuleChoices to_python(const std::vector<rules::RuleChoice>& choices) {
    RuleChoices out;
    for (const rules::RuleChoice& choice : choices) {
        auto& parameters = out.emplace_back(choice.name, RuleChoices::value_type::second_type()).second;
        for (const auto& [name, value] : choice.parameters) {
            if (const double* number = value.number()) parameters.emplace(name, *number);
            else if (const bool* flag = value.flag()) parameters.emplace(name, *flag);
            else if (const std::string* text = value.text()) parameters.emplace(name, *text);
            else parameters.emplace(name, "none");
        }
    }
    return out;
}

}  // namespace traindbg::bindings
