#include "traindbg/cli/rule_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/name_filter.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
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

Status apply_setting(const std::string& setting, std::vector<RuleChoice>& choices) {
    const std::size_t equals = setting.find('=');
    const std::size_t dot = setting.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals)
        return {Code::kInvalidArgument,
                base::format("--rule: '{}' is not NAME.PARAMETER=VALUE, as in vanishing_gradient.ratio=1e-4; "
                             "traindbg rules explain NAME lists the parameters",
                             base::printable(setting))};
    const std::string name = setting.substr(0, dot);
    const std::string parameter = setting.substr(dot + 1, equals - dot - 1);
    const std::string_view text = std::string_view(setting).substr(equals + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
        return {Code::kInvalidArgument,
                base::format("--rule: {}.{}: '{}' is not a number", base::printable(name),
                             base::printable(parameter), base::printable(text))};
    TRAINDBG_RETURN_IF_ERROR(need_rule("--rule", name));
    const auto chosen = std::find_if(choices.begin(), choices.end(),
                                     [&](const RuleChoice& choice) { return choice.name == name; });
    if (chosen == choices.end())
        return {
            Code::kInvalidArgument,
            base::format("--rule: {} is set but not enabled; add it to --rules or drop the setting", name)};
    chosen->parameters[parameter] = value;
    const auto entry = rules::find_rule(name);
    const auto completed = rules::complete_parameters(*(*entry)->info, chosen->parameters);
    return completed.is_ok() ? Status::ok() : in_option("--rule", completed.status());
}

}  // namespace

void RuleOptions::declare(OptionSet& options) {
    options.group("Rules");
    options.texts({.names = "--rules",
                   .placeholder = "NAME[,NAME...]",
                   .help = "Judge by these rules only (default: all of `traindbg rules list`).",
                   .completes = Completes::kRule},
                  only, true);
    options.texts({.names = "--no-rule",
                   .placeholder = "NAME[,NAME...]",
                   .help = "Leave a rule out.",
                   .completes = Completes::kRule},
                  without, true);
    options.texts({.names = "--rule",
                   .placeholder = "NAME.PARAMETER=VALUE",
                   .help = "Set a parameter of a rule; `traindbg rules explain NAME` lists them."},
                  settings, false);
}

Result<std::vector<RuleChoice>> RuleOptions::choices(std::vector<RuleChoice> all) const {
    std::vector<RuleChoice> chosen;
    if (only.empty()) {
        chosen = std::move(all);
    } else {
        std::set<std::string> seen;
        for (const std::string& name : only) {
            TRAINDBG_RETURN_IF_ERROR(need_rule("--rules", name));
            if (!seen.insert(name).second) continue;
            const auto known = std::find_if(all.begin(), all.end(),
                                            [&](const RuleChoice& choice) { return choice.name == name; });
            chosen.push_back(known != all.end() ? *known : RuleChoice{name, {}});
        }
    }
    for (const std::string& name : without) {
        TRAINDBG_RETURN_IF_ERROR(need_rule("--no-rule", name));
        std::erase_if(chosen, [&](const RuleChoice& choice) { return choice.name == name; });
    }
    for (const std::string& setting : settings) TRAINDBG_RETURN_IF_ERROR(apply_setting(setting, chosen));
    return chosen;
}

void CaptureOptions::declare(OptionSet& options) {
    options.group("Capture");
    options.texts(
        {.names = "--collect",
         .placeholder = "COLLECTION[,...]",
         .help = "Also record the statistics of a collection (weights, gradients, activations, ...).",
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
    options.texts({.names = "--collection",
                   .placeholder = "NAME=REGEX",
                   .help = "Make a collection of the tensors whose names match; recorded as by --collect."},
                  collections, false);
    options.count(
        {.names = "--every",
         .placeholder = "N",
         .help = "Record what --collect, --raw, --histograms and --collection ask for at every N-th step "
                 "(default 10)."},
        every, 1);
    options.text(
        {.names = "--compiled",
         .placeholder = "CHOICE",
         .help = "What a model under torch.compile does at a step that needs inputs, outputs or "
                 "activations: eager runs that step uncompiled, skip leaves it alone and does not capture "
                 "them; auto (default) is eager for what you ask for, skip for what rules need.",
         .choices = {"auto", "skip", "eager"}},
        compiled);
}

Result<model::CaptureConfig> CaptureOptions::config(const std::vector<RuleChoice>& choices) const {
    model::CaptureConfig config;
    std::vector<std::string> known = model::builtin_collections();
    std::vector<std::string> asked = collect;
    for (const std::string& text : collections) {
        const std::size_t equals = text.find('=');
        const std::string name = text.substr(0, equals);
        if (equals == std::string::npos || equals + 1 == text.size() || !storage::is_valid_run_id(name))
            return Status(
                Code::kInvalidArgument,
                base::format("--collection: '{}' is not NAME=REGEX, as in heads=attention.*weight; a name "
                             "has letters, digits, '.', '_' and '-' only",
                             base::printable(text)));
        const std::string pattern = text.substr(equals + 1);
        if (model::role_of_collection(name))
            return Status(Code::kInvalidArgument,
                          base::format("--collection: {} is a built-in collection; take another name", name));
        if (Status status = check_pattern(pattern); !status.is_ok()) return in_option("--collection", status);
        const auto same = std::find_if(config.collections.begin(), config.collections.end(),
                                       [&](const model::CollectionSpec& spec) { return spec.name == name; });
        if (same != config.collections.end()) {
            same->include.push_back(pattern);
            continue;
        }
        config.collections.push_back({name, {pattern}, {}});
        known.push_back(name);
        const auto is_in = [&name](const std::vector<std::string>& names) {
            return std::find(names.begin(), names.end(), name) != names.end();
        };
        if (!is_in(raw) && !is_in(histograms)) asked.push_back(name);
    }
    TRAINDBG_ASSIGN_OR_RETURN(config.requirements, rules::requirements_of(choices));
    if (const auto choice = model::parse_compiled_models(compiled)) config.compiled = *choice;

    const auto add = [&](std::string_view option, const std::vector<std::string>& names, model::What what) {
        for (const std::string& name : names) {
            if (std::find(known.begin(), known.end(), name) == known.end())
                return Status(
                    Code::kInvalidArgument,
                    base::format("{}: no collection '{}'{}; there are {}", option, base::printable(name),
                                 base::did_you_mean(name, known), base::join(known, ", ")));
            model::Requirement requirement;
            requirement.collection = name;
            requirement.what = what;
            requirement.schedule.every = every;
            requirement.asked_by = "user";
            if (std::find(config.requirements.begin(), config.requirements.end(), requirement) ==
                config.requirements.end())
                config.requirements.push_back(std::move(requirement));
        }
        return Status::ok();
    };
    TRAINDBG_RETURN_IF_ERROR(add("--collect", asked, model::What::kStatistics));
    TRAINDBG_RETURN_IF_ERROR(add("--raw", raw, model::What::kStatistics | model::What::kRaw));
    TRAINDBG_RETURN_IF_ERROR(
        add("--histograms", histograms, model::What::kStatistics | model::What::kHistogram));
    return config;
}

}  // namespace traindbg::cli
