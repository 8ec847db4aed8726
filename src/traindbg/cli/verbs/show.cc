#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/damage.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/judging.h"
#include "traindbg/cli/name_filter.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/cli/worker_gaps_json.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"
#include "traindbg/report/capture_notes.h"
#include "traindbg/report/report.h"

namespace traindbg::cli {
namespace {

using base::printable;
using model::Json;

constexpr model::Mode kModes[] = {model::Mode::kTrain, model::Mode::kEval, model::Mode::kPredict,
                                  model::Mode::kGlobal};

// The collections that a tensor is in: its role's, then the user's.
std::vector<std::string> collections_of(const model::TensorInfo& info) {
    std::vector<std::string> names = {std::string(model::collection_of(info.role))};
    names.insert(names.end(), info.collections.begin(), info.collections.end());
    return names;
}

// Every tensor once, by name, as the first worker that has it describes it.
std::vector<model::TensorInfo> all_tensors(const read::Run& run) {
    std::map<std::string, model::TensorInfo> by_name;
    for (const model::WorkerId worker : run.workers())
        for (const model::TensorInfo& info : run.tensors(worker)) by_name.emplace(info.name, info);
    std::vector<model::TensorInfo> tensors;
    for (const std::string& name : run.tensor_names())
        if (const auto found = by_name.find(name); found != by_name.end()) tensors.push_back(found->second);
    return tensors;
}

std::string shape_of(const model::TensorInfo& info) {
    const auto text = [](const std::vector<std::int64_t>& shape) {
        return shape.empty() ? std::string("scalar") : base::format("[{}]", base::join(shape, ", "));
    };
    if (!info.shard) return text(info.shape);
    return base::format("{} {}", text(info.shard->whole_shape), printable(info.shard->placement));
}

// When another plan began to hold in a worker, or why it did not.
struct PlanChange {
    model::WorkerId worker = 0;
    std::uint32_t number = 0;
    std::uint64_t step = 0;
    std::string refused;  // why; empty: it holds from `step` on
};
std::vector<PlanChange> plan_changes(const read::Run& run) {
    std::vector<PlanChange> changes;
    for (const read::RunEvent& event : run.events()) {
        const bool is_refused = event.kind == "plan_refused";
        if (!is_refused && event.kind != "plan_changed") continue;
        const Json json = Json::parse(event.json, nullptr, /*allow_exceptions=*/false);
        PlanChange change{.worker = event.worker, .number = 0, .step = 0, .refused = {}};
        const auto read_number = [&json](const char* key, auto& out) {
            const auto found = json.is_object() ? json.find(key) : json.end();
            if (found != json.end() && found->is_number_unsigned())
                out = found->get<std::remove_reference_t<decltype(out)>>();
        };
        read_number("number", change.number);
        read_number("step", change.step);
        if (is_refused) {
            change.refused = "no reason was given";
            if (json.is_object() && json.contains("reason") && json["reason"].is_string())
                change.refused = json["reason"].get<std::string>();
        }
        changes.push_back(std::move(change));
    }
    return changes;
}

class ShowVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.flag({.names = "--tensors", .help = "List the tensors instead."}, tensors_);
        options.text({.names = "--match",
                      .placeholder = "REGEX",
                      .help = "Of the tensors, those whose name contains a match."},
                     match_);
        options.text({.names = "--collection",
                      .placeholder = "NAME",
                      .help = "Of the tensors, those of this collection.",
                      .completes = Completes::kCollection},
                     collection_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        const auto location = RunLocation::of(run_, runs_root(runs_));
        if (!location.is_ok()) return fail(console, location.status());
        storage::FileSystem& files = location->files();
        auto filter = NameFilter::make(match_);
        if (!filter.is_ok())
            return fail(console, {base::Code::kInvalidArgument, "--match: " + filter.status().message()});
        const auto path = resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());
        auto opened = read::Run::open(*path, files);
        if (!opened.is_ok()) return fail(console, opened.status());
        read::Run& run = **opened;
        if (tensors_ || !match_.empty() || !collection_.empty()) return show_tensors(run, *filter, console);
        return show_run(run, *path, files, console);
    }

