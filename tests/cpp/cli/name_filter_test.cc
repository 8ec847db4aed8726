#include "traindbg/cli/name_filter.h"

#include <gtest/gtest.h>

#include <string>

namespace traindbg::cli {
namespace {

TEST(NameFilter, SearchesAnywhereInTheName) {
    const auto filter = NameFilter::make("fc\\d+");
    ASSERT_TRUE(filter.is_ok());
    EXPECT_TRUE(filter->matches("gradient/fc12.weight"));
    EXPECT_FALSE(filter->matches("gradient/conv1.weight"));
    const auto all = NameFilter::make("");
    ASSERT_TRUE(all.is_ok());
    EXPECT_TRUE(all->matches("anything"));
}

TEST(NameFilter, ABrokenPatternIsNamedAndLookAroundIsRefused) {
    const auto broken = NameFilter::make("fc(");
    ASSERT_FALSE(broken.is_ok());
    EXPECT_NE(broken.status().message().find("'fc('"), std::string::npos);
    EXPECT_FALSE(NameFilter::make("(?=a)b").is_ok());
}

}  // namespace
}  // namespace traindbg::cli
