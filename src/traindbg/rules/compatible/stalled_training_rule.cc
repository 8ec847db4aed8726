// StalledTrainingRule: a training that does not go on.

#include <map>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleStalledTraining = {
    .name = "StalledTrainingRule",
    .title = "Stalled training",
    .summary = "No step came for long.",
    .when =
        "No process of the training recorded anything for `threshold` seconds, since its last step or, "
        "before "
        "the first one, since the run began; or a process did not between two of its steps. With "
        "`stop_training_on_fire` the run is stopped then, where its name begins with "
        "`training_job_name_prefix`.",
    .why = "A training that waits for a lock, a disk or another machine costs what a running one does.",
    .fix = "Look at where it waits: py-spy dump --pid PID shows it.",
    .healthy =
        "Long evaluations and the saving of checkpoints, which record nothing meanwhile; a data set that "
        "takes "
        "long to be loaded before the first step.",
    .cost = "The losses at every 500th step of each mode; any other record is a sign of life, too.",
    .original = "StalledTrainingRule",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"threshold", "s", 1800, 1, 1e9, "seconds without a record", model::ParameterType::kWhole},
                   {"stop_training_on_fire", "", false, 0, 0,
                    "stop the run when it fires, as `--on-finding stop` does", model::ParameterType::kFlag},
                   {"training_job_name_prefix",
                    "",
                    {},
                    0,
                    0,
                    "stop it only where the run's name, or TRAINING_JOB_NAME, begins with this",
                    model::ParameterType::kText}},
    .readings =
        "Time is that in the records: from the end of one recorded step of a process to the end of its next. "
        "In a run that is followed while it grows, it goes on from the newest record of all processes to "
        "now, "
        "in one that is stored, to its end; a run that has no record yet is judged from when it began. So "
        "`threshold` must be longer than what passes between two records, and than it takes to begin. With "
        "`stop_training_on_fire`, `traindbg run` ends a training that comes to no step any more: SIGTERM 30 "
        "seconds after it was asked to stop, or `--stop-grace`, and SIGKILL after as long again. `traindbg "
        "watch` only asks. A prefix is compared without regard to case.",
};

class StalledTrainingRule final : public CompatibleRule {
  public:
    explicit StalledTrainingRule(const Parameters& parameters)
        : CompatibleRule("fewer than two steps with a time were recorded"),
          seconds_(parameters.at("threshold")) {}

    void on_begin(std::int64_t wall_nanos) override { began_ = wall_nanos; }

    void on_step(const model::StepView& step, FindingSink& sink) override {
        const Sign sign{step.worker, step.mode(), step.step(), step.record->wall_nanos};
        if (sign.wall_nanos == 0) return;
        const auto [place, is_first] = last_.try_emplace(step.worker, sign);
        // Where the first steps were removed, the time before them tells nothing.
        const bool is_first_of_all = !newest_ && step.record->sequence == 0 && began_ != 0;
        const std::optional<Sign> before = is_first ? std::nullopt : std::optional(place->second);
        if ((before || is_first_of_all) && !judge(before, sign.wall_nanos, sign, sink)) pass(sink);
        place->second = sign;
        if (!newest_ || sign.wall_nanos > newest_->wall_nanos) newest_ = sign;
    }
    void on_time(std::int64_t wall_nanos, FindingSink& sink) override {
        if (newest_) static_cast<void>(judge(newest_, wall_nanos, *newest_, sink));
        else if (began_ != 0) static_cast<void>(judge(std::nullopt, wall_nanos, {}, sink));
    }

  private:
    // A step, as a sign of life.
    struct Sign {
        model::WorkerId worker = 0;
        model::Mode mode = model::Mode::kTrain;
        model::StepIndex step = 0;
        std::int64_t wall_nanos = 0;
    };

    // Whether nothing came for too long, from `before` (nothing: the beginning) to `now`. `seen`: the step at
    // which that is seen.
    bool judge(const std::optional<Sign>& before, std::int64_t now, const Sign& seen, FindingSink& sink) {
        const std::int64_t since = before ? before->wall_nanos : began_;
        const double waited = static_cast<double>(now - since) / 1e9;
        if (waited < seconds_) return false;
        model::Finding finding;
        finding.worker = seen.worker;
        finding.mode = seen.mode;
        finding.last_step = seen.step;
        finding.message =
            before ? base::format("Nothing was recorded for {:.0f} s after step {}.", waited, before->step)
                   : base::format("Nothing was recorded for {:.0f} s after the run began.", waited);
        finding.fix = kCompatibleStalledTraining.fix;
        finding.evidence.push_back({"seconds without a record", waited, "limit", seconds_});
        fire(sink, std::move(finding));
        return true;
    }

    double seconds_;
    std::int64_t began_ = 0;  // 0: not known
    std::map<model::WorkerId, Sign> last_;
    std::optional<Sign> newest_;  // of all workers
};

std::vector<model::Requirement> compatible_stalled_training_needs(const Parameters&) {
    return {{"losses",
             model::Mode::kGlobal,
             model::What::kStatistics,
             {.every = kSaveInterval},
             kCompatibleStalledTraining.name}};
}

}  // namespace

RuleEntry stalled_training_rule() {
    return {.info = &kCompatibleStalledTraining,
            .needs = &compatible_stalled_training_needs,
            .make = [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<StalledTrainingRule>(p);
            },
            .sees_all_workers = true};
}

}  // namespace traindbg::rules::compatible
