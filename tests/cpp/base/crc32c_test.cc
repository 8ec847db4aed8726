#include "traindbg/base/crc32c.h"

#include <gtest/gtest.h>

#include <random>

namespace traindbg::base {
namespace {

TEST(Crc32c, GivesTheCheckValueOfTheCatalogue) {
    EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283U);
    EXPECT_EQ(internal::crc32c_table(as_bytes("123456789"), 0), 0xE3069283U);
    EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, KnowsTheVectorsOfTheIscsiStandard) {  // RFC 3720, B.4
    EXPECT_EQ(crc32c(ByteBuffer(32, std::byte{0})), 0x8A9136AAU);
    EXPECT_EQ(crc32c(ByteBuffer(32, std::byte{0xFF})), 0x62A8AB43U);
    ByteBuffer rising;
    for (int i = 0; i < 32; ++i) rising.push_back(static_cast<std::byte>(i));
    EXPECT_EQ(crc32c(rising), 0x46DD794EU);
}

TEST(Crc32c, TableAndInstructionAgreeAtEveryLengthAndAlignment) {
    if (!internal::crc32c_hardware_available()) GTEST_SKIP() << "this CPU has no such instruction";
    std::mt19937 random(1);
    ByteBuffer bytes(300);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    for (std::size_t begin = 0; begin < 9; ++begin) {
        for (std::size_t size = 0; size + begin <= bytes.size(); ++size) {
            const ByteSpan part = ByteSpan(bytes).subspan(begin, size);
            ASSERT_EQ(internal::crc32c_table(part, 77), internal::crc32c_hardware(part, 77))
                << begin << ", " << size;
        }
    }
}

TEST(Crc32c, LongStretchesSummedSideBySideAreJoinedRightly) {
    if (!internal::crc32c_hardware_available()) GTEST_SKIP() << "this CPU has no such instruction";
    std::mt19937 random(2);
    ByteBuffer bytes(20'000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    for (std::size_t size = 3000; size <= bytes.size(); size += 37) {
        const ByteSpan part = ByteSpan(bytes).subspan(size % 8, size - size % 8);
        ASSERT_EQ(internal::crc32c_table(part, 78), internal::crc32c_hardware(part, 78)) << size;
    }
}

TEST(Crc32c, ContinuesWhereItLeftOff) {
    const std::string_view text = "the frame is the commit";
    for (std::size_t cut = 0; cut <= text.size(); ++cut)
        EXPECT_EQ(crc32c(as_bytes(text.substr(cut)), crc32c(as_bytes(text.substr(0, cut)))),
                  crc32c(as_bytes(text)));
}

}  // namespace
}  // namespace traindbg::base
