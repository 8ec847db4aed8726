#include "traindbg/settings/rules_json.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/rule_instance.h"
#include "traindbg/settings/json_problem.h"

namespace traindbg::settings {
namespace {

using base::Code;
using base::Result;
using base::Status;
using nlohmann::json;

// What the service and its container need, and we do not.
constexpr std::array<std::string_view, 3> kOfTheService = {"rule_to_invoke", "base_trial", "source_s3_uri"};

constexpr std::string_view kOtherTrial = "other_trial_";  // with a number; other_trials is a parameter
constexpr std::string_view kOtherTrials = "other_trials";

// Rules of the original that write a report and judge nothing, and those that judge the machine.
constexpr std::array<std::string_view, 1> kReports = {"CreateXgboostReport"};
constexpr std::array<std::string_view, 12> kOfTheMachine = {
    "BatchSize",          "CPUBottleneck",           "Dataloader",        "GPUMemoryIncrease",
    "IOBottleneck",       "LoadBalancing",           "LowGPUUtilization", "MaxInitializationTime",
    "OverallSystemUsage", "OverallFrameworkMetrics", "StepOutlier",       "ProfilerReport"};

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_of_the_service(std::string_view key) {
    return is_among(kOfTheService, key) || key.starts_with(kOtherTrial);
}

std::string why_set_aside(std::string_view rule) {
    if (is_among(kReports, rule)) return "it writes a report and judges nothing: `traindbg report RUN` does";
    if (is_among(kOfTheMachine, rule)) return "it judges the machine, not the training";
    return {};
}

// What the service makes of the runs to compare with: other_trial_0, other_trial_1, ...
std::string other_trials_of(const json& parameters) {
    std::vector<std::string> runs;
    for (std::size_t i = 0;; ++i) {
        const auto found = parameters.find(base::format("{}{}", kOtherTrial, i));
        if (found == parameters.end() || !found->is_string()) break;
        runs.push_back(found->get<std::string>());
    }
    return base::join(runs, ",");
}

std::optional<std::string> text_of(const json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_null()) return "none";
    if (value.is_number() || value.is_boolean()) return value.dump();
    if (!value.is_array()) return std::nullopt;
    std::vector<std::string> parts;
    for (const json& item : value) {
        if (item.is_array() || item.is_object() || item.is_null()) return std::nullopt;
        parts.push_back(*text_of(item));
    }
    return base::join(parts, ",");
}

Result<RuleConfiguration> configuration_of(const json& item, const std::string& where) {
    const auto wrong = [&](std::string_view what) {
        return Status(Code::kInvalidArgument, base::format("{}: {}", where, what));
    };
    if (!item.is_object()) return wrong("expected an object");
    if (const auto inner = item.find("DebugRuleConfiguration"); inner != item.end()) {
        TRAINDBG_ASSIGN_OR_RETURN(RuleConfiguration wrapped, configuration_of(*inner, where));
        const auto collections = item.find("CollectionConfigurations");
        if (collections != item.end() && !collections->empty())
            wrapped.hook = json{{"CollectionConfigurations", *collections}}.dump();
        return wrapped;
    }
    RuleConfiguration out;
    if (const auto name = item.find("RuleConfigurationName"); name != item.end() && name->is_string())
        out.name = name->get<std::string>();
    const std::string place = out.name.empty() ? where : where + " (" + base::printable(out.name) + ")";
    const auto parameters = item.find("RuleParameters");
    const auto rule =
        parameters != item.end() && parameters->is_object() ? parameters->find("rule_to_invoke") : item.end();
    if (parameters == item.end() || !parameters->is_object() || rule == parameters->end() ||
        !rule->is_string())
        return Status(Code::kInvalidArgument,
                      base::format("{}: RuleParameters has no rule_to_invoke", place));
    out.rule = rule->get<std::string>();
    out.set_aside = why_set_aside(out.rule);
    if (const std::string others = other_trials_of(*parameters);
        !others.empty() && !parameters->contains(kOtherTrials))
        out.parameters.emplace_back(kOtherTrials, others);
    if (parameters->contains("source_s3_uri"))
        return Status(Code::kUnsupported,
                      base::format("{}: a rule of one's own (source_s3_uri) cannot be run from here", place));
    for (const auto& [key, value] : parameters->items()) {
        if (is_of_the_service(key)) continue;
        if (key == "action_json") {
            const std::string actions = place + ": action_json";
            if (value.is_null()) continue;
            TRAINDBG_ASSIGN_OR_RETURN(
                out.actions,
                parse_actions_json(value.is_string() ? value.get<std::string>() : value.dump(), actions));
            continue;
        }
        const std::optional<std::string> text = text_of(value);
        if (!text)
            return Status(Code::kInvalidArgument,
                          base::format("{}: {}: expected a text", place, base::printable(key)));
        out.parameters.emplace_back(key, *text);
    }
    return out;
}

// Gives each its name. In the original, too, no two have one.
Status name_instances(std::vector<RuleConfiguration>& configurations, const std::string& file) {
    std::map<std::string, std::set<std::string>> of_rules;  // the names of each rule's
    for (const RuleConfiguration& each : configurations) {
        if (of_rules[each.rule].insert(each.name).second) continue;
        return {Code::kInvalidArgument,
                base::format("{}: {} is configured twice {}; give each a RuleConfigurationName of its own",
                             file, base::printable(each.rule),
                             each.name.empty() ? "without a name" : "as " + base::printable(each.name))};
    }
    for (RuleConfiguration& each : configurations) {
        each.instance = each.rule;
        if (of_rules[each.rule].size() > 1 && !each.name.empty())
            each.instance += model::kInstanceMark + base::printable(each.name);
    }
    return Status::ok();
}

}  // namespace

Result<std::vector<RuleConfiguration>> parse_rules_json(std::string_view text, const std::string& name) {
    const json file = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    const auto wrong = [&](std::string_view what) {
        return Status(Code::kInvalidArgument, base::format("{}: {}", name, what));
    };
    if (file.is_discarded()) return wrong(json_problem(text));
    const json* list = &file;
    if (file.is_object()) {
        const auto found = file.find("DebugRuleConfigurations");
        if (found == file.end()) return wrong("has no DebugRuleConfigurations, and is no list of them");
        list = &*found;
    }
    if (!list->is_array()) return wrong("DebugRuleConfigurations: expected a list");
    std::vector<RuleConfiguration> out;
    for (const json& item : *list) {
        TRAINDBG_ASSIGN_OR_RETURN(
            RuleConfiguration configuration,
            configuration_of(item, base::format("{}: configuration {}", name, out.size() + 1)));
        out.push_back(std::move(configuration));
    }
    TRAINDBG_RETURN_IF_ERROR(name_instances(out, name));
    return out;
}

}  // namespace traindbg::settings
