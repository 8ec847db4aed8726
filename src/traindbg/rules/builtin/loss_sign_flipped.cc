// A loss that cannot be negative is minimised with a minus sign.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kLossSignFlipped = {
    .name = "loss_sign_flipped",
    .title = "Loss sign flipped",
    .summary =
        "The optimizer makes the loss larger: backward() is called on minus a loss function that is never "
        "negative.",
    .when =
        "The loss has the wrong sign, so that the optimizer makes worse what it should make better.\n"
        "- Loss function (error): at each of `steps` looks in a row, every `backward()` of the step is "
        "called on one known loss function's value times a negative number and nothing else. No "
        "threshold.\n"
        "- Known are the losses of torch.nn.functional that are never negative.\n"
        "- Log-probability of labels (error): likewise, `backward()` is called on the mean log-probability "
        "of all labels, or of some by an index or a mask of 0 and 1, without a minus sign.\n"
        "- Such a log-probability is the logarithm of a softmax or sigmoid, logsigmoid, or scores minus "
        "the logarithm of the sum of their exponentials, as in Cox's partial likelihood; alone, or beside "
        "terms that are never negative, such as squares of weights.\n"
        "- Log-probability of data (warning): likewise, `backward()` is called on the mean `log_prob` of "
        "torch.distributions, without a minus sign, of what was observed: values that have no graph.\n"
        "- Runaway (warning): a loss made by hand runs away downwards. The last ten losses fall, and all "
        "are below minus `runaway` times the largest of the first five, or times 1 if they are smaller "
        "than that.\n"
        "- Cosines (warning): in the graphs of two steps, the loss is nothing but cosines between what is "
        "trained and what has no gradient, such as a teacher's output, and rises with each of them.\n"
        "- Overlap (warning): in the graphs of two steps, the loss is nothing but overlap coefficients "
        "(Dice, Jaccard, Tversky) between a softmax or sigmoid and what has no gradient, and rises with "
        "each of them.\n"
        "- Signal ratio (warning): in the graphs of two steps, the loss is nothing but ratios of signal to "
        "distortion (SNR, SI-SNR, SI-SDR), and rises with each of them. The distortion is the power of what "
        "the model made less the data, or less its projection onto the data.\n"
        "- Policy gradient (warning): in the graphs of two steps, log-probabilities of choices, times "
        "data, take part in the loss, none with a minus sign. The program calls the data a reward, an "
        "advantage or a return wherever it multiplies a log-probability.\n"
        "- KL term (warning): the noise of latent variables, whose means a KL term holds (see "
        "posterior_collapse), has a deviation above `noise` at each of `steps` looks in a row, and three "
        "times that of the first look.\n"
        "- Such a KL term lets the deviation go, where it should draw it to 1.",
    .why =
        "The optimizer goes up the hill: the loss it is to lower grows without a bound, and the model learns "
        "to be wrong.",
    .fix =
        "Take the minus sign away: loss_function(output, target).backward(); or put one before a mean of "
        "log-probabilities. A KL term is -0.5 * sum(1 + logvar - mu**2 - logvar.exp()), and is added. Of a "
        "coefficient of overlap, lower one less the coefficient; of a ratio of signal to distortion, minus "
        "it.",
    .healthy =
        "Likelihoods of densities, which may be below 0 (with their minus sign); what a model draws itself. "
        "Adversarial steps that raise a loss beside one that lowers it, terms with a minus sign that are "
        "added to others, policy gradients (log-probabilities times an advantage). An optimizer with "
        "maximize=True goes uphill, and its loss is not judged. Several optimizers, which may play against "
        "each other: they are not judged.",
    .cost =
        "The few nodes of the graph between backward's value and the loss function, at the first 10 steps "
        "and then every 25th.",
    .original = "",
    .source = "Braiek and Khomh, \"TheDeepChecker\", TOSEM 2023 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"},
                   {"noise", "standard deviations", 20, 1.5, 1e6, "of latent variables, where a prior has 1"},
                   {"runaway", "times", 1000, 10, 1e12, "size below 0 beside that of the first losses"}},
};

