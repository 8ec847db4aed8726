// Sections 7 and 8 of a STEP: channels and digests.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/format/records.h"

namespace traindbg::format {
namespace {

using base::ByteWriter;
using base::Code;
using model::ChannelStatistics;
using model::StepRecord;
using testing::sample_step;
using testing::sample_tensors;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

base::Result<std::uint64_t> decode(const ByteWriter& bytes, StepRecord& out) {
    return decode_step(bytes.bytes(), sample_tensors(), out);
}

ChannelStatistics of_size(std::size_t channels) {
    return {std::vector<float>(channels, -1), std::vector<float>(channels, 2), std::vector<float>(channels)};
}

TEST(ChannelSection, ComesBack) {
    StepRecord record = sample_step(1);
    record.channels = {{0, {}}, {1, {{-1, 0}, {-0.5F, 0}, {0, 1}}}, {3, of_size(model::kMostChannels)}};
    ByteWriter out;
    EXPECT_EQ(encode_step(out, record, sample_tensors(), {}), 0U);
    StepRecord back = sample_step(99, true);
    back.channels = {{2, of_size(7)}};  // what was in it must not show through
    const auto skipped = decode(out, back);
    ASSERT_TRUE(skipped.is_ok()) << skipped.status().to_string();
    EXPECT_EQ(*skipped, 0U);
    EXPECT_EQ(back, record);
}

TEST(ChannelSection, OfATensorThatNobodyDescribedIsLeftOutAndCounted) {
    StepRecord record = sample_step(1);
    record.channels = {{0, of_size(1)}, {77, of_size(2)}};
    record.digests = {{0, {1, 2}}, {78, {3, 4}}};
    ByteWriter out;
    encode_step(out, record, sample_tensors(), {});
    StepRecord back;
    EXPECT_EQ(*decode(out, back), 2U);
    EXPECT_EQ(back.channels.size(), 1U);
    EXPECT_EQ(back.digests.size(), 1U);
}

TEST(ChannelSection, WhatIsBeyondTheMostOfAStepIsLeftOutAndCounted) {
    StepRecord record;
    model::TensorTable table(20);
    for (std::uint32_t id = 0; id < table.size(); ++id) {
        table[id].id = id;
        table[id].name = std::to_string(id);
        record.channels.push_back({id, of_size(40'000)});
    }
    ByteWriter out;
    EXPECT_EQ(encode_step(out, record, table, {}), 20U - kMostStepChannels / 40'000);
    StepRecord back;
    ASSERT_TRUE(decode_step(out.bytes(), table, back).is_ok());
    EXPECT_EQ(back.channels.size(), kMostStepChannels / 40'000);
}

// A step with only one section, of the given content.
ByteWriter with_section(std::uint64_t number, const ByteWriter& content) {
    ByteWriter out;
    StepRecord empty;
    encode_step(out, empty, {}, {});
    out.varint(number);
    out.varint(content.size());
    out.append(content.bytes());
    return out;
}

// One sample of tensor 0.
ByteWriter one(std::uint64_t channels, std::uint8_t form, const std::vector<float>& numbers) {
    ByteWriter content;
    content.varint(1);
    content.zigzag(0);
    content.varint(channels);
    content.fixed(form);
    for (const float number : numbers) content.fixed(number);
    return with_section(7, content);
}

TEST(ChannelSection, HostileBytesAreDamage) {
    StepRecord back;
    ASSERT_TRUE(decode(one(1, 0, {-1, 1}), back).is_ok());
    ASSERT_TRUE(decode(one(1, 1, {-1, 1, 0.5F}), back).is_ok());
    const std::vector<std::pair<const char*, ByteWriter>> cases = {
        {"an unknown form", one(1, 2, {-1, 1, 0.5F})},
        {"too few numbers", one(2, 0, {-1, 1, 0.5F})},
        {"extremes the wrong way round", one(1, 0, {1, -1})},
        {"an extreme that is not finite", one(1, 0, {-kInfinity, 1})},
        {"an extreme that is no number", one(1, 0, {0, kNan})},
        {"a share above 1", one(1, 1, {0, 0, 1.5F})},
        {"a share below 0", one(1, 1, {0, 0, -0.5F})},
        {"a share that is no number", one(1, 1, {0, 0, kNan})},
        {"more channels than there may be",
         one(std::uint64_t{model::kMostChannels} + 1, 0, std::vector<float>(2 * model::kMostChannels + 2))},
    };
    for (const auto& [what, bytes] : cases)
        EXPECT_EQ(decode(bytes, back).status().code(), Code::kDataLoss) << what;
}

TEST(ChannelSection, MoreOfAStepThanThereMayBeIsDamage) {
    ByteWriter content;
    content.varint(9);
    for (int i = 0; i < 9; ++i) {
        content.zigzag(0);
        content.varint(model::kMostChannels);
        content.fixed(std::uint8_t{0});
        for (std::uint32_t k = 0; k < 2 * model::kMostChannels; ++k) content.fixed(0.0F);
    }
    StepRecord back;
    EXPECT_EQ(decode(with_section(7, content), back).status().code(), Code::kDataLoss);
}

TEST(ChannelSection, ALyingCountTakesNoMemory) {
    StepRecord back;
    for (const std::uint64_t lie : {std::uint64_t{1} << 20, std::uint64_t{1} << 40, UINT64_MAX}) {
        for (const std::uint64_t section : {7U, 8U}) {
            ByteWriter content;
            content.varint(lie);
            EXPECT_EQ(decode(with_section(section, content), back).status().code(), Code::kDataLoss);
        }
        EXPECT_EQ(decode(one(lie, 0, {}), back).status().code(), Code::kDataLoss);
    }
}

TEST(ChannelSection, EveryPrefixIsDamageOrNothing) {
    StepRecord record;
    record.channels = {{0, {{-1, 0}, {-0.5F, 0}, {0, 1}}}};
    ByteWriter channels;
    encode_step(channels, record, sample_tensors(), {});
    record.channels.clear();
    record.digests = {{1, {7, -HUGE_VAL}}};
    ByteWriter digests;
    encode_step(digests, record, sample_tensors(), {});
    ByteWriter none;
    encode_step(none, StepRecord{}, sample_tensors(), {});
    StepRecord back;
    for (const ByteWriter* whole : {&channels, &digests})
        for (std::size_t size = none.size() + 1; size < whole->size(); ++size)
            EXPECT_FALSE(
                decode_step(base::ByteSpan(whole->bytes()).first(size), sample_tensors(), back).is_ok())
                << size;
}

TEST(DigestSection, ComesBackToTheBit) {
    StepRecord record = sample_step(1);
    record.digests = {
        {0, {UINT64_MAX, -0.0}}, {1, {0, -HUGE_VAL}}, {3, {1, std::numeric_limits<double>::denorm_min()}}};
    ByteWriter out;
    EXPECT_EQ(encode_step(out, record, sample_tensors(), {}), 0U);
    StepRecord back = sample_step(99, true);
    ASSERT_TRUE(decode(out, back).is_ok());
    EXPECT_EQ(back, record);
}

}  // namespace
}  // namespace traindbg::format
