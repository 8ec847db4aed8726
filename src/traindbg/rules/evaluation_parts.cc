#include "traindbg/rules/evaluation_parts.h"

#include <algorithm>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/robust.h"

namespace traindbg::rules {
namespace {

constexpr std::size_t kFewestEvaluations = 6, kLooks = 5;  // evaluations in all, and the last ones
constexpr double kApart = 1.5;                             // times the lower part, together
constexpr double kEach = 1.3;  // the same in each evaluation, and times the training loss
constexpr double kLikeLeast = 0.2, kLikeMost = 1.25;  // times the training loss: of the training's data

}  // namespace

bool EvaluationParts::add(std::span<const double> losses, double train) {
    if (!is_even_) return false;
    if (added_.empty()) batches_ = losses.size();
    if (losses.size() != batches_ || batches_ < 2 || batches_ > kMostBatches ||
        added_.size() == kMostEvaluations) {
        is_even_ = false;
        added_ = {};
        return false;
    }
    added_.push_back({{losses.begin(), losses.end()}, train});
    if (part_) return false;
    part_ = find();
    return part_.has_value();
}

double EvaluationParts::loss_of(std::span<const double> losses) const {
    if (part_ && losses.size() >= part_->end)
        return mean_of(losses.subspan(part_->begin, part_->end - part_->begin));
    return mean_of(losses);
}

std::vector<double> EvaluationParts::means_of_batches(std::size_t evaluations) const {
    std::vector<double> means(batches_);
    for (std::size_t i = added_.size() - evaluations; i < added_.size(); ++i)
        for (std::size_t batch = 0; batch < batches_; ++batch)
            means[batch] += added_[i].losses[batch] / static_cast<double>(evaluations);
    return means;
}

std::optional<EvaluationParts::Part> EvaluationParts::find() const {
    if (added_.size() < kFewestEvaluations) return std::nullopt;
    const std::vector<double> means = means_of_batches(kLooks);
    // Where the two sides are the farthest from each other.
    std::size_t cut = 0;
    double widest = 0;
    for (std::size_t at = 1; at < batches_; ++at) {
        const double distance = mean_of(std::span(means).first(at)) - mean_of(std::span(means).subspan(at));
        const double between =
            distance * distance * static_cast<double>(at) * static_cast<double>(batches_ - at);
        if (between > widest) {
            widest = between;
            cut = at;
        }
    }
    if (cut == 0) return std::nullopt;
    const auto first = std::span(means).first(cut), second = std::span(means).subspan(cut);
    const bool is_second = mean_of(second) > mean_of(first);
    const auto high = is_second ? second : first, low = is_second ? first : second;
    if (!(mean_of(low) > 0) || !(mean_of(high) > kApart * mean_of(low))) return std::nullopt;
    if (*std::min_element(high.begin(), high.end()) <= *std::max_element(low.begin(), low.end()))
        return std::nullopt;
    const auto sides_of = [&](const Added& added) {
        const double left = mean_of(std::span(added.losses).first(cut));
        const double right = mean_of(std::span(added.losses).subspan(cut));
        return is_second ? std::pair(right, left) : std::pair(left, right);
    };
    for (const Added& added : std::span(added_).last(kLooks)) {
        const auto [higher, lower] = sides_of(added);
        const bool is_like_training = lower > kLikeLeast * added.train && lower < kLikeMost * added.train;
        if (!(added.train > 0) || !is_like_training) return std::nullopt;
        if (higher < kEach * lower || higher < kEach * added.train) return std::nullopt;
    }
    // Before anything was known by heart both were alike.
    const auto [higher, lower] = sides_of(added_.front());
    if (higher > kApart * lower) return std::nullopt;
    return is_second ? Part{cut, batches_} : Part{0, cut};
}

std::string EvaluationParts::in_words() const {
    if (!part_) return "";
    const std::size_t size = part_->end - part_->begin;
    const char* side = part_->begin == 0 ? "first" : "last";
    return base::format(
        " {} of the {} batches of an evaluation; the losses of the others follow that of the training, as "
        "where "
        "its data is evaluated, too.",
        size == 1 ? base::format("Counted is the {}", side)
                  : base::format("Counted are the {} {}", side, size),
        batches_);
}

}  // namespace traindbg::rules
