// A part of the model runs, but the loss does not lead back to it.

#include <initializer_list>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kDetachedGraph = {
    .name = "detached_graph",
    .title = "Detached graph",
    .summary =
        "The optimizer holds modules that it never trains: the graph is cut behind them, their output is "
        "multiplied by 0, or nothing calls them.",
    .when =
        "Modules that the optimizer should train never get a gradient, because the graph is cut behind "
        "them, a factor of 0 removes it, or nothing calls them.\n"
        "- Looked at: modules whose parameters require gradients and are held by the optimizer, that never "
        "had a gradient while others have one, and whose values nothing else changes.\n"
        "- Called first (error): at `steps` looks in a row, they are called before all that is trained.\n"
        "- Cut branch (error): at `steps` looks in a row, what the model returns is computed from their "
        "values, the loss is computed from that, and no path of the graph leads back.\n"
        "- Single parameters (error): the same of parameters of a module whose other parameters are "
        "trained. Their values may also be read as numbers (.item()) in the model's forward pass.\n"
        "- Where they are read as numbers, what the model returns must be computed with such a number, or "
        "with its exponential, logarithm, root, square, reciprocal, sigmoid, tanh, softplus or difference "
        "from 1.\n"
        "- Numbers such as 1 and 0.5 do not count, because it is not known where they come from.\n"
        "- Note only (info): the values are read as numbers, and no such use is seen.\n"
        "- Zero gradients (warning): over `steps_zero` steps, they have gradients that are exactly 0 at "
        "every look, because a factor or a mask of 0 lies between them and modules that are trained.\n"
        "- Never called (warning): at the end of a training of `steps_uncalled` steps or more, weights are "
        "as an initialiser drew them and nothing called them. It stays a note (info) where the class that "
        "would call them is of an installed package.\n"
        "- Slope without a graph (error): at two looks in a row, torch.autograd.grad took a slope at some "
        "points without create_graph=True. The loss is computed from it other than by a factor, and trains "
        "the very weights that the slope depends on.\n"
        "- State of a recurrent cell (warning): at `steps` looks in a row, eight or more times in one "
        "forward "
        "pass, nn.LSTMCell, nn.GRUCell or nn.RNNCell (or nn.LSTM and its like, given one time step) is given "
        "as its state what it returned before, in the same memory and without its graph. It never gets a "
        "state that has a graph.\n"
        "- No other threshold.",
    .why =
        "These modules stay as they were initialised, and the rest learns from random features, or without "
        "them. The loss still falls, which hides it.",
    .fix =
        "Look behind the last module named for .detach(), .data, .item(), .numpy(), torch.tensor(...), "
        "argmax or torch.no_grad(), and remove it; call what forward() has forgotten. If the part is meant "
        "to stay as it is: requires_grad_(False), and leave it out of the optimizer.",
    .healthy =
        "Experts, branches and tasks that are called at some steps only. Heads that an evaluation calls. "
        "Heads and poolers whose output nobody uses (info), single parameters that nothing uses, or whose "
        "values are only logged or checked (info). Teachers, targets and averages: their values change, or "
        "are those of another module. Frozen parameters, and those of another optimizer. Parameters that the "
        "optimizer has state of: they were trained before. Stopped gradients of modules that get one by "
        "another path, straight-through estimators. A loss with the weight 0, dead units (dead_relu tells of "
        "those). Slopes that a model is given, as adversarial examples are made of, that only multiply what "
        "has a graph, as weights of samples and of losses do, or that were detached; slopes of weights. "
        "States that are detached now and then, between chunks of a sequence. A "
        "loaded backbone that runs under torch.no_grad(), loaded parts that nothing calls (info).",
    .cost =
        "Only where a parameter of the optimizer has no gradient, or one of 0: the order in which modules "
        "are called, at no more than 24 steps and in three evaluations; the operations of two forward "
        "passes, followed by the memory that they write; a look at what two backward passes hand on. Else a "
        "glance at each module's gradient, once. Where the main thread calls torch.autograd.grad so, the "
        "operations of three steps from there to the next backward pass, at most 10000 of each, followed "
        "likewise; an operation takes 10 to 20 microseconds more then. At four steps a look at the states "
        "that "
        "recurrent cells are given.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"},
                   {"steps_zero", "steps", 40, 2, 1e6, "with gradients of 0 at every look"},
                   {"steps_uncalled", "steps", 20, 2, 1e6, "in which nothing calls a module"}},
};

