// Latent variables that tell nothing of the sample.

#include <map>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kPosteriorCollapse = {
    .name = "posterior_collapse",
    .title = "Posterior collapse",
    .summary = "The latent variables of a variational model are noise: they tell nothing of the sample.",
    .when =
        "The latent variables of a variational model tell almost nothing of the sample: their means hardly "
        "differ from sample to sample beside the noise that is added.\n"
        "- Latent variables: they are found in the graph of the loss as mean + noise · deviation. The "
        "deviation comes out of exp() or softplus(), and the mean is squared elsewhere, as the KL term "
        "does.\n"
        "- Learned prior: where no square of the mean is found, that of its difference from what is learned "
        "counts, such as a prior's mean, and V is the variance of the difference. Not where the layer draws "
        "several times in a step, as along a series. A note: such a prior may know as much of the sample.\n"
        "- Information: what they can tell of a sample is at most the sum of log(1 + V/S)/2 over all of "
        "them. V is the variance of the mean from sample to sample, S that of the noise.\n"
        "- Almost none (warning): the information is below `nats` at `looks` looks in a row, from step "
        "`patience` on, and has not doubled over these looks.\n"
        "- Little (warning): the information is below ten times `nats` at one more look in a row than "
        "that, from six times `patience` on, and has grown by no more than a tenth over these looks.",
    .why =
        "The KL term has won against the reconstruction: the encoder gives the same answer for every sample, "
        "and the decoder has learned to do without. What it draws does not depend on what it was given.",
    .fix =
        "Let the weight of the KL term grow from 0 over the first epochs and end lower; give each latent "
        "variable some KL for free (free bits); weaken the decoder (word dropout, no teacher forcing).",
    .healthy =
        "The first steps, before the encoder has learned anything; single variables that are not used; noise "
        "of a policy, whose mean has no such penalty.",
    .cost =
        "The variance of the latent layers' outputs over up to 64 samples at the first ten steps, then every "
        "25th, and from about 800 steps on every 100th; nothing in models without latent variables.",
    .original = "",
    .source = "Bowman et al., \"Generating sentences from a continuous space\", CoNLL 2016",
    .severity = model::Severity::kWarning,
    .parameters = {{"nats", "nats", 0.03, 1e-6, 100, "information of all latent variables together"},
                   {"looks", "looks", 3, 2, 1000, "looks in a row that must show it"},
                   {"patience", "steps", 50, 1, 1e9, "first step that counts"}},
};

// Less than half a bit, where a run has had the time for more.
constexpr double kLittle = 10;
constexpr std::uint64_t kLate = 6;

class PosteriorCollapse final : public Rule {
  public:
    explicit PosteriorCollapse(const Parameters& parameters)
        : nats_(parameters.at("nats")),
          looks_(parameters.at("looks")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        for (const LoopFact& fact : loop_facts(step, "latent_information")) {
            ++judged_;
            Layer& layer = layers_.try_emplace(std::string(fact.place), looks_).first->second;
            layer.is_prior_learned = layer.is_prior_learned || is_prior_learned(step, fact.place);
            layer.highest = std::max(layer.highest, fact.value);
            if (step.step() < patience_) continue;
            const bool is_late = step.step() >= kLate * patience_;
            // One that wakes up is not over.
            const bool was_said = layer.nothing.is_said() || layer.little.is_said();
            layer.nothing.add(step, fact.value, nats_);
            if (is_late) layer.little.add(step, fact.value, kLittle * nats_);
            if (layer.nothing.is_said()) fire(step, fact, layer, layer.nothing, nats_, sink);
            else if (layer.little.is_said()) fire(step, fact, layer, layer.little, kLittle * nats_, sink);
            else if (was_said) sink.clear(fact.place);
        }
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no latent variables were found in the graph of the loss";
    }

  private:
    static bool is_prior_learned(const model::StepView& step, std::string_view place) {
        const std::vector<LoopFact> learned = loop_facts(step, "latent_prior_is_learned");
        return std::any_of(learned.begin(), learned.end(),
                           [&](const LoopFact& fact) { return fact.place == place; });
    }

    // Looks in a row at which the information is below a limit, and whether it stays there.
    class Low {
      public:
        // `most`: times the least of these looks that it may be at the last: one that rises wakes up.
        Low(double looks, double most) : seen_(looks), most_(most) {}
        void add(const model::StepView& step, double value, double limit) {
            const bool shows = value < limit;
            least_ = !shows || seen_.count() == 0 ? value : std::min(least_, value);
            seen_.add(step, shows);
            // What is said holds until the limit is passed.
            is_said_ = seen_.is_enough() && (is_said_ || value <= most_ * least_ + 1e-3);
        }
        [[nodiscard]] bool is_said() const { return is_said_; }
        [[nodiscard]] const InARow& seen() const { return seen_; }

      private:
        InARow seen_;
        double most_;
        double least_ = 0;
        bool is_said_ = false;
    };

    struct Layer {
        explicit Layer(double looks) : nothing(looks, 2), little(looks + 1, 1.1) {}
        Low nothing, little;
        double highest = 0;
        bool is_prior_learned = false;
    };

    static void fire(const model::StepView& step, const LoopFact& fact, const Layer& layer, const Low& low,
                     double limit, FindingSink& sink) {
        // A prior that is learned may know all that there is to know of a sample, as that of a world model
        // does.
        const model::Severity severity =
            layer.is_prior_learned ? model::Severity::kInfo : model::Severity::kWarning;
        model::Finding finding = loop_finding(fact.place, severity, low.seen(), fact);
        finding.message = base::format(
            "The latent variables of {} tell {} nats of a sample at step {}, less than {} at {} looks in a "
            "row: their means hardly differ from sample to sample beside the noise that is added ({} at "
            "most).",
            fact.place, human_number(fact.value), step.step(), human_number(limit), low.seen().count(),
            human_number(layer.highest));
        finding.fix =
            "Lower the weight of the KL term, and let it grow from 0 over the first epochs; or give each "
            "latent variable some KL for free (free bits).";
        finding.evidence.insert(finding.evidence.begin(),
                                {"information in nats", fact.value, "limit", limit});
        finding.plots.insert(finding.plots.begin(), {std::string(fact.tensor), "value"});
        sink.fire(std::move(finding));
    }

    double nats_, looks_;
    std::uint64_t patience_;
    std::uint64_t judged_ = 0;
    std::map<std::string, Layer, std::less<>> layers_;
};

std::vector<model::Requirement> posterior_collapse_needs(const Parameters&) {
    return {loop_requirement(kPosteriorCollapse.name)};
}

}  // namespace

RuleEntry builtin::posterior_collapse() {
    return {&kPosteriorCollapse, &posterior_collapse_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<PosteriorCollapse>(p);
            }};
}

}  // namespace traindbg::rules
