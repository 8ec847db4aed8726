#include "traindbg/engine/merged_verdict.h"

#include <algorithm>

#include "traindbg/diagnose/diagnose.h"

namespace traindbg::engine {

MergedVerdict::MergedVerdict(const std::vector<std::string>& rules) : given_up_(rules.size(), false) {
    for (const std::string& rule : rules)
        outcomes_.push_back({rule, model::CheckState::kNotChecked, "no step was recorded", 0});
}

void MergedVerdict::put(std::size_t part, std::size_t number, const Moment& moment, model::Finding finding) {
    entries_[{part, number}] = {moment, std::move(finding)};
}

void MergedVerdict::put(std::size_t rule, model::RuleOutcome outcome) {
    if (!given_up_[rule]) outcomes_[rule] = std::move(outcome);
}

void MergedVerdict::give_up(std::size_t rule, const std::string& why) {
    if (given_up_[rule]) return;
    given_up_[rule] = true;
    outcomes_[rule] = {outcomes_[rule].rule, model::CheckState::kNotChecked, why, 0};
}

model::Verdict MergedVerdict::verdict() const {
    // One rule's findings come from one engine, and in its order: the sort is stable and begins there.
    std::vector<const Entry*> ordered;
    for (const auto& [place, entry] : entries_) {
        // Pending, and over before it fired.
        const bool is_dropped =
            entry.finding.state == model::FindingState::kResolved && entry.finding.times == 0;
        if (!is_dropped) ordered.push_back(&entry);
    }
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Entry* a, const Entry* b) { return a->moment < b->moment; });
    model::Verdict verdict;
    for (const Entry* entry : ordered) verdict.findings.push_back(entry->finding);
    verdict.outcomes = outcomes_;
    verdict.causes = diagnose::likely_causes(verdict.findings, verdict.outcomes, meta_);
    return verdict;
}

}  // namespace traindbg::engine
