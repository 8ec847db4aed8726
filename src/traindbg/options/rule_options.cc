#include "traindbg/options/rule_options.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/model/due_steps.h"
#include "traindbg/model/rule_instance.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/options/configuration_file.h"
#include "traindbg/rules/hold.h"
#include "traindbg/settings/hook_json.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::options {
namespace {

using base::Code;
using base::Result;
using base::Status;
using rules::RuleChoice;

Status in_option(std::string_view option, const Status& status) {
    return {Code::kInvalidArgument, base::format("{}: {}", option, status.message())};
}

Status need_rule(std::string_view option, const std::string& name) {
    const auto found = rules::find_rule(name);
    return found.is_ok() ? Status::ok() : in_option(option, found.status());
}

// What becomes of a setting of a rule that was not chosen.
enum class Unchosen {
    kError,
    kLeaveAlone,
    kChoose,
};

// `option`: where it stands. `name`: of a rule or of an instance of one; a rule's name stands for all
// instances of it. `given`: what it is set to; none: it is named alone. `unchosen` says what is done about a
// rule that is not among `choices`.
Status apply_setting(std::string_view option, const std::string& name, const rules::Parameters& given,
                     Unchosen (*unchosen)(const RuleOptions& options, const std::string& rule, bool is_name),
                     const RuleOptions& options, std::vector<RuleChoice>& choices) {
    TRAINDBG_RETURN_IF_ERROR(need_rule(option, name));
    // Looked at even where it counts nothing.
    const auto entry = rules::find_rule(name);
    const auto completed = rules::complete_parameters(*(*entry)->info, given);
    if (!completed.is_ok()) return in_option(option, completed.status());
    const auto is_meant = [&](const RuleChoice& choice) { return model::is_instance_of(choice.name, name); };
    if (std::none_of(choices.begin(), choices.end(), is_meant)) {
        switch (unchosen(options, name, given.empty())) {
            case Unchosen::kLeaveAlone: return Status::ok();
            case Unchosen::kError:
                return {Code::kInvalidArgument,
                        base::format("{}: {} is set but not enabled; add it to --rules or drop the setting",
                                     option, name)};
            case Unchosen::kChoose: break;
        }
        choices.push_back({name, {}});
    }
    for (RuleChoice& choice : choices)
        for (const auto& [parameter, value] : given)
            if (is_meant(choice))
                choice.parameters[parameter] =
                    rules::is_hold(*(*entry)->info, parameter) ? value : completed->value(parameter);
    return Status::ok();
}

// `setting`: NAME or NAME.PARAMETER=VALUE.
Status apply_text(std::string_view option, const std::string& setting,
                  Unchosen (*unchosen)(const RuleOptions& options, const std::string& rule, bool is_name),
                  const RuleOptions& options, std::vector<RuleChoice>& choices) {
    const std::size_t equals = setting.find('=');
    const std::size_t dot = setting.rfind('.', equals);  // what an instance is called may have others
    const bool is_name = equals == std::string::npos && dot == std::string::npos;
    if (!is_name && (equals == std::string::npos || dot == std::string::npos))
        return {Code::kInvalidArgument,
                base::format("{}: '{}' is not NAME.PARAMETER=VALUE, as in vanishing_gradient.ratio=1e-4; "
                             "traindbg rules explain NAME lists the parameters",
                             option, base::printable(setting))};
    rules::Parameters given;
    if (!is_name) given[setting.substr(dot + 1, equals - dot - 1)] = setting.substr(equals + 1);
    return apply_setting(option, setting.substr(0, dot), given, unchosen, options, choices);
}

bool is_named(const std::vector<std::string>& names, const std::string& rule) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return model::is_instance_of(rule, name); });
}

// What --hold says counts before what a run was judged by, and after what is said of one rule.
void hold_all(std::vector<RuleChoice>& choices, const std::string& hold, bool anew) {
    if (hold.empty()) return;
    for (RuleChoice& choice : choices) {
        const auto entry = rules::find_rule(choice.name);
        const std::string name(rules::kHoldParameter);
        if (!entry.is_ok() || !rules::is_hold(*(*entry)->info, name)) continue;
        if (anew || !choice.parameters.contains(name)) choice.parameters[name] = hold;
    }
}

