#include "traindbg/base/bytes.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace traindbg::base {
namespace {

ByteBuffer bytes_of(std::vector<int> values) {
    ByteBuffer out;
    for (const int value : values) out.push_back(static_cast<std::byte>(value));
    return out;
}

TEST(Bytes, WhatIsWrittenIsRead) {
    ByteWriter writer;
    writer.fixed<std::uint32_t>(0x01020304);
    writer.fixed(2.5);
    writer.varint(300);
    writer.zigzag(-3);
    writer.text("täxt");
    const std::array<std::int16_t, 2> numbers = {-1, 7};
    writer.array<std::int16_t>(numbers);
    EXPECT_EQ(writer.bytes()[0], std::byte{4}) << "little-endian";
    ByteReader reader(writer.bytes());
    EXPECT_EQ(reader.fixed<std::uint32_t>(), 0x01020304U);
    EXPECT_EQ(reader.fixed<double>(), 2.5);
    EXPECT_EQ(reader.varint(), 300U);
    EXPECT_EQ(reader.zigzag(), -3);
    EXPECT_EQ(reader.text(), "täxt");
    std::array<std::int16_t, 2> read{};
    reader.array<std::int16_t>(read);
    EXPECT_EQ(read, numbers);
    EXPECT_TRUE(reader.ok());
    EXPECT_EQ(reader.remaining(), 0U);
}

TEST(Bytes, VarintsOfEveryLengthComeBack) {
    std::vector<std::uint64_t> values = {0, UINT64_MAX};
    for (unsigned bit = 0; bit < 64; ++bit)
        for (const std::uint64_t offset : {UINT64_MAX, std::uint64_t{0}, std::uint64_t{1}})
            values.push_back((std::uint64_t{1} << bit) + offset);
    for (const std::uint64_t value : values) {
        ByteWriter writer;
        writer.varint(value);
        writer.zigzag(static_cast<std::int64_t>(value));
        ByteReader reader(writer.bytes());
        EXPECT_EQ(reader.varint(), value);
        EXPECT_EQ(reader.zigzag(), static_cast<std::int64_t>(value));
        EXPECT_TRUE(reader.ok());
        EXPECT_LE(writer.size(), 20U);
    }
}

TEST(Bytes, AVarintOfMoreThan64BitsFails) {
    const ByteBuffer most = bytes_of({255, 255, 255, 255, 255, 255, 255, 255, 255, 1});
    ByteReader fits(most);
    EXPECT_EQ(fits.varint(), UINT64_MAX);
    EXPECT_TRUE(fits.ok());
    for (const ByteBuffer& bytes : {bytes_of({255, 255, 255, 255, 255, 255, 255, 255, 255, 2}),
                                    bytes_of({255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 0}),
                                    bytes_of({128, 128}), ByteBuffer{}}) {
        ByteReader reader(bytes);
        EXPECT_EQ(reader.varint(), 0U);
        EXPECT_FALSE(reader.ok());
    }
}

TEST(Bytes, AfterTheFirstShortReadEverythingIsZero) {
    const ByteBuffer bytes = bytes_of({1, 2, 3});
    ByteReader reader(bytes);
    EXPECT_EQ(reader.fixed<std::uint32_t>(), 0U);
    EXPECT_FALSE(reader.ok());
    EXPECT_EQ(reader.fixed<std::uint8_t>(), 0U) << "though there are three bytes";
    EXPECT_EQ(reader.text(), "");
    EXPECT_EQ(reader.remaining(), 0U);
    std::array<std::uint8_t, 2> array = {9, 9};
    reader.array<std::uint8_t>(array);
    EXPECT_EQ(array[0], 9);
}

TEST(Bytes, ACountThatTheRestCannotHoldFails) {
    ByteWriter writer;
    writer.varint(std::uint64_t{1} << 60);
    ByteReader huge(writer.bytes());
    EXPECT_EQ(huge.count(8), 0U);
    EXPECT_FALSE(huge.ok());
    const ByteBuffer two = bytes_of({2, 0, 0, 0, 0});
    ByteReader fits(two);
    EXPECT_EQ(fits.count(2), 2U);
    ByteReader too_many(two);
    EXPECT_EQ(too_many.count(3), 0U);
    EXPECT_FALSE(too_many.ok());
}

TEST(Bytes, PaddingAndPatching) {
    ByteWriter writer;
    writer.fixed<std::uint8_t>(1);
    writer.pad_to(4);
    EXPECT_EQ(writer.size(), 4U);
    writer.pad_to(4);
    EXPECT_EQ(writer.size(), 4U);
    writer.patch<std::uint16_t>(2, 0xBEEF);
    EXPECT_EQ(writer.take(), bytes_of({1, 0, 0xEF, 0xBE}));
}

}  // namespace
}  // namespace traindbg::base
