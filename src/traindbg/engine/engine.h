// Runs rules over steps and keeps what they found.
//
// The same engine judges a live run (fed from RunTail) and a stored one (fed from Run): findings
// depend on the steps alone, so both give the same. Each worker has its own objects of each rule.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/rule.h"

namespace traindbg::engine {

class Engine {
  public:
    // Called when a finding begins to fire (once per finding), and when it is resolved.
    using Listener = std::function<void(const model::Finding&)>;

    // kNotFound: no such rule; kInvalidArgument: a bad parameter, or a rule chosen twice. `known` is the
    // table of rules to choose from; it must outlive the engine.
    [[nodiscard]] static base::Result<std::unique_ptr<Engine>> make(
        const std::vector<rules::RuleChoice>& choices,
        const std::vector<rules::RuleEntry>& known = rules::all_rules());
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine();

    void set_listener(Listener listener);
    // Called when a rule failed and is taken out: it judges no more.
    using FailureListener = std::function<void(const std::string& rule, const std::string& why)>;
    void set_failure_listener(FailureListener listener);
    void on_step(const model::StepView& step);
    // It is so late (Unix time, nanoseconds), and there is no new step.
    void on_time(std::int64_t wall_nanos);
    // The training is over: gives rules their last word. Idempotent.
    void on_end();

    // Findings in the order in which they fired, an outcome for every rule, likely causes. At any time.
    [[nodiscard]] model::Verdict verdict() const;
    [[nodiscard]] std::uint64_t steps_judged() const;

  private:
    class Impl;
    explicit Engine(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

// Feeds all of a source to an engine, then ends it. The whole of `traindbg check`.
[[nodiscard]] base::Status judge(model::StepSource& source, Engine& engine);

}  // namespace traindbg::engine