// On the command line, a rule that is off by default is chosen by a setting of it, and any by its name alone.
Unchosen by_option(const RuleOptions& options, const std::string& rule, bool is_name) {
    if (is_named(options.without, rule)) return Unchosen::kError;
    if (is_name) return Unchosen::kChoose;
    return options.only.empty() && !rules::is_on_by_default(rule) ? Unchosen::kChoose : Unchosen::kError;
}

// In a file, where `--rules` on the command line does not say which there are.
Unchosen by_file(const RuleOptions& options, const std::string& rule, bool) {
    const bool chooses =
        options.only.empty() && !is_named(options.without, rule) && !rules::is_on_by_default(rule);
    return chooses ? Unchosen::kChoose : Unchosen::kLeaveAlone;
}

Unchosen by_configuration(const RuleOptions& options, const std::string& rule, bool) {
    return is_named(options.without, rule) ? Unchosen::kLeaveAlone : Unchosen::kChoose;
}

Result<settings::Settings> read_hook_config(std::string_view option, const std::string& path) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::string text, read_configuration(option, path));
    return settings::parse_hook_json(text, "hook configuration " + base::printable(path));
}

Status check_known(std::string_view place, const std::vector<std::string>& names,
                   const std::vector<std::string>& known) {
    for (const std::string& name : names)
        if (std::find(known.begin(), known.end(), name) == known.end())
            return {Code::kInvalidArgument,
                    base::format("{}: no collection '{}'{}; there are {}", place, base::printable(name),
                                 base::did_you_mean(name, known), base::join(known, ", "))};
    return Status::ok();
}

Status check_collection(const std::string& place, const model::CollectionSpec& spec) {
    if (model::role_of_collection(spec.name))
        return {Code::kInvalidArgument,
                base::format("{}: collection: {} is a built-in collection; take another name", place,
                             base::printable(spec.name))};
    for (const auto* patterns : {&spec.include, &spec.exclude})
        for (const std::string& pattern : *patterns)
            if (Status status = capture::check_pattern(pattern); !status.is_ok())
                return in_option(place + ": collection " + base::printable(spec.name), status);
    return Status::ok();
}

}  // namespace

void CustomRuleOptions::declare(OptionSet& options) {
    options.texts(
        {.names = "--rule-python",
         .placeholder = "FILE[:CLASS]",
         .help = "Also judge by your own rules in this Python file, or by those of an installed package "
                 "that names them as an entry point of traindbg.rules. Each runs in a process of its own.",
         .completes = Completes::kFile,
         .of_program = true},
        python, false);
    options.texts({.names = "--rule-plugin",
                   .placeholder = "FILE",
                   .help = "Also judge by your own rules in this shared library (traindbg/plugin.h).",
                   .completes = Completes::kFile,
                   .of_program = true},
                  plugins, false);
    options.number(
        {.names = "--rule-timeout",
         .placeholder = "SECONDS",
         .help = "How long a rule in Python may take for one step, and to begin (default 5); one that takes "
                 "longer is ended, and was not checked.",
         .of_program = true},
        timeout, 0.01, 3600);
    options.text({.names = "--rule-memory",
                  .placeholder = "SIZE",
                  .help = "How much memory a rule in Python may have (default 1GiB; 0: no limit).",
                  .of_program = true},
                 memory);
}

Result<std::uint64_t> CustomRuleOptions::memory_bytes() const {
    if (memory.empty()) return std::uint64_t{1} << 30;
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;  // Python alone takes some of it
    const std::optional<std::uint64_t> bytes = base::parse_bytes(memory);
    if (!bytes || (*bytes != 0 && *bytes < kLeast))
        return Status(Code::kInvalidArgument,
                      base::format("--rule-memory: '{}' is no size of 64MiB or more, as 2GiB",
                                   base::printable(memory)));
    return *bytes;
}

