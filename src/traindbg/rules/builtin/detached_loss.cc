// backward() runs, and reaches none of the parameters that are to be trained.

#include <algorithm>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kDetachedLoss = {
    .name = "detached_loss",
    .title = "Detached loss",
    .summary =
        "loss.backward() runs without an error, but gives no gradient to any parameter of the optimizer.",
    .when =
        "A backward pass ran and trained nothing, or a loss that was computed for training has no backward "
        "pass. No threshold.\n"
        "- No gradient (error): at each of `steps` looks in a row, at least one `backward()` ran since the "
        "optimizer's last step, and none of the optimizer's trainable parameters got a gradient.\n"
        "- Penalty alone (error): at two looks in a row the graph of the loss leads to parameters, but by "
        "sums, sizes, powers and products with numbers alone, as a penalty of the weights does. It leads to "
        "nothing that the model returned, though that has a gradient.\n"
        "- Term without a gradient (warning): at each of `steps` looks in a row, backward() is called on a "
        "sum of values of loss functions, and one of them has no gradient. No parameter is frozen, the "
        "function was called with gradients on, and it was given as many rows as the model returned.\n"
        "- That term is what the terms with a gradient leave of the sum: always the same multiple, above 0, "
        "of that function's value, which changes. Only where the values are in host memory.\n"
        "- Number added (warning): at each of `steps` looks in a row a term of the loss is a Python number. "
        "It is always the same multiple, above 0, of one that was read (`.item()`, `float()`) in the same "
        "step from a tensor whose graph leads through a layer to trained parameters, and which changes.\n"
        "- That tensor is no part of a loss of the step by its graph. Nor counts what is added as a detached "
        "tensor. Looked at in a few of the steps after one whose loss adds something without a gradient.\n"
        "- Given to another (warning): in the graphs of two steps in a row, the backward of a "
        "torch.autograd.Function of the program's own returns a gradient for an input that needs none, and "
        "None for all that need one.\n"
        "- Given to another, whose it is: the gradient has the shape of an input that got None, and not that "
        "of what the function returned, through which a gradient may be passed on purpose.\n"
        "- Left out (info): at each of `steps` looks in a row, a loss function gave a loss with a graph that "
        "no backward pass of the step went through. The graph leads to parameters of the optimizer that no "
        "other loss leads to, and that have had no gradient yet.\n"
        "- Left out to the end (error): the same at the end of a run, if it has lasted for `steps_left_out` "
        "steps; a warning, if for 20.",
    .why =
        "What the loss was computed from does not lead back to the model: the graph was cut. The optimizer "
        "has nothing to use, and the loss stays where it is but for the noise of the batches.",
    .fix =
        "Compute the loss from what the model returned, as it is: without .detach(), .data, .item(), "
        ".numpy(), torch.tensor(...), argmax or torch.no_grad() on the way. A loss that needs "
        "requires_grad_() to make backward() work is cut off.",
    .healthy =
        "A backward() for something else (an attack's input, another optimizer's loss) beside one that "
        "reaches the parameters. Gradients set by hand or by torch.autograd.grad count. An optimizer whose "
        "parameters are all frozen. A function whose input happens to be data, beside a number that makes it "
        "run (a checkpoint), or beside a table that another term trains. A penalty that has a backward() of "
        "its own. A loss that is added later, once another one is learned: a note until then. A trial run "
        "that ends before that looks the same as a fault.",
    .cost =
        "Ids and versions of the parameters' gradients before and after backward, at the first 10 steps and "
        "then every 25th; no element is read unless a gradient was changed after backward. A look at the "
        "graph of the loss at three of the first steps, and where a loss function's result has no gradient; "
        "where one is no term of what backward() is called on, the leaves of both graphs. Where the loss "
        "adds something without a gradient, the operations of at most six steps.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"},
                   {"steps_left_out", "steps", 300, 20, 1e9, "that show that a loss is left out for good"}},
};

