// Judges a run by processes: the rules are dealt out over them, each follows the run by itself, and what they
// say becomes one verdict, that of one engine with all of the rules.
//
// A process that ends before it is done, or says nothing for `patience`, costs its rules and no more: they
// are not checked, with the reason. Whatever becomes of us, the processes end with us.
//
// Thread-safety: one thread at a time. Errors: `status`; a process that fails is told to the trouble
// listener.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/cli/judging.h"
#include "traindbg/engine/judge.h"
#include "traindbg/rules/rule.h"

namespace traindbg::cli {

class SpreadJudge final : public engine::Judge {
  public:
    // Starts the processes. `is_live`: they follow the run until `finish`; else they judge what is there.
    // kInvalidArgument, kNotFound: what `Engine::make` says of the rules.
    [[nodiscard]] static base::Result<std::unique_ptr<SpreadJudge>> start(
        const std::string& run, const std::vector<rules::RuleChoice>& choices, const Spreading& spreading,
        bool is_live);
    ~SpreadJudge() override;  // ends those that are left

    void set_listener(Listener listener) override;
    // A rule that fails in its process is told as a trouble, by that process.
    void set_failure_listener(FailureListener listener) override;
    void set_trouble_listener(std::function<void(const std::string& what)> listener);
    // The processes see all this by themselves.
    void on_step(const model::StepView& step) override;
    void on_time(std::int64_t wall_nanos) override;
    void on_end() override;
    [[nodiscard]] model::Verdict verdict() const override;

    // Becomes readable when a process has said something; also part of an epoll set of the caller.
    [[nodiscard]] int wake_descriptor() const noexcept;
    // Takes what was said, without waiting, and looks after those that say nothing.
    void attend();
    // The same, waiting up to `patience` for something.
    void attend(std::chrono::nanoseconds patience);
    // Nobody writes the run any more: they take the rest.
    void finish();
    // They take no more of it.
    void leave();
    // All of them have said all, or have ended.
    [[nodiscard]] bool is_done() const noexcept;
    // Why the run could not be judged: what they failed with, where all of them did.
    [[nodiscard]] base::Status status() const;
    // Up to which step of worker 0 all of them have judged.
    [[nodiscard]] std::optional<model::StepIndex> newest_step() const;
    // Once done.
    [[nodiscard]] const Unseen& unseen() const noexcept;

  private:
    class Impl;
    explicit SpreadJudge(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::cli
