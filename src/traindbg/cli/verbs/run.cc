#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/bootstrap.h"
#include "traindbg/cli/custom_rules.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/notifying.h"
#include "traindbg/cli/other_runs.h"
#include "traindbg/cli/report_file.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/summary.h"
#include "traindbg/cli/supervisor.h"
#include "traindbg/cli/verb.h"
#include "traindbg/options/run_options.h"
#include "traindbg/options/settings_file.h"
#include "traindbg/report/capture_notes.h"
#include "traindbg/seal/sealer.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/sync/upload_thread.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Result;
using base::Status;

class RunVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        options.group("Where it is recorded");
        options.text({.names = "--run-dir",
                      .placeholder = "DIR",
                      .help = "Record into this new or empty directory.",
                      .completes = Completes::kDirectory},
                     run_dir_);
        declare_runs(options, runs_);
        options.text(
            {.names = "--name", .placeholder = "NAME", .help = "Name of the run (default: time and script)."},
            name_);
        given_.declare(options);
        options.group("Settings");
        options.text({.names = "--config",
                      .placeholder = "FILE",
                      .help = "Read options from there (default: TRAINDBG_CONFIG, ./traindbg.toml, or "
                              "[tool.traindbg] of ./pyproject.toml; none: no file). Options of the groups "
                              "above but the first may stand there, or in the environment, as "
                              "TRAINDBG_ON_FINDING.",
                      .completes = Completes::kFile},
                     config_);
        options_ = &options;
        options.group("Output");
        options.text({.names = "--report",
                      .placeholder = "PATH",
                      .help = "Write the HTML report there (default: report.html in the run's directory).",
                      .completes = Completes::kFile},
                     report_);
        options.flag({.names = "--no-report", .help = "Write no report."}, no_report_);
        options.flag(
            {.names = "-q,--quiet", .help = "No status line and no summary; findings are still printed."},
            quiet_);
        options.flag(
            {.names = "--json", .help = "Print the summary as one line of JSON, last on standard output."},
            json_);
        options.command(command_);
    }

    int run(Console& console) override {
        // All that a user may have got wrong is found before anything is started.
        const auto file = options::find_settings(config_);
        if (!file.is_ok()) return fail(console, file.status());
        if (const Status status = options::apply_settings(*file, *options_); !status.is_ok())
            return fail(console, status);
        open_other_runs_below(runs_);
        auto fail_on = parse_fail_on(given_.fail_on);
        if (!fail_on.is_ok()) return fail(console, fail_on.status());
        SupervisorOptions options;
        options.command = command_;
        options.act_at = model::parse_severity(given_.act_at).value_or(model::Severity::kWarning);
        if (given_.stop_grace >= 0)
            options.stop_grace = std::chrono::nanoseconds(static_cast<std::int64_t>(given_.stop_grace * 1e9));
        options.quiet = quiet_;
        if (const Status status = load_custom_rules(given_.rules.custom); !status.is_ok())
            return fail(console, status);
        auto requested = requested_actions(given_.notify, given_.rules);
        if (!requested.is_ok()) return fail(console, requested.status());
        if (const Status status = check_targets(given_.notify, *requested); !status.is_ok())
            return fail(console, status);
        auto choices = given_.rules.choices();
        if (!choices.is_ok()) return fail(console, choices.status());
        for (const std::string& text : given_.rules.set_aside()) console.warn(text);
        for (RuleAction& action : actions_of_parameters(*choices)) requested->push_back(std::move(action));
        options.choices = *choices;
        options.spreading = Spreading::of(given_.rules, runs_);
        auto collections = given_.rules.collections();
        if (!collections.is_ok()) return fail(console, collections.status());
        given_.capture.of_rules = std::move(*collections);
        auto config = given_.capture.config(*choices);
        if (!config.is_ok()) return fail(console, config.status());
        const auto idle = given_.capture.check_schedule();
        if (!idle.is_ok()) return fail(console, idle.status());
        if (!idle->empty()) console.warn(*idle);
        if (const Status status = given_.store.apply(*config); !status.is_ok()) return fail(console, status);
        config->corrections = given_.corrections.corrections(given_.on_finding, given_.dry_run);
        if (!run_dir_.empty() && (!name_.empty() || !runs_.empty()))
            return fail(console,
                        {Code::kInvalidArgument,
                         "--run-dir: says it all; leave out --runs and --name; see traindbg run --help"});
        if (run_dir_.empty() ? is_remote(runs_root(runs_)) : is_remote(run_dir_))
            return fail(console,
                        {Code::kInvalidArgument,
                         base::printable(run_dir_.empty() ? runs_root(runs_) : run_dir_) +
                             ": a run is recorded on this machine; to have it in a bucket as well use "
                             "--upload or TRAINDBG_UPLOAD"});
        if (given_.upload.empty()) given_.upload = aws::process_environment("TRAINDBG_UPLOAD");
        if (!given_.upload.empty())
            if (const auto tried = open_upload_target(given_.upload, "name", given_.endpoint_url);
                !tried.is_ok())
                return fail(console, tried.status());
        auto bootstrap = find_bootstrap(executable_directory());
        if (!bootstrap.is_ok()) return fail(console, bootstrap.status());

        warn_of_unknown_variables(console);
        const Result<std::string> made = make_run(*config);
        if (made.is_ok()) {
            options.run = *made;
            options.run_name = base_name(*made);
            options.environment = {{"TRAINDBG_RUN_DIR", *made},
                                   {"PYTHONPATH", python_path_with(*bootstrap, std::getenv("PYTHONPATH"))}};
        } else if (made.status().code() == Code::kAlreadyExists ||
                   made.status().code() == Code::kInvalidArgument) {
            return fail(console, made.status());
        } else {
            console.warn(made.status().message() + "; the training runs without being recorded");
        }

        if (!given_.upload.empty() && !options.run.empty()) {
            options.on_started = [&] { start_upload(options, console); };
            options.on_look = [&] { tell_upload(options, console); };
        }
        std::unique_ptr<actions::Notifier> notifier;
        std::unique_ptr<MetricsPublisher> metrics;
        if (!options.run.empty()) {
            auto opened = open_notifier(given_.notify, *requested, options.run, files_, given_.dry_run);
            if (opened.is_ok()) notifier = std::move(opened).value();
            else console.warn(opened.status().message());
            metrics = open_metrics(given_.notify, options.run, files_, console);
            options.act = what_to_do(given_.on_finding, *requested, options.run_name,
                                     aws::process_environment("TRAINING_JOB_NAME"));
            options.act.dry_run = given_.dry_run;
            for (const std::string& note : options.act.notes) console.warn(note);
        }
        options.notifier = notifier.get();
        options.metrics = metrics.get();
        options.notify_timeout =
            std::chrono::nanoseconds(static_cast<std::int64_t>(given_.notify.timeout * 1e9));
        const Supervised supervised = supervise(options, console, files_);
        if (supervised.spawn_error != 0) {
            discard_run(options.run);
            console.complain(spawn_failure(command_, supervised.spawn_error));
            return exit_code_of_exec_error(supervised.spawn_error);
        }
        const int code =
            exit_code_of_run({exit_code_of_wait_status(supervised.wait_status), supervised.stopped_by_rule},
                             supervised.verdict, *fail_on);
        if (!options.run.empty()) conclude(options, supervised, code, console);
        if (!console.flush()) console.complain("standard output: could not be written; is the disk full?");
        if (supervised.interrupted && WIFSIGNALED(supervised.wait_status) &&
            WTERMSIG(supervised.wait_status) == SIGINT) {
            // Ctrl-C ended the training: a shell that runs us in a loop must see that it was Ctrl-C.
            ::signal(SIGINT, SIG_DFL);
            ::raise(SIGINT);
        }
        return code;
    }

  private:
    void warn_of_unknown_variables(const Console& console) const {
        std::vector<std::string> environment;
        for (char** each = environ; each != nullptr && *each != nullptr; ++each)
            environment.emplace_back(*each);
        for (const std::string& what : options::unknown_variables(environment, given_.notify.targets))
            console.warn(what);
    }

    // The new run's directory with all that the training needs in it. kAlreadyExists and
    // kInvalidArgument are the user's to mend; any other error is of the file system.
    [[nodiscard]] Result<std::string> make_run(const model::CaptureConfig& config) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::string run, make_directory());
        const Status filled = [&] {
            TRAINDBG_RETURN_IF_ERROR(write_plan(run, config, files_));
            TRAINDBG_RETURN_IF_ERROR(write_run_meta(run, describe_run(base_name(run), command_), files_));
            return storage::ControlBlock::open(storage::RunLayout{run}.control()).status();
        }();
        if (filled.is_ok()) return run;
        discard_run(run);
        if (filled.code() == Code::kAlreadyExists || filled.code() == Code::kInvalidArgument)
            return Status(Code::kUnavailable, filled.message());
        return filled;
    }

    [[nodiscard]] Result<std::string> make_directory() {
        if (!run_dir_.empty()) {
            const std::string run = absolute_path(run_dir_);
            std::error_code error;
            const auto kind = std::filesystem::status(run, error).type();
            if (kind == std::filesystem::file_type::directory) {
                if (auto entries = files_.list(run); entries.is_ok() && !entries->empty())
                    return in_use("--run-dir " + run_dir_);
            } else if (kind != std::filesystem::file_type::not_found &&
                       kind != std::filesystem::file_type::none) {
                return Status(
                    Code::kAlreadyExists,
                    base::format("--run-dir {}: is a file; name a new directory", base::printable(run_dir_)));
            }
            made_directory_ = kind != std::filesystem::file_type::directory;
            TRAINDBG_RETURN_IF_ERROR(file_system_error(files_.create_directories(run)));
            return run;
        }
        const std::string root = absolute_path(runs_root(runs_));
        made_directory_ = true;
        if (!name_.empty()) {
            if (!storage::is_valid_run_id(name_) || name_ == "last")
                return Status(
                    Code::kInvalidArgument,
                    base::format("--name: '{}' cannot be a run's name; use up to 128 letters, digits, '.', "
                                 "'_' and '-', not starting with a dot, and not 'last'",
                                 base::printable(name_)));
            TRAINDBG_RETURN_IF_ERROR(file_system_error(files_.create_directories(root)));
            const Status made = files_.create_directory(root + "/" + name_);
            if (made.code() == Code::kAlreadyExists) return in_use("--name " + name_);
            TRAINDBG_RETURN_IF_ERROR(made);
            return root + "/" + name_;
        }
        TRAINDBG_RETURN_IF_ERROR(file_system_error(files_.create_directories(root)));
        const std::string name = new_run_name(command_, base::wall_nanos());
        for (int attempt = 1;; ++attempt) {
            const std::string run =
                attempt == 1 ? root + "/" + name : base::format("{}/{}-{}", root, name, attempt);
            const Status made = files_.create_directory(run);
            if (made.is_ok()) return run;
            constexpr int kMostAttempts = 1000;
            if (made.code() != Code::kAlreadyExists || attempt == kMostAttempts)
                return file_system_error(made);
        }
    }

    static Status in_use(const std::string& what) {
        return {Code::kAlreadyExists,
                base::format("{}: is in use by an earlier run; take another name, or remove that run first",
                             base::printable(what))};
    }
    // Not the user's spelling but the machine's state: the training goes on without us.
    static Status file_system_error(const Status& status) {
        if (status.code() == Code::kAlreadyExists || status.code() == Code::kInvalidArgument)
            return {Code::kUnavailable, status.message()};
        return status;
    }

    // Takes back what `make_run` made, and nothing else.
    void discard_run(const std::string& run) const {
        if (run.empty()) return;
        const storage::RunLayout layout{run};
        std::error_code error;
        for (const std::string& file :
             {layout.run_json(), layout.plan_json(), layout.control(), layout.verdict_json()})
            std::filesystem::remove(file, error);
        if (made_directory_) std::filesystem::remove(run, error);  // only when it is empty
    }

    void conclude(const SupervisorOptions& options, const Supervised& supervised, int code,
                  Console& console) {
        Summary summary;
        summary.run_name = options.run_name;
        summary.run = shown_path(options.run);
        summary.command = command_;
        summary.exit_code = code;
        summary.supervised = &supervised;
        summary.end.wall_nanos = base::wall_nanos();
        summary.end.exit_code = exit_code_of_wait_status(supervised.wait_status);
        summary.end.stopped_by_rule = supervised.stopped_by_rule;
        summary.end.reason = supervised.stopped_by_rule && supervised.stop_cause
                                 ? "stopped by rule " + supervised.stop_cause->rule
                                 : how_it_ended(supervised);
        summary.is_gone = is_gone(options.run, files_);
        if (summary.is_gone) {
            if (!supervised.is_gone) console.warn(gone_in_words(options.run));
        } else {
            finish_record(options, supervised, summary, console);
        }
        finish_upload(options, summary, console);
        if (!quiet_) console.error(summary_text(summary, console.error_colour(), console.error_columns()));
        if (quiet_ && !supervised.attached)
            console.warn(why_not_attached(command_, exit_code_of_wait_status(supervised.wait_status)));
        if (json_) console.out(summary_json(summary));
    }

    // Its end, its last parts, its report; what is in it, for the summary.
    void finish_record(const SupervisorOptions& options, const Supervised& supervised, Summary& summary,
                       const Console& console) {
        // What a full disk has no room for is told in one line.
        std::vector<std::string> no_room;
        std::string first;
        const auto is_full = [&](const Status& status, std::string what) {
            if (status.code() != Code::kResourceExhausted) return false;
            if (first.empty()) first = status.message();
            no_room.push_back(std::move(what));
            return true;
        };
        if (!supervised.verdict_kept.is_ok())
            is_full(supervised.verdict_kept, "the verdict (findings are printed)");
        if (const Status written = write_run_end(options.run, summary.end, files_);
            !written.is_ok() && !is_full(written, "how the run ended"))
            console.warn(written.message());

        // What a training that was cut off could not seal itself.
        if (const auto sealed = seal::compact_run(files_, options.run); sealed.is_ok()) {
            const std::vector<std::string>& of_room = sealed->problems_of_room;
            for (const std::string& problem : sealed->problems)
                if (std::find(of_room.begin(), of_room.end(), problem) == of_room.end())
                    console.warn(problem);
            if (!of_room.empty())
                is_full({Code::kResourceExhausted, of_room.front()}, "sealed parts (their logs stay)");
        }

        auto run = read::Run::open(options.run, files_);
        if (!run.is_ok()) {
            console.warn(run.status().message());
        } else {
            summary.totals = (*run)->totals();
            summary.train_steps = (*run)->steps(model::Mode::kTrain).size();
            summary.evaluation_steps = (*run)->steps(model::Mode::kEval).size();
            summary.workers = (*run)->worker_gaps();
            summary.damaged_places = (*run)->damage().size();
            summary.cut_off = supervised.attached && !(*run)->is_complete();
            summary.notes = report::capture_notes(**run, shell_word(summary.run));
            if (!no_report_ && supervised.attached) {
                const std::string path =
                    report_.empty() ? storage::RunLayout{options.run}.report_html() : absolute_path(report_);
                if (const Status written = write_report(**run, supervised.verdict, path, files_);
                    written.is_ok())
                    summary.report = shown_path(path);
                else if (!is_full(written, "the report"))
                    console.warn(written.message() + "; the run itself is complete: traindbg report " +
                                 summary.run + " -o FILE");
            }
        }
        if (!no_room.empty())
            console.warn(
                base::format("{}; not written: {}; once there is room: traindbg compact {}, traindbg "
                             "report {}",
                             first, base::join(no_room, ", "), base::printable(summary.run),
                             base::printable(summary.run)));
    }

    // The training runs and must not be told of anything that fails here.
    void start_upload(const SupervisorOptions& options, const Console& console) {
        auto target = open_upload_target(given_.upload, options.run_name, given_.endpoint_url);
        if (!target.is_ok()) {
            console.warn(target.status().message());
            return;
        }
        target_ = std::move(target).value();
        sync::UploadOptions upload;
        upload.run = options.run;
        upload.prefix = target_->prefix;
        uploading_ = std::make_unique<sync::UploadThread>(
            std::move(upload), files_, *target_->store,
            std::chrono::nanoseconds(static_cast<std::int64_t>(given_.upload_interval * 1e9)));
    }

    void tell_upload(const SupervisorOptions& options, const Console& console) {
        if (!uploading_) return;
        if (const auto news = uploading_->news())
            console.warn(
                base::format("{}; the training goes on, the run is kept in {}, uploading is tried again",
                             news->message(), base::printable(shown_path(options.run))));
    }

    void finish_upload(const SupervisorOptions& options, Summary& summary, const Console& console) {
        if (!uploading_) return;
        if (!quiet_ && console.error_is_terminal() && uploading_->counts().bytes_pending > (1U << 20))
            console.error(base::format("traindbg: uploading what is left, {}\n",
                                       base::human_bytes(uploading_->counts().bytes_pending)));
        const Status done = uploading_->finish(
            std::chrono::nanoseconds(static_cast<std::int64_t>(given_.upload_timeout * 1e9)));
        summary.upload_url = target_->url;
        summary.upload_is_whole = done.is_ok();
        summary.upload_objects = uploading_->counts().objects_put;
        summary.upload_bytes = uploading_->counts().bytes_put;
        if (!done.is_ok())
            console.warn(base::format("the upload is not whole ({} to go): {}; to go on: traindbg sync {} {}",
                                      base::human_bytes(uploading_->counts().bytes_pending), done.message(),
                                      base::printable(shown_path(options.run)),
                                      base::printable(target_->url)));
        else if (!quiet_)
            console.error(base::format("traindbg: uploaded to {} ({} objects, {})\n",
                                       base::printable(target_->url), summary.upload_objects,
                                       base::human_bytes(summary.upload_bytes)));
        uploading_.reset();
    }

    // Relative to where the user stands, when that is shorter.
    static std::string shown_path(const std::string& path) {
        std::error_code error;
        const std::string here = std::filesystem::current_path(error).string() + "/";
        return !error && path.starts_with(here) ? path.substr(here.size()) : path;
    }

    options::RunOptions given_;           // on the command line, in the environment, in a settings file
    std::optional<UploadTarget> target_;  // the upload's thread uses it
    std::unique_ptr<sync::UploadThread> uploading_;
    OptionSet* options_ = nullptr;  // what `declare` was called with
    std::string config_;
    std::string run_dir_;
    std::string runs_;
    std::string name_;
    std::string report_;
    bool no_report_ = false;
    bool quiet_ = false;
    bool json_ = false;
    std::vector<std::string> command_;
    bool made_directory_ = false;
    storage::FileSystem& files_ = storage::posix_file_system();
};

}  // namespace

