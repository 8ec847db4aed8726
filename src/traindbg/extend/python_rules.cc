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

using base::Result;
using base::Status;

HostOptions options_of(const PythonHost& host) {
    // A supervisor may have been started by a training; what that is told is not for a rule.
    return {.command = host.command, .memory = host.memory, .unset = {"TRAINDBG_RUN_DIR"}};
}

struct Described {
    std::string source;
    PythonHost host;
    PythonRuleInfo rule;
};

// The process of one rule with its parameters.
class Session {
  public:
    static Result<std::shared_ptr<Session>> start(const Described& described,
                                                  const rules::Parameters& parameters) {
        TRAINDBG_ASSIGN_OR_RETURN(auto process, HostProcess::start(options_of(described.host)));
        TRAINDBG_ASSIGN_OR_RETURN(
            const std::string answer,
            process->ask(load_request(described.source, described.rule.class_name, parameters),
                         described.host.to_load));
        TRAINDBG_ASSIGN_OR_RETURN(auto needs, needs_from_answer(answer, described.rule.info.name));
        return std::shared_ptr<Session>(new Session(std::move(process), std::move(needs)));
    }

    [[nodiscard]] const std::vector<model::Requirement>& needs() const noexcept { return needs_; }
    [[nodiscard]] std::uint64_t next_rule() noexcept { return rules_++; }
    Result<Judgement> ask(std::string_view request, std::chrono::nanoseconds limit) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::string answer, process_->ask(request, limit));
        return judgement_from_answer(answer);
    }

  private:
    Session(std::unique_ptr<HostProcess> process, std::vector<model::Requirement> needs)
        : process_(std::move(process)), needs_(std::move(needs)) {}
    std::unique_ptr<HostProcess> process_;
    std::vector<model::Requirement> needs_;
    std::uint64_t rules_ = 0;
};

// What all objects of one rule share.
class Shared {
  public:
    explicit Shared(Described described) : described_(std::move(described)) {}

    [[nodiscard]] const Described& described() const noexcept { return described_; }
    // The one that runs with these parameters, or a new one.
    Result<std::shared_ptr<Session>> session(const rules::Parameters& parameters) {
        if (auto running = running_.lock(); running && parameters == running_with_) return running;
        TRAINDBG_ASSIGN_OR_RETURN(auto started, Session::start(described_, parameters));
        running_ = started;
        running_with_ = parameters;
        return started;
    }
    Result<std::vector<model::Requirement>> needs(const rules::Parameters& parameters) {
        if (parameters == rules::defaults_of(described_.rule.info)) return described_.rule.needs;
        auto started = session(parameters);
        if (!started.is_ok()) return in_rule(started.status());
        return (*started)->needs();
    }
    [[nodiscard]] Status in_rule(const Status& status) const {
        return {status.code(), base::format("{}: rule {}: {}", base::printable(described_.source),
                                            described_.rule.info.name, status.message())};
    }

  private:
    Described described_;
    std::weak_ptr<Session> running_;
    rules::Parameters running_with_;
};

class PythonRule final : public rules::Rule {
  public:
    PythonRule(std::shared_ptr<Shared> shared, rules::Parameters parameters)
        : shared_(std::move(shared)), parameters_(std::move(parameters)) {}

    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        if (!failure_.empty() || (!session_ && !begin())) return;
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
        if (judgement->judged) ++judged_;
        else if (!judgement->why_not.empty()) why_not_ = judgement->why_not;
        take(*judgement, sink);
    }

    void on_end(rules::FindingSink& sink) override {
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
    // Whether the process is there, and has an object of the rule for this worker.
    bool begin() {
        auto session = shared_->session(parameters_);
        if (!session.is_ok()) {
            failure_ = "could not be loaded: " + session.status().message();
            return false;
        }
        number_ = (*session)->next_rule();
        const auto made = (*session)->ask(make_request(number_), limit());
        if (!made.is_ok()) {
            failure_ = "could not be made: " + made.status().message();
            return false;
        }
        session_ = std::move(session).value();
        filter_.emplace(session_->needs(), shared_->described().rule.everything);
        return true;
    }
    [[nodiscard]] std::chrono::nanoseconds limit() const { return shared_->described().host.for_step; }

    static void take(const Judgement& judgement, rules::FindingSink& sink) {
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
    auto process = HostProcess::start(options_of(host));
    if (!process.is_ok()) return in_source(process.status());
    const auto answer = (*process)->ask(describe_request(source), host.to_load);
    if (!answer.is_ok()) return in_source(answer.status());
    auto described = rules_from_answer(*answer);
    if (!described.is_ok()) return in_source(described.status());
    if (described->empty())
        return in_source(
            {base::Code::kInvalidArgument,
             "has no rule: no class derived from traindbg.rules.Rule; see `traindbg rules new`"});
    std::vector<rules::RuleEntry> entries;
    for (PythonRuleInfo& rule : *described) {
        auto shared = std::make_shared<Shared>(Described{source, host, std::move(rule)});
        const PythonRuleInfo& known = shared->described().rule;
        rules::RuleEntry entry;
        entry.info = &known.info;  // lives as long as the functions that hold `shared`
        entry.wants_raw = known.everything ||
                          std::any_of(known.needs.begin(), known.needs.end(),
                                      [](const auto& need) { return has(need.what, model::What::kRaw); });
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