// What a fact says of modules, at the steps that tell it.
struct Told {
    explicit Told(double looks) : seen(looks) {}

    // Whether a step tells it, and of some module.
    bool observe(const model::StepView& step, std::string_view name) {
        fact = loop_fact(step, name);
        if (fact) seen.add(step, fact->value > 0);
        return fact && fact->value > 0;
    }
    [[nodiscard]] bool is_over() const { return fact && fact->value <= 0; }
    // Steps since it was told of some module first.
    [[nodiscard]] double lasts(const model::StepView& step) const {
        return static_cast<double>(step.step() - seen.first()) + 1;
    }

    InARow seen;
    std::optional<LoopFact> fact;
};

class DetachedGraph final : public Rule {
  public:
    explicit DetachedGraph(const Parameters& parameters)
        : first_(parameters.at("steps")),
          cut_(parameters.at("steps")),
          zeroed_(2),
          uncalled_(2),
          unused_(2),
          part_(parameters.at("steps")),
          read_(parameters.at("steps")),
          slopes_(2),
          states_(parameters.at("steps")),
          steps_zero_(parameters.at("steps_zero")),
          steps_uncalled_(parameters.at("steps_uncalled")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        judge_first(step, sink);
        judge_cut(step, sink);
        judge_part(step, sink);
        judge_read(step, sink);
        judge_zeroed(step, sink);
        judge_uncalled(step, sink);
        judge_unused(step, sink);
        judge_slopes(step, sink);
        judge_states(step, sink);
    }

    void on_end(FindingSink& sink) override {
        if (!forgotten_) return;
        sink.clear(kMayCome);
        sink.fire(std::move(*forgotten_));
        forgotten_.reset();
    }

    [[nodiscard]] std::uint64_t steps_judged() const override { return first_.seen.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step was seen from its beginning to its end";
    }

  private:
    void judge_first(const model::StepView& step, FindingSink& sink) {
        if (!first_.observe(step, "detached_modules") && first_.is_over()) clear(sink, {kKey, kMeant});
        if (!first_.fact || !first_.seen.is_enough()) return;
        const std::optional<LoopFact> loaded = loop_fact(step, "detached_modules_loaded");
        const bool meant = loaded && loaded->value > 0;
        model::Finding finding =
            found(meant ? kMeant : kKey, meant ? model::Severity::kInfo : model::Severity::kError, first_);
        finding.message = base::format(
            "{} {} first in every step, the optimizer holds the parameters, and none of these ever got a "
            "gradient: the loss does not lead back to them.",
            counted(*first_.fact, "module"), form(first_.fact->value, "runs", "run"));
        finding.fix =
            meant
                ? std::string(kLeave)
                : base::format(
                      "Remove what cuts the graph after {} or the modules that follow it: .detach(), .data, "
                      ".numpy(), torch.tensor(...), or torch.no_grad() around them.",
                      first_.fact->place);
        sink.fire(std::move(finding));
    }

    // The values of a branch are used, and the graph does not lead back.
    void judge_cut(const model::StepView& step, FindingSink& sink) {
        if (!cut_.observe(step, "cut_modules") && cut_.is_over()) clear(sink, {kBranch, kBranchMeant});
        if (!cut_.fact || !cut_.seen.is_enough()) return;
        const std::optional<LoopFact> loaded = loop_fact(step, "cut_modules_loaded");
        const std::optional<LoopFact> off = loop_fact(step, "cut_modules_without_gradients");
        off_ = off_ || (off && off->value > 0);
        const bool meant = off_ && loaded && loaded->value > 0;
        model::Finding finding = found(meant ? kBranchMeant : kBranch,
                                       meant ? model::Severity::kInfo : model::Severity::kError, cut_);
        finding.message = base::format(
            "{} never got a gradient, although the optimizer holds {} parameters and what the model returns "
            "is computed from {} values: {}.",
            counted(*cut_.fact, "module"), form(cut_.fact->value, "its", "their"),
            form(cut_.fact->value, "its", "their"),
            off_ ? form(cut_.fact->value, "it only runs where gradients are off",
                        "they only run where gradients are off")
                 : form(cut_.fact->value, "the graph is cut behind it", "the graph is cut behind them"));
        finding.fix =
            meant  ? std::string(kLeave)
            : off_ ? base::format("Call {} outside of torch.no_grad(). {}", cut_.fact->place, kElse)
                   : base::format(
                         "Remove what cuts the graph behind {}: .detach(), .data, argmax, torch.tensor(...) "
                         "or torch.no_grad(). {}",
                         cut_.fact->place, kElse);
        sink.fire(std::move(finding));
    }

