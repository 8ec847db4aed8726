// Whether what is evaluated is the training's with two parts exchanged: channels of images, or two inputs.
//
// How far one part lies above the other is compared: it differs between training and evaluation, and does not
// once they are exchanged. Thread-safety: pure functions.
#pragma once

namespace traindbg::rules {

// Squared distances between training and evaluation, in standard errors: as they come, and exchanged.
struct Apart {
    double as_they_are = 0, exchanged = 0;
};

// Of two distances that are chance the squares are together above 9 in one case of ninety, and never 40.
inline constexpr double kClearlyApart = 40, kTogether = 9, kTogetherOfApart = 0.1;

[[nodiscard]] constexpr bool are_exchanged(const Apart& apart) noexcept {
    return apart.as_they_are > kClearlyApart && apart.exchanged < kTogether &&
           apart.exchanged < kTogetherOfApart * apart.as_they_are;
}

}  // namespace traindbg::rules
