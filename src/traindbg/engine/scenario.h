// Trainings as text: series in, findings out. The format is described in tests/scenarios/README.md. Rules are
// tested by them: ours in engine_test, those of users by `traindbg rules test`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/rule.h"

namespace traindbg::scenario {

// One line of what must come out.
struct Expectation {
    int line = 0;
    std::string what;                               // "finding", "quiet", "clean", "not_checked", "cause"
    std::string subject;                            // rule or cause
    std::map<std::string, std::string> conditions;  // "severity" -> "error", "message" -> part of it
};

// A step of one worker.
struct Recorded {
    model::WorkerId worker = 0;
    model::StepRecord record;
};

struct Scenario {
    std::string title;
    std::map<model::WorkerId, model::WorkerMeta> workers;  // at least one
    model::TensorTable tensors;                            // of all workers
    std::vector<Recorded> steps;                           // in recorded order; those of workers take turns
    std::vector<rules::RuleChoice> rules;
    std::vector<Expectation> expectations;
};

// Errors name the line.
[[nodiscard]] base::Result<Scenario> parse(std::string_view text);
// Runs the scenario's rules over its steps.
[[nodiscard]] base::Result<model::Verdict> run(const Scenario& scenario);
// A sentence for everything that did not come out as expected.
[[nodiscard]] std::vector<std::string> mismatches(const Scenario& scenario, const model::Verdict& verdict);
// All that came out, one line each.
[[nodiscard]] std::string describe(const model::Verdict& verdict);

// The scenario's steps as a source.
class ScenarioSource final : public model::StepSource {
  public:
    explicit ScenarioSource(const Scenario& scenario) : scenario_(scenario) {}
    [[nodiscard]] base::Result<std::optional<model::StepView>> next(std::chrono::nanoseconds) override {
        if (ended()) return std::optional<model::StepView>();
        const Recorded& step = scenario_.steps[next_++];
        return std::optional(model::StepView{step.worker, &step.record, &scenario_.tensors,
                                             &scenario_.workers.at(step.worker)});
    }
    [[nodiscard]] bool ended() const override { return next_ == scenario_.steps.size(); }

  private:
    const Scenario& scenario_;
    std::size_t next_ = 0;
};

}  // namespace traindbg::scenario
