// What speaks for a cause and what against it, and how far that moves what is thought of it.
//
// For: the findings that it explains, and what the training says about itself. Against: findings that came
// before the cause can have done anything, rules that it would usually make fire and that are clean, and
// again what the training says. What a cause was thought of already counts the findings that speak for it;
// each other piece moves that by a tenth of what is missing to certainty, and all of them by at most three
// tenths. So a fact stays a fact, and a guess moves by up to 0.15.
#pragma once

#include <span>
#include <vector>

#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"

namespace traindbg::diagnose {

// A cause before it is put among others. Findings are borrowed.
struct Draft {
    model::Cause cause;
    std::vector<const model::Finding*> explained;
    // The finding that shows the cause itself, of one that begins at some step. Null of what was so from the
    // start, however late it is seen, as a setting or a property of the data: it may have caused anything.
    const model::Finding* onset = nullptr;
};

// Fills in the evidence of `draft`, takes out of what it explains that which came clearly before it, and
// moves its confidence.
void weigh_evidence(Draft& draft, std::span<const model::RuleOutcome> outcomes,
                    const model::WorkerMeta& meta);

// Says of each cause behind the first which of its findings a likelier one explains, too. `drafts`: the
// likeliest first.
void note_better_ones(std::span<Draft> drafts);

}  // namespace traindbg::diagnose
