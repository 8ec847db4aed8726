#include "traindbg/options/watch_settings.h"

#include <algorithm>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/options/run_options.h"

namespace traindbg::options {
namespace {

using base::Result;
using rules::RuleChoice;

// The rules of the call with the file's parameters, where the call does not set them itself.
Result<std::vector<RuleChoice>> completed(const std::vector<RuleChoice>& given, const RuleOptions& file) {
    std::vector<RuleChoice> names = given;
    for (RuleChoice& choice : names) choice.parameters.clear();
    TRAINDBG_ASSIGN_OR_RETURN(std::vector<RuleChoice> choices, file.choices(std::move(names)));
    for (std::size_t i = 0; i < choices.size(); ++i)
        for (const auto& [name, value] : given[i].parameters) choices[i].parameters[name] = value;
    return choices;
}

}  // namespace

Result<WatchSettings> settings_for_watch(const SettingsFile& file, const WatchArguments& arguments) {
    SettingsFile open = file;
    std::erase_if(open.settings.options, [&](const settings::Setting& setting) {
        const auto& given = arguments.options;
        return (arguments.rules && (setting.name == "rules" || setting.name == "no-rule")) ||
               std::find(given.begin(), given.end(), setting.name) != given.end();
    });
    OptionSet set("watch");
    RunOptions options;
    options.declare(set);
    if (arguments.every != 0)
        TRAINDBG_RETURN_IF_ERROR(
            set.apply({{"every", {base::format("{}", arguments.every)}, "traindbg.watch"}}));
    TRAINDBG_RETURN_IF_ERROR(apply_file(open, set));

    WatchSettings out;
    out.path = base::printable(file.path);
    for (const settings::Setting& setting : open.settings.options)
        if (set.is_of_program(setting.name)) out.left_out.push_back(setting.name);
    for (const auto& [option, value] :
         {std::pair("--on-finding", &options.on_finding), std::pair("--act-at", &options.act_at)})
        if (!value->empty()) out.supervisor.insert(out.supervisor.end(), {option, *value});
    if (options.dry_run) out.supervisor.emplace_back("--dry-run");
    const std::vector<std::string> notify = options.notify.words();
    out.supervisor.insert(out.supervisor.end(), notify.begin(), notify.end());

    std::vector<RuleChoice> choices;
    if (arguments.rules) {
        TRAINDBG_ASSIGN_OR_RETURN(choices, completed(*arguments.rules, options.rules));
    } else {
        TRAINDBG_ASSIGN_OR_RETURN(choices, options.rules.choices());
    }
    if (arguments.rules || options.rules.any() || !file.settings.rule_settings.empty()) out.rules = choices;

    CaptureOptions& capture = options.capture;
    capture.given = arguments.collections;
    TRAINDBG_ASSIGN_OR_RETURN(capture.of_rules, options.rules.collections());
    TRAINDBG_ASSIGN_OR_RETURN(out.plan, capture.config(choices));
    TRAINDBG_RETURN_IF_ERROR(options.store.apply(out.plan));
    out.plan.corrections = options.corrections.corrections(options.on_finding, options.dry_run);
    TRAINDBG_ASSIGN_OR_RETURN(out.form, capture.form());
    out.every = capture.every;
    out.names_something = !capture.collect.empty() || !capture.raw.empty() || !capture.histograms.empty() ||
                          !out.plan.collections.empty();
    return out;
}

}  // namespace traindbg::options
