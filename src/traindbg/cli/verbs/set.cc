#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/capture/plan_changes.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/plan_edit.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/checked_json.h"
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
using base::Status;
using model::Json;

// What became of a change in one worker.
struct Answer {
    bool is_refused = false;
    std::uint64_t step = 0;  // the first TRAIN step that is captured by it
    std::string reason;      // why it is refused
};
using Answers = std::map<model::WorkerId, Answer>;

// 0 where it is not there.
std::uint64_t number_at(const Json& json, const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

// What the workers said of plan `number` or of later ones.
Answers answers_to(std::uint32_t number, const read::Run& run) {
    Answers answers;
    for (const read::RunEvent& event : run.events()) {
        const bool is_refused = event.kind == "plan_refused";
        if (!is_refused && event.kind != "plan_changed") continue;
        const Json json = Json::parse(event.json, nullptr, /*allow_exceptions=*/false);
        const std::uint64_t of = number_at(json, "number");
        // A refusal without a number is of whatever was announced.
        if (of < number && !(is_refused && of == 0)) continue;
        Answer answer{.is_refused = is_refused, .step = number_at(json, "step"), .reason = {}};
        if (json.is_object() && json.contains("reason") && json["reason"].is_string())
            answer.reason = json["reason"].get<std::string>();
        answers.try_emplace(event.worker, std::move(answer));
    }
    return answers;
}

// The workers that record now.
std::vector<model::WorkerId> recording(const read::Run& run) { return run.unclosed_workers(); }

class SetVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options_ = &options;
        declare_run(options, run_);
        options.texts({.names = "--drop",
                       .placeholder = "COLLECTION[,...]",
                       .help = "No longer capture what you asked for of a collection; what rules need stays.",
                       .completes = Completes::kCollection},
                      edit_.drop, true);
        options.flag({.names = "--drop-all", .help = "The same of all that you asked for."}, edit_.drop_all);
        edit_.capture.declare(options, /*of_running=*/true);
        options.group("How");
        options.text(
            {.names = "--config",
             .placeholder = "FILE",
             .help = "Also take the collections and captures, and the options above, from a settings "
                     "file.",
             .completes = Completes::kFile},
            config_);
        options.number(
            {.names = "--wait",
             .placeholder = "SECONDS",
             .help = "How long to wait until the training says from which step on it holds (default "
                     "10; 0: do not)."},
            wait_, 0, 86400);
        options.flag({.names = "-n,--dry-run", .help = "Change nothing; say what would change."}, dry_run_);
        options.flag({.names = "--json", .help = "Print JSON."}, json_);
        declare_runs(options, runs_);
    }

    int run(Console& console) override {
        if (const Status status = take_file(console); !status.is_ok()) return fail(console, status);
        const bool is_under_root = run_.find('/') == std::string::npos;
        if (is_remote(run_) || (is_under_root && is_remote(runs_root(runs_))))
            return fail(console, {Code::kInvalidArgument,
                                  printable(is_remote(run_) ? run_ : runs_root(runs_)) +
                                      ": is in a bucket; what a training captures is changed on the machine "
                                      "where it runs"});
        const auto path = resolve_run(run_, runs_root(runs_), files_);
        if (!path.is_ok()) return fail(console, path.status());
        path_ = *path;
        const storage::RunLayout layout{path_};
        if (!files_.exists(layout.plan_json()))
            return fail(console, {Code::kNotFound,
                                  printable(path_) + ": has no plan.json: nothing was captured by one"});
        if (edit_.is_empty() && config_.empty()) return show(layout, console);

        const auto opened = read::Run::open(path_, files_);
        if (!opened.is_ok()) return fail(console, opened.status());
        read::Run& run = **opened;
        if (const Status status = check_goes_on(run); !status.is_ok()) return fail(console, status);
        return change(layout, run, console);
    }

  private:
    // A settings file's part of what is wished for.
    [[nodiscard]] Status take_file(const Console& console) {
        if (config_.empty()) return Status::ok();
        TRAINDBG_ASSIGN_OR_RETURN(const options::SettingsFile file, options::find_settings(config_));
        const std::vector<std::string> ours = options_->settable();
        std::vector<std::string> words = options::run_option_names();
        const auto is_in = [](const std::vector<std::string>& names, const std::string& name) {
            return std::find(names.begin(), names.end(), name) != names.end();
        };
        for (const settings::Setting& setting : file.settings.options) {
            if (is_in(ours, setting.name)) continue;
            if (is_in(words, setting.name)) {
                ignored_.push_back(setting.name);
                continue;
            }
            words.insert(words.end(), {"rule", "collection", "capture"});
            return {Code::kInvalidArgument,
                    base::format("{}: unknown key '{}'{}", setting.origin, printable(setting.name),
                                 base::did_you_mean(setting.name, words))};
        }
        if (!file.settings.rule_settings.empty()) ignored_.emplace_back("rule");
        if (!ignored_.empty())
            console.warn(base::format("{}: what a running training cannot take on is left as it is: {}",
                                      printable(file.path), base::join(ignored_, ", ")));
        TRAINDBG_RETURN_IF_ERROR(options_->apply(file.settings.options));
        options_->apply_rest(file.settings);
        return Status::ok();
    }

    [[nodiscard]] Status check_goes_on(const read::Run& run) const {
        const bool is_closed = !run.workers().empty() && run.is_complete();
        const RunState state = state_of_run(path_, is_closed, files_);
        if ((state == RunState::kRunning || state == RunState::kWaiting) && !is_closed) return Status::ok();
        return {
            Code::kUnavailable,
            base::format("{}: the training does not record any more ({}), so nothing of it can be changed; "
                         "traindbg set {} shows what was captured",
                         printable(base_name(path_)), to_string(state), printable(run_))};
    }

    // Puts the change into the run and tells the training.
    int change(const storage::RunLayout& layout, read::Run& run, Console& console) {
        // Two at a time would take the same number. plan.json itself is never replaced.
        const auto lock = files_.try_lock(layout.plan_json(), storage::LockFile::kMustExist);
        if (!lock.is_ok() && lock.status().code() == Code::kUnavailable)
            return fail(console,
                        {Code::kUnavailable, printable(base_name(path_)) +
                                                 ": another traindbg set is changing this plan; try again"});
        const auto before = capture::read_plan_in_force(files_, layout);
        if (!before.is_ok()) return fail(console, before.status());
        const auto after = edited(before->config, edit_);
        if (!after.is_ok()) return fail(console, after.status());
        const std::vector<std::string> lines = differences(before->config, *after);
        const std::uint32_t number = before->number + (lines.empty() ? 0 : 1);
        if (!json_)
            for (const std::string& line : lines) console.out(line + "\n");
        if (lines.empty() || dry_run_) {
            if (json_) print_json(*after, number, lines, {}, false, console);
            else if (lines.empty()) console.out("nothing changes: the plan is like that already\n");
            else console.out("nothing was changed (--dry-run)\n");
            return kExitClean;
        }
        const auto control = storage::ControlBlock::open(layout.control());
        if (!control.is_ok()) return fail(console, control.status());
        const std::uint64_t step = (*control)->step();
        const std::string file = layout.plan_change_json(number);
        if (const Status put =
                files_.put_atomic(file, base::as_bytes(model::to_checked_text(model::to_json(*after))));
            !put.is_ok())
            return fail(console, put);
        (*control)->announce_plan();
        const Answers answers = wait_ > 0 ? wait_for_answers(number, run) : Answers();
        const std::vector<model::WorkerId> silent = still_silent(run, answers);
        const bool is_in_effect = !answers.empty() && silent.empty() &&
                                  std::none_of(answers.begin(), answers.end(),
                                               [](const auto& each) { return each.second.is_refused; });
        if (json_) print_json(*after, number, lines, answers, is_in_effect, console);
        else tell(base_name(file), run, answers, silent, (*control)->step() - step, console);
        return is_in_effect || wait_ == 0 || (answers.empty() && run.workers().empty()) ? kExitClean
                                                                                        : kExitUsage;
    }

    [[nodiscard]] Answers wait_for_answers(std::uint32_t number, read::Run& run) const {
        const std::int64_t deadline =
            base::monotonic_nanos() + static_cast<std::int64_t>(std::min(wait_, 86400.0) * 1e9);
        Answers answers;
        while (!run.workers().empty()) {
            answers = answers_to(number, run);
            const std::int64_t left = deadline - base::monotonic_nanos();
            if (still_silent(run, answers).empty() || left <= 0) break;
            // A look now and then even if nothing is written: a worker may have gone.
            const auto looked = run.wait(std::chrono::nanoseconds(std::min<std::int64_t>(left, 200'000'000)));
            if (!looked.is_ok() && looked.status().code() != Code::kUnavailable) break;
        }
        return answers;
    }

    [[nodiscard]] static std::vector<model::WorkerId> still_silent(const read::Run& run,
                                                                   const Answers& answers) {
        std::vector<model::WorkerId> silent = recording(run);
        std::erase_if(silent, [&](model::WorkerId worker) { return answers.contains(worker); });
        return silent;
    }

    void tell(const std::string& file, const read::Run& run, const Answers& answers,
              const std::vector<model::WorkerId>& silent, std::uint64_t steps_ended, Console& console) const {
        const bool has_several = run.workers().size() > 1;
        std::map<std::uint64_t, std::vector<std::string>> in_effect;
        for (const auto& [worker, answer] : answers) {
            if (answer.is_refused)
                console.warn(
                    base::format("worker {} keeps to the plan before: {}", worker, printable(answer.reason)));
            else in_effect[answer.step].push_back(base::format("{}", worker));
        }
        for (const auto& [step, workers] : in_effect)
            console.out(base::format("in effect from step {}{}\n", step,
                                     has_several ? " in worker " + base::join(workers, ", ") : ""));
        if (run.workers().empty()) {
            console.out(base::format("{}: the training has not begun; it begins by this plan\n", file));
            return;
        }
        if (wait_ == 0) {
            console.out(base::format("{}: announced\n", file));
            return;
        }
        if (silent.empty()) {
            if (answers.empty()) console.warn("the training ended before it took the change on");
            return;
        }
        std::vector<std::string> names;
        for (const model::WorkerId worker : silent) names.push_back(base::format("{}", worker));
        const std::string who =
            has_several ? "worker " + base::join(names, ", ") : std::string("the training");
        if (steps_ended < 3) {
            console.warn(
                base::format("{} has not answered within {} s: it ended {} meanwhile; {} stands, and "
                             "holds from the end of a training step on",
                             who, wait_,
                             steps_ended == 0   ? std::string("no training step")
                             : steps_ended == 1 ? std::string("one training step")
                                                : base::format("{} training steps", steps_ended),
                             file));
            return;
        }
        const std::string& version = run.worker_meta(silent.front()).traindbg;
        console.warn(
            base::format("{} has not answered within {} s, though it ended {} steps: it records with "
                         "traindbg {}, which may know nothing of changed plans",
                         who, wait_, steps_ended, version.empty() ? "?" : printable(version)));
    }

    void print_json(const model::CaptureConfig& plan, std::uint32_t number,
                    const std::vector<std::string>& lines, const Answers& answers, bool is_in_effect,
                    Console& console) const {
        Json workers = Json::array();
        for (const auto& [worker, answer] : answers) {
            Json entry = {{"worker", worker}, {"state", answer.is_refused ? "refused" : "in_effect"}};
            if (answer.is_refused) entry["reason"] = printable(answer.reason);
            else entry["step"] = answer.step;
            workers.push_back(std::move(entry));
        }
        console.out(Json{{"schema_version", 1},
                         {"run", printable(path_)},
                         {"changed", !lines.empty() && !dry_run_},
                         {"dry_run", dry_run_},
                         {"number", number},
                         {"changes", lines},
                         {"in_effect", is_in_effect},
                         {"workers", std::move(workers)},
                         {"ignored", ignored_},
                         {"plan", model::to_json(plan)}}
                        .dump(2) +
                    "\n");
    }

    // The plan in force.
    int show(const storage::RunLayout& layout, Console& console) {
        const auto plan = capture::read_plan_in_force(files_, layout);
        if (!plan.is_ok()) return fail(console, plan.status());
        Answers answers;
        if (plan->number != 0)
            if (const auto run = read::Run::open(path_, files_); run.is_ok())
                answers = answers_to(plan->number, **run);
        if (json_) {
            print_json(plan->config, plan->number, {}, answers, !answers.empty(), console);
            return kExitClean;
        }
        std::string file = plan->number == 0 ? "plan.json" : base_name(layout.plan_change_json(plan->number));
        for (const auto& [worker, answer] : answers)
            file += answer.is_refused  ? base::format(", refused by worker {}", worker)
                    : answer.step != 0 ? base::format(", from step {} on in worker {}", answer.step, worker)
                                       : "";
        console.out(styled(printable(base_name(path_)) + ": " + file, Style::kBold, console.out_colour()) +
                    "\n");
        print_requirements(plan->config, console);
        for (const model::CollectionSpec& spec : plan->config.collections) console.out(in_words(spec) + "\n");
        console.out(base::format("compiled models: {}\n", model::to_string(plan->config.compiled)));
        return kExitClean;
    }

    static void print_requirements(const model::CaptureConfig& plan, Console& console) {
        std::vector<std::vector<std::string>> rows;
        for (const model::Requirement& each : plan.requirements)
            rows.push_back(
                {printable(each.asked_by.empty() ? "?" : each.asked_by), printable(each.collection),
                 model::what_in_words(each.what),
                 each.mode == model::Mode::kGlobal ? "every mode" : std::string(model::to_string(each.mode)),
                 capture::when_in_words(each)});
        // What was asked for by hand first: it is what can be changed here.
        std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
            return (a.back() == "user") > (b.back() == "user");
        });
        rows.insert(rows.begin(), {"collection", "what", "in", "when", "for"});
        std::vector<std::size_t> widths(rows.front().size());
        for (const auto& row : rows)
            for (std::size_t i = 0; i < row.size(); ++i)
                widths[i] = std::max(widths[i], display_width(row[i]));
        for (const auto& row : rows) {
            std::string line;
            for (std::size_t i = 0; i + 1 < row.size(); ++i) line += padded(row[i], widths[i]) + "  ";
            line += row.back();
            console.out(
                styled(line, &row == &rows.front() ? Style::kDim : Style::kPlain, console.out_colour()) +
                "\n");
        }
    }

    OptionSet* options_ = nullptr;  // what `declare` was called with
    std::string run_;
    std::string runs_;
    std::string path_;
    PlanEdit edit_;
    std::string config_;
    std::vector<std::string> ignored_;
    double wait_ = 10;
    bool dry_run_ = false;
    bool json_ = false;
    storage::FileSystem& files_ = storage::posix_file_system();
};

}  // namespace

VerbEntry set_verb() {
    return {.name = "set",
            .summary = "Change what is captured of a training that runs, or show it.",
            .usage = "[options] RUN",
            .about =
                "Changes what is captured from one of the training's next steps on, and says from which. "
                "What you ask for takes the place of what you asked for before of the same collection; what "
                "rules need stays. Steps without names (--every 5 alone) are those of all that you asked "
                "for. Without options it shows what is captured now.",
            .examples =
                "  traindbg set last --collect gradients --every 5\n"
                "  traindbg set last --raw weights --at-steps 5000\n"
                "  traindbg set last --collection 'head=^fc' --histograms head\n"
                "  traindbg set last --drop gradients\n"
                "  traindbg set last --drop-all --config captures.toml\n"
                "  traindbg set last\n",
            .make = []() -> std::unique_ptr<Verb> { return std::make_unique<SetVerb>(); }};
}

}  // namespace traindbg::cli
