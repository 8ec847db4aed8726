// From numbers of 64 bits to values, in one block of memory: for numbers that look random, such as
// fingerprints, of which thousands are looked up in a step.
//
// A plain value. It grows twofold and is never more than half full; a slot is as large as a number and a
// value. 0 is kept as another number: a fingerprint is that one by a chance of 2^-64.
// Cost: a few nanoseconds a number. A pointer to a value holds until the next `insert` or `clear`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace traindbg::capture {

// One to one; a change of any bit changes any other (splitmix64).
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t number) noexcept {
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9;
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB;
    return number ^ (number >> 31);
}

template <typename Value>
class NumberTable {
  public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool has(std::uint64_t number) const noexcept { return find(number) != nullptr; }
    // Null where there is none.
    [[nodiscard]] const Value* find(std::uint64_t number) const noexcept {
        if (slots_.empty()) return nullptr;
        const Slot& slot = slots_[place_of(number)];
        return slot.number == 0 ? nullptr : &slot.value;
    }
    // The value of `number`, and whether it was not there before.
    std::pair<Value*, bool> insert(std::uint64_t number) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        Slot& slot = slots_[place_of(number)];
        const bool is_new = slot.number == 0;
        slot.number = kept(number);
        size_ += is_new ? 1 : 0;
        return {&slot.value, is_new};
    }
    // Keeps the memory.
    void clear() noexcept {
        for (Slot& slot : slots_) slot = Slot{};
        size_ = 0;
    }

  private:
    struct Slot {
        std::uint64_t number = 0;  // 0: free
        [[no_unique_address]] Value value{};
    };
    static constexpr std::size_t kFewestSlots = 128;

    static constexpr std::uint64_t kept(std::uint64_t number) noexcept {
        return number == 0 ? 0x9E3779B97F4A7C15 : number;
    }
    // Of the number, or of the free slot for it. There is a free one.
    [[nodiscard]] std::size_t place_of(std::uint64_t number) const noexcept {
        number = kept(number);
        const std::size_t mask = slots_.size() - 1;
        std::size_t place = (number * 0x9E3779B97F4A7C15) >> (64 - std::countr_zero(slots_.size()));
        while (slots_[place].number != 0 && slots_[place].number != number) place = (place + 1) & mask;
        return place;
    }
    void grow() {
        std::vector<Slot> slots(slots_.empty() ? kFewestSlots : 2 * slots_.size());
        slots_.swap(slots);
        for (Slot& slot : slots)
            if (slot.number != 0) slots_[place_of(slot.number)] = std::move(slot);
    }

    std::vector<Slot> slots_;  // a power of two, or none
    std::size_t size_ = 0;
};

struct Nothing {};
using NumberSet = NumberTable<Nothing>;

}  // namespace traindbg::capture
