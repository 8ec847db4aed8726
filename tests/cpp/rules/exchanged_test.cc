#include "traindbg/rules/exchanged.h"

#include <gtest/gtest.h>

namespace traindbg::rules {
namespace {

TEST(ExchangedTest, TheyAreApartAsTheyAreAndTogetherExchanged) {
    EXPECT_TRUE(are_exchanged({.as_they_are = 200, .exchanged = 3}));
    EXPECT_FALSE(are_exchanged({.as_they_are = 30, .exchanged = 1}));
    EXPECT_FALSE(are_exchanged({.as_they_are = 200, .exchanged = 12}));
    EXPECT_FALSE(are_exchanged({.as_they_are = 50, .exchanged = 6}));
}

}  // namespace
}  // namespace traindbg::rules
