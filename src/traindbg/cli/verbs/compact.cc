#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/json.h"
#include "traindbg/seal/sealer.h"

namespace traindbg::cli {
namespace {

using base::printable;
using model::Json;

class CompactVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        storage::FileSystem& files = storage::posix_file_system();
        const auto path = resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());
        const bool shows_progress = console.error_is_terminal() && !json_;
        const auto report = seal::compact_run(files, *path, [&](std::uint64_t done, std::uint64_t all) {
            if (shows_progress)
                console.error(base::format("\rpart {} of {}{}", done, all, done == all ? "\n" : ""));
            return true;
        });
        if (!report.is_ok()) return fail(console, report.status());
        if (json_) print_json(*path, *report, console);
        else print_text(*report, console);
        for (const std::string& problem : report->problems) console.warn(problem);
        return report->problems.empty() ? kExitClean : kExitFired;
    }

  private:
    static void print_json(const std::string& path, const seal::CompactReport& report, Console& console) {
        Json problems = Json::array();
        for (const std::string& problem : report.problems) problems.push_back(printable(problem));
        console.out(Json{{"schema_version", 1},
                         {"path", printable(path)},
                         {"parts_sealed", report.parts_sealed},
                         {"steps", report.steps},
                         {"bytes_before", report.bytes_before},
                         {"bytes_after", report.bytes_after},
                         {"logs_removed", report.logs_removed},
                         {"leftovers_removed", report.leftovers_removed},
                         {"workers_alive", report.workers_alive},
                         {"problems", std::move(problems)}}
                        .dump(2) +
                    "\n");
    }

    static void print_text(const seal::CompactReport& report, Console& console) {
        if (report.parts_sealed == 0 && report.logs_removed == 0 && report.leftovers_removed == 0 &&
            report.workers_alive.empty() && report.problems.empty())
            console.out("nothing to do: every part is sealed\n");
        if (report.parts_sealed != 0)
            console.out(base::format("sealed {} part{} with {} steps: {} became {}\n", report.parts_sealed,
                                     report.parts_sealed == 1 ? "" : "s", report.steps,
                                     base::human_bytes(report.bytes_before),
                                     base::human_bytes(report.bytes_after)));
        const std::uint64_t removed = report.logs_removed + report.leftovers_removed;
        if (removed != 0)
            console.out(
                base::format("removed {} file{} that a crash left\n", removed, removed == 1 ? "" : "s"));
        for (const model::WorkerId worker : report.workers_alive)
            console.out(base::format("worker {} is being recorded: left alone\n", worker));
    }

    std::string run_;
    std::string runs_;
    bool json_ = false;
};

}  // namespace

VerbEntry compact_verb() {
    return {.name = "compact",
            .summary = "Seal what a training that was cut off left behind.",
            .usage = "[options] RUN",
            .about =
                "A training seals what it records as it goes, and the rest at its end. One that was killed "
                "leaves logs: this seals them, so that the run is smaller and quicker to read. What is "
                "damaged, and what a living process writes, stays as it is.",
            .examples = "  traindbg compact last\n  traindbg compact runs/20261120-213045-train --json\n",
            .make = []() -> std::unique_ptr<Verb> { return std::make_unique<CompactVerb>(); }};
}

}  // namespace traindbg::cli
