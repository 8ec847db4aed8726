#include "traindbg/model/checked_json.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace traindbg::model {
namespace {

using Json = nlohmann::ordered_json;

std::string sample() {
    return to_checked_text({{"schema_version", 1}, {"what", {1, 2, 3}}, {"last", "a \"word\""}});
}

TEST(CheckedJsonTest, TheChecksumIsTheLastMemberAndAllElseIsAsItWas) {
    EXPECT_EQ(to_checked_text({{"a", 1}}), "{\n  \"a\": 1,\n  \"crc32c\": \"4846237d\"\n}\n");
    const Json json = Json::parse(sample());
    EXPECT_EQ(json.size(), 4U);
    EXPECT_EQ(json["what"], Json({1, 2, 3}));
    EXPECT_EQ((--json.end()).key(), "crc32c");
    EXPECT_EQ(check_text(sample()), TextCheck::kWhole);
}

TEST(CheckedJsonTest, AnObjectWithoutMembersHasOne) {
    const std::string text = to_checked_text(Json::object());
    EXPECT_EQ(Json::parse(text).size(), 1U);
    EXPECT_EQ(check_text(text), TextCheck::kWhole);
}

TEST(CheckedJsonTest, EveryFlippedBitIsSeen) {
    const std::string whole = sample();
    for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
        std::string text = whole;
        text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
        EXPECT_EQ(check_text(text), TextCheck::kDamaged) << bit;
    }
}

TEST(CheckedJsonTest, NoBeginningPassesForTheWhole) {
    const std::string whole = sample();
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::string_view text = std::string_view(whole).substr(0, size);
        EXPECT_TRUE(check_text(text) == TextCheck::kDamaged || !Json::accept(text)) << size;
    }
    EXPECT_EQ(check_text(whole + "\n"), TextCheck::kDamaged);
}

TEST(CheckedJsonTest, ATextWithoutAChecksumIsNotJudged) {
    for (const char* text :
         {"", "{}", "{\"a\": 1}\n", "{\n  \"command\": [\"crc32c\"],\n  \"host\": \"somewhere\"\n}\n"})
        EXPECT_EQ(check_text(text), TextCheck::kUnchecked) << text;
    EXPECT_EQ(check_text(Json({{"schema_version", 1}, {"traindbg", "12345678"}}).dump(2) + "\n"),
              TextCheck::kUnchecked);
}

}  // namespace
}  // namespace traindbg::model
