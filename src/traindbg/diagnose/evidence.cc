#include "traindbg/diagnose/evidence.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/diagnose/training_facts.h"
#include "traindbg/model/rule_instance.h"

namespace traindbg::diagnose {
namespace {

using model::CauseEvidence;
using model::Finding;

constexpr double kOfWhatIsMissing = 0.1;  // that one piece of evidence moves
constexpr int kMostMoves = 3;

// A cause that is judged by a threshold, and the rules of which it usually makes one fire: that none does
// speaks against it. Facts are not listed: they hold in a training that learns all the same.
struct Usually {
    std::string_view cause;
    std::vector<std::string_view> rules;
};
const std::vector<Usually>& usual_symptoms() {
    static const std::vector<Usually> table = {
        {"learning_rate_too_high",
         {"loss_not_decreasing", "learning_rate_too_high", "loss_spike", "exploding_gradient", "non_finite",
          "divergence_ahead"}},
        {"input_not_normalized",
         {"divergence_ahead", "loss_not_decreasing", "learning_rate_too_high", "loss_spike",
          "exploding_gradient", "non_finite", "saturated_activation", "dead_relu", "vanishing_gradient",
          "learning_rate_too_low"}},
        {"poor_weight_init",
         {"divergence_ahead", "loss_not_decreasing", "learning_rate_too_high", "exploding_gradient",
          "non_finite", "saturated_activation", "dead_relu", "vanishing_gradient", "constant_output"}},
        {"vanishing_gradient", {"loss_not_decreasing", "learning_rate_too_low", "constant_output"}},
        {"over_regularized", {"loss_not_decreasing", "learning_rate_too_low", "constant_output"}},
        {"label_noise", {"overfit", "loss_not_decreasing"}},
        {"dying_relu", {"loss_not_decreasing", "loss_spike"}},
        {"saturated_activation", {"loss_not_decreasing", "loss_spike", "vanishing_gradient"}},
    };
    return table;
}

model::StepIndex since(const Finding& finding) {
    return finding.first_step == model::kThisStep ? finding.step : finding.first_step;
}

CauseEvidence of(const Finding& finding, std::string text) {
    return {std::move(text), finding.rule, finding.key, since(finding)};
}

// A rule may need some steps to see what began with the first one, so that a little earlier says nothing.
bool is_clearly_before(const Finding& finding, const Finding& onset) {
    constexpr model::StepIndex kSteps = 50;
    return finding.mode == onset.mode && since(onset) > 2 * since(finding) + kSteps;
}

bool is_clean(std::span<const model::RuleOutcome> outcomes, std::string_view rule) {
    return std::any_of(outcomes.begin(), outcomes.end(), [&](const model::RuleOutcome& outcome) {
        return model::is_instance_of(outcome.rule, rule) && outcome.state == model::CheckState::kClean;
    });
}
bool has_fired(std::span<const model::RuleOutcome> outcomes, std::string_view rule) {
    return std::any_of(outcomes.begin(), outcomes.end(), [&](const model::RuleOutcome& outcome) {
        return model::is_instance_of(outcome.rule, rule) && outcome.state == model::CheckState::kFired;
    });
}

// The clean ones of the rules that the cause usually makes fire; none where one of them did.
std::vector<std::string> silent_ones(std::string_view cause, std::span<const model::RuleOutcome> outcomes) {
    std::vector<std::string> silent;
    for (const Usually& row : usual_symptoms()) {
        if (row.cause != cause) continue;
        for (const std::string_view rule : row.rules) {
            if (has_fired(outcomes, rule)) return {};
            if (is_clean(outcomes, rule)) silent.emplace_back(rule);
        }
    }
    return silent;
}

void take_rules(Draft& draft) {
    draft.cause.rules.clear();
    for (const Finding* finding : draft.explained)
        if (std::find(draft.cause.rules.begin(), draft.cause.rules.end(), finding->rule) ==
            draft.cause.rules.end())
            draft.cause.rules.push_back(finding->rule);
}

}  // namespace

void weigh_evidence(Draft& draft, std::span<const model::RuleOutcome> outcomes,
                    const model::WorkerMeta& meta) {
    model::Cause& cause = draft.cause;
    int moves = 0;
    if (draft.onset != nullptr) {
        const Finding& onset = *draft.onset;
        std::erase_if(draft.explained, [&](const Finding* finding) {
            if (!is_clearly_before(*finding, onset)) return false;
            cause.evidence_against.push_back(of(
                *finding, base::format("{} was there at step {}, before the first sign of this at step {}.",
                                       finding->rule, since(*finding), since(onset))));
            --moves;
            return true;
        });
    }
    take_rules(draft);
    for (const Finding* finding : draft.explained)
        cause.evidence_for.push_back(of(*finding, finding->message));
    std::stable_sort(cause.evidence_for.begin(), cause.evidence_for.end(),
                     [](const CauseEvidence& a, const CauseEvidence& b) { return a.step < b.step; });
    std::stable_sort(cause.evidence_against.begin(), cause.evidence_against.end(),
                     [](const CauseEvidence& a, const CauseEvidence& b) { return a.step < b.step; });
    if (const std::vector<std::string> silent = silent_ones(cause.name, outcomes); !silent.empty()) {
        cause.evidence_against.push_back(
            {base::format("{} found nothing, where this is usually seen.", base::join(silent, ", ")),
             silent.size() == 1 ? silent.front() : std::string(), "", std::nullopt});
        --moves;
    }
    for (Fact& fact : facts_about(cause.name, meta)) {
        if (!fact.is_weighed) moves += fact.supports ? 1 : -1;
        (fact.supports ? cause.evidence_for : cause.evidence_against)
            .push_back({std::move(fact.text), "", "", std::nullopt});
    }
    cause.confidence +=
        (1 - cause.confidence) * kOfWhatIsMissing * std::clamp(moves, -kMostMoves, kMostMoves);
}

void note_better_ones(std::span<Draft> drafts) {
    for (std::size_t i = 1; i < drafts.size(); ++i) {
        std::vector<std::string_view> told;
        for (const Finding* finding : drafts[i].explained) {
            if (std::find(told.begin(), told.end(), finding->rule) != told.end()) continue;
            const auto better = std::find_if(
                drafts.begin(), drafts.begin() + static_cast<std::ptrdiff_t>(i), [&](const Draft& draft) {
                    return std::find(draft.explained.begin(), draft.explained.end(), finding) !=
                           draft.explained.end();
                });
            if (better == drafts.begin() + static_cast<std::ptrdiff_t>(i)) continue;
            told.push_back(finding->rule);
            drafts[i].cause.evidence_against.push_back(
                of(*finding, base::format("{} is explained by a likelier cause, too: {}.", finding->rule,
                                          better->cause.title)));
        }
    }
}

}  // namespace traindbg::diagnose