VerbEntry run_verb() {
    return {
        .name = "run",
        .summary = "Run a training and watch it: findings as they appear, a report at the end.",
        .usage = "[options] [--] COMMAND [ARGUMENT...]",
        .about =
            "Starts COMMAND, records what happens inside the model that it trains, judges it step by "
            "step, and says what goes wrong and what to change. The script needs no change. Its exit "
            "code is passed through: 128+n after signal n, 90 when a rule stopped it.",
        .examples =
            "  traindbg run -- python train.py --epochs 3\n"
            "  traindbg run --on-finding stop --act-at error -- python train.py\n"
            "  traindbg run --notify env:SLACK_URL --notify file:findings.jsonl -- python train.py\n"
            "  traindbg run --notify 'smtp://me@mail.example.org?to=me@example.org&password=env:MAIL' -- "
            "python "
            "train.py\n"
            "  traindbg run --notify prometheus:9464 --on-finding stop --stop-grace 120 -- python train.py\n"
            "  traindbg run --collect gradients --every 1 python train.py\n"
            "  traindbg run --rule vanishing_gradient.ratio=1e-5 --no-rule overfit -- python train.py\n"
            "  traindbg run --processes 2 -- python train.py\n"
            "  traindbg run --fail-on error --json -- python train.py | tail -n 1\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<RunVerb>(); }};
}

}  // namespace traindbg::cli
