#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"

namespace traindbg::cli {
namespace {

struct Row {
    std::string name;
    std::string path;
    model::RunMeta meta;
    RunState state = RunState::kCrashed;
    std::int64_t duration_nanos = -1;  // -1: not known
    std::uint64_t train_steps = 0;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> findings;  // nothing: never judged
    std::string trouble;
};

Row describe(const std::string& name, const std::string& path, storage::FileSystem& files) {
    Row row;
    row.name = name;
    row.path = path;
    auto run = read::Run::open(path, files);
    if (run.is_ok()) {
        row.meta = (*run)->meta();
        row.train_steps = (*run)->steps(model::Mode::kTrain).size();
        row.bytes = (*run)->totals().bytes;
        row.state = state_of_run(path, !(*run)->workers().empty() && (*run)->is_complete(), files);
        const auto end = (*run)->end();
        if (end) row.duration_nanos = end->wall_nanos - row.meta.started_wall_nanos;
        else if (row.state == RunState::kRunning || row.state == RunState::kWaiting)
            row.duration_nanos = base::wall_nanos() - row.meta.started_wall_nanos;
    } else {
        row.trouble = run.status().message();
    }
    if (const auto kept = read_verdict(path, files); kept.is_ok())
        row.findings = static_cast<std::size_t>(
            std::count_if(kept->verdict.findings.begin(), kept->verdict.findings.end(),
                          [](const model::Finding& finding) { return finding.times > 0; }));
    return row;
}

class LsVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_runs(options, runs_);
        options.flag({.names = "--names", .help = "Print the names alone, one a line."}, names_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
    }

    int run(Console& console) override {
        const auto location = RunLocation::of(std::string(), runs_root(runs_));
        if (!location.is_ok()) return fail(console, location.status());
        storage::FileSystem& files = location->files();
        const std::string root = runs_root(runs_);
        if (is_remote(root))
            if (const auto listed = files.list(root);
                !listed.is_ok() && listed.status().code() != base::Code::kNotFound)
                return fail(console, listed.status());
        const std::vector<std::string> names = run_names(root, files);
        if (names_) {
            for (const std::string& name : names) console.out(name + "\n");
            return kExitClean;
        }
        std::vector<Row> rows;
        rows.reserve(names.size());
        for (const std::string& name : names) rows.push_back(describe(name, root + "/" + name, files));
        std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
            return a.meta.started_wall_nanos > b.meta.started_wall_nanos;
        });
        if (json_) print_json(rows, root, console);
        else print_table(rows, root, console);
        return kExitClean;
    }

  private:
    static void print_json(const std::vector<Row>& rows, const std::string& root, Console& console) {
        model::Json list = model::Json::array();
        for (const Row& row : rows)
            list.push_back(
                {{"name", base::printable(row.name)},
                 {"path", base::printable(row.path)},
                 {"state", to_string(row.state)},
                 {"started_wall_nanos", row.meta.started_wall_nanos},
                 {"duration_nanos", row.duration_nanos < 0 ? model::Json() : model::Json(row.duration_nanos)},
                 {"train_steps", row.train_steps},
                 {"findings", row.findings ? model::Json(*row.findings) : model::Json()},
                 {"bytes", row.bytes},
                 {"trouble",
                  row.trouble.empty() ? model::Json() : model::Json(base::printable(row.trouble))}});
        console.out(
            model::Json{{"schema_version", 1}, {"root", base::printable(root)}, {"runs", std::move(list)}}
                .dump(2) +
            "\n");
    }

    static void print_table(const std::vector<Row>& rows, const std::string& root, Console& console) {
        if (rows.empty()) {
            console.error(base::format("no runs in {}; record one with traindbg run -- python train.py\n",
                                       base::printable(root)));
            return;
        }
        const bool colour = console.out_colour();
        std::size_t width = 4;
        for (const Row& row : rows) width = std::max(width, row.name.size());
        console.out(styled(padded("NAME", width) + "  " + padded("STARTED (UTC)", 19) + "  " +
                               padded("DURATION", 11) + "  " + padded("STEPS", 8, true) + "  " +
                               padded("STATE", 8) + "  " + padded("FINDINGS", 8, true) + "  " +
                               padded("SIZE", 8, true),
                           Style::kBold, colour) +
                    "\n");
        for (const Row& row : rows) {
            std::string started = base::iso_time(row.meta.started_wall_nanos).substr(0, 19);
            std::replace(started.begin(), started.end(), 'T', ' ');
            const bool bad = row.state == RunState::kCrashed || row.state == RunState::kFailed;
            const bool found = row.findings.value_or(0) != 0;
            console.out(base::format(
                "{}  {}  {}  {:>8}  {}  {}  {}\n", padded(row.name, width), padded(started, 19),
                padded(row.duration_nanos < 0 ? "-" : base::human_duration(row.duration_nanos), 11),
                row.train_steps,
                padded(styled(to_string(row.state), bad ? Style::kRed : Style::kPlain, colour), 8),
                padded(styled(row.findings ? std::to_string(*row.findings) : "-",
                              found ? Style::kYellow : Style::kPlain, colour),
                       8, true),
                padded(base::human_bytes(row.bytes), 8, true)));
        }
        for (const Row& row : rows)
            if (!row.trouble.empty()) console.warn(row.trouble);
    }

    std::string runs_;
    bool names_ = false;
    bool json_ = false;
};

}  // namespace

VerbEntry ls_verb() {
    return {.name = "ls",
            .summary = "List the runs.",
            .usage = "[options]",
            .about =
                "Lists the runs under the runs root, newest first. A state is waiting (no model seen yet), "
                "running, ended, stopped (by a rule), failed (exit code above 0) or crashed (killed, or gone "
                "without a word).",
            .examples = "  traindbg ls\n  traindbg ls --runs /data/runs --json\n",
            .make = []() -> std::unique_ptr<Verb> { return std::make_unique<LsVerb>(); }};
}

}  // namespace traindbg::cli
