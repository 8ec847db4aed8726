#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/judging.h"
#include "traindbg/cli/report_file.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

class ReportVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.text({.names = "-o,--output",
                      .placeholder = "FILE",
                      .help = "Where to write it (default: report.html in the run's directory).",
                      .completes = Completes::kFile},
                     output_);
        options.flag({.names = "--json", .help = "Print where it is as JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        const auto location = RunLocation::of(run_, runs_root(runs_));
        if (!location.is_ok()) return fail(console, location.status());
        storage::FileSystem& files = location->files();
        const auto path = resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());
        auto run = read::Run::open(*path, files);
        if (!run.is_ok()) return fail(console, run.status());
        // Judged again: the steps are there, and what was kept may be of a supervisor that died.
        const auto verdict = judge_run(*path, rules_of_run(*path, files), files);
        if (!verdict.is_ok()) return fail(console, verdict.status());
        const std::string output = !output_.empty()   ? absolute_path(output_)
                                   : is_remote(*path) ? absolute_path(base_name(*path) + ".html")
                                                      : storage::RunLayout{*path}.report_html();
        if (const base::Status written = write_report(**run, *verdict, output, storage::posix_file_system());
            !written.is_ok())
            return fail(console, {written.code(), written.message() + "; choose another place with -o FILE"});
        if (json_)
            console.out(
                nlohmann::ordered_json{{"schema_version", 1}, {"report", base::printable(output)}}.dump(2) +
                "\n");
        else console.out(base::printable(output) + "\n");
        return kExitClean;
    }

  private:
    std::string run_;
    std::string output_;
    std::string runs_;
    bool json_ = false;
};

}  // namespace

VerbEntry report_verb() {
    return {.name = "report",
            .summary = "Write the HTML report of a run, recorded or still running.",
            .usage = "[options] RUN",
            .about =
                "Writes one HTML file that opens without network: findings with their evidence, likely "
                "causes, curves, the state of every layer, what was not checked. Prints its path: "
                "report.html in the "
                "run's directory, or NAME.html here when the run lies in a bucket.",
            .examples = "  traindbg report last\n  traindbg report last -o report.html\n",
            .make = []() -> std::unique_ptr<Verb> { return std::make_unique<ReportVerb>(); }};
}

}  // namespace traindbg::cli
