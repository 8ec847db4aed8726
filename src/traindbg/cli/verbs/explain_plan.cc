#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is no part of <cstdlib>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/capture/budget.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/capture/plan_changes.h"
#include "traindbg/cli/bootstrap.h"
#include "traindbg/cli/custom_rules.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/plan_costs.h"
#include "traindbg/cli/plan_edit.h"
#include "traindbg/cli/probe.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/summary.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/json.h"
#include "traindbg/model/what_words.h"
#include "traindbg/options/run_options.h"
#include "traindbg/options/settings_file.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::printable;
using base::Result;
using base::Status;
using model::Json;
using model::Mode;
using model::StepRecord;
using model::TensorId;
using model::TensorInfo;
using model::What;

constexpr std::uint64_t kMostSteps = 10'000'000;
constexpr std::size_t kRecordsRead = 50;  // of a run: what they hold repeats

// A directory for a probe, removed with all that is in it.
class ProbeDirectory {
  public:
    [[nodiscard]] static Result<ProbeDirectory> make() {
        std::error_code error;
        std::string path = (std::filesystem::temp_directory_path(error) / "traindbg-plan-XXXXXX").string();
        if (error || ::mkdtemp(path.data()) == nullptr)
            return Status(Code::kUnavailable, path + ": cannot be made; set TMPDIR to where there is room");
        return ProbeDirectory(std::move(path));
    }
    ProbeDirectory(ProbeDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    ProbeDirectory& operator=(ProbeDirectory&& other) = delete;
    ProbeDirectory(const ProbeDirectory&) = delete;
    ProbeDirectory& operator=(const ProbeDirectory&) = delete;
    ~ProbeDirectory() {
        std::error_code error;
        if (!path_.empty()) std::filesystem::remove_all(path_, error);
    }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

  private:
    explicit ProbeDirectory(std::string path) noexcept : path_(std::move(path)) {}
    std::string path_;
};

// What a run tells of its first worker: its tensors and some of what was recorded of them.
struct Seen {
    std::vector<TensorInfo> tensors;
    std::vector<StepRecord> records;
    std::size_t workers = 0;
    std::vector<std::pair<std::string, std::string>> not_captured;  // what, why
    double step_nanos = 0;     // of a training step, without capture; 0: not known
    double capture_nanos = 0;  // of a step after the first one; where any looked at the loop, of these
    double first_nanos = 0;    // capture of the first step, at which more is looked at once
};

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::string text_at(const Json& json, const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<Seen> look_at(const std::string& path, storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<read::Run> run, read::Run::open(path, files));
    Seen seen;
    const std::vector<model::WorkerId> workers = run->workers();
    seen.workers = workers.size();
    if (workers.empty()) return seen;
    seen.tensors = run->tensors(workers.front());
    std::vector<double> steps;
    std::vector<double> captures;
    std::vector<double> captures_with_loop;
    TRAINDBG_RETURN_IF_ERROR(run->for_each_step([&](const model::StepView& view) {
        if (view.worker != workers.front()) return false;
        seen.records.push_back(*view.record);
        if (view.mode() == Mode::kTrain && view.step() == 0)
            seen.first_nanos = static_cast<double>(view.record->capture_nanos);
        // The first step of a training is not like the others.
        if (view.mode() == Mode::kTrain && view.step() > 0) {
            steps.push_back(static_cast<double>(view.record->step_nanos) -
                            static_cast<double>(view.record->capture_nanos));
            const bool looks_at_loop = std::any_of(
                view.record->scalars.begin(), view.record->scalars.end(), [&](const auto& sample) {
                    return sample.tensor < seen.tensors.size() &&
                           seen.tensors[sample.tensor].role == model::Role::kLoop;
                });
            (looks_at_loop ? captures_with_loop : captures)
                .push_back(static_cast<double>(view.record->capture_nanos));
        }
        return seen.records.size() < kRecordsRead;
    }));
    seen.step_nanos = std::max(median(std::move(steps)), 0.0);
    seen.capture_nanos = median(std::move(captures_with_loop.empty() ? captures : captures_with_loop));
    std::set<std::pair<std::string, std::string>> known;
    for (const read::RunEvent& event : run->events()) {
        const Json json = Json::parse(event.json, nullptr, /*allow_exceptions=*/false);
        std::pair<std::string, std::string> found;
        // What no tensor matches, is told by the plan that is explained.
        if (event.kind == "not_captured" && !json.contains("collection"))
            found = {text_at(json, "what"), text_at(json, "reason")};
        else if (event.kind == "tensor_skipped") found = {text_at(json, "tensor"), text_at(json, "reason")};
        else if (event.kind == "hook_error") found = {text_at(json, "part"), text_at(json, "error")};
        if (!found.first.empty() && known.insert(found).second) seen.not_captured.push_back(std::move(found));
    }
    return seen;
}

// A probe takes every step, and of a fast training more steps than it asked for until it stops: facts of the
// loop that are told once, from so many batches on, come there and not where the plan looks. Those of the
// first `steps` steps are the same each time.
void forget_later_facts(Seen& seen, std::uint64_t steps) {
    std::vector<bool> is_early(seen.tensors.size());
    for (const StepRecord& record : seen.records) {
        if (record.mode == Mode::kTrain && record.step >= steps) break;
        for (const auto& sample : record.scalars)
            if (sample.tensor < is_early.size()) is_early[sample.tensor] = true;
    }
    for (std::size_t id = 0; id < seen.tensors.size(); ++id)
        if (seen.tensors[id].role == model::Role::kLoop && !is_early[id]) seen.tensors[id] = TensorInfo{};
}

// What was recorded of a step, and the time of it that bytes do not explain.
struct Rest {
    double nanos = 0;
    double tensors = 0;
    double loop_numbers = 0;
};

std::vector<Rest> rests(const PlanCosts& costs, const Seen& seen) {
    std::vector<Rest> out;
    for (const StepRecord& record : seen.records) {
        if (record.mode != Mode::kTrain || record.step == 0) continue;
        double rest = static_cast<double>(record.capture_nanos);
        double loop_numbers = 0;
        for (const auto& sample : record.scalars)
            if (sample.tensor < seen.tensors.size() && seen.tensors[sample.tensor].role == model::Role::kLoop)
                ++loop_numbers;
        for (const auto& sample : record.scalars)
            rest -= costs.cost(sample.tensor, model::What::kStatistics).nanos;
        for (const auto& sample : record.tensors)
            rest -= costs
                        .cost(sample.tensor, sample.units.units == 0
                                                 ? model::What::kStatistics
                                                 : model::What::kStatistics | model::What::kUnits)
                        .nanos;
        for (const auto& sample : record.histograms)
            rest -= costs.cost(sample.tensor, model::What::kHistogram).nanos;
        for (const auto& sample : record.channels)
            rest -= costs.cost(sample.tensor, model::What::kChannels).nanos;
        for (const auto& sample : record.digests)
            rest -= costs.cost(sample.tensor, model::What::kDigest).nanos;
        out.push_back({rest, static_cast<double>(record.tensors.size()), loop_numbers});
    }
    return out;
}

// What finding and naming a tensor takes, from steps at which the loop was not looked at, and then what
// looking at the loop does, by number. As medians: other programs come in between.
void measure_looks(const PlanCosts& costs, const Seen& seen, Speeds& speeds) {
    constexpr double kLeast = 100;
    constexpr double kUsual = 15'000;  // where each step looked at the loop
    constexpr double kMost = 1'000'000;
    const std::vector<Rest> steps = rests(costs, seen);
    std::vector<double> by_tensor;
    for (const Rest& each : steps)
        if (each.loop_numbers == 0 && each.tensors > 0) by_tensor.push_back(each.nanos / each.tensors);
    speeds.nanos_per_tensor =
        by_tensor.empty() ? kUsual : std::clamp(median(std::move(by_tensor)), kLeast, kMost);
    std::vector<double> by_number;
    for (const Rest& each : steps)
        if (each.loop_numbers > 0)
            by_number.push_back((each.nanos - each.tensors * speeds.nanos_per_tensor) / each.loop_numbers);
    speeds.nanos_per_loop_number = std::clamp(median(std::move(by_number)), speeds.nanos_per_number, kMost);
    speeds.nanos_of_first_step = std::max(seen.first_nanos - seen.capture_nanos, 0.0);
}

// "1-9, 11-19"
std::string ranges(const std::vector<model::StepIndex>& steps) {
    std::vector<std::string> out;
    for (std::size_t i = 0; i < steps.size();) {
        std::size_t j = i;
        while (j + 1 < steps.size() && steps[j + 1] == steps[j] + 1) ++j;
        out.push_back(i == j ? base::format("{}", steps[i]) : base::format("{}-{}", steps[i], steps[j]));
        i = j + 1;
    }
    return out.empty() ? "none" : base::join(out, ", ");
}

std::string bytes_in_words(double bytes) {
    return base::human_bytes(static_cast<std::uint64_t>(std::llround(std::max(bytes, 0.0))));
}
std::string time_in_words(double nanos) {
    return base::human_duration(static_cast<std::int64_t>(std::llround(std::max(nanos, 0.0))));
}
std::string speed_in_words(double bytes_per_second) {
    return base::format("{:.1f} GB/s", bytes_per_second / 1e9);
}

// Channels and digests are named only where the plan asks for them: hardly any does.
std::string speeds_in_words(const Speeds& speeds, const model::CaptureConfig& plan) {
    const auto asks_for = [&](What what) {
        return std::any_of(plan.requirements.begin(), plan.requirements.end(),
                           [what](const auto& each) { return model::has(each.what, what); });
    };
    std::vector<std::string> words = {"statistics at " + speed_in_words(speeds.statistics),
                                      "histograms at " + speed_in_words(speeds.histogram)};
    if (asks_for(What::kChannels)) words.push_back("channels at " + speed_in_words(speeds.channels));
    if (asks_for(What::kDigest)) words.push_back("digests at " + speed_in_words(speeds.digest));
    words.push_back("whole tensors at " + speed_in_words(speeds.copy));
    return base::join(words, ", ");
}

std::string flight_in_words(const model::FlightRecorder& flight) {
    std::vector<std::string> statistics = flight.collect;
    for (const std::string& name : flight.raw)  // which come with statistics
        if (std::find(statistics.begin(), statistics.end(), name) == statistics.end())
            statistics.push_back(name);
    return base::format(
        "besides, at every step: statistics of {}{}; not in these sums",
        statistics.empty() ? std::string("weights, biases, gradients, inputs, outputs, activations")
                           : base::join(statistics, ", "),
        flight.raw.empty() ? std::string() : "; whole tensors of " + base::join(flight.raw, ", "));
}

std::string_view mode_in_words(Mode mode) {
    return mode == Mode::kGlobal ? std::string_view("every mode") : model::to_string(mode);
}

std::string shape_in_words(const TensorInfo& info) {
    return info.shape.empty() ? std::string("scalar") : base::format("[{}]", base::join(info.shape, ", "));
}

class ExplainPlanVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options_ = &options;
        options.group("What is told");
        options.flag({.names = "--tensors", .help = "List every tensor instead of collections."}, tensors_);
        options.count({.names = "--steps",
                       .placeholder = "N",
                       .help = "Add up what so many training steps cost (default 1000)."},
                      steps_, 1);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        options.group("The probe");
        options.number(
            {.names = "--within",
             .placeholder = "SECONDS",
             .help = "How long the script may take for its first training step, and for each of the "
                     "next two (default 300)."},
            within_, 0.001, 1e6);
        rules_.declare(options, true);
        capture_.declare(options);
        store_.declare(options);
        options.group("Settings");
        options.text({.names = "--config",
                      .placeholder = "FILE",
                      .help = "As of `traindbg run`, whose settings hold here, too.",
                      .completes = Completes::kFile},
                     config_);
        declare_runs(options, runs_);
        options.command(command_);
    }

    int run(Console& console) override {
        if (steps_ > kMostSteps)
            return fail(console, {Code::kInvalidArgument,
                                  base::format("--steps: {} is more than {}", steps_, kMostSteps)});
        const auto location = RunLocation::of(command_.front(), runs_root(runs_));
        if (command_.size() == 1 && is_remote(command_.front()) && !location.is_ok())
            return fail(console, location.status());
        storage::FileSystem& files = location.is_ok() ? location->files() : files_;
        const auto known = resolve_run(command_.front(), runs_root(runs_), files);
        if (known.is_ok() && command_.size() == 1) return explain_run(*known, files, console);
        if (known.is_ok())
            return fail(console,
                        {Code::kInvalidArgument,
                         printable(command_.front()) +
                             ": is a run; options go before it: traindbg explain-plan [options] RUN"});
        if (command_.size() == 1 && (command_.front() == "last" || is_remote(command_.front())))
            return fail(console, known.status());
        return explain_command(console);
    }

  private:
    // Of a run that is there, with what the options ask for beside.
    int explain_run(const std::string& path, storage::FileSystem& files, Console& console) {
        if (rules_.any())
            return fail(console, {Code::kInvalidArgument,
                                  "--rules: a run has the rules that it was recorded for; leave it out"});
        const auto plan = capture::read_plan_in_force(files, storage::RunLayout{path});
        if (!plan.is_ok()) return fail(console, plan.status());
        PlanEdit edit;
        edit.capture = capture_;
        auto config = edited(plan->config, edit);
        if (!config.is_ok()) return fail(console, config.status());
        const auto seen = look_at(path, files);
        if (!seen.is_ok()) return fail(console, seen.status());
        if (seen->tensors.empty())
            return fail(console, {Code::kNotFound, printable(path) + ": holds no tensor yet"});
        source_ = base_name(path);
        return explain(std::move(*config), *seen, false, console);
    }

    int explain_command(Console& console) {
        const auto config = planned();
        if (!config.is_ok()) return fail(console, config.status());
        const auto bootstrap = find_bootstrap(executable_directory());
        if (!bootstrap.is_ok()) return fail(console, bootstrap.status());
        const auto directory = ProbeDirectory::make();
        if (!directory.is_ok()) return fail(console, directory.status());
        const std::string run = directory->path() + "/run";
        const model::CaptureConfig probing = probing_plan(*config);
        const Status made = [&] {
            TRAINDBG_RETURN_IF_ERROR(files_.create_directories(run));
            TRAINDBG_RETURN_IF_ERROR(write_plan(run, probing, files_));
            return write_run_meta(run, describe_run("probe", command_), files_);
        }();
        if (!made.is_ok()) return fail(console, made);

        ProbeOptions options;
        options.command = command_;
        options.run = run;
        options.environment = {{"TRAINDBG_RUN_DIR", run},
                               {"TRAINDBG_LOG", "quiet"},
                               {"PYTHONPATH", python_path_with(*bootstrap, std::getenv("PYTHONPATH"))}};
        options.within = std::chrono::nanoseconds(static_cast<std::int64_t>(within_ * 1e9));
        const auto probed = run_probe(options);
        if (!probed.is_ok()) return fail(console, probed.status());
        if (probed->spawn_error != 0) {
            console.complain(spawn_failure(command_, probed->spawn_error));
            return exit_code_of_exec_error(probed->spawn_error);
        }
        auto seen = look_at(run, files_);
        if (probed->was_interrupted)
            return fail(console, {Code::kUnavailable, printable(command_.front()) + ": was interrupted"});
        if (probed->steps == 0 || !seen.is_ok() || seen->tensors.empty())
            return fail(console, {Code::kUnavailable, why_nothing(*probed)});
        forget_later_facts(*seen, options.steps);
        if (const int code = exit_code_of_wait_status(probed->wait_status); !probed->was_asked && code != 0)
            console.warn(
                base::format("{}: ended with code {} after {} training steps; what it shows until "
                             "then is told",
                             printable(command_.front()), code, probed->steps));
        // A script that calls traindbg.watch may ask for more.
        model::CaptureConfig plan = *config;
        if (const auto in_force = capture::read_plan_in_force(files_, storage::RunLayout{run});
            in_force.is_ok() && in_force->number != 0) {
            for (const auto& each : in_force->config.requirements)
                if (std::find(probing.requirements.begin(), probing.requirements.end(), each) ==
                    probing.requirements.end())
                    plan.requirements.push_back(each);
            plan.collections = in_force->config.collections;
        }
        std::vector<std::string> words;
        for (const std::string& word : command_) words.push_back(printable(word));
        source_ = base::join(words, " ");
        return explain(std::move(plan), *seen, true, console);
    }

    // The plan that `traindbg run` would write.
    [[nodiscard]] Result<model::CaptureConfig> planned() {
        TRAINDBG_ASSIGN_OR_RETURN(options::SettingsFile file, options::find_settings(config_));
        // What says nothing of the plan may stand there, too.
        const std::vector<std::string> ours = options_->settable();
        const std::vector<std::string> theirs = options::run_option_names();
        const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
            return std::find(names.begin(), names.end(), name) != names.end();
        };
        std::erase_if(file.settings.options, [&](const settings::Setting& setting) {
            return !is_in(ours, setting.name) && is_in(theirs, setting.name);
        });
        TRAINDBG_RETURN_IF_ERROR(options::apply_settings(file, *options_));
        TRAINDBG_RETURN_IF_ERROR(load_custom_rules(rules_.custom));
        TRAINDBG_ASSIGN_OR_RETURN(const std::vector<rules::RuleChoice> choices, rules_.choices());
        TRAINDBG_ASSIGN_OR_RETURN(capture_.of_rules, rules_.collections());
        TRAINDBG_ASSIGN_OR_RETURN(model::CaptureConfig config, capture_.config(choices));
        TRAINDBG_RETURN_IF_ERROR(capture_.check_schedule().status());
        TRAINDBG_RETURN_IF_ERROR(store_.apply(config));
        TRAINDBG_RETURN_IF_ERROR(capture::CapturePlan::make(config).status());
        return config;
    }

    [[nodiscard]] std::string why_nothing(const Probed& probed) const {
        const std::string name = printable(command_.front());
        if (probed.was_too_slow)
            return base::format(
                "{}: ended no training step within {} s and was stopped; give it longer with --within", name,
                within_);
        const int code = exit_code_of_wait_status(probed.wait_status);
        return base::format("{}: ended with code {} before its first training step had: {}", name, code,
                            why_not_attached(command_, code));
    }

    int explain(model::CaptureConfig config, const Seen& seen, bool is_probe, Console& console) const {
        auto plan = capture::CapturePlan::make(std::move(config));
        if (!plan.is_ok()) return fail(console, plan.status());
        Speeds speeds = measure_speeds();
        speeds.nanos_per_tensor = 0;
        const double step_nanos = seen.step_nanos > 0 ? seen.step_nanos : 1e8;
        measure_looks(PlanCosts(*plan, seen.tensors, seen.records, speeds, step_nanos), seen, speeds);
        const PlanCosts costs(std::move(*plan), seen.tensors, seen.records, speeds, step_nanos);
        if (json_) print_json(costs, seen, speeds, is_probe, console);
        else print_text(costs, seen, speeds, is_probe, console);
        return kExitClean;
    }

    // What nothing is captured of although somebody asks for it.
    [[nodiscard]] static std::vector<std::pair<std::string, std::string>> missing(const PlanCosts& costs,
                                                                                  const Seen& seen,
                                                                                  bool is_probe) {
        std::map<std::string, std::set<std::string>> without;  // what, for whom
        for (const std::size_t index : costs.without_tensors()) {
            const model::Requirement& each = costs.plan().config().requirements[index];
            for (const std::string& who : askers(each)) without[each.collection].insert(who);
        }
        std::vector<std::pair<std::string, std::string>> out = seen.not_captured;
        for (const auto& [collection, who] : without) {
            const std::vector<std::string> names(who.begin(), who.end());
            const bool is_users = !model::role_of_collection(collection).has_value();
            std::string why = is_users ? base::format("matches none of the {} tensors that were seen",
                                                      costs.tensors().size())
                                       : std::string("no such tensor was seen");
            if (is_probe && !is_users) why += " in the probe";
            out.emplace_back(base::format("{}, for {}", collection, base::join(names, ", ")), why);
        }
        return out;
    }

    void print_text(const PlanCosts& costs, const Seen& seen, const Speeds& speeds, bool is_probe,
                    Console& console) const {
        const bool colour = console.out_colour();
        console.out(styled(source_, Style::kBold, colour) + "\n\n");
        if (tensors_) print_tensors(costs, console);
        else print_rows(costs, console);
        const auto line = [&](std::string_view label, const std::string& text) {
            constexpr std::size_t kLabel = 16;
            const std::size_t width = std::max<std::size_t>(console.out_columns(), kLabel + 40) - kLabel;
            std::string wrapped_text = wrapped(text, width, 0);
            std::string indented;
            for (const char letter : wrapped_text) {
                indented += letter;
                if (letter == '\n') indented += std::string(kLabel, ' ');
            }
            console.out(styled(padded(label, kLabel - 1), Style::kDim, colour) + " " + indented + "\n");
        };
        const PlanSummary summary = costs.summary(steps_);
        console.out("\n");
        line("a step at most",
             base::format("{}, {}", bytes_in_words(summary.most.bytes), time_in_words(summary.most.nanos)));
        std::string share;
        if (seen.step_nanos > 0) {
            const double training = seen.step_nanos * static_cast<double>(summary.steps);
            share = base::format(", {:.2f} % of their time (a step takes {} without)",
                                 100.0 * summary.all.nanos / (training + summary.all.nanos),
                                 time_in_words(seen.step_nanos));
        }
        line(base::format("{} steps", summary.steps),
             base::format("{} before sealing, {}{}; {} of them need nothing but losses and metrics",
                          bytes_in_words(summary.all.bytes), time_in_words(summary.all.nanos), share,
                          summary.steps - summary.captured));
        line("idle steps", base::format("of the first 100: {}", ranges(summary.idle)));
        const bool has_others =
            std::any_of(costs.plan().config().requirements.begin(), costs.plan().config().requirements.end(),
                        [](const auto& each) { return each.mode != Mode::kTrain; });

        const model::CaptureConfig& plan = costs.plan().config();
        if (plan.flight.steps != 0) line("flight recorder", flight_in_words(plan.flight));
        if (plan.budget.value_or(0) > 0)
            line("budget", base::format("steps beyond {:.3g} % of the time are left out; not in these sums",
                                        100 * *plan.budget));
        else if (!capture::limit_of(plan))
            line("limit", base::format("once rules took {:.3g} s, steps at which they would take more than "
                                       "{:.3g} % of the time are left out; not in these sums",
                                       capture::kStandingFreeNanos / 1e9, 100 * capture::kStandingShare));
        if (has_others) line("evaluations", "are not in these sums: how many there will be, nobody knows");
        for (const auto& [what, why] : missing(costs, seen, is_probe))
            line("not captured", printable(what) + ": " + printable(why));
        if (seen.workers > 1)
            line("processes",
                 base::format("{} record, each for itself; this is the first one", seen.workers));
        line("times",
             base::format(
                 "estimated: {}, as measured here just now, {} for each tensor, {} for each number of "
                 "the loop, and {} once",
                 speeds_in_words(speeds, plan), time_in_words(speeds.nanos_per_tensor),
                 time_in_words(speeds.nanos_per_loop_number), time_in_words(speeds.nanos_of_first_step)));
        if (is_probe && seen.capture_nanos > 0)
            line("measured", base::format("{} in a step of the probe, which took all of it but whole tensors",
                                          time_in_words(seen.capture_nanos)));
    }

    static void print_table(std::vector<std::vector<std::string>> rows, Console& console) {
        std::vector<std::size_t> widths(rows.front().size());
        for (const auto& row : rows)
            for (std::size_t i = 0; i < row.size(); ++i)
                widths[i] = std::max(widths[i], display_width(row[i]));
        for (const auto& row : rows) {
            std::string text;
            for (std::size_t i = 0; i + 1 < row.size(); ++i) text += padded(row[i], widths[i]) + "  ";
            text += row.back();
            console.out(
                styled(text, &row == &rows.front() ? Style::kDim : Style::kPlain, console.out_colour()) +
                "\n");
        }
    }

    static void print_rows(const PlanCosts& costs, Console& console) {
        std::vector<std::vector<std::string>> rows = {
            {"collection", "tensors", "what", "in", "a step", "time", "when", "for"}};
        for (const PlanRow& row : costs.rows())
            rows.push_back({printable(row.collection), base::format("{}", row.tensors.size()),
                            model::what_in_words(row.what), std::string(mode_in_words(row.mode)),
                            bytes_in_words(row.cost.bytes), time_in_words(row.cost.nanos), row.when,
                            printable(base::join(row.asked_by, ", "))});
        print_table(std::move(rows), console);
    }

    // Every tensor, with what is taken of it.
    static void print_tensors(const PlanCosts& costs, Console& console) {
        std::vector<std::vector<std::string>> rows = {
            {"tensor", "shape", "type", "what", "in", "a step", "time", "when", "for"}};
        const std::vector<PlanRow> planned = costs.rows();
        for (const auto& [id, row] : by_tensor(planned, costs)) {
            const TensorInfo& info = costs.tensors()[id];
            const std::vector<std::string> facts = {printable(info.name), shape_in_words(info),
                                                    info.dtype == tensor::DType::kUnknown
                                                        ? std::string("-")
                                                        : std::string(tensor::to_string(info.dtype))};
            std::vector<std::string> cells = facts;
            if (row == nullptr) {
                cells.insert(cells.end(), {"nothing", "-", "-", "-", "-", "-"});
            } else {
                const Cost cost = costs.cost(id, row->what);
                cells.insert(cells.end(),
                             {model::what_in_words(row->what), std::string(mode_in_words(row->mode)),
                              bytes_in_words(cost.bytes), time_in_words(cost.nanos), row->when,
                              printable(base::join(row->asked_by, ", "))});
            }
            rows.push_back(std::move(cells));
        }
        print_table(std::move(rows), console);
    }

    // By tensor, in the order of ids; a tensor that nothing is taken of has one entry without a row.
    static std::vector<std::pair<TensorId, const PlanRow*>> by_tensor(const std::vector<PlanRow>& rows,
                                                                      const PlanCosts& costs) {
        std::vector<std::pair<TensorId, const PlanRow*>> out;
        std::vector<bool> has_any(costs.tensors().size());
        for (const PlanRow& row : rows)
            for (const TensorId id : row.tensors) {
                out.emplace_back(id, &row);
                has_any[id] = true;
            }
        for (TensorId id = 0; id < has_any.size(); ++id)
            if (!has_any[id] && !costs.tensors()[id].name.empty()) out.emplace_back(id, nullptr);
        std::stable_sort(out.begin(), out.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        return out;
    }

    void print_json(const PlanCosts& costs, const Seen& seen, const Speeds& speeds, bool is_probe,
                    Console& console) const {
        const auto whole = [](double value) { return static_cast<std::uint64_t>(std::llround(value)); };
        const auto row_json = [&](const PlanRow& row, const Cost& cost) {
            return Json{{"what", model::what_in_words(row.what)},
                        {"mode", model::to_string(row.mode)},
                        {"when", row.when},
                        {"for", row.asked_by},
                        {"bytes", whole(cost.bytes)},
                        {"nanos", whole(cost.nanos)}};
        };
        const std::vector<PlanRow> rows = costs.rows();
        Json groups = Json::array();
        for (const PlanRow& row : rows) {
            Json entry = {{"collection", row.collection}, {"tensors", row.tensors.size()}};
            entry.update(row_json(row, row.cost));
            groups.push_back(std::move(entry));
        }
        Json tensors = Json::array();
        TensorId last = UINT32_MAX;
        for (const auto& [id, row] : by_tensor(rows, costs)) {
            if (id != last) {
                Json entry = model::to_json(costs.tensors()[id]);
                entry.erase("id");
                std::vector<std::string> collections =
                    costs.plan().collections_of(costs.tensors()[id].name, costs.tensors()[id].role);
                collections.insert(collections.begin(),
                                   std::string(model::collection_of(costs.tensors()[id].role)));
                entry["collections"] = collections;
                entry["captures"] = Json::array();
                tensors.push_back(std::move(entry));
                last = id;
            }
            if (row != nullptr)
                tensors.back()["captures"].push_back(row_json(*row, costs.cost(id, row->what)));
        }
        Json not_captured = Json::array();
        for (const auto& [what, why] : missing(costs, seen, is_probe))
            not_captured.push_back({{"what", printable(what)}, {"reason", printable(why)}});
        const PlanSummary summary = costs.summary(steps_);
        console.out(Json{{"schema_version", 1},
                         {"source", source_},
                         {"probe", is_probe},
                         {"groups", std::move(groups)},
                         {"tensors", std::move(tensors)},
                         {"steps", summary.steps},
                         {"captured_steps", summary.captured},
                         {"bytes", whole(summary.all.bytes)},
                         {"nanos", whole(summary.all.nanos)},
                         {"most_bytes", whole(summary.most.bytes)},
                         {"most_nanos", whole(summary.most.nanos)},
                         {"step_nanos", seen.step_nanos > 0 ? Json(whole(seen.step_nanos)) : Json()},
                         {"capture_nanos", seen.capture_nanos > 0 ? Json(whole(seen.capture_nanos)) : Json()},
                         {"idle_of_first_100", summary.idle},
                         {"not_captured", std::move(not_captured)},
                         {"workers", seen.workers},
                         {"speeds",
                          {{"statistics_bytes_per_second", whole(speeds.statistics)},
                           {"histogram_bytes_per_second", whole(speeds.histogram)},
                           {"channels_bytes_per_second", whole(speeds.channels)},
                           {"digest_bytes_per_second", whole(speeds.digest)},
                           {"copy_bytes_per_second", whole(speeds.copy)},
                           {"nanos_per_tensor", whole(speeds.nanos_per_tensor)},
                           {"nanos_per_loop_number", whole(speeds.nanos_per_loop_number)},
                           {"nanos_of_first_step", whole(speeds.nanos_of_first_step)}}},
                         {"plan", model::to_json(costs.plan().config())}}
                        .dump(2) +
                    "\n");
    }

    OptionSet* options_ = nullptr;  // what `declare` was called with
    bool tensors_ = false;
    std::uint64_t steps_ = 1000;
    bool json_ = false;
    double within_ = 300;
    options::RuleOptions rules_;
    options::CaptureOptions capture_;
    options::StoreOptions store_;
    std::string config_;
    std::string runs_;
    std::vector<std::string> command_;
    std::string source_;  // what is explained
    storage::FileSystem& files_ = storage::posix_file_system();
};

}  // namespace

VerbEntry explain_plan_verb() {
    return {
        .name = "explain-plan",
        .summary = "Tell what would be captured, when, for whom, and what it costs.",
        .usage = "[options] [--] COMMAND [ARGUMENT...]  |  [options] RUN",
        .about =
            "Runs COMMAND up to its fourth training step, with its output on standard error, and stops it "
            "there as a rule would; then tells what `traindbg run` with the same options would capture of "
            "it: tensors, steps, rules, bytes and time. Nothing stays of that run but what the script "
            "itself writes until then. Of a RUN that is there it tells the same without running anything, "
            "with what the options ask for beside.",
        .examples =
            "  traindbg explain-plan -- python train.py\n"
            "  traindbg explain-plan --collect gradients --every 1 --steps 50000 -- python train.py\n"
            "  traindbg explain-plan --tensors last\n"
            "  traindbg explain-plan --raw weights --every 500 last\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<ExplainPlanVerb>(); }};
}

}  // namespace traindbg::cli
