// Kinds of fault that a rule sees as such: its finding names the cause, nothing has to be inferred.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace traindbg::diagnose {

// What a fault does to a training, and so which other findings follow from it. A set of bits.
enum class Effect : std::uint8_t {
    kNone = 0,
    kStalls = 1,       // it learns slowly, partly or not at all
    kBlowsUp = 2,      // values grow, units die, the loss rises
    kGeneralises = 4,  // what it learns does not hold for other data
};
[[nodiscard]] constexpr Effect operator|(Effect a, Effect b) noexcept {
    return static_cast<Effect>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}

struct FaultKind {
    std::string_view kind;   // `Finding::kind`
    std::string_view title;  // for people
    // Of facts 0.9 and more; less where a threshold has judged, so that a fact comes first.
    double confidence = 0;
    Effect effect = Effect::kNone;
    std::string_view refuted;  // "Refuted if ...": what would speak against it
    bool is_first = false;     // it is there before the first update, and so may be what follows from it
    // It begins at some step, that of its finding: what was clearly before does not follow from it. Others
    // are so from the start, however late they are seen.
    bool in_time = false;
};

// In the order that decides between equals.
[[nodiscard]] std::span<const FaultKind> fault_kinds() noexcept;
// Whether a finding of a rule, by its key, follows from a fault. `since_start`: the finding shows that things
// were so before the first update; then it is no consequence of what an update does.
[[nodiscard]] bool follows(std::string_view rule, std::string_view key, const FaultKind& fault,
                           bool since_start) noexcept;

}  // namespace traindbg::diagnose