void RuleOptions::declare(OptionSet& options, bool settable) {
    declared_in = &options;
    options.group("Rules", settable);
    if (settable) options.on_settings([this](const settings::Settings& read) { file = read; });
    options.texts({.names = "--rules",
                   .placeholder = "NAME[,NAME...]",
                   .help = "Judge by these rules only, in place of those that are on by default.",
                   .completes = Completes::kRule},
                  only, true);
    options.texts({.names = "--no-rule",
                   .placeholder = "NAME[,NAME...]",
                   .help = "Leave a rule out.",
                   .completes = Completes::kRule},
                  without, true);
    options.texts(
        {.names = "--rule",
         .placeholder = "NAME[.PARAMETER=VALUE]",
         .help = "Set a parameter of a rule; `traindbg rules explain NAME` lists them. A rule that is "
                 "off by default is chosen by that, or by its name alone."},
        settings, false);
    options.text(
        {.names = "--hold",
         .placeholder = "STEPS|TIME",
         .help = "A finding is pending, and nothing is done about it, until its fault has lasted for so "
                 "many steps, or so long as 30s (default 0). --rule NAME.hold=20: of one rule."},
        hold);
    options.text(
        {.names = "--rules-json",
         .placeholder = "FILE",
         .help = "Also judge by the built-in rules in these rule configurations of SageMaker Debugger "
                 "(DebugRuleConfigurations); their actions are taken, too.",
         .completes = Completes::kFile},
        rules_json);
    custom.declare(options);
    options.count(
        {.names = "--processes",
         .placeholder = "N",
         .help = "Spread the rules over so many processes (default 1: all in the program itself). The "
                 "findings are the same.",
         .of_program = true},
        processes, 1);
    options.number(
        {.names = "--process-timeout",
         .placeholder = "SECONDS",
         .help = "How long one of them may say nothing (default 60); one that is silent for longer is "
                 "ended, and its rules were not checked.",
         .of_program = true},
        process_timeout, 0.1, 86400);
}

Result<std::vector<RuleChoice>> RuleOptions::choices(std::vector<RuleChoice> all) const {
    std::vector<RuleChoice> chosen;
    if (only.empty()) {
        chosen = std::move(all);
        for (const rules::RuleEntry& entry : rules::custom_rules())
            if (std::none_of(chosen.begin(), chosen.end(),
                             [&](const RuleChoice& choice) { return choice.name == entry.info->name; }))
                chosen.push_back({entry.info->name, {}});
    } else {
        std::set<std::string> seen;
        for (const std::string& name : only) {
            TRAINDBG_RETURN_IF_ERROR(need_rule(place("rules"), name));
            if (!seen.insert(name).second) continue;
            const std::size_t before = chosen.size();
            std::copy_if(all.begin(), all.end(), std::back_inserter(chosen), [&](const RuleChoice& choice) {
                return model::is_instance_of(choice.name, name) &&
                       (choice.name == name || seen.insert(choice.name).second);
            });
            if (chosen.size() == before) chosen.push_back({name, {}});
        }
    }
    for (const std::string& name : without) {
        TRAINDBG_RETURN_IF_ERROR(need_rule(place("no-rule"), name));
        std::erase_if(chosen,
                      [&](const RuleChoice& choice) { return model::is_instance_of(choice.name, name); });
    }
    if (!hold.empty())
        if (const Status status = rules::parse_hold(hold).status(); !status.is_ok())
            return in_option(place("hold"), status);
    hold_all(chosen, hold, /*anew=*/true);
    for (const std::string& setting : file.rule_settings)
        TRAINDBG_RETURN_IF_ERROR(apply_text(file.name + ": rule", setting, &by_file, *this, chosen));
    TRAINDBG_RETURN_IF_ERROR(add_configurations(chosen));
    for (const std::string& setting : settings)
        TRAINDBG_RETURN_IF_ERROR(apply_text(place("rule"), setting, &by_option, *this, chosen));
    hold_all(chosen, hold, /*anew=*/false);
    return chosen;
}

Result<std::vector<settings::RuleConfiguration>> RuleOptions::configurations() const {
    if (rules_json.empty()) return std::vector<settings::RuleConfiguration>();
    TRAINDBG_ASSIGN_OR_RETURN(const std::string text, read_configuration(place("rules-json"), rules_json));
    return settings::parse_rules_json(text, "rule configuration " + base::printable(rules_json));
}

base::Status RuleOptions::add_configurations(std::vector<RuleChoice>& chosen) const {
    TRAINDBG_ASSIGN_OR_RETURN(const auto configurations, this->configurations());
    const std::string name = "rule configuration " + base::printable(rules_json);
    for (const settings::RuleConfiguration& configuration : configurations) {
        if (!configuration.set_aside.empty()) continue;
        const std::string where =
            configuration.name.empty() ? name : name + ": " + base::printable(configuration.name);
        TRAINDBG_RETURN_IF_ERROR(
            apply_setting(where, configuration.instance, {}, &by_configuration, *this, chosen));
        for (const auto& [parameter, value] : configuration.parameters)
            TRAINDBG_RETURN_IF_ERROR(apply_setting(where, configuration.instance, {{parameter, value}},
                                                   &by_configuration, *this, chosen));
    }
    return Status::ok();
}

