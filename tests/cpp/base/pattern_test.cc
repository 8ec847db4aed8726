#include "traindbg/base/pattern.h"

#include <gtest/gtest.h>

namespace traindbg::base {
namespace {

TEST(Pattern, IsSearchedAnywhereInTheName) {
    const auto pattern = Pattern::make("^(?!gradient).*weight");
    ASSERT_TRUE(pattern.is_ok());
    EXPECT_TRUE(pattern->matches("weight/fc.weight"));
    EXPECT_FALSE(pattern->matches("gradient/fc.weight"));
    EXPECT_FALSE(pattern->matches(std::string(5000, 'x') + "weight"));
}

TEST(Pattern, WhatIsNoneIsAnErrorThatQuotesIt) {
    const auto pattern = Pattern::make("(\x01");
    ASSERT_FALSE(pattern.is_ok());
    EXPECT_NE(pattern.status().message().find("'(\\x01' is no regular expression"), std::string::npos)
        << pattern.status().message();
}

// An exponential matcher would take years.
TEST(Pattern, ASearchTakesBoundedTime) {
    const auto pattern = Pattern::make("(a+)+$");
    ASSERT_TRUE(pattern.is_ok());
    EXPECT_FALSE(pattern->matches(std::string(100, 'a') + "b"));
}

}  // namespace
}  // namespace traindbg::base
