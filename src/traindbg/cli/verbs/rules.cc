#include <algorithm>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/custom_rules.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/json.h"
#include "traindbg/rules/hold.h"
#include "traindbg/rules/rule.h"
#include "traindbg/rules/rule_page.h"

namespace traindbg::cli {
namespace {

class RulesListVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        options.flag({.names = "--names", .help = "Print the names alone, one a line."}, names_);
        custom_.declare(options);
    }

    int run(Console& console) override {
        if (const base::Status status = load_custom_rules(custom_); !status.is_ok())
            return fail(console, status);
        const auto& entries = rules::all_rules();
        if (json_) {
            model::Json list = model::Json::array();
            for (const rules::RuleEntry& entry : entries) {
                list.push_back(model::to_json(*entry.info));
                list.back()["on_by_default"] = rules::is_on_by_default(entry.info->name);
                if (!entry.origin.empty()) list.back()["origin"] = base::printable(entry.origin);
            }
            console.out(model::Json{{"schema_version", 1}, {"rules", std::move(list)}}.dump(2) + "\n");
            return kExitClean;
        }
        std::size_t width = 0;
        for (const rules::RuleEntry& entry : entries) width = std::max(width, entry.info->name.size());
        for (const rules::RuleEntry& entry : entries) {
            const model::RuleInfo& info = *entry.info;
            if (!names_ && &entry == &entries[rules::builtin_rules().size()])
                console.out("\nOff by default, compatible with those of SageMaker Debugger (--rule NAME):\n");
            if (!names_ && !entry.origin.empty() && entry.origin != (&entry - 1)->origin)
                console.out(base::format("\nYour own, of {}:\n", base::printable(entry.origin)));
            if (names_) console.out(info.name + "\n");
            else
                console.out(base::format("{}  {}  {}\n",
                                         padded(styled(info.name, Style::kBold, console.out_colour()), width),
                                         padded(model::to_string(info.severity), 7), info.summary));
        }
        return kExitClean;
    }

  private:
    bool json_ = false;
    bool names_ = false;
    options::CustomRuleOptions custom_;
};

// Lines that begin with "- " are items, and hang.
std::string with_items(std::string_view text, std::size_t columns) {
    constexpr std::string_view kItem = "- ";
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        const std::size_t indent = line.starts_with(kItem) ? kItem.size() : 0;
        out += out.empty() ? "" : "\n";
        out += line.substr(0, indent);
        out += wrapped(line.substr(indent), columns - std::min(columns - 1, indent), indent);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

class RulesExplainVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.text({.names = "NAME",
                      .placeholder = "NAME",
                      .help = "The rule's name.",
                      .completes = Completes::kRule,
                      .positional = true,
                      .required = true},
                     name_);
        options.flag({.names = "--markdown", .help = "Print its page as Markdown."}, markdown_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        custom_.declare(options);
    }

    int run(Console& console) override {
        if (const base::Status status = load_custom_rules(custom_); !status.is_ok())
            return fail(console, status);
        const auto found = rules::find_rule(name_);
        if (!found.is_ok()) return fail(console, found.status());
        const rules::RuleEntry& entry = **found;
        const model::RuleInfo& info = *entry.info;
        if (json_) {
            console.out(model::Json{{"schema_version", 1}, {"rule", model::to_json(info)}}.dump(2) + "\n");
            return kExitClean;
        }
        if (markdown_) {
            console.out(rules::rule_page_markdown(entry));
            return kExitClean;
        }
        const bool colour = console.out_colour();
        const std::size_t columns = console.out_columns();
        std::string text =
            base::format("{} ({}, {})\n\n{}\n", styled(info.title, Style::kBold, colour), info.name,
                         model::to_string(info.severity), wrapped(info.summary, columns, 0));
        const auto section = [&](std::string_view title, const std::string& body) {
            if (!body.empty()) text += base::format("\n{}\n{}\n", styled(title, Style::kBold, colour), body);
        };
        const auto prose = [&](std::string_view title, const std::string& body) {
            section(title, wrapped(body, columns, 0));
        };
        section("Fires when", with_items(info.when, columns));
        prose("Why it matters", info.why);
        prose("What to change", info.fix);
        prose("Healthy trainings that look alike", info.healthy);
        prose("What it needs", info.cost);
        std::string parameters;
        for (const model::ParameterInfo& parameter : info.parameters)
            parameters +=
                base::format("{}--rule {}.{}={}\n    {}", parameters.empty() ? "  " : "\n  ", info.name,
                             parameter.name, model::to_text(parameter.fallback),
                             wrapped(base::format("{} ({}{})", parameter.meaning,
                                                  parameter.unit.empty() ? "" : parameter.unit + ", ",
                                                  model::range_in_words(parameter)),
                                     columns - std::min<std::size_t>(columns - 1, 4), 4));
        section("Parameters, with their defaults", parameters);
        if (rules::is_hold(info, rules::kHoldParameter))
            prose("Hold", base::format("`--rule {}.{}=20`, {}.", info.name, rules::kHoldParameter,
                                       rules::kHoldInWords));
        if (info.readings.empty()) section("Kin in SageMaker Debugger", info.original);
        prose("How the original's documents are read", info.readings);
        prose("Source", info.source);
        console.out(text);
        return kExitClean;
    }

  private:
    std::string name_;
    bool markdown_ = false;
    bool json_ = false;
    options::CustomRuleOptions custom_;
};

}  // namespace

VerbEntry rules_list_verb() {
    return {
        .name = "rules list",
        .summary = "List the rules.",
        .usage = "[options]",
        .about =
            "Lists every rule with the most severe finding that it gives and what is wrong when it fires.",
        .examples =
            "  traindbg rules list\n  traindbg rules list --json\n"
            "  traindbg rules list --rule-python my_rule.py\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<RulesListVerb>(); }};
}

VerbEntry rules_explain_verb() {
    return {.name = "rules explain",
            .summary = "Explain a rule: condition, parameters, why, and what to change.",
            .usage = "[options] NAME",
            .about = "Prints all that there is to know of one rule.",
            .examples =
                "  traindbg rules explain vanishing_gradient\n"
                "  traindbg rules explain vanishing_gradient --markdown\n",
            .make = []() -> std::unique_ptr<Verb> { return std::make_unique<RulesExplainVerb>(); }};
}

}  // namespace traindbg::cli