std::vector<std::string> RuleOptions::set_aside() const {
    std::vector<std::string> texts;
    const auto configurations = this->configurations();
    if (!configurations.is_ok()) return texts;  // said where the rules are chosen
    for (const settings::RuleConfiguration& configuration : *configurations)
        if (!configuration.set_aside.empty())
            texts.push_back(base::format("rule configuration {}: {} is left out: {}",
                                         base::printable(rules_json), base::printable(configuration.rule),
                                         configuration.set_aside));
    return texts;
}

Result<std::vector<settings::Settings>> RuleOptions::collections() const {
    std::vector<settings::Settings> all;
    TRAINDBG_ASSIGN_OR_RETURN(const auto configurations, this->configurations());
    for (const settings::RuleConfiguration& configuration : configurations) {
        if (configuration.hook.empty() || is_named(without, configuration.instance)) continue;
        TRAINDBG_ASSIGN_OR_RETURN(
            settings::Settings read,
            settings::parse_hook_json(configuration.hook,
                                      base::format("rule configuration {}: {}", base::printable(rules_json),
                                                   configuration.instance)));
        for (model::Requirement& capture : read.captures) capture.asked_by = configuration.instance;
        all.push_back(std::move(read));
    }
    return all;
}

void CaptureOptions::declare(OptionSet& options, bool of_running) {
    declared_in = &options;
    options.group("Capture", true);
    options.on_settings([this](const settings::Settings& read) { file = read; });
    options.texts(
        {.names = "--collect",
         .placeholder = "COLLECTION[,...]",
         .help =
             "Also record the statistics of a collection (weights, gradients, activations, ...). 'outputs' "
             "are those of modules without others inside, 'block_outputs' those of the others.",
         .completes = Completes::kCollection},
        collect, true);
    options.texts({.names = "--raw",
                   .placeholder = "COLLECTION[,...]",
                   .help = "Also record whole tensors. Large: every value of every tensor in it.",
                   .completes = Completes::kCollection},
                  raw, true);
    options.texts({.names = "--histograms",
                   .placeholder = "COLLECTION[,...]",
                   .help = "Also record how the values of a collection are distributed.",
                   .completes = Completes::kCollection},
                  histograms, true);
    options.texts(
        {.names = "--collection",
         .placeholder = "NAME=REGEX",
         .help = "Make a collection of the tensors whose names match; recorded as by --collect. Names of "
                 "modules with others inside must be meant alone: ^output/block1$."},
        collections, false);
    options.count(
        {.names = "--every",
         .placeholder = "N",
         .help = "Record what --collect, --raw, --histograms and --collection ask for at every N-th step "
                 "(default 10)."},
        every, 1);
    options.texts({.names = "--at-steps",
                   .placeholder = "STEP[,...]",
                   .help = "... at these steps; alone, at no others."},
                  at_steps, true);
    options.number({.names = "--every-seconds",
                    .placeholder = "SECONDS",
                    .help = "... when so much time has passed since the last such step; alone, only then."},
                   every_seconds, 0.001, 1e9);
    options.count({.names = "--first-step", .placeholder = "STEP", .help = "... never before this step."},
                  first_step);
    options.count({.names = "--end-step", .placeholder = "STEP", .help = "... never at or after this step."},
                  end_step, 1);
    options.text({.names = "--capture-in",
                  .placeholder = "MODE",
                  .help = "... in the steps of training (default), of evaluation, or in every step.",
                  .choices = {"train", "eval", "every"}},
                 mode);
    options.text(
        {.names = "--hook-config",
         .placeholder = "FILE",
         .help = "Also record what this hook configuration of the SageMaker Debugger client asks for.",
         .completes = Completes::kFile},
        hook_config);
    options.text(
        {.names = "--compiled",
         .placeholder = "CHOICE",
         .help = "What a model under torch.compile does at a step that needs inputs, outputs or "
                 "activations: eager runs that step uncompiled, skip leaves it alone and does not capture "
                 "them; auto (default) is eager for what you ask for, skip for what rules need.",
         .choices = {"auto", "skip", "eager"}},
        compiled);
    options.text(
        {.names = "--micro-batches",
         .placeholder = "WHICH",
         .help = "Of several forward passes that share one optimizer step, capture the first one (default) "
                 "or all of them, each under names of its own: loss, loss@2, loss@3.",
         .choices = {"first", "all"}},
        micro_batches);
    options.text({.names = "--budget",
                  .placeholder = "SHARE",
                  .help = "The share of the training's time that capture may take, as 2%; steps at which it "
                          "would take more are left out, and that is told. Losses and metrics are not, nor "
                          "what --at-steps names; 0: no limit. Default: 2% after the first three seconds of "
                          "capture where the default rules' needs are all that is captured, no limit where "
                          "you ask for more."},
                 budget);
    options.flag(
        {.names = "--probe",
         .help = "At a few steps have a child of the process compute the step's batch again, changed in "
                 "part: whether samples of a batch see each other, and positions what comes later. "
                 "The training stays the same bit for bit."},
        probe);
    options.count({.names = "--flight-recorder",
                   .placeholder = "STEPS",
                   .help = "Have the statistics of the last so many steps at hand, and keep them when a rule "
                           "fires, a loss or a weight is not finite, or the training crashes.",
                   .listed = !of_running},
                  flight_steps, 1);
    options.texts({.names = "--flight-collect",
                   .placeholder = "COLLECTION[,...]",
                   .help = "... of these collections (default weights, biases, gradients, inputs, outputs, "
                           "activations).",
                   .completes = Completes::kCollection,
                   .listed = !of_running},
                  flight_collect, true);
    options.texts({.names = "--flight-raw",
                   .placeholder = "COLLECTION[,...]",
                   .help = "... and whole tensors of these.",
                   .completes = Completes::kCollection,
                   .listed = !of_running},
                  flight_raw, true);
}

