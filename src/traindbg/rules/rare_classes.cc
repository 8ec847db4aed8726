#include "traindbg/rules/rare_classes.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace traindbg::rules {
namespace {

constexpr std::size_t kMostToldApart = 20;       // classes; above it they are a vocabulary
constexpr double kFoundOfCommon = 0.7;           // share, where rare ones are ignored
constexpr double kTellsApart = 1.0 / 3;          // agreement beyond chance, where they are, too
constexpr double kFoundMore = 0.05;              // of a class than in the evaluation before
constexpr double kFewestRecent = 500;            // labels
constexpr double kFewestOfCommonToTheEnd = 0.9;  // share of the most frequent class that is found

// In the latest evaluation, against the one before: rare classes are learned after the others.
bool is_found_more_and_more(const ClassEvaluations& evaluations, std::size_t number, bool are_told) {
    const std::optional<double> now = evaluations.share_found(number),
                                then = evaluations.share_found_before(number);
    return now && (*now >= kMissedShare || (!are_told && then && *now > *then + kFoundMore));
}

}  // namespace

bool is_vocabulary(const ClassTally& tally, const Rarity& rarity) {
    return rarity.are_next || tally.seen() > kMostToldApart;
}

bool counts_less(const std::vector<double>& labels, std::size_t rare, std::size_t common,
                 const Rarity& rarity) {
    const auto weighted = [&](std::size_t i) {
        const bool has_weight = rarity.weights.size() == labels.size() && rarity.weights[i] > 0;
        return labels[i] * (has_weight ? rarity.weights[i] : 1);
    };
    return labels[common] >= rarity.ratio * labels[rare] && weighted(common) >= rarity.ratio * weighted(rare);
}

std::vector<std::size_t> ignored_classes(const ClassTally& tally, const Rarity& rarity) {
    const std::vector<double>&labels = tally.recent(), &hits = tally.hits();
    const double most = *std::max_element(labels.begin(), labels.end());
    const double all = std::accumulate(labels.begin(), labels.end(), 0.0);
    const double predicted = std::accumulate(tally.predicted().begin(), tally.predicted().end(), 0.0);
    if (all < kFewestRecent || predicted <= 0) return {};
    const double favourite =
        *std::max_element(tally.predicted().begin(), tally.predicted().end()) / predicted;
    const bool collapsed = favourite >= 0.98 && most / all >= 0.3;
    if (is_vocabulary(tally, rarity) && !collapsed) return {};
    // Where chance decides, as of the next letter, frequent classes are missed, too.
    const std::size_t common = most_frequent(labels);
    if (hits[common] < kFoundOfCommon * labels[common] && tally.agreement() < kTellsApart) return {};
    std::vector<std::size_t> ignored;
    for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] >= 20 && counts_less(labels, i, common, rarity) && hits[i] < kIgnoredShare * labels[i])
            ignored.push_back(i);
    return ignored;
}

std::vector<std::size_t> missed_in_evaluation(const ClassTally& tally, const ClassEvaluations& evaluations,
                                              const Rarity& rarity, bool are_told) {
    if (tally.total() < kFewestRecent || is_vocabulary(tally, rarity)) return {};
    const std::vector<double>&evaluated = evaluations.labels(), &found = evaluations.found();
    const std::size_t common = most_frequent(tally.labels());
    if (common >= evaluated.size() || evaluated[common] < 10 ||
        found[common] < kFoundOfCommon * evaluated[common])
        return {};
    std::vector<std::size_t> missed;
    for (std::size_t i = 0; i < std::min(tally.labels().size(), evaluated.size()); ++i)
        if (tally.labels()[i] > 0 && counts_less(tally.labels(), i, common, rarity) && evaluated[i] >= 10 &&
            found[i] < kMissedShare * evaluated[i] && !is_found_more_and_more(evaluations, i, are_told))
            missed.push_back(i);
    return missed;
}

std::vector<std::size_t> missed_to_the_end(const ClassTally& tally, const Rarity& rarity,
                                           const std::vector<double>& before) {
    const std::vector<double>&labels = tally.recent(), &hits = tally.hits();
    const std::size_t common = most_frequent(labels);
    if (tally.total() < 2 * ClassTally::kWindow || is_vocabulary(tally, rarity) ||
        hits[common] < kFewestOfCommonToTheEnd * labels[common])
        return {};
    std::vector<std::size_t> missed;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] < 30 || !counts_less(labels, i, common, rarity) || i >= before.size()) continue;
        const double share = hits[i] / labels[i];
        if (share < kMissedShare && share <= before[i]) missed.push_back(i);
    }
    return missed;
}

}  // namespace traindbg::rules
