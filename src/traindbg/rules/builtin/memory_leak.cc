// Graphs of losses, or parts of them, that are kept: memory grows with every step, or with every evaluation.

#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kMemoryLeak = {
    .name = "memory_leak",
    .title = "Memory leak",
    .summary = "Losses are kept with the graphs that they were computed by, which are never freed.",
    .when =
        "The graphs of losses, or parts of them, are still in memory long after they should have been "
        "freed: nine in ten or more of those that were marked.\n"
        "- Marked: the graphs of losses at the first ten steps, then at every 25th, and in evaluations.\n"
        "- After a backward pass (warning): of the marked graphs at least `graphs` are still there two or "
        "more steps after a backward pass went through them. This is judged after two epochs (after "
        "`steps` steps where their length is not known), or at the end of a run of 50 or more steps.\n"
        "- Without a backward pass (warning): at least three marked graphs that no backward pass went "
        "through are still there 20 or more steps after they were computed.\n"
        "- Memory: there is no threshold on how much of it is used.",
    .why =
        "A loss's graph holds the activations that its backward pass needs, and after that pass its nodes. A "
        "list or a sum of losses keeps all of them: memory grows until the process is killed, hours into a "
        "training.",
    .fix =
        "Keep numbers, not losses: total += loss.item(), history.append(loss.detach()); of features "
        "x.detach(). Compute evaluations under torch.no_grad().",
    .healthy =
        "The last losses, which a variable or a window still names; losses of an epoch that are let go at "
        "its end; losses that were detached.",
    .cost =
        "A walk along one path of the loss's graph, and a weak reference, at the steps that are looked at.",
    .original = "",
    .source =
        "PyTorch, \"Frequently asked questions: my model reports cuda runtime error(2): out of memory\"",
    .severity = model::Severity::kWarning,
    .parameters = {{"graphs", "graphs", 8, 3, 200, "that are kept"},
                   {"steps", "steps", 200, 20, 1e9, "of a training whose epochs' length is not known"}},
};

class MemoryLeak final : public Rule {
  public:
    explicit MemoryLeak(const Parameters& parameters)
        : graphs_(parameters.at("graphs")), steps_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        for (const char* name : {"batches_in_loader", "batches_in_storage"})
            if (const std::optional<LoopFact> batches = loop_fact(step, name))
                epoch_ = std::max(epoch_, batches->value);
        now_ = step.step();
        const std::vector<LoopFact> held = loop_facts(step, "graphs_held");
        if (held.empty()) return;
        ++judged_;
        for (const LoopFact& marked : loop_facts(step, "graphs_marked")) {
            const auto same = std::find_if(held.begin(), held.end(),
                                           [&](const LoopFact& fact) { return fact.place == marked.place; });
            if (same == held.end()) continue;
            Count& count = marked.place.empty() ? in_training_ : unused_;
            if (count.marked < 0) {
                count.gone = marked.value - same->value;
                count.first = now_;
            }
            count.held = same->value;
            count.marked = marked.value - count.gone;
        }
        const double enough = epoch_ > 1 ? 2 * epoch_ : steps_;
        judge(kUnused, unused_, sink);
        if (static_cast<double>(now_) >= enough) judge(kTraining, in_training_, sink);
    }
    void on_end(FindingSink& sink) override {
        if (now_ + 1 >= kShort) judge(kTraining, in_training_, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss with a graph was seen some steps later";
    }

  private:
    struct Count {
        double held = 0, marked = -1;  // since the first look; negative before it
        double gone = 0;               // by then, such as those of another training
        model::StepIndex first = 0;
    };
    static constexpr const char* kUnused = "without_backward";
    static constexpr const char* kTraining = "training";
    static constexpr double kNearlyAll = 0.9;
    static constexpr double kFewUnused = 3;
    static constexpr model::StepIndex kShort = 50;

    void judge(const char* key, const Count& count, FindingSink& sink) const {
        if (count.marked <= 0) return;
        const bool is_unused = key == kUnused;
        if (count.held < (is_unused ? kFewUnused : graphs_) || count.held < kNearlyAll * count.marked)
            return sink.clear(key);
        model::Finding finding;
        finding.key = key;
        finding.severity = model::Severity::kWarning;
        finding.first_step = count.first;
        finding.tensor = "loop/graphs_held";
        if (is_unused) finding.tensor += "/without_backward";
        finding.message = base::format(
            "Of {:.0f} losses {} that were looked at, {:.0f} are still there at step {}, with the graphs "
            "that they were computed by, or a part of them{}.",
            count.marked, is_unused ? "without a backward pass" : "of training steps", count.held, now_,
            is_unused ? ": with all activations, which only a backward pass frees" : "");
        finding.fix =
            is_unused
                ? "Compute evaluations under torch.no_grad(), and keep loss.item()."
                : "Keep numbers, not losses: total += loss.item(). Of outputs and features (those that a "
                  "hook takes, too) keep x.detach(), and not of all steps.";
        finding.evidence.push_back({"graphs kept", count.held, "of", count.marked});
        finding.plots = {{finding.tensor, "value"}};
        sink.fire(std::move(finding));
    }

    double graphs_, steps_, epoch_ = 0;
    std::uint64_t judged_ = 0;
    model::StepIndex now_ = 0;
    Count in_training_, unused_;
};

std::vector<model::Requirement> memory_leak_needs(const Parameters&) {
    return {loop_requirement(kMemoryLeak.name), loop_requirement(kMemoryLeak.name, model::Mode::kEval)};
}

}  // namespace

RuleEntry builtin::memory_leak() {
    return {&kMemoryLeak, &memory_leak_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<MemoryLeak>(p); }};
}

}  // namespace traindbg::rules
