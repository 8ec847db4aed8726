// What the rules need to have captured, and what there is to choose from.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <nlohmann/json.hpp>

#include "bindings.h"
#include "errors.h"
#include "rule_choices.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/model/json.h"
#include "traindbg/rules/rule.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace traindbg::bindings {

void bind_rules(nb::module_& module) {
    module.def(
        "rules",
        [] {
            model::Json out = model::Json::array();
            for (const rules::RuleEntry& entry : rules::all_rules()) {
                out.push_back(model::to_json(*entry.info));
                out.back()["on_by_default"] = rules::is_on_by_default(entry.info->name);
            }
            return out.dump();
        },
        "All rules, as JSON.");
    module.def("default_rules", [] {
        std::vector<std::string> names;
        for (const rules::RuleChoice& choice : rules::default_rules()) names.push_back(choice.name);
        return names;
    });
    module.def(
        "plan_for_rules",
        [](const RuleChoices& choices) {
            model::CaptureConfig config;
            config.requirements = value_or_raise(rules::requirements_of(from_python(choices)));
            return model::to_json(config).dump();
        },
        "choices"_a, "The plan (JSON, as in plan.json) for rules given as (name, parameters).");
    module.def(
        "check_plan",
        [](const std::string& json) {
            auto config = value_or_raise(model::capture_config_from_json(json));
            raise_if_error(capture::CapturePlan::make(std::move(config)).status());
        },
        "json"_a, "Raises InvalidArgument when `json` is not a valid plan.");
    module.def("builtin_collections", [] { return model::builtin_collections(); });
}

}  // namespace traindbg::bindings
