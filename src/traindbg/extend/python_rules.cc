#include "traindbg/extend/python_rules.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/extend/host_process.h"
#include "traindbg/extend/protocol.h"
#include "traindbg/extend/shown_step.h"

namespace traindbg::extend {
namespace {

using base::Code;
using base::Result;
using base::Status;

HostOptions options_of(const PythonHost& host) {
    // A supervisor may have been started by a training; what that is told is not for a rule.
    return {.command = host.command, .memory = host.memory, .unset = {"TRAINDBG_RUN_DIR"}};
}

using Needs = std::vector<model::Requirement>;

struct Described {
    std::string source;
    PythonHost host;
    PythonRuleInfo rule;
    Result<Needs> needs;  // with its defaults; as try_rule gives them
};

// What a rule needs, by the object of it that `tried` makes. kUnavailable: its code took too long or too much
// memory, or crashed, so that it is not checked. kInvalidArgument: it raised, or said what makes no sense,
// which is an error of its file.
Result<Needs> try_rule(HostProcess& process, const std::string& tried, const std::string& name,
                       std::chrono::nanoseconds limit) {
    const auto call = [&](std::string_view function, const std::string& request) -> Result<std::string> {
        Result<std::string> answer = process.ask(request, limit);
        const Status done = answer.is_ok() ? done_from_answer(*answer) : answer.status();
        if (done.is_ok()) return answer;
        const bool is_out = !answer.is_ok() || done.code() == Code::kResourceExhausted;
        return Status(is_out ? Code::kUnavailable : Code::kInvalidArgument,
                      base::format("in its `{}`: {}", function, done.message()));
    };
    TRAINDBG_RETURN_IF_ERROR(call("__init__", tried).status());
    TRAINDBG_ASSIGN_OR_RETURN(const std::string answer, call("needs", needs_request()));
    Result<Needs> needs = needs_from_answer(answer, name);
    if (!needs.is_ok()) return Status(Code::kInvalidArgument, "its `needs`: " + needs.status().message());
    return needs;
}

// The process of one rule with its parameters.
class Session {
  public:
    // Errors: as of try_rule.
    static Result<std::shared_ptr<Session>> start(const Described& described,
                                                  const rules::Parameters& parameters) {
        TRAINDBG_ASSIGN_OR_RETURN(auto process, HostProcess::start(options_of(described.host)));
        const PythonRuleInfo& rule = described.rule;
        const auto loaded =
            process->ask(load_request(described.source, rule.class_name, parameters), described.host.to_load);
        const Status done = loaded.is_ok() ? done_from_answer(*loaded) : loaded.status();
        if (!done.is_ok())
            return Status(Code::kUnavailable, "while its file was imported: " + done.message());
        TRAINDBG_ASSIGN_OR_RETURN(
            Needs needs, try_rule(*process, try_loaded_request(), rule.info.name, described.host.for_step));
        return std::shared_ptr<Session>(new Session(std::move(process), std::move(needs)));
    }

    [[nodiscard]] const Needs& needs() const noexcept { return needs_; }
    [[nodiscard]] std::uint64_t next_rule() noexcept { return rules_++; }
    Status make(std::uint64_t rule, model::WorkerId worker, std::chrono::nanoseconds limit) {
        const auto answer = process_->ask(make_request(rule, worker), limit);
        const Status done = answer.is_ok() ? done_from_answer(*answer) : answer.status();
        return done.is_ok() ? done : Status(done.code(), "in its `__init__`: " + done.message());
    }
    Result<Judgement> ask(std::string_view request, std::chrono::nanoseconds limit) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::string answer, process_->ask(request, limit));
        return judgement_from_answer(answer);
    }

  private:
    Session(std::unique_ptr<HostProcess> process, Needs needs)
        : process_(std::move(process)), needs_(std::move(needs)) {}
    std::unique_ptr<HostProcess> process_;
    Needs needs_;
    std::uint64_t rules_ = 0;
};

// What all objects of one rule share.
class Shared {
  public:
    explicit Shared(Described described) : described_(std::move(described)) {
        if (!described_.needs.is_ok())
            lose(rules::defaults_of(described_.rule.info), described_.needs.status());
    }

    [[nodiscard]] const Described& described() const noexcept { return described_; }
    // The one that runs with these parameters, or a new one. An error is remembered: what hung once is not
    // waited for once more by each worker.
    Result<std::shared_ptr<Session>> session(const rules::Parameters& parameters) {
        if (auto running = running_.lock(); running && parameters == running_with_) return running;
        if (const Status status = lost(parameters); !status.is_ok()) return status;
        auto started = Session::start(described_, parameters);
        if (!started.is_ok()) {
            lose(parameters, started.status());
            return started;
        }
        running_ = *started;
        running_with_ = parameters;
        return started;
    }
    // Why there is none with these parameters, where that is known.
    [[nodiscard]] Status lost(const rules::Parameters& parameters) const {
        return parameters == lost_with_ ? lost_ : Status::ok();
    }
    // None of one that will not be checked.
    Result<Needs> needs(const rules::Parameters& parameters) {
        Result<Needs> needs = described_.needs;
        if (parameters != rules::defaults_of(described_.rule.info)) {
            const auto started = session(parameters);
            if (started.is_ok()) needs = (*started)->needs();
            else needs = started.status();
        }
        if (needs.is_ok()) return needs;
        if (needs.status().code() == Code::kUnavailable) return Needs();
        return Status(needs.status().code(),
                      base::format("{}: rule {}: {}", base::printable(described_.source),
                                   described_.rule.info.name, needs.status().message()));
    }