// "2%", "0.5 %" or "0.02"; 0 is no limit.
Result<std::optional<double>> CaptureOptions::budget_share() const {
    if (budget.empty()) return std::optional<double>();
    double value = 0;
    const char* const end = budget.data() + budget.size();
    const auto [rest, error] = std::from_chars(budget.data(), end, value);
    std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    if (unit == "%") value /= 100;
    if (error != std::errc() || (!unit.empty() && unit != "%") || !(value >= 0 && value < 1))
        return Status(Code::kInvalidArgument,
                      base::format("{}: '{}' is no share from 0 to below 100 %, as 2% or 0.02",
                                   place("budget"), base::printable(budget)));
    return std::optional(value);
}

bool CaptureOptions::has_names() const noexcept {
    return !collect.empty() || !raw.empty() || !histograms.empty() || !collections.empty() ||
           !hook_config.empty() || !file.collections.empty() || !file.captures.empty();
}

bool CaptureOptions::has_schedule() const noexcept {
    return every != 0 || !at_steps.empty() || every_seconds != 0 || first_step != 0 ||
           end_step != UINT64_MAX || !mode.empty();
}

Result<model::Requirement> CaptureOptions::form() const {
    model::Requirement out;
    for (const std::string& text : at_steps) {
        model::StepIndex step = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), step);
        if (error != std::errc() || end != text.data() + text.size())
            return Status(Code::kInvalidArgument, base::format("{}: '{}' is not the number of a step",
                                                               place("at-steps"), base::printable(text)));
        out.steps.push_back(step);
    }
    std::sort(out.steps.begin(), out.steps.end());
    if (end_step <= first_step)
        return Status(Code::kInvalidArgument, base::format("{}: {} is not after --first-step {}",
                                                           place("end-step"), end_step, first_step));
    out.every_ms = static_cast<std::uint64_t>(every_seconds * 1000);
    out.schedule.every = every != 0 ? every : out.steps.empty() && every_seconds == 0 ? 10 : 0;
    out.schedule.start = first_step;
    out.schedule.end = end_step;
    if (mode == "every") out.mode = model::Mode::kGlobal;
    else if (mode == "eval") out.mode = model::Mode::kEval;
    out.asked_by = "user";
    return out;
}

