// Runs rules over steps and keeps what they found.
//
// The same engine judges a live run (fed from RunTail) and a stored one (fed from Run): findings
// depend on the steps alone, so both give the same. Each training of each worker's process has its own
// objects of each rule; one that sees all workers has one, one that outlives trainings one for each worker.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/engine/judge.h"
#include "traindbg/engine/moment.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/rule.h"

namespace traindbg::engine {

class Engine final : public Judge {
  public:
    // kNotFound: no such rule; kInvalidArgument: a bad parameter, or a rule chosen twice. `known` is the
    // table of rules to choose from; it must outlive the engine.
    [[nodiscard]] static base::Result<std::unique_ptr<Engine>> make(
        const std::vector<rules::RuleChoice>& choices,
        const std::vector<rules::RuleEntry>& known = rules::all_rules());
    ~Engine() override;

    void set_listener(Listener listener) override;
    void set_failure_listener(FailureListener listener) override;
    // The run began so late (Unix time, nanoseconds). To be called first, where that is known.
    void on_begin(std::int64_t wall_nanos);
    void on_step(const model::StepView& step) override;
    void on_time(std::int64_t wall_nanos) override;
    void on_end() override;
    [[nodiscard]] model::Verdict verdict() const override;
    [[nodiscard]] std::uint64_t steps_judged() const;

    // The parts of the verdict, for who puts several engines together (merged_verdict.h). Valid until the
    // next step. The findings are in the order in which they were first seen, and those that were over before
    // they fired (resolved, 0 times) are among them.
    [[nodiscard]] const std::vector<model::Finding>& findings() const noexcept;
    // Of each of the findings: when it fired, and how often it was changed since.
    struct Trace {
        Moment moment;
        std::uint64_t changes = 0;
    };
    [[nodiscard]] const std::vector<Trace>& traces() const noexcept;
    [[nodiscard]] std::vector<model::RuleOutcome> outcomes() const;
    // Of the first worker that was shown; what causes are drawn from.
    [[nodiscard]] const model::WorkerMeta& meta() const noexcept;

  private:
    class Impl;
    explicit Engine(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

// Feeds all of a source to an engine, then ends it. The whole of `traindbg check`. `after_step` is called
// after each of them.
[[nodiscard]] base::Status judge(model::StepSource& source, Judge& engine,
                                 const std::function<void()>& after_step = {});

}  // namespace traindbg::engine