  private:
    void lose(const rules::Parameters& parameters, const Status& why) {
        lost_with_ = parameters;
        lost_ = why;
    }

    Described described_;
    std::weak_ptr<Session> running_;
    rules::Parameters running_with_;
    rules::Parameters lost_with_;
    Status lost_;
};

class PythonRule final : public rules::Rule {
  public:
    PythonRule(std::shared_ptr<Shared> shared, rules::Parameters parameters)
        : shared_(std::move(shared)), parameters_(std::move(parameters)) {}

    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        if (!failure_.empty() || (!session_ && !begin(step.worker))) return;
        const ShownStep& shown = filter_->show(step);
        if (shown.empty()) return;
        ++shown_;
        const auto where = [&](const std::string& why) {
            failure_ =
                base::format("failed at {} step {}: {}", model::to_string(step.mode()), step.step(), why);
        };
        const auto request = encoder_.encode(number_, shown);
        if (!request.is_ok()) return where(request.status().message());
        const auto judgement = session_->ask(*request, limit());
        if (!judgement.is_ok()) return where(judgement.status().message());
        take(*judgement, sink);
    }

    void on_end(rules::FindingSink& sink) override {
        // It may have been lost without a step to say so at.
        if (const Status lost = shared_->lost(parameters_); failure_.empty() && !session_ && !lost.is_ok())
            failure_ = before_the_first(lost);
        if (!failure_.empty() || !session_) return;
        const auto judgement = session_->ask(end_request(number_), limit());
        if (!judgement.is_ok()) failure_ = "failed at the end: " + judgement.status().message();
        else take(*judgement, sink);
    }

    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (shown_ == 0) return "nothing that it needs was recorded";
        return why_not_.empty() ? "no step gave it anything to judge" : why_not_;
    }
    [[nodiscard]] std::string failure() const override { return failure_; }

  private:
    static std::string before_the_first(const Status& status) {
        return "failed before the first step, " + status.message();
    }

    // Whether the process is there, and has an object of the rule for this worker.
    bool begin(model::WorkerId worker) {
        auto session = shared_->session(parameters_);
        if (!session.is_ok()) {
            failure_ = before_the_first(session.status());
            return false;
        }
        number_ = (*session)->next_rule();
        if (const Status made = (*session)->make(number_, worker, limit()); !made.is_ok()) {
            failure_ = before_the_first(made);
            return false;
        }
        session_ = std::move(session).value();
        filter_.emplace(session_->needs(), shared_->described().rule.everything);
        return true;
    }
    [[nodiscard]] std::chrono::nanoseconds limit() const { return shared_->described().host.for_step; }

    void take(const Judgement& judgement, rules::FindingSink& sink) {
        if (judgement.judged) ++judged_;
        else if (!judgement.why_not.empty()) why_not_ = judgement.why_not;
        for (const auto& event : judgement.events) {
            if (const auto* finding = std::get_if<model::Finding>(&event)) sink.fire(*finding);
            else sink.clear(std::get<Cleared>(event).key);
        }
    }

    std::shared_ptr<Shared> shared_;
    rules::Parameters parameters_;
    std::shared_ptr<Session> session_;
    std::uint64_t number_ = 0;
    std::optional<StepFilter> filter_;
    StepEncoder encoder_;
    std::uint64_t shown_ = 0;
    std::uint64_t judged_ = 0;
    std::string why_not_;
    std::string failure_;
};

}  // namespace

Result<std::vector<rules::RuleEntry>> load_python_rules(const std::string& source, const PythonHost& host) {
    const auto in_source = [&](const Status& status) {
        return Status(status.code(), base::format("{}: {}", base::printable(source), status.message()));
    };
    std::unique_ptr<HostProcess> process;
    const auto describe = [&]() -> Result<std::vector<PythonRuleInfo>> {
        TRAINDBG_ASSIGN_OR_RETURN(process, HostProcess::start(options_of(host)));
        TRAINDBG_ASSIGN_OR_RETURN(const std::string answer,
                                  process->ask(describe_request(source), host.to_load));
        return rules_from_answer(answer);
    };
    auto described = describe();
    if (!described.is_ok()) return in_source(described.status());
    if (described->empty())
        return in_source(
            {base::Code::kInvalidArgument,
             "has no rule: no class derived from traindbg.rules.Rule; see `traindbg rules new`"});
    std::vector<rules::RuleEntry> entries;
    for (PythonRuleInfo& rule : *described) {
        // The one before may have taken the process with it.
        if (!process->is_running())
            if (const auto again = describe(); !again.is_ok()) return in_source(again.status());
        auto needs = try_rule(*process, try_request(rule.class_name), rule.info.name, host.for_step);
        auto shared = std::make_shared<Shared>(Described{source, host, std::move(rule), std::move(needs)});
        const PythonRuleInfo& known = shared->described().rule;
        rules::RuleEntry entry;
        entry.info = &known.info;  // lives as long as the functions that hold `shared`
        const Result<Needs>& asked = shared->described().needs;
        const auto needs_raw = [](const auto& need) { return has(need.what, model::What::kRaw); };
        // Of one that cannot begin with its defaults it is not known.
        entry.wants_raw =
            known.everything || !asked.is_ok() || std::any_of(asked->begin(), asked->end(), needs_raw);
        entry.needs = [shared](const rules::Parameters& parameters) { return shared->needs(parameters); };
        entry.make = [shared](const rules::Parameters& parameters) {
            return std::make_unique<PythonRule>(shared, parameters);
        };
        entry.origin = source;
        entry.outlives_trainings = true;  // it is not told where another one begins
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace traindbg::extend
