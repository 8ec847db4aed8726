#include <unistd.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/bootstrap.h"
#include "traindbg/cli/damage.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/name_filter.h"
#include "traindbg/cli/process.h"
#include "traindbg/cli/progress_line.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/step_range.h"
#include "traindbg/cli/verb.h"
#include "traindbg/exchange/export_format.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"
#include "traindbg/tables/table_reader.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Result;
using base::Status;
using exchange::ExportRequest;
using exchange::ExportResult;

constexpr std::uint64_t kEveryWorker = UINT64_MAX;

std::vector<std::string> format_names() {
    std::vector<std::string> names;
    for (const exchange::ExportFormat& format : exchange::all_formats()) names.emplace_back(format.name);
    return names;
}

std::vector<std::string> table_names() {
    std::vector<std::string> names;
    for (const tables::TableInfo& table : tables::all_tables()) names.emplace_back(table.name);
    names.emplace_back(exchange::kWholeTensors);
    return names;
}

// The interpreter of the environment that this program is installed in, else the one in PATH.
std::string find_python() {
    const std::string beside = executable_directory() + "/python3";
    return ::access(beside.c_str(), X_OK) == 0 ? beside : std::string("python3");
}

class ExportVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.text({.names = "--format",
                      .placeholder = "FORMAT",
                      .help = "What to write: " + base::join(format_names(), ", ") + ".",
                      .choices = format_names()},
                     format_);
        options.text({.names = "-o,--to",
                      .placeholder = "PATH",
                      .help = "Where to; - is standard output (csv and jsonl).",
                      .completes = Completes::kFile},
                     to_);
        options.flag({.names = "--force", .help = "Replace what an earlier export left at PATH."}, force_);
        options.flag({.names = "--json", .help = "Print a summary as JSON."}, json_);
        declare_runs(options, runs_);
        options.group("Selection");
        options.texts({.names = "--table",
                       .placeholder = "NAME[,NAME...]",
                       .help = "Which tables (" + base::join(table_names(), ", ") +
                               "); each format has its own "
                               "first choice.",
                       .choices = {}},
                      tables_, true);
        options.text({.names = "--name", .placeholder = "REGEX", .help = "Tensors with this in their names."},
                     name_);
        options.texts({.names = "--collection",
                       .placeholder = "NAME[,NAME...]",
                       .help = "Tensors in one of these collections.",
                       .completes = Completes::kCollection},
                      collections_, true);
        options.text({.names = "--mode",
                      .placeholder = "MODE",
                      .help = "Steps of this mode only.",
                      .choices = {"train", "eval", "predict", "global"}},
                     mode_);
        options.text({.names = "--steps",
                      .placeholder = "A:B",
                      .help = "Steps from A up to, not with, B; either may be left out."},
                     steps_);
        options.count({.names = "--worker", .placeholder = "N", .help = "What worker N recorded only."},
                      worker_);
        options.texts({.names = "--statistic",
                       .placeholder = "NAME[,NAME...]",
                       .help = "These statistics only (min, max, mean, std, l1, l2, count, nan, ...)."},
                      statistics_, true);
    }

    int run(Console& console) override {
        const auto location = RunLocation::of(run_, runs_root(runs_));
        if (!location.is_ok()) return fail(console, location.status());
        storage::FileSystem& files = location->files();
        if (format_.empty())
            return fail(console, {Code::kInvalidArgument, base::format("--format: say which of {}",
                                                                       base::join(format_names(), ", "))});
        if (json_ && to_ == "-")
            return fail(console,
                        {Code::kInvalidArgument, "--json, --to -: both want standard output; choose one"});
        const auto range = parse_step_range(steps_);
        if (!range.is_ok()) return fail(console, range.status());
        auto name = NameFilter::make(name_);
        if (!name.is_ok()) return fail(console, {name.status().code(), "--name: " + name.status().message()});
        const auto path = resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());

        ExportRequest request;
        request.run = *path;
        request.files = &files;
        request.to = to_;
        request.tables = tables_;
        request.overwrite = force_;
        request.selection.collections = collections_;
        request.selection.mode = model::parse_mode(mode_);
        request.selection.first_step = range->first;
        request.selection.end_step = range->end;
        request.selection.statistics = statistics_;
        if (worker_ != kEveryWorker) {
            if (const Status status = need_worker(*path, files); !status.is_ok())
                return fail(console, status);
            request.selection.worker = static_cast<model::WorkerId>(worker_);
        }
        if (!name_.empty()) {
            const auto filter = std::make_shared<const NameFilter>(std::move(name).value());
            request.selection.name = [filter](std::string_view tensor) { return filter->matches(tensor); };
        }
        ProgressLine progress(console, "exporting", ProgressLine::Unit::kSteps);
        request.progress = [&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); };
        request.parquet = [&](const ExportRequest& asked) { return write_parquet(asked); };
        const auto result = exchange::export_run(format_, std::move(request));
        progress.clear();
        if (!result.is_ok()) return fail(console, result.status());
        for (const std::string& note : result->notes) console.warn(note);
        warn_of_damage(console, *path, result->damage);
        if (json_) print_json(*path, *result, console);
        else if (to_ != "-")
            console.error(base::format("{}: {} {}, {}\n", base::printable(to_), result->items, items_word(),
                                       base::human_bytes(result->bytes)));
        return kExitClean;
    }

  private:
    [[nodiscard]] std::string_view items_word() const {
        for (const exchange::ExportFormat& row : exchange::all_formats())
            if (row.name == format_) return row.items;
        return "items";
    }
    [[nodiscard]] Status need_worker(const std::string& path, storage::FileSystem& files) const;
    [[nodiscard]] Result<ExportResult> write_parquet(const ExportRequest& request) const;

    void print_json(const std::string& path, const ExportResult& result, Console& console) const {
        model::Json notes = model::Json::array();
        for (const std::string& note : result.notes) notes.push_back(base::printable(note));
        console.out(model::Json{{"schema_version", 1},
                                {"run", base::printable(path)},
                                {"format", format_},
                                {"to", base::printable(to_)},
                                {"items", result.items},
                                {"bytes", result.bytes},
                                {"files", result.files},
                                {"notes", std::move(notes)},
                                {"damage", damage_json(result.damage)}}
                        .dump(2) +
                    "\n");
    }

    std::string run_;
    std::string runs_;
    std::string format_;
    std::string to_;
    bool force_ = false;
    bool json_ = false;
    std::vector<std::string> tables_;
    std::string name_;
    std::vector<std::string> collections_;
    std::string mode_;
    std::string steps_;
    std::uint64_t worker_ = kEveryWorker;
    std::vector<std::string> statistics_;
};