Result<std::string> CaptureOptions::check_schedule() const {
    const bool names_any = !collect.empty() || !raw.empty() || !histograms.empty() || !collections.empty() ||
                           !file.collections.empty();
    if (names_any) {
        TRAINDBG_RETURN_IF_ERROR(check_that_a_step_is_due());
        return std::string();
    }
    std::vector<std::string> places;
    if (every != 0) places.push_back(place("every"));
    if (!at_steps.empty()) places.push_back(place("at-steps"));
    if (every_seconds != 0) places.push_back(place("every-seconds"));
    if (first_step != 0) places.push_back(place("first-step"));
    if (end_step != UINT64_MAX) places.push_back(place("end-step"));
    if (!mode.empty()) places.push_back(place("capture-in"));
    if (places.empty()) return std::string();
    std::string text = base::format(
        "{}: counts nothing, because --collect, --raw, --histograms or --collection must say what is "
        "recorded "
        "then; add one, as --collect weights,gradients",
        base::join(places, ", "));
    const bool is_of_this_call = std::any_of(places.begin(), places.end(),
                                             [](const std::string& each) { return each.starts_with("--"); });
    if (is_of_this_call) return Status(Code::kInvalidArgument, std::move(text));
    return text;
}

Status CaptureOptions::check_that_a_step_is_due() const {
    TRAINDBG_ASSIGN_OR_RETURN(const model::Requirement form, this->form());
    if (model::next_due(form, 0)) return Status::ok();
    std::vector<std::string> said;
    if (first_step != 0) said.push_back(base::format("{} {}", place("first-step"), first_step));
    if (end_step != UINT64_MAX) said.push_back(base::format("{} {}", place("end-step"), end_step));
    if (every != 0) said.push_back(base::format("{} {}", place("every"), every));
    else if (form.schedule.every != 0)
        said.push_back(base::format("--every {} (by default)", form.schedule.every));
    if (!at_steps.empty())
        said.push_back(base::format("{} {}", place("at-steps"), base::printable(base::join(at_steps, ","))));
    std::string steps = base::format("from step {} on", first_step);
    if (end_step != UINT64_MAX) steps += base::format(" and before step {}", end_step);
    std::vector<std::string> none;
    if (form.schedule.every != 0) none.push_back(base::format("no multiple of {}", form.schedule.every));
    if (!at_steps.empty()) none.emplace_back("none of those that are named");
    return {Code::kInvalidArgument, base::format("{}: no step is due: {} there is {}; change one of them",
                                                 base::join(said, ", "), steps, base::join(none, " and "))};
}

