#include "traindbg/rules/rule_page.h"

#include <algorithm>
#include <set>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/what_words.h"
#include "traindbg/rules/hold.h"

namespace traindbg::rules {
namespace {

std::string schedule_text(const model::Schedule& schedule) {
    std::string text = schedule.every == 1   ? "every step"
                       : schedule.every == 0 ? "no step by interval"
                                             : base::format("every {} steps", schedule.every);
    if (schedule.every != 1 && schedule.dense_until > 0)
        text = base::format("the first {} steps, then {}", schedule.dense_until, text);
    if (schedule.start > 0) text += base::format(", from step {}", schedule.start);
    if (schedule.end != UINT64_MAX) text += base::format(", up to step {}", schedule.end - 1);
    return text;
}

// A value in a cell of a table: patterns have bars and stars in them.
std::string in_table(const model::ParameterValue& value) {
    if (value.text() == nullptr) return model::to_text(value);
    std::string cell;
    for (const char c : model::to_text(value)) cell += c == '|' ? "\\|" : std::string(1, c);
    return "`" + cell + "`";
}

// In Markdown a list begins after an empty line.
std::string with_list(std::string text) {
    const std::size_t first = text.find("\n- ");
    if (first != std::string::npos) text.insert(first, "\n");
    return text;
}

bool is_kin(const model::RuleInfo& ours, const std::string& original) {
    const std::vector<std::string> names = split_texts(ours.original);
    return std::find(names.begin(), names.end(), original) != names.end();
}

}  // namespace

std::string rule_page_markdown(const RuleEntry& entry) {
    const model::RuleInfo& info = *entry.info;
    const base::Result<std::vector<model::Requirement>> asked = entry.needs(defaults_of(info));
    const std::vector<model::Requirement> needs = asked.is_ok() ? *asked : std::vector<model::Requirement>();
    std::string page = base::format("# {}\n\n`{}`, at most {}. {}\n\n", info.title, info.name,
                                    model::to_string(info.severity), info.summary);
    page += base::format("## When it fires\n\n{}\n\n", with_list(info.when));
    page += base::format("## Why it matters\n\n{}\n\n", info.why);
    page += base::format("## What to change\n\n{}\n\n", info.fix);
    page += base::format("## What looks alike and is healthy\n\n{}\n\n", info.healthy);
    page += "## Parameters\n\n";
    if (!info.parameters.empty()) {
        page += "| name | default | range | unit | meaning |\n| --- | --- | --- | --- | --- |\n";
        for (const model::ParameterInfo& parameter : info.parameters)
            page +=
                base::format("| `{}` | {} | {} | {} | {} |\n", parameter.name, in_table(parameter.fallback),
                             model::range_in_words(parameter), parameter.unit, parameter.meaning);
        const model::ParameterInfo& first = info.parameters.front();
        page += base::format("\nSet one with `--rule {}.{}={}`. ", info.name, first.name,
                             model::to_text(first.fallback));
    }
    if (is_hold(info, kHoldParameter))
        page += base::format("`--rule {}.{}=20`, {}.", info.name, kHoldParameter, kHoldInWords);
    page += "\n\n";
    page += "## What it needs captured\n\n";
    if (!needs.empty()) page += "| collection | mode | what | when |\n| --- | --- | --- | --- |\n";
    std::set<std::string> told;  // several parts of a rule may need the same
    for (const model::Requirement& need : needs) {
        std::string line =
            base::format("| {} | {} | {} | {} |\n", need.collection, model::to_string(need.mode),
                         model::what_in_words(need.what), schedule_text(need.schedule));
        if (told.insert(line).second) page += line;
    }
    page += base::format("{}{}\n", needs.empty() ? "" : "\n", info.cost);
    if (!info.readings.empty())
        page += base::format("\n## How the original's documents are read\n\n{}\n", info.readings);
    else if (!info.original.empty())
        page += base::format("\nKin in SageMaker Debugger: `{}`.\n",
                             base::join(split_texts(info.original), "`, `"));
    if (!info.source.empty()) page += base::format("\nSource: {}\n", info.source);
    return page;
}

std::string rule_index_markdown() {
    std::string page =
        "# Rules\n\nA rule is one way in which a training goes wrong, and how to see it. All are on by "
        "default. These\npages are made from what the rules say about themselves; `traindbg rules explain "
        "NAME` prints the\nsame text. For a rule of your own: `traindbg rules new NAME` "
        "([how](../custom-rules.md)).\n\nRules of the "
        "SageMaker Debugger service have [compatible ones](compatible/README.md), which are off "
        "by\ndefault.\n\n| rule | at most | what is wrong when it fires |\n| --- | --- | --- |\n";
    for (const RuleEntry& entry : builtin_rules())
        page += base::format("| [{0}]({0}.md) | {1} | {2} |\n", entry.info->name,
                             model::to_string(entry.info->severity), entry.info->summary);
    page +=
        "\n## Severities\n\n| severity | meaning |\n| --- | --- |\n| error | the training cannot succeed as "
        "it is; stopping it saves time |\n| warning | something is wrong that costs quality; look at it |\n| "
        "info | unusual, but the training learns: a note |\n\n## States\n\nA finding is *pending* while its "
        "fault has not lasted for the rule's hold, then it is *firing*, and *resolved* when the\nrule says "
        "that it is over. The hold is 0 unless given: `--hold 20` (steps) or `--hold 30s` (by the times at "
        "which steps\nwere recorded) for all rules, `--rule NAME.hold=20` for one, `hold` at the top or in "
        "`[rule.NAME]` of a settings file.\n\nA fault lasts from the step at which its rule fires until the "
        "rule says that it is over. A rule that is silent says\nnothing: some look at every step and some "
        "now and then, and some fire once while the fault stays. What was seen once and\ncan never be over, "
        "as labels out of range, therefore fires after the hold. What a rule says of a whole run at its end, "
        "or\nbecause no step comes any more, does not wait.\n\nA pending finding is recorded and shown; "
        "nothing is done about it, it counts for no exit code and for no likely cause. One\nthat is over "
        "before it fired is left out. A fault that comes back continues its finding, with its first step and "
        "the\nnumber of `times` that it fired; it is told again, and each action decides whether it is "
        "[taken again](../actions.md).\n";
    return page;
}

std::string compatible_index_markdown() {
    std::string page =
        "# Rules compatible with SageMaker Debugger\n\nA configuration of a built-in rule of SageMaker "
        "Debugger means the same here: these rules have the\nnames, parameters, defaults and conditions that "
        "the original documents. Its rules were never open, so\neach page says how the documents are read "
        "where they say too little or two things. They are compatible\nwith it, and are not it.\n\nNone is "
        "on by default. Choose one by setting a parameter of it, or by its name alone:\n\n```sh\ntraindbg "
        "run --rule VanishingGradient.threshold=1e-6 --rule DeadRelu -- python train.py\ntraindbg run "
        "--rules-json rules.json -- python train.py    # DebugRuleConfigurations\ntraindbg check "
        "/opt/ml/output/tensors --rules LossNotDecreasing,Overfit\n```\n\nTheir thresholds do not know the "
        "training: [ours](../README.md) ask first whether it learns, and fire\non fewer healthy "
        "trainings.\n\n| rule | of ours | what is wrong when it fires |\n| --- | --- | --- |\n";
    for (const RuleEntry& entry : compatible_rules()) {
        const std::string& name = entry.info->name;
        std::string ours;
        for (const RuleEntry& other : builtin_rules())
            if (is_kin(*other.info, name))
                ours += base::format("{0}[{1}](../{1}.md)", ours.empty() ? "" : ", ", other.info->name);
        page += base::format("| [{0}]({0}.md) | {1} | {2} |\n", name, ours, entry.info->summary);
    }
    page +=
        "\n## What all of them have in common\n\n- A finding is a warning, one for a rule, from the first "
        "step at which the condition holds until it\n  holds no more in any tensor that the finding is "
        "about.\n- What they need is recorded as the original attaches it: at every 500th step. What is "
        "recorded beside\n  that, because another rule or you ask for it, is judged as well.\n- Patterns are "
        "searched in our names of tensors and in those that the original gives\n  (`gradient/Net_fc1.weight` "
        "is `gradient/fc1.weight` here, `relu1_output_0` is `activation/relu1`).\n- Lists are separated by "
        "commas, so that no pattern of a list has one.\n- With gradient accumulation the first micro-batch "
        "is judged.\n\n## What is left out\n\n- `base_trial`, which the service sets, is not looked at. "
        "`other_trial_0` and the like are\n  taken for `other_trials`, where that is not given.\n- "
        "`CreateXgboostReport`, which judges nothing, and the rules of the profiler: they are left out, "
        "which "
        "a warning\n  tells, and the others are run.\n";
    return page;
}

}  // namespace traindbg::rules
