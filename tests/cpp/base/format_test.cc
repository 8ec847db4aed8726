#include "traindbg/base/format.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace traindbg::base {
namespace {

TEST(Format, ShowsWhatMessagesAreMadeOf) {
    const std::string word = "conv1";
    EXPECT_EQ(format("{}: {} of {:>4}", word, 3, 12U), "conv1: 3 of   12");
    EXPECT_EQ(format("{} {} {}", std::string_view("a"), 'b', true), "a b true");
    EXPECT_EQ(format("{:.3g} {:08x}", 1.0 / 3.0, 255), "0.333 000000ff");
    EXPECT_EQ(format("{} {}", std::numeric_limits<double>::quiet_NaN(), -1e300 * 1e10), "nan -inf");
    EXPECT_EQ(format("{{}} {0} {0}", 0.1), "{} 0.1 0.1");
}

TEST(Format, JoinsRanges) {
    EXPECT_EQ(join(std::vector<int>{}, ", "), "");
    EXPECT_EQ(join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
    EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
}

}  // namespace
}  // namespace traindbg::base