class DetachedLoss final : public Rule {
  public:
    explicit DetachedLoss(const Parameters& parameters)
        : needed_(parameters.at("steps")),
          seen_(parameters.at("steps")),
          left_out_(parameters.at("steps")),
          term_(parameters.at("steps")),
          number_(parameters.at("steps")),
          steps_left_out_(parameters.at("steps_left_out")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        judge_penalty(step, sink);
        judge_left_out(step, sink);
        judge_term(step, sink);
        judge_number(step, sink);
        judge_astray(step, sink);
        const std::optional<LoopFact> passes = loop_fact(step, "backward_passes");
        const std::optional<LoopFact> held = loop_fact(step, "parameters_held");
        const std::optional<LoopFact> reached = loop_fact(step, "parameters_reached");
        if (!passes || !held || !reached || passes->value <= 0 || held->value <= 0) return;
        // It leads to a copy of the model: another rule tells of that.
        if (loop_fact(step, "trainings")) is_of_copy_ = false;
        if (const auto copies = loop_fact(step, "loss_is_of_a_copy")) is_of_copy_ = copies->value > 0;
        const bool shows = reached->value <= 0 && !is_of_copy_;
        if (!shows && seen_.is_enough()) sink.clear(kKey);
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        model::Finding finding = loop_finding(kKey, model::Severity::kError, seen_, *reached);
        finding.message = base::format(
            "backward() ran, but none of the optimizer's {:.0f} parameters got a gradient, at all of the {} "
            "steps looked at since step {}: the loss is cut off from the model.",
            held->value, seen_.count(), seen_.first());
        finding.fix =
            "Compute the loss from the model's output itself: no .detach(), .data, .item(), .numpy(), "
            "torch.tensor(...) or argmax in between, and no torch.no_grad() around the forward pass.";
        finding.evidence.push_back({"parameters reached", 0, "held", held->value});
        const std::optional<LoopFact> elsewhere = loop_fact(step, "parameters_reached_elsewhere");
        if (elsewhere && elsewhere->value > 0) say_part(*elsewhere, held->value, finding);
        sink.fire(std::move(finding));
    }
    void on_end(FindingSink& sink) override {
        if (place_left_out_.empty() || lasts_ < kTrial) return;
        fire_left_out(lasts_ >= steps_left_out_ ? model::Severity::kError : model::Severity::kWarning, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no step with a backward() was seen from its beginning to its end";
    }

  private:
    // The loss that is to be lowered is a number; what has a gradient is a penalty of the weights.
    void judge_penalty(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> penalized = loop_fact(step, "loss_is_of_weights_alone");
        if (!penalized) return;
        const bool shows = penalized->value > 0;
        if (!shows && of_weights_.is_enough()) sink.clear(kPenalty);
        of_weights_.add(step, shows);
        if (!of_weights_.is_enough()) return;
        model::Finding finding = loop_finding(kPenalty, model::Severity::kError, of_weights_, *penalized);
        finding.message = base::format(
            "The loss is made of a penalty of {:.0f} parameters and a number: nothing of what the model "
            "returned is in its graph. The penalty is all that is minimised.",
            penalized->value);
        finding.fix =
            "Compute the other part of the loss from the model's output itself, in torch: no .detach(), "
            ".numpy(), .item(), torch.tensor(...) or torch.from_numpy(...) on the way, and no "
            "torch.no_grad() around it.";
        finding.evidence.push_back({"parameters in a penalty alone", penalized->value, "expected", 0});
        sink.fire(std::move(finding));
    }

    // A value of a loss function is added that has no gradient: it is lowered by nothing.
    void judge_term(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> term = loop_fact(step, "detached_term");
        if (!term) return;
        const bool shows = term->value > 0;
        if (!shows && term_.is_enough()) sink.clear(kTerm);
        term_.add(step, shows);
        if (!term_.is_enough()) return;
        model::Finding finding = loop_finding(kTerm, model::Severity::kWarning, term_, *term);
        finding.tensor = base::format("loss/{}", term->place);
        finding.layer.clear();
        finding.message = base::format(
            "The loss is a sum, and {:.0f} % of it is what {} returned, without a gradient, at all of the {} "
            "steps looked at since step {}: that term is counted and teaches nothing.",
            100 * term->value, term->place, term_.count(), term_.first());
        finding.fix = base::format(
            "Compute what {} is given from the model's output itself, in torch: no .detach(), .numpy(), "
            ".item(), torch.tensor(...) or torch.from_numpy(...) on the way. If the term is only watched, "
            "leave it out of the sum.",
            term->place);
        finding.evidence.push_back({"share of the loss without a gradient", term->value, "expected", 0});
        sink.fire(std::move(finding));
    }

    // A term of the loss is a number that was read from what has a graph: the sum shows it, its gradient does
    // not.
    void judge_number(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> number = loop_fact(step, "number_added");
        if (!number) return;
        const bool shows = number->value > 0;
        if (!shows && number_.is_enough()) sink.clear(kNumber);
        number_.add(step, shows);
        if (!number_.is_enough()) return;
        model::Finding finding = loop_finding(kNumber, model::Severity::kWarning, number_, *number);
        finding.tensor = "loss";
        finding.layer.clear();
        finding.message = base::format(
            "To the loss a number is added that was read from a tensor with a graph, by .item() or float(), "
            "at all of the {} steps looked at since step {}: {:.4g} at step {}. That term is counted and "
            "teaches nothing.",
            number_.count(), number_.first(), number->value, step.step());
        finding.fix =
            "Add the tensor itself to the loss, without .item() or float(). If the term is only watched, "
            "leave it out of the sum.";
        finding.evidence.push_back({"number added to the loss", number->value, "expected", 0});
        sink.fire(std::move(finding));
    }

    // A function of the user's has its gradients in the wrong order: PyTorch drops what is not needed.
    void judge_astray(const model::StepView& step, FindingSink& sink) {
        const std::vector<LoopFact> functions = loop_facts(step, "gradient_gone_astray");
        if (functions.empty()) return;
        const auto most = std::max_element(functions.begin(), functions.end(),
                                           [](const auto& a, const auto& b) { return a.value < b.value; });
        const bool shows = most->value > 0;
        if (!shows && astray_.is_enough()) sink.clear(kAstray);
        astray_.add(step, shows);
        if (!astray_.is_enough()) return;
        model::Finding finding = loop_finding(kAstray, model::Severity::kWarning, astray_, *most);
        finding.tensor = "loss";
        finding.layer.clear();
        finding.message = base::format(
            "The backward of {}, a torch.autograd.Function, returns a gradient for an input that needs none, "
            "and None for all that need one, in {} graphs up to step {}: what the loss takes from it has no "
            "effect.",
            most->place, astray_.count(), step.step());
        finding.fix = base::format(
            "Let the backward of {} return its gradients in the order of the arguments of its forward, one "
            "for each, and None for those that need none; torch.autograd.gradcheck compares them.",
            most->place);
        finding.evidence.push_back({"calls whose gradient is lost", most->value, "expected", 0});
        sink.fire(std::move(finding));
    }

    // Of a loss that is not in the sum there is no telling, until the end, whether it will be.
    void judge_left_out(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> left_out = loop_fact(step, "losses_left_out");
        if (loop_fact(step, "trainings")) {
            if (left_out_.is_enough()) sink.clear(kLeftOut);
            left_out_ = InARow(needed_);
            place_left_out_.clear();
            lasts_ = 0;
        }
        if (left_out) {
            const bool shows = left_out->value > 0;
            if (!shows && left_out_.is_enough()) sink.clear(kLeftOut);
            left_out_.add(step, shows);
            place_left_out_ = left_out_.is_enough() ? std::string(left_out->place) : std::string();
            tensor_left_out_ = left_out->tensor;
            number_left_out_ = left_out->value;
        }
        if (!left_out || place_left_out_.empty()) return;
        lasts_ = static_cast<double>(step.step() - left_out_.first()) + 1;
        fire_left_out(model::Severity::kInfo, sink);
    }
    void fire_left_out(model::Severity severity, FindingSink& sink) const {
        model::Finding finding;
        finding.key = kLeftOut;
        finding.severity = severity;
        finding.first_step = left_out_.first();
        finding.tensor = tensor_left_out_;
        finding.layer = place_left_out_;
        finding.places = static_cast<std::uint64_t>(number_left_out_);
        finding.message = base::format(
            "A loss is computed of what {} returns, and no backward pass goes through it: {:.0f} of the "
            "optimizer's parameters, which no other loss leads to, have had no gradient, at all of the {} "
            "steps looked at since step {}.",
            place_left_out_, number_left_out_, left_out_.count(), left_out_.first());
        finding.fix = base::format(
            "Add this loss to what backward() is called on as it is, without .item(), .detach(), float() or "
            "torch.tensor(...). If it is only watched, compute it under torch.no_grad(), and leave {} out of "
            "the optimizer.",
            place_left_out_);
        finding.evidence.push_back({"parameters without a gradient", number_left_out_, "expected", 0});
        sink.fire(std::move(finding));
    }

    // The loss trains another optimizer's part of the model: only this part is cut off.
    void say_part(const LoopFact& elsewhere, double held, model::Finding& finding) const {
        finding.kind = "detached_graph";
        finding.tensor = elsewhere.tensor;
        finding.layer = elsewhere.place;
        finding.message = base::format(
            "backward() reached {:.0f} parameters of the model, and none of the {:.0f} of the optimizer that "
            "holds {}, at all of the {} steps looked at since step {}: the loss does not lead back to that "
            "part.",
            elsewhere.value, held, elsewhere.place, seen_.count(), seen_.first());
        finding.fix = base::format(
            "Remove what cuts the graph between {} and what follows it: .detach(), .data, .numpy(), "
            "torch.tensor(...), or torch.no_grad() around it.",
            elsewhere.place);
        finding.evidence.push_back({"parameters reached elsewhere", elsewhere.value, "", 0});
    }

    static constexpr const char* kKey = "loop";
    static constexpr const char* kPenalty = "penalty";
    static constexpr const char* kTerm = "term";
    static constexpr const char* kNumber = "number";
    static constexpr const char* kAstray = "astray";
    static constexpr const char* kLeftOut = "left out";
    static constexpr double kTrial = 20;  // steps that a loss may be left out for a try
    double needed_;
    InARow seen_, of_weights_{2}, astray_{2}, left_out_, term_, number_;
    double steps_left_out_;
    // Of the last look at it; no place: nothing is left out.
    std::string place_left_out_, tensor_left_out_;
    double number_left_out_ = 0, lasts_ = 0;
    bool is_of_copy_ = false;
};

std::vector<model::Requirement> detached_loss_needs(const Parameters&) {
    return {loop_requirement(kDetachedLoss.name)};
}

}  // namespace

RuleEntry builtin::detached_loss() {
    return {&kDetachedLoss, &detached_loss_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<DetachedLoss>(p); }};
}

}  // namespace traindbg::rules