  private:
    int show_tensors(const read::Run& run, const NameFilter& filter, Console& console) const {
        std::vector<model::TensorInfo> tensors = all_tensors(run);
        if (!collection_.empty()) {
            std::vector<std::string> known = model::builtin_collections();
            for (const model::TensorInfo& info : tensors)
                for (const std::string& name : info.collections)
                    if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
            if (std::find(known.begin(), known.end(), collection_) == known.end())
                return fail(console,
                            {base::Code::kNotFound,
                             base::format("--collection: this run has no collection '{}'{}; there are {}",
                                          printable(collection_), base::did_you_mean(collection_, known),
                                          base::join(known, ", "))});
        }
        std::erase_if(tensors, [&](const model::TensorInfo& info) {
            const auto names = collections_of(info);
            return !filter.matches(info.name) ||
                   (!collection_.empty() &&
                    std::find(names.begin(), names.end(), collection_) == names.end());
        });
        if (json_) {
            Json list = Json::array();
            for (const model::TensorInfo& info : tensors) {
                Json entry = model::to_json(info);
                entry.erase("id");  // differs between workers
                list.push_back(std::move(entry));
            }
            console.out(Json{{"schema_version", 1}, {"tensors", std::move(list)}}.dump(2) + "\n");
            return kExitClean;
        }
        std::size_t width = 4;
        for (const model::TensorInfo& info : tensors)
            width = std::max(width, display_width(printable(info.name)));
        for (const model::TensorInfo& info : tensors)
            console.out(base::format("{}  {}  {}  {}\n", padded(printable(info.name), width),
                                     padded(printable(base::join(collections_of(info), ",")), 12),
                                     padded(printable(info.module_type), 14), shape_of(info)));
        if (tensors.empty()) console.error("no tensor of this run matches\n");
        return kExitClean;
    }

    int show_run(read::Run& run, const std::string& path, storage::FileSystem& files,
                 Console& console) const {
        const RunState state = state_of_run(path, !run.workers().empty() && run.is_complete(), files);
        model::Verdict verdict;
        bool judged_now = false;
        if (auto kept = read_verdict(path, files); kept.is_ok()) {
            verdict = std::move(kept->verdict);
        } else {
            auto judged = judge_run(path, rules::default_rules(), files);
            if (!judged.is_ok()) return fail(console, judged.status());
            verdict = std::move(judged).value();
            judged_now = true;
        }
        std::map<std::string, std::uint64_t> collections;
        for (const model::TensorInfo& info : all_tensors(run))
            for (const std::string& name : collections_of(info)) ++collections[name];
        if (json_) print_json(run, path, state, collections, verdict, console);
        else print_text(run, path, state, collections, verdict, judged_now, console);
        return kExitClean;
    }

    static void print_json(const read::Run& run, const std::string& path, RunState state,
                           const std::map<std::string, std::uint64_t>& collections,
                           const model::Verdict& verdict, Console& console) {
        const read::RunTotals totals = run.totals();
        Json workers = Json::array();
        for (const model::WorkerId worker : run.workers())
            workers.push_back(model::to_json(run.worker_meta(worker)));
        Json steps = Json::object();
        for (const model::Mode mode : kModes)
            steps[std::string(model::to_string(mode))] = run.steps(mode).size();
        Json plans = Json::array();
        for (const PlanChange& change : plan_changes(run)) {
            Json entry = {{"worker", change.worker}, {"number", change.number}};
            if (change.refused.empty()) entry["step"] = change.step;
            else entry["refused"] = printable(change.refused);
            plans.push_back(std::move(entry));
        }
        const auto end = run.end();
        const auto removed = run.removals();
        Json json = {{"schema_version", 1},
                     {"path", printable(path)},
                     {"state", to_string(state)},
                     {"meta", model::to_json(run.meta())},
                     {"end", end ? model::to_json(*end) : Json()},
                     {"workers", std::move(workers)},
                     {"steps", std::move(steps)},
                     {"tensors", collections},
                     {"totals",
                      {{"steps", totals.steps},
                       {"bytes", totals.bytes},
                       {"step_nanos", totals.step_nanos},
                       {"capture_nanos", totals.capture_nanos},
                       {"steps_dropped", totals.steps_dropped},
                       {"raw_tensors_dropped", totals.raw_tensors_dropped}}},
                     {"plan_changes", std::move(plans)},
                     {"removed", removed ? Json{{"bytes", removed->bytes},
                                                {"steps", removed->steps},
                                                {"last", printable(removed->last)}}
                                         : Json()},
                     {"complete", run.is_complete()},
                     {"damage", damage_json(run.damage())},
                     {"verdict", model::to_json(verdict)}};
        put_worker_gaps(json, run.worker_gaps());
        report::put_capture_notes(json, run);
        console.out(json.dump(2) + "\n");
    }