class LossSignFlipped final : public Rule {
  public:
    explicit LossSignFlipped(const Parameters& parameters)
        : looks_(parameters.at("steps")),
          noise_(parameters.at("noise")),
          seen_(looks_),
          runaway_(parameters.at("runaway")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain || is_to_rise(*step.meta)) return;
        game_.observe(step);
        if (game_.is_on()) {
            if (seen_.is_enough()) sink.clear(kKey);
            return;
        }
        judge_runaway(step, sink);
        judge_cosines(step, sink);
        judge_overlap(step, sink);
        judge_signal_ratio(step, sink);
        judge_policy(step, sink);
        judge_divergence(step, sink);
        const std::optional<LoopFact> sign = loop_fact(step, "loss_sign");
        if (!sign) return;
        const bool shows = sign->value < 0;
        if (!shows && seen_.is_enough()) sink.clear(kKey);
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        model::Finding finding = loop_finding(kKey, model::Severity::kError, seen_, *sign);
        finding.layer.clear();  // it is of the loss
        // Of torch.distributions: an entropy, too, is such a mean, of what the model itself draws.
        const bool is_density = sign->place == "log_prob";
        if (is_density) finding.severity = model::Severity::kWarning;
        const bool by_hand = is_density || sign->place == "log_softmax" || sign->place == "log_probability" ||
                             sign->place == "log_of_probability";
        finding.tensor = by_hand ? std::string("loss") : base::format("loss/{}", sign->place);
        const std::string_view whose = is_density ? "data" : "labels";
        finding.message =
            by_hand
                ? base::format(
                      "backward() is called on the mean log-probability of the {}, at all of the {} steps "
                      "looked at since step {}: lowering it makes the {} less likely.",
                      whose, seen_.count(), seen_.first(), whose)
                : base::format(
                      "backward() is called on {} times a negative number, at all of the {} steps looked at "
                      "since step {}: the optimizer makes the loss larger.",
                      sign->place, seen_.count(), seen_.first());
        finding.fix = by_hand
                          ? "Put a minus sign before the mean of the log-probabilities."
                          : base::format("Take away the minus sign: backward() on {} itself.", sign->place);
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return std::max(seen_.judged(), runs_); }
    [[nodiscard]] std::string why_not_judged() const override {
        if (game_.is_on()) return "several optimizers: their losses may work against each other";
        return "no backward() was seen of one loss function's value alone";
    }

  private:
    // What is to be made as large as possible, and was given to an optimizer that makes it small, has no
    // floor.
    void judge_runaway(const model::StepView& step, FindingSink& sink) {
        if (!loss_.observe(step) || seen_.is_enough()) return;
        first_size_ =
            std::max(first_size_, loss_.count() <= 5 ? std::abs(loss_.recent().values().back()) : 0);
        if (loss_.count() < 20) return;
        ++runs_;
        const auto last = loss_.recent().last(10);
        const double highest = *std::max_element(last.begin(), last.end());
        const bool falls = trend_z(last) < -2;
        if (highest > -runaway_ * std::max(first_size_, 1.0) || (!falls && !runs_away_)) return;
        runs_away_ = true;
        model::Finding finding;
        finding.key = "runaway";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = loss_.tensor();
        finding.message = base::format(
            "The loss falls without end: it is {} at step {} and was {} at the start. A quantity that is to "
            "be made large, such as a likelihood or a bound of it, is being made small.",
            base::human_number(loss_.level()), step.step(), base::human_number(loss_.first()));
        finding.fix =
            "Put a minus sign before it: loss = -objective. If the sign is right, the loss has no lower "
            "bound: add what keeps it finite.";
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.first()});
        finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    // Graphs in which something is lowered that is to be made large.
    struct Graphs {
        std::uint64_t count = 0;
        model::StepIndex since = 0;
    };
    // Whether a fact shows that, and has shown it before.
    bool show(const model::StepView& step, std::string_view fact, Graphs& graphs) {
        const std::optional<LoopFact> shown = loop_fact(step, fact);
        if (!shown || shown->value <= 0) return false;
        if (graphs.count++ == 0) graphs.since = step.step();
        if (graphs.count < 2) return false;
        ++runs_;
        return true;
    }
    void fire_by_graph(const char* key, const Graphs& graphs, std::string message, const char* fix,
                       FindingSink& sink) const {
        model::Finding finding;
        finding.key = key;
        finding.severity = model::Severity::kWarning;
        finding.first_step = graphs.since;
        finding.tensor = loss_.tensor();
        finding.message = std::move(message);
        finding.fix = fix;
        finding.evidence.push_back({"graphs looked at", static_cast<double>(graphs.count), "limit", 2});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }
    void judge_cosines(const model::StepView& step, FindingSink& sink) {
        if (!show(step, "loss_turns_away", away_)) return;
        fire_by_graph("cosine", away_,
                      base::format("The loss is a mean of cosines between what is trained and what has no "
                                   "gradient, such as a teacher's output, and rises with them, in {} graphs "
                                   "up to step {}: it is least where the two point opposite ways.",
                                   away_.count, step.step()),
                      "Lower one minus the similarity: (1 - cosine_similarity(output, target)).mean(). If it "
                      "is to point away, nothing is wrong.",
                      sink);
    }
    void judge_policy(const model::StepView& step, FindingSink& sink) {
        if (!show(step, "policy_is_lowered", policy_)) return;
        fire_by_graph(
            "policy", policy_,
            base::format("The loss is the log-probability of what was chosen times what the program calls "
                         "a reward, an advantage or a return, in {} graphs up to step {}: lowering it makes "
                         "choices with a high reward rarer.",
                         policy_.count, step.step()),
            "Put a minus sign before it: loss = -(log_prob * advantage).mean(). If the number is a cost, "
            "call it so.",
            sink);
    }
    // Noise that leaves the prior: a KL term draws it to 1, a reconstruction wants less of it.
    void judge_divergence(const model::StepView& step, FindingSink& sink) {
        for (const LoopFact& fact : loop_facts(step, "latent_deviation")) {
            Latent& latent = latents_.try_emplace(std::string(fact.place), looks_, fact.value).first->second;
            ++runs_;
            const bool shows = fact.value > noise_ && fact.value > 3 * latent.first;
            if (!shows && latent.seen.is_enough()) sink.clear(fact.place);
            latent.seen.add(step, shows);
            if (!latent.seen.is_enough()) continue;
            model::Finding finding = loop_finding(fact.place, model::Severity::kWarning, latent.seen, fact);
            finding.message = base::format(
                "The noise of the latent variables of {} has a deviation of {} at step {}, {} at the first "
                "look: a KL term to a prior of deviation 1 draws it to 1, and a reconstruction is the better "
                "the less of it there is. It grows where the term is made large.",
                fact.place, base::human_number(fact.value), step.step(), base::human_number(latent.first));
            finding.fix =
                "Look at the sign of the KL term: loss = reconstruction + beta * kl, with kl = -0.5 * (1 + "
                "logvar - mu**2 - logvar.exp()).sum(1).mean().";
            finding.evidence.insert(finding.evidence.begin(),
                                    {"deviation of the noise", fact.value, "limit", noise_});
            finding.plots.insert(finding.plots.begin(), {std::string(fact.tensor), "value"});
            sink.fire(std::move(finding));
        }
    }
    struct Latent {
        Latent(double looks, double deviation) : seen(looks), first(deviation) {}
        InARow seen;
        double first;  // deviation of the noise, at the first look
    };

    void judge_overlap(const model::StepView& step, FindingSink& sink) {
        if (!show(step, "loss_lowers_overlap", overlaps_)) return;
        fire_by_graph(
            "overlap", overlaps_,
            base::format("The loss is a coefficient of overlap, such as Dice or Jaccard, of what "
                         "the model marks with what it is given, and rises with it, in {} graphs up to step "
                         "{}: it is least where the model marks everything else.",
                         overlaps_.count, step.step()),
            "Lower one less the coefficient: loss = 1 - dice.", sink);
    }
    void judge_signal_ratio(const model::StepView& step, FindingSink& sink) {
        if (!show(step, "loss_lowers_signal_ratio", ratios_)) return;
        fire_by_graph(
            "signal_ratio", ratios_,
            base::format("The loss is a ratio of signal to distortion, such as SNR or SI-SDR, of what the "
                         "model makes and the data, and rises with it, in {} graphs up to step {}: it is "
                         "least where nothing of the signal is left.",
                         ratios_.count, step.step()),
            "Lower minus the ratio: loss = -si_sdr(estimate, source).mean().", sink);
    }

    static constexpr const char* kKey = "sign";
    Graphs away_, overlaps_, ratios_, policy_;  // in which cosines are lowered, say
    Game game_;
    bool runs_away_ = false;
    std::map<std::string, Latent> latents_;
    double looks_, noise_;
    InARow seen_;
    double runaway_, first_size_ = 0;
    std::uint64_t runs_ = 0;
    TrainingLoss loss_;
};

std::vector<model::Requirement> loss_sign_flipped_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kLossSignFlipped.name);
    all.push_back(loop_requirement(kLossSignFlipped.name));
    return all;
}

}  // namespace

RuleEntry builtin::loss_sign_flipped() {
    return {&kLossSignFlipped, &loss_sign_flipped_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<LossSignFlipped>(p);
            }};
}

}  // namespace traindbg::rules
