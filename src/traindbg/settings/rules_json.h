// Rule configurations of SageMaker Debugger, as they stand in `DebugRuleConfigurations` of a training job or
// come from the `sagemaker` SDK: a list of
//   {"RuleConfigurationName": "mine", "RuleParameters": {"rule_to_invoke": "DeadRelu", "threshold_layer":
//   "60"}}
// or an object that has it as `DebugRuleConfigurations`; each may be wrapped as `DebugRuleConfiguration`.
// Values are texts there; numbers, truths, lists and null are taken, too.
//
// `action_json` among the parameters says what is to be done when the rule fires (`actions_json.h`). Not
// looked at: where and on what machine a rule is to run, and `base_trial`. The other runs that the service
// names (`other_trial_0`, ...) are `other_trials`, where that is not given. The collections that
// a rule wants saved stand beside the wrapped configuration, as `CollectionConfigurations`, and mean what
// they mean in a hook configuration (`hook_json.h`).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/settings/actions_json.h"

namespace traindbg::settings {

struct RuleConfiguration {
    std::string name;  // what its user calls it
    std::string rule;
    // What it is called here (model/rule_instance.h): the rule, and where several are of one rule
    // "RULE:NAME".
    std::string instance;
    std::vector<std::pair<std::string, std::string>> parameters;  // as on a command line
    std::vector<RequestedAction> actions;                         // when it fires
    std::string hook;  // a hook configuration with the collections that it wants saved; empty: none
    std::string
        set_aside;  // why it judges nothing here, though it is one of the original's; empty: it judges
};

// `name` is what messages call the file. kInvalidArgument names what is wrong, such as two configurations of
// a rule that have no names of their own. That the rules and parameters exist is not looked at, and the
// collections are not, either.
[[nodiscard]] base::Result<std::vector<RuleConfiguration>> parse_rules_json(std::string_view text,
                                                                            const std::string& name);

}  // namespace traindbg::settings
