#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/damage.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/step_range.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"

namespace traindbg::cli {
namespace {

using model::Json;

struct WorkerSeries {
    model::WorkerId worker = 0;
    std::vector<read::SeriesPoint> points;
};

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
                      .choices = read::Run::statistic_names()},
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
        std::vector<WorkerSeries> all;
        std::string statistic = statistic_;
        base::Status problem(base::Code::kNotFound,
                             base::printable(*path) + ": no training has recorded anything in this run yet");
        for (const model::WorkerId worker : run.workers()) {
            if (statistic_.empty()) statistic = usual_statistic(run.tensors(worker));
            auto series = run.series(worker, tensor_, statistic);
            if (!series.is_ok()) {
                problem = series.status();
                // A tensor that this worker did not record is no news beside those that did.
                if (problem.code() != base::Code::kNotFound) return fail(console, problem);
                continue;
            }
            std::erase_if(*series, [&](const read::SeriesPoint& point) {
                return point.step < range->first || point.step >= range->end || (mode && point.mode != *mode);
            });
            all.push_back({worker, std::move(series).value()});
        }
        if (all.empty()) return fail(console, problem);
        const std::vector<read::Damage>& damage = run.damage();
        if (json_) print_json(all, statistic, damage, console);
        else print_table(all, statistic, console);
        warn_of_damage(console, *path, damage);
        return kExitClean;
    }

  private:
    [[nodiscard]] std::string usual_statistic(const model::TensorTable& tensors) const {
        for (const model::TensorInfo& info : tensors)
            if (info.name == tensor_) return model::is_number(info) ? "value" : "l2";
        return "l2";
    }

    void print_json(const std::vector<WorkerSeries>& all, const std::string& statistic,
                    const std::vector<read::Damage>& damage, Console& console) const {
        Json series = Json::array();
        for (const WorkerSeries& one : all) {
            Json points = Json::array();
            for (const read::SeriesPoint& point : one.points)
                points.push_back({{"mode", model::to_string(point.mode)},
                                  {"step", point.step},
                                  {"value", model::number_to_json(point.value)}});
            series.push_back({{"worker", one.worker}, {"points", std::move(points)}});
        }
        console.out(Json{{"schema_version", 1},
                         {"tensor", base::printable(tensor_)},
                         {"statistic", statistic},
                         {"workers", std::move(series)},
                         {"damage", damage_json(damage)}}
                        .dump(2) +
                    "\n");
    }

    void print_table(const std::vector<WorkerSeries>& all, const std::string& statistic,
                     Console& console) const {
        if (csv_) console.out(base::format("worker,mode,step,{}\n", statistic));
        else
            console.out(styled(base::format("{:>6}  {:<7}  {:>9}  {}", "WORKER", "MODE", "STEP", statistic),
                               Style::kBold, console.out_colour()) +
                        "\n");
        bool any = false;
        for (const WorkerSeries& one : all)
            for (const read::SeriesPoint& point : one.points) {
                any = true;
                const std::string_view word = model::to_string(point.mode);
                console.out(csv_ ? base::format("{},{},{},{}\n", one.worker, word, point.step, point.value)
                                 : base::format("{:>6}  {:<7}  {:>9}  {}\n", one.worker, word, point.step,
                                                base::human_number(point.value)));
            }
        if (!any) console.error("no step matches\n");
    }

    std::string run_;
    std::string tensor_;
    std::string runs_;
    std::string statistic_;
    std::string steps_;
    std::string mode_;
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
            "  traindbg get last loss/cross_entropy --mode eval --csv > validation.csv\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<GetVerb>(); }};
}

}  // namespace traindbg::cli
