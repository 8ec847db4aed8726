#include <gtest/gtest.h>

#include "format/sample_records.h"
#include "traindbg/format/records.h"

namespace traindbg::format {
namespace {

using base::ByteWriter;
using base::Code;
using model::Histogram;
using model::StepRecord;
using testing::sample_step;
using testing::sample_tensors;

base::Result<std::uint64_t> decoded(const ByteWriter& bytes, StepRecord& out) {
    return decode_step(bytes.bytes(), sample_tensors(), out);
}

TEST(HistogramSection, ComesBack) {
    StepRecord record = sample_step(1);
    Histogram all;
    for (int bin = model::kLeastBin; bin <= model::kNanBin; ++bin)
        all.push_back({static_cast<std::int16_t>(bin), static_cast<std::uint64_t>(bin + 1000)});
    record.histograms = {{0, {{-5, 1}, {0, 300}, {17, UINT64_MAX - 301}}}, {1, {}}, {2, all}};
    ByteWriter out;
    EXPECT_EQ(encode_step(out, record, sample_tensors(), {}), 0U);
    StepRecord back = sample_step(99, true);
    back.histograms = {{3, {{1, 1}}}};  // what was in it must not show through
    const auto skipped = decoded(out, back);
    ASSERT_TRUE(skipped.is_ok()) << skipped.status().to_string();
    EXPECT_EQ(*skipped, 0U);
    EXPECT_EQ(back, record);
}

TEST(HistogramSection, OfATensorThatNobodyDescribedIsLeftOutAndCounted) {
    StepRecord record = sample_step(1);
    record.histograms = {{0, {{1, 1}}}, {77, {{1, 1}}}};
    ByteWriter out;
    encode_step(out, record, sample_tensors(), {});
    StepRecord back;
    EXPECT_EQ(*decoded(out, back), 1U);
    ASSERT_EQ(back.histograms.size(), 1U);
    EXPECT_EQ(back.histograms[0].tensor, 0U);
}

// A step with only section 6, of the given content.
ByteWriter with_section(const ByteWriter& content) {
    ByteWriter out;
    StepRecord empty;
    encode_step(out, empty, {}, {});
    out.varint(6);
    out.varint(content.size());
    out.append(content.bytes());
    return out;
}

// One histogram of tensor 0 with bins of these distances and counts.
ByteWriter one(const std::vector<std::pair<std::int64_t, std::uint64_t>>& bins) {
    ByteWriter content;
    content.varint(1);
    content.zigzag(0);
    content.varint(bins.size());
    for (const auto& [distance, count] : bins) {
        content.zigzag(distance);
        content.varint(count);
    }
    return with_section(content);
}

TEST(HistogramSection, HostileBytesAreDamage) {
    StepRecord back;
    ASSERT_TRUE(decoded(one({{-259, 1}, {0, 1}, {0, 1}}), back).is_ok());
    const std::vector<std::pair<const char*, ByteWriter>> cases = {
        {"a bin below the first", one({{-260, 1}})},
        {"a bin behind the last", one({{261, 1}})},
        {"a bin behind the last, later", one({{260, 1}, {0, 1}})},
        {"a bin twice", one({{3, 1}, {-1, 1}})},
        {"descending bins", one({{3, 1}, {-5, 1}})},
        {"an empty bin", one({{3, 0}})},
        {"counts that cannot be added", one({{3, UINT64_MAX}, {0, 1}})},
        {"a distance out of range", one({{INT64_MAX, 1}})},
        {"a distance out of range, negative", one({{INT64_MIN, 1}})},
    };
    for (const auto& [what, bytes] : cases) {
        const auto result = decoded(bytes, back);
        EXPECT_EQ(result.status().code(), Code::kDataLoss) << what;
    }
    std::vector<std::pair<std::int64_t, std::uint64_t>> many(600, {0, 1});
    many[0].first = -259;
    EXPECT_EQ(decoded(one(many), back).status().code(), Code::kDataLoss);
}

TEST(HistogramSection, ALyingCountTakesNoMemory) {
    StepRecord back;
    for (const std::uint64_t lie : {std::uint64_t{1} << 20, std::uint64_t{1} << 40, UINT64_MAX}) {
        ByteWriter content;
        content.varint(lie);
        EXPECT_EQ(decoded(with_section(content), back).status().code(), Code::kDataLoss);
        ByteWriter bins;
        bins.varint(1);
        bins.zigzag(0);
        bins.varint(lie);
        EXPECT_EQ(decoded(with_section(bins), back).status().code(), Code::kDataLoss);
    }
}

TEST(HistogramSection, EveryPrefixIsDamageOrNothing) {
    StepRecord record;
    record.histograms = {{0, {{-5, 1}, {0, 300}, {17, 5}}}};
    ByteWriter whole;
    encode_step(whole, record, sample_tensors(), {});
    ByteWriter none;
    encode_step(none, StepRecord{}, sample_tensors(), {});
    StepRecord back;
    for (std::size_t size = none.size() + 1; size < whole.size(); ++size)
        EXPECT_FALSE(decode_step(base::ByteSpan(whole.bytes()).first(size), sample_tensors(), back).is_ok())
            << size;
}

}  // namespace
}  // namespace traindbg::format