    // The same of single parameters of modules others of which are trained.
    void judge_part(const model::StepView& step, FindingSink& sink) {
        if (!part_.observe(step, "cut_parameters") && part_.is_over()) clear(sink, {kPart});
        if (!part_.fact || !part_.seen.is_enough()) return;
        model::Finding finding = found(kPart, model::Severity::kError, part_);
        finding.message = base::format(
            "{} never got a gradient, although the optimizer holds {} and what the model returns is computed "
            "from the values: these are read as numbers, or the graph is cut behind them.",
            counted(*part_.fact, "parameter"), form(part_.fact->value, "it", "them"));
        finding.fix = base::format(
            "Compute with {} as it is: torch.exp(p) instead of math.exp(p.item()), and no .detach(), .data, "
            ".item(), float() or torch.tensor(...) of it. {}",
            part_.fact->place, kElse);
        sink.fire(std::move(finding));
    }

    // Numbers that are read may be for a log alone.
    void judge_read(const model::StepView& step, FindingSink& sink) {
        if (!read_.observe(step, "read_parameters") && read_.is_over()) clear(sink, {kRead});
        if (!read_.fact || !read_.seen.is_enough()) return;
        model::Finding finding = found(kRead, model::Severity::kInfo, read_);
        finding.message = base::format(
            "{} never got a gradient, although the optimizer holds {}: the model's forward pass reads the "
            "values as numbers, which no gradient goes through. Whether it computes with these numbers is "
            "not known.",
            counted(*read_.fact, "parameter"), form(read_.fact->value, "it", "them"));
        finding.fix = base::format(
            "Nothing, if the numbers are only logged or checked. Else compute with {} as it is, without "
            ".item() or float().",
            read_.fact->place);
        sink.fire(std::move(finding));
    }

    void judge_zeroed(const model::StepView& step, FindingSink& sink) {
        if (!zeroed_.observe(step, "zeroed_modules")) {
            if (zeroed_.is_over()) clear(sink, {kZero});
            return;
        }
        if (zeroed_.lasts(step) < steps_zero_) return;
        model::Finding finding = found(kZero, model::Severity::kWarning, zeroed_);
        finding.message = base::format(
            "All gradients of {} are exactly 0 at every look since the training began: {} output is "
            "multiplied by 0, or masked away as a whole.",
            counted(*zeroed_.fact, "module"), form(zeroed_.fact->value, "its", "their"));
        finding.fix = base::format(
            "Look at what the output of {} is multiplied with, and at the mask that it goes through: a "
            "factor that is 0, a mask that is the wrong way round.",
            zeroed_.fact->place);
        sink.fire(std::move(finding));
    }

    // Only at the end is it known that no later part of the training calls them.
    void judge_uncalled(const model::StepView& step, FindingSink& sink) {
        if (!uncalled_.observe(step, "uncalled_modules")) {
            if (!uncalled_.is_over()) return;
            clear(sink, {kMayCome});
            forgotten_.reset();
            return;
        }
        if (uncalled_.lasts(step) < steps_uncalled_) return;
        const std::optional<LoopFact> fresh = loop_fact(step, "uncalled_modules_fresh");
        const bool is_fresh = fresh && fresh->value > 0;
        const std::optional<LoopFact> library = loop_fact(step, "uncalled_modules_by_library");
        const bool is_by_library = library && library->value > 0;
        model::Finding finding = found(kMayCome, model::Severity::kInfo, uncalled_);
        finding.message =
            base::format("{} {} in the optimizer, and nothing calls {}: no gradient came since step {}.{}",
                         counted(*uncalled_.fact, "module"), form(uncalled_.fact->value, "is", "are"),
                         form(uncalled_.fact->value, "it", "them"), uncalled_.seen.first(),
                         is_fresh ? " The weights are as they were initialised." : "");
        finding.fix = base::format(
            "Call {0} in forward(), or remove it. A part that is trained later is well as it is.",
            uncalled_.fact->place);
        forgotten_.reset();
        if (is_by_library)
            finding.fix = base::format(
                "Nothing: the class that would call {} is of an installed package, and leaves it out.",
                uncalled_.fact->place);
        if (is_fresh && !is_by_library) {
            forgotten_ = finding;
            forgotten_->key = kForgotten;
            forgotten_->severity = model::Severity::kWarning;
            forgotten_->fix =
                base::format("Call {0} in forward(), or remove it from the model.", uncalled_.fact->place);
        }
        sink.fire(std::move(finding));
    }

