// Weights that were kept to go back to them, and are not kept: they are the model's own memory.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kBestWeightsNotKept = {
    .name = "best_weights_not_kept",
    .title = "Best weights not kept",
    .summary =
        "Weights that were kept to go back to are loaded, or saved, and are those of the last step: "
        "state_dict() was not copied.",
    .when =
        "load_state_dict() of a model that is trained is given tensors that are, parameter by parameter, "
        "the model's own memory, and state_dict() returned them (or the last state of the model before "
        "them) one optimizer step or more earlier, since when the weights have changed. Or torch.save() is "
        "given such a state, alone or in a dict, that was taken after the training's first step; told at "
        "the "
        "end, if it was saved after one step only. Dicts that are made of the same tensors (dict(state), "
        "{k: v.cpu() ...} on a CPU) are known, too. No value is compared.",
    .why =
        "state_dict() does not copy: its tensors are the parameters, and every step writes to them. What is "
        "loaded as the best weights is what the model has anyway, the last ones, and nothing fails. Early "
        "stopping then returns the overfitted model, a search for the learning rate leaves the weights that "
        "it has spoilt, and an inner loop of meta-learning never goes back to where it began.",
    .fix =
        "Keep copies: copy.deepcopy(model.state_dict()), or {k: v.clone() for k, v in "
        "model.state_dict().items()}; or write them to a file when they are the best.",
    .healthy =
        "A state that was copied, or is loaded and saved before the next step; weights of another model, as "
        "of a teacher or a target network; a state that is taken before the training begins and saved again "
        "and "
        "again, to show the weights of the day; a model that is not trained.",
    .cost =
        "Nothing at ordinary steps: calls that take, load and save weights are listened to, and weak "
        "references to four tensors of each state are kept.",
    .original = "",
    .source =
        "PyTorch tutorials, Saving and loading models: best_model_state = model.state_dict() is a "
        "reference",
    .severity = model::Severity::kWarning,
};

class BestWeightsNotKept final : public Rule {
  public:
    explicit BestWeightsNotKept(const Parameters&) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain || step.record->scalars.empty()) return;
        ++judged_;
        if (const std::optional<LoopFact> loaded = loop_fact(step, "live_state_loaded")) {
            ++loaded_;
            fire_loaded(*loaded, step.step(), sink);
        }
        // A state that was loaded, too, is told of already.
        const std::optional<LoopFact> saved = loop_fact(step, "live_state_saved");
        if (saved && loaded_ == 0) fire_saved(*saved, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "nothing was told of a training step";
    }

  private:
    void fire_loaded(const LoopFact& told, model::StepIndex now, FindingSink& sink) const {
        const auto since = static_cast<model::StepIndex>(told.value);
        const std::string taken =
            since < now ? base::format("after step {}", now - since) : std::string("before the first step");
        std::string message = base::format(
            "load_state_dict() after step {} was given what state_dict() returned {} {} earlier, {}{}. "
            "Those tensors are the model's own memory: loading them changes nothing, and the model goes on "
            "with the weights of step {}.",
            now, since, form(told.value, "step", "steps"), taken, in_line(told), now);
        if (loaded_ > 1) message += base::format(" That was so {} times.", loaded_);
        fire("loaded", std::move(message), told, sink);
    }
    static void fire_saved(const LoopFact& told, FindingSink& sink) {
        fire("saved",
             base::format("torch.save() was given what state_dict() returned {:.0f} {} earlier{}. Those "
                          "tensors are the model's own memory: what the file holds are not the weights of "
                          "that time, but those that the model had when it was saved.",
                          told.value, form(told.value, "step", "steps"), in_line(told)),
             told, sink);
    }
    static void fire(std::string key, std::string message, const LoopFact& told, FindingSink& sink) {
        model::Finding finding;
        finding.key = std::move(key);
        finding.severity = model::Severity::kWarning;
        finding.message = std::move(message);
        finding.fix =
            "Keep a copy: copy.deepcopy(model.state_dict()) where the weights are taken, or {k: v.clone() "
            "for "
            "k, v in model.state_dict().items()}.";
        finding.evidence.push_back({"steps since the weights were taken", told.value, "limit", 0});
        sink.fire(std::move(finding));
    }
    // " (train.py:42)", or nothing.
    [[nodiscard]] static std::string in_line(const LoopFact& told) {
        return told.place.empty() ? std::string() : base::format(" ({})", told.place);
    }

    std::uint64_t judged_ = 0, loaded_ = 0;
};

std::vector<model::Requirement> best_weights_not_kept_needs(const Parameters&) {
    return {loop_requirement(kBestWeightsNotKept.name)};
}

}  // namespace

RuleEntry builtin::best_weights_not_kept() {
    return {
        &kBestWeightsNotKept, &best_weights_not_kept_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<BestWeightsNotKept>(p); }};
}

}  // namespace traindbg::rules
