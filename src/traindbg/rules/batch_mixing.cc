#include "traindbg/rules/batch_mixing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "traindbg/base/format.h"

namespace traindbg::rules {
namespace {

constexpr std::uint64_t kFewestMixed = 10;  // batches
constexpr double kLeastMixed = 0.3;         // entropy of the data

// `in_batch`, `in_data`: as many equal classes as would be as mixed.
model::Finding unmixed_finding(double in_batch, std::size_t classes, double in_data, bool is_game) {
    model::Finding finding;
    finding.kind = "unshuffled_data";
    finding.severity = is_game ? model::Severity::kInfo : model::Severity::kWarning;
    finding.first_step = 0;
    finding.message = base::format(
        "Batches are not mixed: each is of about {:.1f} classes, the data so far is of {} (as if of {:.1f} "
        "equal ones).",
        in_batch, classes, in_data);
    finding.fix =
        "Shuffle: DataLoader(..., shuffle=True), from a buffer as large as the data where it streams.";
    finding.evidence = {{"classes per batch", in_batch, "in the data", in_data}};
    finding.plots = {{"loss", "value"}};
    return finding;
}

// Of two distributions: what both have.
double overlap_of(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::min(a[i], b[i]);
    return sum;
}

double entropy_of_yes(double yes) {
    if (!(yes > 0) || !(yes < 1)) return 0;
    return -yes * std::log(yes) - (1 - yes) * std::log(1 - yes);
}

}  // namespace

void ClassMixing::add(const model::ClassCounts& counts, double in_batch, model::StepIndex step) {
    std::vector<double> shares(counts.labels.begin(), counts.labels.end());
    for (double& share : shares) share /= in_batch;
    if (in_batch >= ClassTally::kLabelsOfBatch && last_shares_.size() == shares.size() &&
        step == last_step_ + 1 && shares_in_a_row_.size() < kMostPairs && shares.size() <= kMostClasses) {
        overlap_ += overlap_of(last_shares_, shares);
        shares_in_a_row_.push_back(shares);
    }
    last_shares_ = std::move(shares);
    last_step_ = step;
}

void ClassMixing::judge(const ClassTally& tally, std::string_view tensor, bool is_game, FindingSink& sink) {
    if (!is_unmixed(tally)) {
        firing_.clear(kOrder, sink);
        return;
    }
    model::Finding finding =
        unmixed_finding(std::exp(tally.entropy_of_batch()), tally.seen(), std::exp(tally.entropy()), is_game);
    finding.key = kOrder;
    finding.tensor = tensor;
    firing_.fire(std::move(finding), sink);
}

// What a class tells of itself in one batch is what it tells of itself in all.
bool ClassMixing::is_unmixed(const ClassTally& tally) const {
    if (tally.batches() < kFewestMixed || tally.seen() < 2 || tally.entropy() <= kLeastMixed) return false;
    const double share = tally.entropy_of_batch() / tally.entropy();
    return share < 0.2 || (share < 0.5 && is_slow(tally));
}

// Batches are much more like the one before than like all data. A frequent class alone makes both alike.
bool ClassMixing::is_slow(const ClassTally& tally) const {
    if (shares_in_a_row_.size() < kFewestPairs) return false;
    std::vector<double> all = tally.labels();
    for (double& count : all) count /= tally.total();
    double with_all = 0;
    for (const std::vector<double>& shares : shares_in_a_row_) with_all += overlap_of(shares, all);
    const auto pairs = static_cast<double>(shares_in_a_row_.size());
    return overlap_ > 0.6 * pairs && overlap_ - with_all > 0.25 * pairs;
}

void AnswerMixing::judge(const AnswerBatch& batch, double yes, model::StepIndex step, bool is_game,
                         FindingSink& sink) {
    if (batch.labels < ClassTally::kLabelsOfBatch) return;
    ++batches_;
    entropy_ += entropy_of_yes(batch.yes);
    const int side = batch.yes > 0.9 ? 1 : batch.yes < 0.1 ? 0 : -1;
    if (side >= 0 && last_side_ >= 0 && step == last_step_ + 1) ++(side == last_side_ ? kept_ : switched_);
    last_side_ = side;
    last_step_ = step;
    const double in_data = entropy_of_yes(yes);
    const double in_batch = entropy_ / static_cast<double>(batches_);
    const bool is_unmixed = batches_ >= kFewestMixed && in_data > kLeastMixed && in_batch < 0.2 * in_data;
    if (is_unmixed && kept_ >= 5 && kept_ >= 4 * switched_ && !is_game) {
        model::Finding finding = unmixed_finding(std::exp(in_batch), 2, std::exp(in_data), false);
        finding.key = kOrder;
        finding.tensor = base::format("loss/{}", batch.function);
        firing_.fire(std::move(finding), sink);
    } else {
        firing_.clear(kOrder, sink);
    }
}

}  // namespace traindbg::rules