Result<model::CaptureConfig> CaptureOptions::config(const std::vector<RuleChoice>& choices) const {
    model::CaptureConfig config;
    std::vector<std::string> known = model::builtin_collections();
    known.insert(known.end(), defined.begin(), defined.end());
    std::vector<std::string> asked = collect;
    for (const std::string& text : collections) {
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        if (equals == std::string::npos || equals + 1 == text.size() || !storage::is_valid_run_id(name))
            return Status(Code::kInvalidArgument,
                          base::format("{}: '{}' is not NAME=REGEX, as in heads=attention.*weight; a name "
                                       "has letters, digits, '.', '_' and '-' only",
                                       place("collection"), base::printable(text)));
        const std::string pattern = text.substr(equals + 1);
        if (model::role_of_collection(name))
            return Status(Code::kInvalidArgument,
                          base::format("{}: {} is a built-in collection; take another name",
                                       place("collection"), name));
        if (Status status = capture::check_pattern(pattern); !status.is_ok())
            return in_option(place("collection"), status);
        const auto same = std::find_if(config.collections.begin(), config.collections.end(),
                                       [&](const model::CollectionSpec& spec) { return spec.name == name; });
        if (same != config.collections.end()) {
            same->include.push_back(pattern);
            continue;
        }
        config.collections.push_back({name, {pattern}, {}});
        const auto is_in = [&name](const std::vector<std::string>& names) {
            return std::find(names.begin(), names.end(), name) != names.end();
        };
        if (!is_in(known)) known.push_back(name);
        if (!is_in(raw) && !is_in(histograms)) asked.push_back(name);
    }
    for (const model::CollectionSpec& spec : given) {
        config.collections.push_back(spec);
        known.push_back(spec.name);
    }
    std::vector<settings::Settings> sources = {file};
    if (!hook_config.empty()) {
        TRAINDBG_ASSIGN_OR_RETURN(settings::Settings hook,
                                  read_hook_config(place("hook-config"), hook_config));
        sources.push_back(std::move(hook));
    }
    sources.insert(sources.end(), of_rules.begin(), of_rules.end());
    std::vector<model::Requirement> captures;
    for (const settings::Settings& source : sources)
        captures.insert(captures.end(), source.captures.begin(), source.captures.end());
    for (const settings::Settings& source : sources)
        for (const model::CollectionSpec& spec : source.collections) {
            TRAINDBG_RETURN_IF_ERROR(check_collection(source.name, spec));
            // The one of the same name that was given on the command line, or by a file before, counts.
            if (std::any_of(config.collections.begin(), config.collections.end(),
                            [&](const model::CollectionSpec& each) { return each.name == spec.name; }))
                continue;
            config.collections.push_back(spec);
            known.push_back(spec.name);
            const auto names_it = [&spec](const auto& names) {
                return std::find(names.begin(), names.end(), spec.name) != names.end();
            };
            const bool is_captured =
                std::any_of(captures.begin(), captures.end(),
                            [&](const model::Requirement& each) { return each.collection == spec.name; });
            if (!is_captured && !names_it(raw) && !names_it(histograms) && !names_it(collect))
                asked.push_back(spec.name);
        }
    TRAINDBG_ASSIGN_OR_RETURN(config.requirements, rules::requirements_of(choices));
    for (const model::Requirement& need : config.requirements)
        TRAINDBG_RETURN_IF_ERROR(
            check_known(base::format("rule {}", need.asked_by), {need.collection}, known));
    for (const settings::Settings& source : sources)
        for (const model::Requirement& capture : source.captures) {
            TRAINDBG_RETURN_IF_ERROR(check_known(source.name + ": capture", {capture.collection}, known));
            config.requirements.push_back(capture);
        }
    if (const auto choice = model::parse_compiled_models(compiled)) config.compiled = *choice;
    if (const auto choice = model::parse_micro_batches(micro_batches)) config.micro_batches = *choice;
    TRAINDBG_ASSIGN_OR_RETURN(const std::optional<double> share, budget_share());
    config.budget = share;
    // The standing limit is of the rules that are on by themselves: who chose others wants them to judge.
    const bool has_chosen = !of_rules.empty() || !rules::custom_rules().empty() ||
                            std::any_of(choices.begin(), choices.end(), [](const RuleChoice& choice) {
                                return !choice.parameters.empty() || !rules::is_on_by_default(choice.name);
                            });
    if (!share && has_chosen) config.budget = 0;
    config.probe = probe;
    if (flight_steps == 0 && (!flight_collect.empty() || !flight_raw.empty()))
        return Status(Code::kInvalidArgument,
                      base::format("{}: needs --flight-recorder STEPS beside it",
                                   place(flight_collect.empty() ? "flight-raw" : "flight-collect")));
    config.flight = {.steps = flight_steps, .collect = flight_collect, .raw = flight_raw};
    TRAINDBG_RETURN_IF_ERROR(check_known(place("flight-collect"), flight_collect, known));
    TRAINDBG_RETURN_IF_ERROR(check_known(place("flight-raw"), flight_raw, known));

    TRAINDBG_ASSIGN_OR_RETURN(const model::Requirement form, this->form());
    const auto add = [&](std::string_view option, const std::vector<std::string>& names, model::What what) {
        TRAINDBG_RETURN_IF_ERROR(check_known(place(option), names, known));
        for (const std::string& name : names) {
            model::Requirement requirement = form;
            requirement.collection = name;
            requirement.what = what;
            if (std::find(config.requirements.begin(), config.requirements.end(), requirement) ==
                config.requirements.end())
                config.requirements.push_back(std::move(requirement));
        }
        return Status::ok();
    };
    TRAINDBG_RETURN_IF_ERROR(add("collect", asked, model::What::kStatistics));
    TRAINDBG_RETURN_IF_ERROR(add("raw", raw, model::What::kStatistics | model::What::kRaw));
    TRAINDBG_RETURN_IF_ERROR(
        add("histograms", histograms, model::What::kStatistics | model::What::kHistogram));
    return config;
}

}  // namespace traindbg::options
