#include "traindbg/capture/near_names.h"

#include <gtest/gtest.h>

namespace traindbg::capture {
namespace {

using Names = std::vector<std::string>;

TEST(NearNames, WhatAPatternSaysInPlainLetters) {
    EXPECT_EQ(plain_part("^output/block1$"), "output/block1");
    EXPECT_EQ(plain_part("^weight/layer1\\.0\\.conv.*"), "weight/layer1.0.conv");
    EXPECT_EQ(plain_part("^(output|activation)/(.*)(block1)($|@)"), "/block1");
    EXPECT_EQ(plain_part("gradient/fc[12]"), "gradient/fc");
    EXPECT_EQ(plain_part("a{2,3}b|c"), "ab");
    for (const char* broken : {"(", "[", "{", "\\", ")", "(()", "[a"}) static_cast<void>(plain_part(broken));
}

TEST(NearNames, TheNearestNamesAreFoundWithAndWithoutTheirRole) {
    const Names names = {"weight/body.0.weight", "output/block1", "output/block1.fc", "gradient/head.bias"};
    EXPECT_EQ(names_near({"^output/blok1$"}, names), Names{"output/block1"});
    EXPECT_EQ(names_near({"blok1_output", "^(output|activation)/(.*)(blok1)($|@)"}, names),
              Names{"output/block1"});
    EXPECT_EQ(names_near({"^gradient/haed.bias"}, names), Names{"gradient/head.bias"});
    EXPECT_TRUE(names_near({".*", "^optimizer_state/lstm_of_another_model"}, names).empty());
    EXPECT_TRUE(names_near({"^output/blok1$"}, {}).empty());
}

}  // namespace
}  // namespace traindbg::capture
