// The one table of rules, and what is asked of it by name.

#include <algorithm>
#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

using base::Code;
using base::Result;
using base::Status;

const std::vector<RuleEntry>& builtin_rules() {
    static const std::vector<RuleEntry> entries = {
        builtin::class_imbalance(),  //
        builtin::constant_output(),
        builtin::dead_relu(),              //
        builtin::exploding_gradient(),     //
        builtin::gradients_not_cleared(),  //
        builtin::input_not_normalized(),
        builtin::labels_out_of_range(),
        builtin::loss_input_range(),
        builtin::loss_not_decreasing(),  //
        builtin::loss_shape_broadcast(),
        builtin::non_finite(),  //
        builtin::output_activation_range(),
        builtin::overfit(),  //
        builtin::repeated_batch(),
        builtin::saturated_activation(),  //
        builtin::target_leak(),
        builtin::target_not_normalized(),
        builtin::train_val_mismatch(),
        builtin::vanishing_gradient(),  //
        builtin::wrong_loss(),
    };
    return entries;
}

Result<const RuleEntry*> find_rule(std::string_view name) {
    std::vector<std::string> names;
    for (const RuleEntry& entry : builtin_rules()) {
        if (entry.info->name == name) return &entry;
        names.push_back(entry.info->name);
    }
    return Status(Code::kNotFound, base::format("no rule is called '{}'{}; `traindbg rules list` shows all",
                                                base::printable(name), base::did_you_mean(name, names)));
}

Result<Parameters> complete_parameters(const model::RuleInfo& info, const Parameters& given) {
    Parameters complete;
    std::vector<std::string> names;
    for (const model::ParameterInfo& parameter : info.parameters) {
        complete[parameter.name] = parameter.fallback;
        names.push_back(parameter.name);
    }
    for (const auto& [name, value] : given) {
        const auto parameter = std::find_if(info.parameters.begin(), info.parameters.end(),
                                            [&name = name](const auto& known) { return known.name == name; });
        if (parameter == info.parameters.end()) {
            return Status(Code::kInvalidArgument,
                          base::format("rule {}: no parameter is called '{}'{}", info.name,
                                       base::printable(name), base::did_you_mean(name, names)));
        }
        if (!(value >= parameter->min && value <= parameter->max)) {  // also refuses NaN
            return Status(
                Code::kInvalidArgument,
                base::format("rule {}: {} = {} is out of range; give a number from {} to {}", info.name, name,
                             base::human_number(value), base::human_number(parameter->min),
                             base::human_number(parameter->max)));
        }
        complete[name] = value;
    }
    return complete;
}

std::vector<RuleChoice> default_rules() {
    std::vector<RuleChoice> choices;
    for (const RuleEntry& entry : builtin_rules()) choices.push_back({entry.info->name, {}});
    return choices;
}

Result<std::vector<model::Requirement>> requirements_of(const std::vector<RuleChoice>& choices) {
    std::vector<model::Requirement> all;
    for (const RuleChoice& choice : choices) {
        TRAINDBG_ASSIGN_OR_RETURN(const RuleEntry* entry, find_rule(choice.name));
        TRAINDBG_ASSIGN_OR_RETURN(const Parameters parameters,
                                  complete_parameters(*entry->info, choice.parameters));
        for (model::Requirement& needed : entry->needs(parameters)) {
            const auto same = std::find_if(all.begin(), all.end(), [&](const model::Requirement& known) {
                return known.collection == needed.collection && known.mode == needed.mode &&
                       known.what == needed.what && known.schedule == needed.schedule;
            });
            if (same == all.end()) all.push_back(std::move(needed));
            else if (same->asked_by != needed.asked_by) same->asked_by += ", " + needed.asked_by;
        }
    }
    return all;
}

}  // namespace traindbg::rules
