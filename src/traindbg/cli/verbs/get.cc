#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/damage.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/step_range.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/json.h"
#include "traindbg/read/merged_series.h"
#include "traindbg/read/run.h"
#include "traindbg/report/capture_notes.h"

namespace traindbg::cli {
namespace {

using model::Json;

// What is no number, and so no statistic of a series.
constexpr std::string_view kFingerprint = "fingerprint";

std::vector<std::string> statistic_choices() {
    std::vector<std::string> names = read::Run::statistic_names();
    names.emplace_back(kFingerprint);
    return names;
}

struct Point {
    model::Mode mode = model::Mode::kTrain;
    model::StepIndex step = 0;
    double value = 0;
    std::string fingerprint;  // where that was asked for; else empty
};

struct WorkerSeries {
    model::WorkerId worker = 0;
    std::vector<Point> points;
};

// As read::MergedSeries.
struct MergedPoints {
    std::vector<model::WorkerId> workers;
    std::vector<Point> points;
    std::vector<std::pair<model::Mode, model::StepIndex>> left_out;
};

// All points of a tensor of a worker. Errors as Run::series.
base::Result<std::vector<Point>> points_of(read::Run& run, model::WorkerId worker, const std::string& tensor,
                                           const std::string& statistic) {
    std::vector<Point> out;
    if (statistic == kFingerprint) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto found, run.digests(worker, tensor));
        for (const read::DigestPoint& point : found)
            out.push_back({point.mode, point.step, 0, base::format("{:016x}", point.digest.fingerprint)});
        return out;
    }
    TRAINDBG_ASSIGN_OR_RETURN(const auto found, run.series(worker, tensor, statistic));
    for (const read::SeriesPoint& point : found) out.push_back({point.mode, point.step, point.value, {}});
    return out;
}

// The same of all workers together. Errors as read::merged_series.
base::Result<MergedPoints> merged_points_of(read::Run& run, const std::string& tensor,
                                            const std::string& statistic) {
    MergedPoints out;
    if (statistic == kFingerprint) {
        TRAINDBG_ASSIGN_OR_RETURN(const model::WorkerId worker, read::worker_of_whole(run, tensor));
        TRAINDBG_ASSIGN_OR_RETURN(out.points, points_of(run, worker, tensor, statistic));
        std::stable_sort(out.points.begin(), out.points.end(), [](const Point& a, const Point& b) {
            return std::pair(a.mode, a.step) < std::pair(b.mode, b.step);
        });
        out.workers = {worker};
        return out;
    }
    TRAINDBG_ASSIGN_OR_RETURN(read::MergedSeries merged, read::merged_series(run, tensor, statistic));
    for (const read::SeriesPoint& point : merged.points)
        out.points.push_back({point.mode, point.step, point.value, {}});
    out.workers = std::move(merged.workers);
    out.left_out = std::move(merged.left_out);
    return out;
}

class GetVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.text({.names = "TENSOR",
                      .placeholder = "TENSOR",
                      .help = "A tensor's name; traindbg show RUN --tensors lists them.",
                      .positional = true,
                      .required = true},
                     tensor_);
        options.text({.names = "--stat",
                      .placeholder = "NAME",
                      .help = "The statistic (default: value of a loss, metric or other number, else l2).",
                      .choices = statistic_choices()},
                     statistic_);
        options.text({.names = "--steps",
                      .placeholder = "A:B",
                      .help = "Steps from A up to, not with, B; either may be "
                              "left out."},
                     steps_);
        options.text({.names = "--mode",
                      .placeholder = "MODE",
                      .help = "Steps of this mode only.",
                      .choices = {"train", "eval", "predict", "global"}},
                     mode_);
        options.flag(
            {.names = "--merge-workers",
             .help = "One value for all workers: of the parts of a distributed tensor or of a batch, "
                     "merged; of what is the same everywhere, the first worker's; the mean of losses."},
            merge_);
        options.flag({.names = "--csv", .help = "Print comma-separated values with a header."}, csv_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        const auto location = RunLocation::of(run_, runs_root(runs_));
        if (!location.is_ok()) return fail(console, location.status());
        storage::FileSystem& files = location->files();
        const auto range = parse_step_range(steps_);
        if (!range.is_ok()) return fail(console, range.status());
        if (csv_ && json_)
            return fail(console,
                        {base::Code::kInvalidArgument, "--csv, --json: choose one; see traindbg get --help"});
        const auto path = resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());
        auto opened = read::Run::open(*path, files);
        if (!opened.is_ok()) return fail(console, opened.status());
        read::Run& run = **opened;

        const std::optional<model::Mode> mode = model::parse_mode(mode_);
        const auto is_wanted = [&](model::Mode its_mode, model::StepIndex step) {
            return step >= range->first && step < range->end && (!mode || its_mode == *mode);
        };
        if (merge_) return run_merged(run, *path, is_wanted, console);
        std::vector<WorkerSeries> all;
        std::string statistic = statistic_;
        base::Status problem(base::Code::kNotFound,
                             base::printable(*path) + ": no training has recorded anything in this run yet");
        for (const model::WorkerId worker : run.workers()) {
            if (statistic_.empty()) statistic = usual_statistic(run.tensors(worker));
            auto series = points_of(run, worker, tensor_, statistic);
            if (!series.is_ok()) {
                problem = series.status();
                // A tensor that this worker did not record is no news beside those that did.
                if (problem.code() != base::Code::kNotFound) return fail(console, problem);
                continue;
            }
            std::erase_if(*series, [&](const Point& point) { return !is_wanted(point.mode, point.step); });
            all.push_back({worker, std::move(series).value()});
        }
        if (all.empty()) {
            const std::string why = report::why_not_captured(run, tensor_);
            if (why.empty()) return fail(console, problem);
            return fail(console,
                        {base::Code::kNotFound, base::printable(tensor_ + ": not captured: " + why)});
        }
        const std::vector<read::Damage>& damage = run.damage();
        if (json_) print_json(all, statistic, damage, console);
        else print_table(all, statistic, run, console);
        warn_of_damage(console, *path, damage);
        return kExitClean;
    }

  private:
    int run_merged(read::Run& run, const std::string& path,
                   const std::function<bool(model::Mode, model::StepIndex)>& is_wanted,
                   Console& console) const {
        std::string statistic = statistic_.empty() ? "l2" : statistic_;
        for (const model::WorkerId worker : run.workers())
            if (statistic_.empty() && usual_statistic(run.tensors(worker)) == "value") statistic = "value";
        auto merged = merged_points_of(run, tensor_, statistic);
        if (!merged.is_ok()) return fail(console, merged.status());
        const std::vector<Point>& points = merged->points;
        std::erase_if(merged->points, [&](const Point& point) { return !is_wanted(point.mode, point.step); });
        std::erase_if(merged->left_out, [&](const auto& key) { return !is_wanted(key.first, key.second); });
        const std::vector<read::Damage>& damage = run.damage();
        if (json_) {
            Json out = document(statistic, damage);
            out["merged"] = {{"workers", merged->workers},
                             {"points", points_json(points)},
                             {"steps_left_out", merged->left_out.size()}};
            console.out(out.dump(2) + "\n");
        } else {
            print_header(statistic, console);
            print_points("all", points, console);
            if (points.empty()) say_nothing_matches(run, console);
        }
        if (!merged->left_out.empty())
            console.error(base::format("{} steps are left out, because a worker or a part is missing there\n",
                                       merged->left_out.size()));
        warn_of_damage(console, path, damage);
        return kExitClean;
    }

    [[nodiscard]] std::string usual_statistic(const model::TensorTable& tensors) const {
        for (const model::TensorInfo& info : tensors)
            if (info.name == tensor_) return model::is_number(info) ? "value" : "l2";
        return "l2";
    }

    static Json points_json(const std::vector<Point>& points) {
        Json out = Json::array();
        for (const Point& point : points) {
            Json value =
                point.fingerprint.empty() ? model::number_to_json(point.value) : Json(point.fingerprint);
            out.push_back(
                {{"mode", model::to_string(point.mode)}, {"step", point.step}, {"value", std::move(value)}});
        }
        return out;
    }

    [[nodiscard]] Json document(const std::string& statistic, const std::vector<read::Damage>& damage) const {
        return {{"schema_version", 1},
                {"tensor", base::printable(tensor_)},
                {"statistic", statistic},
                {"damage", damage_json(damage)}};
    }

    void print_json(const std::vector<WorkerSeries>& all, const std::string& statistic,
                    const std::vector<read::Damage>& damage, Console& console) const {
        Json out = document(statistic, damage);
        Json& series = out["workers"] = Json::array();
        for (const WorkerSeries& one : all)
            series.push_back({{"worker", one.worker}, {"points", points_json(one.points)}});
        console.out(out.dump(2) + "\n");
    }

    void print_header(const std::string& statistic, Console& console) const {
        if (csv_) console.out(base::format("worker,mode,step,{}\n", statistic));
        else
            console.out(styled(base::format("{:>6}  {:<7}  {:>9}  {}", "WORKER", "MODE", "STEP", statistic),
                               Style::kBold, console.out_colour()) +
                        "\n");
    }

    void print_points(std::string_view worker, const std::vector<Point>& points, Console& console) const {
        for (const Point& point : points) {
            const std::string_view word = model::to_string(point.mode);
            const std::string value = !point.fingerprint.empty() ? point.fingerprint
                                      : csv_                     ? base::format("{}", point.value)
                                                                 : base::human_number(point.value);
            console.out(csv_ ? base::format("{},{},{},{}\n", worker, word, point.step, value)
                             : base::format("{:>6}  {:<7}  {:>9}  {}\n", worker, word, point.step, value));
        }
    }

    void say_nothing_matches(const read::Run& run, Console& console) const {
        const std::string why = report::why_not_captured(run, tensor_);
        console.error(why.empty()
                          ? "no step matches\n"
                          : base::format("no step matches: {}\n", base::printable("not captured: " + why)));
    }

    void print_table(const std::vector<WorkerSeries>& all, const std::string& statistic, const read::Run& run,
                     Console& console) const {
        print_header(statistic, console);
        bool any = false;
        for (const WorkerSeries& one : all) {
            any = any || !one.points.empty();
            print_points(base::format("{}", one.worker), one.points, console);
        }
        if (!any) say_nothing_matches(run, console);
    }

    std::string run_;
    std::string tensor_;
    std::string runs_;
    std::string statistic_;
    std::string steps_;
    std::string mode_;
    bool merge_ = false;
    bool csv_ = false;
    bool json_ = false;
};

}  // namespace

VerbEntry get_verb() {
    return {
        .name = "get",
        .summary = "Print a statistic of a tensor, step by step.",
        .usage = "[options] RUN TENSOR",
        .about =
            "Prints one statistic of one tensor over the recorded steps. CSV and JSON hold full precision. "
            "What is damaged is left out and named on standard error.",
        .examples =
            "  traindbg get last loss\n"
            "  traindbg get last gradient/fc1.weight --stat max --steps 0:100\n"
            "  traindbg get last loss/cross_entropy --mode eval --csv > validation.csv\n"
            "  traindbg get last gradient/fc1.weight --stat std --merge-workers\n"
            "  traindbg get last weight/fc1.weight --stat fingerprint\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<GetVerb>(); }};
}

}  // namespace traindbg::cli
