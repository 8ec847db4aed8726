#include "traindbg/rules/rule_page.h"

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/what_words.h"

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

}  // namespace

std::string rule_page_markdown(const RuleEntry& entry) {
    const model::RuleInfo& info = *entry.info;
    std::string page = base::format("# {}\n\n`{}`, at most {}. {}\n\n", info.title, info.name,
                                    model::to_string(info.severity), info.summary);
    page += base::format("## When it fires\n\n{}\n\n", info.when);
    page += base::format("## Why it matters\n\n{}\n\n", info.why);
    page += base::format("## What to change\n\n{}\n\n", info.fix);
    page += base::format("## What looks alike and is healthy\n\n{}\n\n", info.healthy);
    if (!info.parameters.empty()) {
        page +=
            "## Parameters\n\n| name | default | range | unit | meaning |\n| --- | --- | --- | --- | --- |\n";
        for (const model::ParameterInfo& parameter : info.parameters)
            page +=
                base::format("| `{}` | {} | {} | {} | {} |\n", parameter.name, in_table(parameter.fallback),
                             model::range_in_words(parameter), parameter.unit, parameter.meaning);
        const model::ParameterInfo& first = info.parameters.front();
        page += base::format("\nSet one with `--rule {}.{}={}`.\n\n", info.name, first.name,
                             model::to_text(first.fallback));
    }
    page += "## What it needs captured\n\n| collection | mode | what | when |\n| --- | --- | --- | --- |\n";
    for (const model::Requirement& need : entry.needs(defaults_of(info)))
        page += base::format("| {} | {} | {} | {} |\n", need.collection, model::to_string(need.mode),
                             model::what_in_words(need.what), schedule_text(need.schedule));
    page += base::format("\n{}\n", info.cost);
    if (!info.original.empty()) page += base::format("\nKin in SageMaker Debugger: `{}`.\n", info.original);
    if (!info.source.empty()) page += base::format("\nSource: {}\n", info.source);
    return page;
}

std::string rule_index_markdown() {
    std::string page =
        "# Rules\n\n"
        "A rule is one way in which a training goes wrong, and how to see it. All are on by default. These\n"
        "pages are made from what the rules say about themselves; `traindbg rules explain NAME` prints the\n"
        "same text. To add a rule, run `python tools/new_rule.py NAME`.\n\n"
        "| rule | at most | what is wrong when it fires |\n| --- | --- | --- |\n";
    for (const RuleEntry& entry : builtin_rules())
        page += base::format("| [{0}]({0}.md) | {1} | {2} |\n", entry.info->name,
                             model::to_string(entry.info->severity), entry.info->summary);
    page +=
        "\n## Severities\n\n"
        "| severity | meaning |\n| --- | --- |\n"
        "| error | the training cannot succeed as it is; stopping it saves time |\n"
        "| warning | something is wrong that costs quality; look at it |\n"
        "| info | unusual, but the training learns: a note |\n";
    return page;
}

}  // namespace traindbg::rules
