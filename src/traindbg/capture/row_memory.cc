#include "traindbg/capture/row_memory.h"

#include <algorithm>

namespace traindbg::capture {
namespace {

constexpr std::int64_t kFewestAgain = 40;
constexpr std::int64_t kFewestFirstsAgain = 64;
constexpr double kBeyondChance = 2;

}  // namespace

void RowMemory::learn(const RowPrints& rows) {
    const std::size_t count = rows.size();
    const auto number = static_cast<std::int64_t>(count);
    const bool is_full = known_.size() >= kMostKnownRows;
    const std::int64_t alike = equal_pairs(count, [&](std::size_t row) { return rows.whole(row); });
    looked_at_ += is_full ? 0 : number;
    pairs_ += number * (number - 1) / 2;
    alike_ += alike;
    for (std::size_t half = 0; half < kHalves; ++half)
        half_alike_[half] +=
            equal_pairs(count, [&](std::size_t row) { return rows.half(row, half); }) - alike;
    if (rows.has_further() && !is_full) {
        firsts_alike_ += equal_pairs(count, [&](std::size_t row) { return rows.both(row); });
        firsts_pairs_ += number * (number - 1) / 2;
        const double equal = static_cast<double>(firsts_alike_) /
                             static_cast<double>(std::max<std::int64_t>(firsts_pairs_, 1));
        firsts_learned_ += number;
        firsts_by_chance_ += equal * static_cast<double>(firsts_learned_) * static_cast<double>(number);
    }
    for (std::size_t row = 0; !is_full && row < count; ++row) {
        const bool is_again = !known_.insert(rows.whole(row)).second;
        if (rows.has_further()) {
            firsts_again_ += firsts_.insert(rows.both(row)).second ? 0 : 1;
            wholes_again_ += is_again ? 1 : 0;
        }
        for (std::size_t half = 0; half < kHalves; ++half) halves_[half].insert(rows.half(row, half));
    }
    learn_labels(rows);
}

void RowMemory::learn_labels(const RowPrints& rows) {
    const auto labels = rows.labels();
    if (labels.empty() ||
        !std::all_of(labels.begin(), labels.end(), [](const RowLabel& label) { return label.is_whole(); }))
        return;
    const double equal = static_cast<double>(alike_) / static_cast<double>(std::max<std::int64_t>(pairs_, 1));
    by_chance_ += equal * static_cast<double>(classes_.size()) * static_cast<double>(rows.size());
    often_.clear();
    for (std::size_t row = 0; row < rows.size(); ++row) ++*often_.insert(rows.whole(row)).first;
    for (std::size_t row = 0; row < labels.size(); ++row) {
        const std::uint64_t whole = rows.whole(row);
        if (*often_.find(whole) > 1) {
            ++twice_;  // what stands for many has many labels
        } else if (const RowLabel* const before = classes_.find(whole)) {
            ++again_;
            changed_ += *before == labels[row] ? 0 : 1;
        } else if (classes_.size() < kMostKnownRows) {
            *classes_.insert(whole).first = labels[row];
            std::int64_t& of_class = *of_class_.insert(labels[row].number()).first;
            squares_ += 2 * of_class++ + 1;
        }
    }
}

RowMemory::Figures RowMemory::figures() const noexcept {
    return {.known = static_cast<std::int64_t>(known_.size()),
            .looked_at = looked_at_,
            .pairs = pairs_,
            .alike = alike_,
            .half_alike = of_halves(half_alike_)};
}

RowMemory::Found RowMemory::find(const RowPrints& rows) const noexcept {
    Found found;
    const bool by_first = by_first_alone(rows);
    const NumberSet& set = by_first && firsts_.size() > 0 ? firsts_ : known_;
    const auto is_known = [&](std::size_t row) {
        return set.has(by_first ? rows.both(row) : rows.whole(row));
    };
    const auto has = [&](std::size_t row, Half half) { return halves_[half].has(rows.half(row, half)); };
    for (std::size_t row = 0; row < rows.size(); ++row) {
        if (is_known(row)) ++found.known;
        else if ((has(row, kFirstHalf) && has(row, kSecondHalf)) ||
                 (has(row, kEvenHalf) && has(row, kOddHalf)))
            ++found.half_alike;
    }
    return found;
}

bool RowMemory::by_first_alone(const RowPrints& rows) const noexcept {
    const bool are_others_made_anew = firsts_again_ >= kFewestFirstsAgain && wholes_again_ == 0 &&
                                      static_cast<double>(firsts_again_) > kBeyondChance * firsts_by_chance_;
    return !rows.has_further() || firsts_.size() == 0 || are_others_made_anew;
}

std::optional<RowMemory::Relabelled> RowMemory::relabelled() const noexcept {
    const auto count = static_cast<std::int64_t>(classes_.size());
    const bool are_alike = 20 * twice_ > count || static_cast<double>(again_) <= 2 * by_chance_;
    if (again_ < kFewestAgain || are_alike) return std::nullopt;
    const double same = static_cast<double>(squares_) / static_cast<double>(count * count);
    return Relabelled{.again = again_, .changed = changed_, .by_chance = 1 - same};
}

template <typename NumberOf>
std::int64_t RowMemory::equal_pairs(std::size_t rows, const NumberOf& number_of) {
    often_.clear();
    std::int64_t pairs = 0;
    for (std::size_t row = 0; row < rows; ++row) pairs += (*often_.insert(number_of(row)).first)++;
    return pairs;
}

}  // namespace traindbg::capture
