#include "traindbg/capture/row_passes.h"

#include <algorithm>

namespace traindbg::capture {
namespace {

constexpr std::int64_t kMostNeededChanges = 8;
constexpr std::int64_t kFewestNeededChanges = 2;

}  // namespace

void RowPasses::batch(const Batch& batch, const RowPrints& rows) {
    if (batch.of != of_) {
        keep();
        begin(batch);
    }
    // What kept its batches may give them again without another pass.
    if ((batch.step - since_ + 1) * batch.size >= of_.rows + batch.size) is_over_ = true;
    if (is_over_ || now_.looked_at + static_cast<std::int64_t>(rows.size()) > kMostRowsOfPass) return;
    if (is_replayed(rows)) return;
    const auto labels = batch.are_classes ? rows.labels() : std::span<const RowLabel>{};
    const std::int64_t enough = std::clamp(rows.values() / 2, kFewestNeededChanges, kMostNeededChanges);
    for (std::size_t row = 0; row < rows.size(); ++row) {
        Seen now{.step = batch.step, .place = row, .times = 1, .label = std::nullopt};
        if (row < labels.size() && labels[row].is_whole() && !labels[row].is_negative())
            now.label = labels[row];
        ++now_.looked_at;
        if (now.label) {
            OfClass& of_class = *of_class_.insert(now.label->number()).first;
            squares_ += 2 * of_class.rows++ + 1;
            ++classified_;
        }
        if (rows.changes(row) < enough) continue;
        const auto [before, is_new] = first_.insert(rows.whole(row));
        if (!is_new) {
            row_squares_ += 2 * before->times + 1;
            if (now.label && before->label == now.label) weigh(*now.label, 2 * before->times + 1);
            now_.most = std::max(now_.most, ++before->times);
            came_again(*before, now);
            continue;
        }
        *before = now;
        ++now_.distinct;
        ++row_squares_;
        if (now.label) {
            weigh(*now.label, 1);
            ++now_.distinct_in_class;
        }
        for (std::size_t half = 0; half < kHalves; ++half)
            half_again_[half] += halves_[half].insert(rows.half(row, half)).second ? 0 : 1;
    }
}

void RowPasses::unknown() noexcept {
    is_over_ = true;
    now_.looked_at = 0;
}

std::optional<RowPasses::Again> RowPasses::told() {
    keep();
    return best_;
}

void RowPasses::begin(const Batch& batch) {
    of_ = batch.of;
    since_ = batch.step;
    is_over_ = false;
    first_.clear();
    for (NumberSet& half : halves_) half.clear();
    half_again_ = {};
    of_class_.clear();
    classified_ = squares_ = row_squares_ = 0;
    now_ = {};
}

void RowPasses::keep() {
    if (now_.looked_at == 0 || (best_ && now_.looked_at <= best_->looked_at)) return;
    best_ = now_;
    best_->of = of_.rows;
    const auto compared = static_cast<double>(best_->distinct + best_->again);
    if (row_squares_ > 0) best_->effective = compared * compared / static_cast<double>(row_squares_);
    best_->half_again = of_halves(half_again_);
    if (classified_ > 0)
        best_->by_chance = 1 - static_cast<double>(squares_) / static_cast<double>(classified_ * classified_);
}

// Another row of the class, which makes the sum of the squares of its rows' numbers larger by `squares`.
void RowPasses::weigh(const RowLabel& label, std::int64_t squares) {
    OfClass& of_class = *of_class_.insert(label.number()).first;
    const auto weight = [&of_class] {
        const auto known = static_cast<double>(of_class.known);
        return of_class.squares > 0 ? known * known / static_cast<double>(of_class.squares) : 0.0;
    };
    now_.effective_in_class -= weight();
    ++of_class.known;
    of_class.squares += squares;
    now_.effective_in_class += weight();
}

// Half of it were together in an earlier batch: one that was given once more.
bool RowPasses::is_replayed(const RowPrints& rows) {
    looked_up_.clear();
    of_step_.clear();
    std::int64_t most = 0;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        const std::uint64_t whole = rows.whole(row);
        if (!looked_up_.insert(whole).second) continue;
        if (const Seen* const before = first_.find(whole))
            most = std::max(most, ++*of_step_.insert(static_cast<std::uint64_t>(before->step)).first);
    }
    return 2 * most > static_cast<std::int64_t>(rows.size());
}

void RowPasses::came_again(const Seen& before, const Seen& now) noexcept {
    if (now_.again == 0) {
        now_.before_step = before.step;
        now_.before = static_cast<std::int64_t>(before.place);
        now_.again_step = now.step;
        now_.again_place = static_cast<std::int64_t>(now.place);
    }
    ++now_.again;
    if (before.label && now.label) {
        ++now_.labelled;
        now_.contradicting += *before.label == *now.label ? 0 : 1;
    }
}

}  // namespace traindbg::capture