Status ExportVerb::need_worker(const std::string& path, storage::FileSystem& files) const {
    const auto run = read::Run::open(path, files);
    if (!run.is_ok()) return run.status();
    const std::vector<model::WorkerId> workers = (*run)->workers();
    for (const model::WorkerId worker : workers)
        if (worker == worker_) return Status::ok();
    return {Code::kNotFound,
            base::format("--worker: worker {} has recorded nothing in {}; there are {}: 0 to {}", worker_,
                         base::printable(path), workers.size(), workers.empty() ? 0 : workers.back())};
}

// Python reads the table from us, through its Arrow stream, and pyarrow writes the file.
Result<ExportResult> ExportVerb::write_parquet(const ExportRequest& request) const {
    model::Json asked = {{"run", request.run},
                         {"program", executable()},  // which reads runs in buckets
                         {"to", request.to},
                         {"table", request.tables.front()},
                         {"overwrite", request.overwrite},
                         {"collection", request.selection.collections},
                         {"statistics", request.selection.statistics},
                         {"first_step", request.selection.first_step},
                         {"end_step", request.selection.end_step}};
    if (request.selection.mode) asked["mode"] = model::to_string(*request.selection.mode);
    if (request.selection.worker) asked["worker"] = *request.selection.worker;
    if (request.selection.name) {
        // Matched here, so that a pattern means the same in every format.
        model::Json names = model::Json::array();
        const auto run = read::Run::open(request.run, *request.files);
        if (!run.is_ok()) return run.status();
        for (const std::string& tensor : (*run)->tensor_names())
            if (request.selection.name(tensor)) names.push_back(tensor);
        asked["names"] = std::move(names);
    }
    const std::string python = find_python();
    const Captured done = run_and_capture({python, "-m", "traindbg.export_parquet",
                                           asked.dump(-1, ' ', false, model::Json::error_handler_t::replace)},
                                          {}, std::chrono::hours(24 * 20));
    const model::Json answer =
        model::Json::parse(done.output.begin(), done.output.end(), nullptr, /*allow_exceptions=*/false);
    if (answer.is_object() && answer.contains("error") && answer["error"].is_string())
        return Status(
            answer.value("code", "") == "already_exists" ? Code::kAlreadyExists : Code::kInvalidArgument,
            answer["error"].get<std::string>());
    if (done.exit_code != 0 || !answer.is_object())
        return Status(
            Code::kUnsupported,
            base::format("--format parquet: {} could not write it; install traindbg and pyarrow into "
                         "the environment of that Python: python -m pip install pyarrow",
                         base::printable(python)));
    ExportResult result;
    result.items = answer.value("rows", std::uint64_t{0});
    result.bytes = answer.value("bytes", std::uint64_t{0});
    result.files = 1;
    if (const auto damage = answer.find("damage"); damage != answer.end() && damage->is_array())
        for (const model::Json& place : *damage)
            if (place.is_object())
                result.damage.push_back({place.value("file", ""), place.value("offset", std::uint64_t{0}),
                                         place.value("bytes", std::uint64_t{0}), place.value("what", ""),
                                         place.value("tail", false), place.value("newer", false)});
    return result;
}

}  // namespace

VerbEntry export_verb() {
    return {
        .name = "export",
        .summary = "Write a run, or a part of it, in a format of other tools.",
        .usage = "[options] RUN --format FORMAT --to PATH",
        .about =
            "Writes tables (csv, jsonl, parquet), arrays (npz, safetensors) or a TensorBoard log. What is at "
            "PATH already is not touched without --force; a new file appears there when it is whole. A run "
            "that is still growing is exported as far as it is there. What is damaged is left out and named "
            "on standard error.",
        .examples =
            "  traindbg export last --format csv --table scalars --to - | head\n"
            "  traindbg export last --format parquet --table statistics --to run.parquet\n"
            "  traindbg export last --format npz --name 'fc1.weight$' --steps 100:200 --to fc1.npz\n"
            "  traindbg export last --format tensorboard --to logs/last && tensorboard --logdir logs\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<ExportVerb>(); }};
}

}  // namespace traindbg::cli
