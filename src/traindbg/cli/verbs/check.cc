#include <algorithm>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/custom_rules.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/judging.h"
#include "traindbg/cli/other_runs.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/cli/worker_gaps_json.h"
#include "traindbg/compat/smdebug_run.h"
#include "traindbg/model/json.h"
#include "traindbg/options/rule_options.h"
#include "traindbg/options/run_options.h"
#include "traindbg/report/report.h"

namespace traindbg::cli {
namespace {

class CheckVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.text({.names = "--fail-on",
                      .placeholder = "SEVERITY",
                      .help = "Exit with 1 when a rule fired at this severity or above (default warning).",
                      .choices = options::fail_on_words()},
                     fail_on_);
        options.text(
            {.names = "--format",
             .placeholder = "FORM",
             .help = "What to print: text (the default), json, sarif for code scanning, junit for CI.",
             .choices = {"text", "json", "sarif", "junit"}},
            format_);
        options.flag({.names = "--json", .help = "Print JSON: --format json."}, json_);
        options.flag({.names = "--explain",
                      .help = "Say of each finding what stands behind it: numbers, fix, why it matters, "
                              "what looks alike."},
                     explain_);
        declare_runs(options, runs_);
        rules_.declare(options);
    }

    int run(Console& console) override {
        const auto location = RunLocation::of(run_, runs_root(runs_));
        if (!location.is_ok()) return fail(console, location.status());
        storage::FileSystem& files = location->files();
        open_other_runs_below(runs_);
        const auto fail_on = parse_fail_on(fail_on_);
        if (!fail_on.is_ok()) return fail(console, fail_on.status());
        if (const base::Status status = load_custom_rules(rules_.custom); !status.is_ok())
            return fail(console, status);
        // Wrong rule names are told whether or not the run is there.
        if (const auto tried = rules_.choices(); !tried.is_ok()) return fail(console, tried.status());
        for (const std::string& text : rules_.set_aside()) console.warn(text);
        const bool is_smdebug = compat::SmdebugRun::is_one(run_, files);
        const auto path = is_smdebug ? base::Result<std::string>(absolute_path(run_))
                                     : resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());
        std::vector<std::string> unknown;
        auto choices = rules_.choices(rules_of_run(*path, files, &unknown));
        if (!choices.is_ok()) return fail(console, choices.status());
        Unseen unseen;
        const auto verdict = judge_run(*path, *choices, files, &unseen, Spreading::of(rules_, runs_),
                                       [&](const std::string& what) { console.warn(what); });
        if (!verdict.is_ok()) return fail(console, verdict.status());

        const int code = exit_code_of_check(*verdict, *fail_on);
        const std::vector<const model::RuleInfo*> rules = rule_infos();
        if (format_ == "sarif" || format_ == "junit") {
            // A run of the original's client has no description of ours.
            const auto meta =
                is_smdebug ? base::Result<model::RunMeta>(described(*path)) : read_run_meta(*path, files);
            if (!meta.is_ok()) return fail(console, meta.status());
            console.out(format_ == "sarif" ? report::sarif_log(*meta, *verdict, rules)
                                           : report::junit_xml(*meta, *verdict, *fail_on));
        } else if (json_ || format_ == "json") {
            model::Json json = {{"schema_version", 1},
                                {"run", base::printable(*path)},
                                {"exit_code", code},
                                {"damaged_places", unseen.damaged_places}};
            put_worker_gaps(json, unseen.workers);
            json.update(model::to_json(*verdict));
            console.out(json.dump(2) + "\n");
        } else {
            std::string text =
                explain_
                    ? report::terminal_explained(*verdict, rules, console.out_colour(), console.out_columns())
                    : report::terminal_verdict(*verdict, console.out_colour(), console.out_columns());
            if (!text.empty() && text.back() != '\n') text += '\n';
            console.out(text);
        }
        if (rules_.only.empty() && !unknown.empty())
            console.warn(
                base::format("{}: was also judged by {}, which is not here: name its file with --rule-python "
                             "or --rule-plugin",
                             base::printable(*path), base::printable(base::join(unknown, ", "))));
        const std::size_t damaged = unseen.damaged_places;
        if (damaged != 0)
            console.warn(base::format(
                "{}: damage in {} was skipped, what is whole was judged; traindbg verify "
                "names it",
                base::printable(*path), damaged == 1 ? "1 place" : base::format("{} places", damaged)));
        for (const std::string& line : unseen.workers.in_words())
            console.warn(base::format("{}: {}", base::printable(*path), line));
        if (code == kExitUsage)
            console.warn(base::format("{}: no rule had anything to judge; the reasons stand with each rule",
                                      base::printable(*path)));
        return code;
    }

  private:
    static std::vector<const model::RuleInfo*> rule_infos() {
        std::vector<const model::RuleInfo*> infos;
        for (const rules::RuleEntry& entry : rules::builtin_rules()) infos.push_back(entry.info);
        for (const rules::RuleEntry& entry : rules::custom_rules()) infos.push_back(entry.info);
        return infos;
    }
    static model::RunMeta described(const std::string& run) {
        model::RunMeta meta;
        meta.run_id = run.substr(run.find_last_of('/') + 1);
        return meta;
    }

    std::string run_;
    std::string runs_;
    std::string fail_on_ = "warning";
    std::string format_ = "text";
    bool json_ = false;
    bool explain_ = false;
    options::RuleOptions rules_;
};

}  // namespace

VerbEntry check_verb() {
    return {
        .name = "check",
        .summary = "Judge a recorded run again, with the same or other rules.",
        .usage = "[options] RUN",
        .about =
            "Shows every step of a recorded run to the rules. With no options they are those by which the "
            "run was judged while it was recorded, and the findings are the same. Exits with 0 when "
            "nothing fired, 1 when a rule fired at or above --fail-on, 2 when no rule had anything to "
            "judge. RUN may also be a directory that the SageMaker Debugger client wrote.",
        .examples =
            "  traindbg check last\n"
            "  traindbg check last --rules vanishing_gradient,exploding_gradient --fail-on error\n"
            "  traindbg check last --explain\n"
            "  traindbg check last --processes 4\n"
            "  traindbg check last --format sarif > traindbg.sarif\n"
            "  traindbg check traindbg-runs/20261120-213045-train --json\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<CheckVerb>(); }};
}

}  // namespace traindbg::cli
