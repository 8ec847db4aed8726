// StalledTrainingRule: a training that does not go on.

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
        "Nothing was recorded for `threshold` seconds. With `stop_training_on_fire` the original then stops "
        "the job whose name begins with `training_job_name_prefix`.",
    .why = "A training that waits for a lock, a disk or another machine costs what a running one does.",
    .fix = "Look at where it waits: py-spy dump --pid PID shows it.",
    .healthy = "Long evaluations and the saving of checkpoints, which record nothing meanwhile.",
    .cost = "The losses at every 500th step of each mode; any other record is a sign of life, too.",
    .original = "StalledTrainingRule",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters =
        {{"threshold", "s", 1800, 1, 1e9, "seconds without a record", model::ParameterType::kWhole},
         {"stop_training_on_fire", "", false, 0, 0, "of the original's; see `--on-finding`",
          model::ParameterType::kFlag},
         {"training_job_name_prefix", "", {}, 0, 0, "of the original's", model::ParameterType::kText}},
    .readings =
        "Time is that in the records: from the end of one recorded step to the end of the next, and, in a "
        "run that is followed while it grows, to now. So `threshold` must be longer than what passes between "
        "two records. `stop_training_on_fire` and `training_job_name_prefix` are accepted and do nothing: "
        "`--on-finding stop` stops a training.",
};

class StalledTrainingRule final : public CompatibleRule {
  public:
    explicit StalledTrainingRule(const Parameters& parameters)
        : CompatibleRule("fewer than two steps with a time were recorded"),
          seconds_(parameters.at("threshold")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        const std::int64_t now = step.record->wall_nanos;
        if (now == 0) return;
        if (last_ != 0 && !judge(now, sink)) pass(sink);
        last_ = now;
        step_ = step.step();
    }
    void on_time(std::int64_t wall_nanos, FindingSink& sink) override {
        if (last_ != 0) static_cast<void>(judge(wall_nanos, sink));
    }

  private:
    bool judge(std::int64_t now, FindingSink& sink) {
        const double waited = static_cast<double>(now - last_) / 1e9;
        if (waited < seconds_) return false;
        model::Finding finding;
        finding.message = base::format("Nothing was recorded for {:.0f} s after step {}.", waited, step_);
        finding.fix = kCompatibleStalledTraining.fix;
        finding.evidence.push_back({"seconds without a record", waited, "limit", seconds_});
        fire(sink, std::move(finding));
        return true;
    }

    double seconds_;
    std::int64_t last_ = 0;
    model::StepIndex step_ = 0;
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
    return {&kCompatibleStalledTraining, &compatible_stalled_training_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<StalledTrainingRule>(p);
            }};
}

}  // namespace traindbg::rules::compatible
