// Who judges a run step by step: an engine in this process, or several in processes of their own.
//
// Thread-safety: one thread at a time. Errors: none; a rule that fails is told and judges no more.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "traindbg/model/finding.h"
#include "traindbg/model/step_source.h"

namespace traindbg::engine {

class Judge {
  public:
    // Called when the state of a finding changes: it is pending, it fires (`times` says how often it has), it
    // is resolved. One that is resolved and has 0 times never fired.
    using Listener = std::function<void(const model::Finding&)>;
    // Called when a rule failed and is taken out: it judges no more.
    using FailureListener = std::function<void(const std::string& rule, const std::string& why)>;

    Judge() = default;
    Judge(const Judge&) = delete;
    Judge& operator=(const Judge&) = delete;
    virtual ~Judge() = default;

    virtual void set_listener(Listener listener) = 0;
    virtual void set_failure_listener(FailureListener listener) = 0;
    virtual void on_step(const model::StepView& step) = 0;
    // It is so late (Unix time, nanoseconds), and there is no new step.
    virtual void on_time(std::int64_t wall_nanos) = 0;
    // The training is over: gives rules their last word. Idempotent.
    virtual void on_end() = 0;
    // Findings in the order in which they fired, an outcome for every rule, likely causes. At any time.
    [[nodiscard]] virtual model::Verdict verdict() const = 0;
};

}  // namespace traindbg::engine