    void judge_unused(const model::StepView& step, FindingSink& sink) {
        if (!unused_.observe(step, "unused_modules")) {
            if (unused_.is_over()) clear(sink, {kUnused});
            return;
        }
        if (unused_.lasts(step) < steps_uncalled_) return;
        model::Finding finding = found(kUnused, model::Severity::kInfo, unused_);
        finding.message = base::format(
            "{} {} called, the optimizer holds {} parameters, and no gradient ever came: as far as it can be "
            "seen, the loss is not computed from the output.",
            counted(*unused_.fact, "module"), form(unused_.fact->value, "is", "are"),
            form(unused_.fact->value, "its", "their"));
        finding.fix = base::format(
            "Nothing, if the output of {0} is not to be used. Else see that it is, and not by way of NumPy.",
            unused_.fact->place);
        sink.fire(std::move(finding));
    }

    // Part of the loss is a number to the weights that it is made of.
    void judge_slopes(const model::StepView& step, FindingSink& sink) {
        if (!slopes_.observe(step, "slopes_without_graph") || !slopes_.seen.is_enough()) return;
        model::Finding finding = found(kSlope, model::Severity::kError, slopes_);
        finding.message =
            "The loss is computed from a slope that torch.autograd.grad took without create_graph=True: it "
            "is a constant to the weights that it depends on, and they are not trained by it.";
        finding.fix =
            "Give torch.autograd.grad create_graph=True where its result is part of the loss. If it is meant "
            "as a constant, say so with .detach().";
        sink.fire(std::move(finding));
    }

    // A cell that has to remember, whose past is a number to it.
    void judge_states(const model::StepView& step, FindingSink& sink) {
        if (!states_.observe(step, "states_cut") && states_.is_over()) clear(sink, {kState});
        if (!states_.fact || !states_.seen.is_enough()) return;
        model::Finding finding = found(kState, model::Severity::kWarning, states_);
        finding.places = 1;
        finding.message = base::format(
            "The state that {} is given is its own result, cut off the graph, {:.0f} times in one forward "
            "pass: no gradient goes from a time step to the one before, and it is not trained to keep what "
            "later steps need.",
            states_.fact->place, states_.fact->value);
        finding.fix =
            "Take .detach(), .data or what calls them, such as repackage_hidden, out of the loop over time "
            "steps. Between chunks of a sequence detach the state once, before the loop.";
        sink.fire(std::move(finding));
    }

    static model::Finding found(const char* key, model::Severity severity, const Told& told) {
        model::Finding finding = loop_finding(key, severity, told.seen, *told.fact);
        finding.places = static_cast<std::uint64_t>(told.fact->value);
        return finding;
    }
    static void clear(FindingSink& sink, std::initializer_list<const char*> keys) {
        for (const char* key : keys) sink.clear(key);
    }

    static constexpr const char* kKey = "graph";
    static constexpr const char* kMeant = "graph of loaded weights";
    static constexpr const char* kBranch = "branch";
    static constexpr const char* kBranchMeant = "branch of loaded weights";
    static constexpr const char* kPart = "parameter";
    static constexpr const char* kRead = "parameter, read as a number";
    static constexpr const char* kZero = "zero";
    static constexpr const char* kMayCome = "not called yet";
    static constexpr const char* kForgotten = "not called";
    static constexpr const char* kUnused = "not used";
    static constexpr const char* kSlope = "slope";
    static constexpr const char* kState = "state";
    static constexpr const char* kLeave =
        "Nothing, if these weights are meant to stay: then requires_grad_(False), and leave them out of the "
        "optimizer.";
    static constexpr const char* kElse =
        "If it is meant to stay as it is: requires_grad_(False), and leave it out of the optimizer.";

    Told first_, cut_, zeroed_, uncalled_, unused_, part_, read_, slopes_, states_;
    bool off_ = false;  // what is cut runs where gradients are off, at each look that heard it
    double steps_zero_, steps_uncalled_;
    std::optional<model::Finding> forgotten_;  // told at the end
};

std::vector<model::Requirement> detached_graph_needs(const Parameters&) {
    return {loop_requirement(kDetachedGraph.name)};
}

}  // namespace

RuleEntry builtin::detached_graph() {
    return {&kDetachedGraph, &detached_graph_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<DetachedGraph>(p); }};
}

}  // namespace traindbg::rules