    static void print_text(const read::Run& run, const std::string& path, RunState state,
                           const std::map<std::string, std::uint64_t>& collections,
                           const model::Verdict& verdict, bool judged_now, Console& console) {
        const bool colour = console.out_colour();
        const auto line = [&](std::string_view label, const std::string& text) {
            console.out(styled(padded(label, 12), Style::kDim, colour) + " " + text + "\n");
        };
        const model::RunMeta& meta = run.meta();
        std::vector<std::string> command;
        for (const std::string& word : meta.command) command.push_back(printable(word));
        const auto end = run.end();
        std::string what = std::string(to_string(state));
        if (end && !end->reason.empty()) what += " (" + printable(end->reason) + ")";
        console.out(
            styled(printable(meta.run_id.empty() ? base_name(path) : meta.run_id), Style::kBold, colour) +
            "\n");
        line("state", what);
        line("path", printable(path));
        if (!command.empty()) line("command", base::join(command, " "));
        if (meta.started_wall_nanos != 0) {
            std::string when = base::iso_time(meta.started_wall_nanos);
            // A clock that was set back meanwhile tells no duration.
            if (end && end->wall_nanos >= meta.started_wall_nanos)
                when += ", for " + base::human_duration(end->wall_nanos - meta.started_wall_nanos);
            line("started", when);
        }
        if (!meta.host.empty()) line("machine", printable(meta.host + ", " + meta.platform));
        for (const model::WorkerId id : run.workers()) {
            const model::WorkerMeta& worker = run.worker_meta(id);
            std::string text = base::format("{}, {} with {} parameters, pid {}", printable(worker.framework),
                                            printable(worker.model_type), worker.parameters, worker.pid);
            for (const model::OptimizerInfo& optimizer : worker.optimizers) {
                text += ", " + printable(optimizer.type);
                std::vector<std::string> settings;
                for (const auto& [name, value] : optimizer.settings)
                    settings.push_back(printable(name) + "=" + base::human_number(value));
                if (!settings.empty()) text += base::format("({})", base::join(settings, ", "));
            }
            line(base::format("worker {}", id), text);
        }
        for (const std::string& gap : run.worker_gaps().in_words()) line("missing", gap);
        std::vector<std::string> steps;
        for (const model::Mode mode : kModes)
            if (const auto recorded = run.steps(mode); !recorded.empty())
                steps.push_back(base::format("{} {} (last {})", recorded.size(), model::to_string(mode),
                                             recorded.back()));
        line("steps", steps.empty() ? "none" : base::join(steps, ", "));
        std::vector<std::string> tensors;
        for (const auto& [name, count] : collections)
            tensors.push_back(base::format("{} {}", count, printable(name)));
        line("tensors", tensors.empty() ? "none" : base::join(tensors, ", "));
        for (const PlanChange& change : plan_changes(run)) {
            const std::string who =
                run.workers().size() > 1 ? base::format(" in worker {}", change.worker) : std::string();
            line("plan", change.refused.empty() ? base::format("plan-{:06}.json from step {} on{}",
                                                               change.number, change.step, who)
                                                : base::format("plan-{:06}.json refused{}: {}", change.number,
                                                               who, printable(change.refused)));
        }
        const read::RunTotals totals = run.totals();
        line("size", base::human_bytes(totals.bytes));
        if (totals.step_nanos != 0)
            line("cost", base::format("{:.2f} % of the time of the recorded steps",
                                      100.0 * static_cast<double>(totals.capture_nanos) /
                                          static_cast<double>(totals.step_nanos)));
        if (totals.steps_dropped != 0 || totals.raw_tensors_dropped != 0)
            line("dropped", base::format("{} steps, {} whole tensors", totals.steps_dropped,
                                         totals.raw_tensors_dropped));
        const std::size_t columns = console.out_columns();
        for (const auto& [label, note] : report::capture_notes(run, shell_word(path)))
            line(label, wrapped(note, columns - std::min<std::size_t>(columns - 1, 13), 13));
        if (const auto removed = run.removals())
            line("removed",
                 base::format("{} steps, {} to save space{}", removed->steps,
                              base::human_bytes(removed->bytes),
                              removed->last.empty() ? "" : " (last: " + printable(removed->last) + ")"));
        for (const read::Damage& place : run.damage())
            line(place.tail    ? "cut off"
                 : place.newer ? "newer"
                               : "damage",
                 base::format("{}: {} bytes at {}: {}", printable(place.file), place.bytes, place.offset,
                              printable(place.what)));
        std::string text = report::terminal_verdict(verdict, colour, console.out_columns());
        if (!text.empty() && text.back() != '\n') text += '\n';
        console.out("\n" + text);
        if (judged_now) console.out("(judged now, by the default rules: the run keeps no verdict)\n");
    }

    std::string run_;
    std::string runs_;
    bool tensors_ = false;
    std::string match_;
    std::string collection_;
    bool json_ = false;
};

}  // namespace

VerbEntry show_verb() {
    return {
        .name = "show",
        .summary = "Show what a run holds, how it ended and what was found.",
        .usage = "[options] RUN",
        .about =
            "Shows a run's command, machine, workers (and those that are missing or stopped early), steps, "
            "tensors, size, cost, damage, verdict and what "
            "was removed from it to save space; or, with --tensors, --match or --collection, its tensors.",
        .examples =
            "  traindbg show last\n"
            "  traindbg show last --tensors --match 'fc\\d+' --collection gradients\n"
            "  traindbg show last --json\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<ShowVerb>(); }};
}

}  // namespace traindbg::cli
