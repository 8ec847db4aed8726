#include <nlohmann/json.hpp>
#include <optional>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/json.h"
#include "traindbg/options/store_options.h"
#include "traindbg/seal/retention.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::printable;
using base::Result;
using base::Status;
using model::Json;

// When the recording of a run began. Any error: it is no run, or nobody knows.
Result<std::int64_t> started(const std::string& run, storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(const base::ByteBuffer bytes,
                              storage::read_whole(files, storage::RunLayout{run}.run_json(), 1 << 20));
    TRAINDBG_ASSIGN_OR_RETURN(
        const model::RunMeta meta,
        model::run_meta_from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    return meta.started_wall_nanos;
}

class GcVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.texts({.names = "RUN",
                       .placeholder = "RUN",
                       .help = "Runs' directories or names, or last; several may be given.",
                       .completes = Completes::kRun,
                       .positional = true,
                       .required = true,
                       .repeatable = true},
                      names_, false);
        retention_.declare(options);
        options.text({.names = "--older-than",
                      .placeholder = "AGE",
                      .help = "Only runs whose recording began longer ago, as in 30d or 12h."},
                     older_than_);
        options.flag({.names = "-n,--dry-run", .help = "Say what would be removed, and remove nothing."},
                     dry_run_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        model::Retention retention;
        retention.quota_bytes = 0;
        if (const Status status = retention_.apply(retention); !status.is_ok()) return fail(console, status);
        if (retention == model::Retention{.quota_bytes = 0})
            return fail(console,
                        {Code::kInvalidArgument,
                         "gc: says nothing about what may go; give --keep-last, --keep-tensors or --quota"});
        std::optional<std::int64_t> age;
        if (!older_than_.empty()) {
            age = base::parse_duration(older_than_);
            if (!age)
                return fail(console, {Code::kInvalidArgument,
                                      base::format("--older-than: '{}' is no age; write it as 30d or 12h",
                                                   printable(older_than_))});
        }
        storage::FileSystem& files = storage::posix_file_system();
        std::vector<std::string> paths;
        for (const std::string& name : names_) {
            auto path = resolve_run(name, runs_root(runs_), files);
            if (!path.is_ok()) return fail(console, path.status());
            paths.push_back(std::move(path).value());
        }
        bool all_good = true;
        Json list = Json::array();
        for (const std::string& path : paths) {
            const Result<std::int64_t> began = started(path, files);
            if (!began) {
                console.warn(began.status().message());
                all_good = false;
                continue;
            }
            if (age && base::wall_nanos() - *began < *age) continue;
            const auto report = seal::collect_run(files, path, retention, dry_run_);
            if (!report.is_ok()) return fail(console, report.status());
            if (json_) list.push_back(to_json(path, *report));
            else print_text(path, *report, console);
            for (const std::string& problem : report->problems) console.warn(problem);
            all_good = all_good && report->problems.empty();
        }
        if (json_)
            console.out(
                Json{{"schema_version", 1}, {"dry_run", dry_run_}, {"runs", std::move(list)}}.dump(2) + "\n");
        return all_good ? kExitClean : kExitFired;
    }

  private:
    static Json to_json(const std::string& path, const seal::CollectReport& report) {
        Json removals = Json::array();
        for (const seal::Removal& removal : report.removals)
            removals.push_back({{"path", printable(removal.path)},
                                {"bytes", removal.bytes},
                                {"why", printable(removal.why)}});
        Json problems = Json::array();
        for (const std::string& problem : report.problems) problems.push_back(printable(problem));
        return {{"path", printable(path)},         {"bytes_freed", report.bytes_freed},
                {"bytes_left", report.bytes_left}, {"steps_removed", report.steps_removed},
                {"removals", std::move(removals)}, {"workers_alive", report.workers_alive},
                {"problems", std::move(problems)}};
    }

    void print_text(const std::string& path, const seal::CollectReport& report, Console& console) const {
        for (const seal::Removal& removal : report.removals)
            console.out(base::format("{}  {}  {}\n", padded(base::human_bytes(removal.bytes), 9, true),
                                     printable(removal.path), printable(removal.why)));
        for (const model::WorkerId worker : report.workers_alive)
            console.out(
                base::format("{}: worker {} is being recorded: left alone\n", printable(path), worker));
        console.out(base::format("{}: {} {}, {} left\n", printable(path),
                                 base::human_bytes(report.bytes_freed), dry_run_ ? "would be freed" : "freed",
                                 base::human_bytes(report.bytes_left)));
    }

    std::vector<std::string> names_;
    options::RetentionOptions retention_;
    std::string older_than_;
    std::string runs_;
    bool dry_run_ = false;
    bool json_ = false;
};

}  // namespace

VerbEntry gc_verb() {
    return {
        .name = "gc",
        .summary = "Remove what is old from runs, or say what would go.",
        .usage = "[options] RUN...",
        .about =
            "Thins or removes training steps that are older than the last so many, whole tensors of old "
            "steps, and, over a quota, the oldest files. Losses, metrics and statistics of the steps that "
            "stay are untouched, and so is everything that is not a file of a run, that is damaged, or "
            "that a living process writes. What was removed stands in the run: see traindbg show.",
        .examples =
            "  traindbg gc last --keep-last 10000 --thin 100 --dry-run\n"
            "  traindbg gc run-a run-b --keep-tensors 50 --older-than 30d\n"
            "  traindbg gc last --quota 2GiB\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<GcVerb>(); }};
}

}  // namespace traindbg::cli
