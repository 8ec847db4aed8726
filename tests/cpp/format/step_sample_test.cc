#include "traindbg/format/step_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "format/sample_records.h"
#include "traindbg/format/records.h"

namespace traindbg::format {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::ByteWriter;
using model::StepRecord;
using model::TensorId;
using model::TensorSample;
using model::TensorTable;
using testing::sample_step;
using testing::sample_tensors;

ByteBuffer encoded(const StepRecord& record, const TensorTable& table) {
    ByteWriter out;
    EXPECT_EQ(encode_step(out, record, table, {}), 0U);
    return out.take();
}

// All that can be asked for of each tensor is what the whole step says.
void expect_the_same(ByteSpan payload, const TensorTable& table) {
    StepRecord whole;
    ASSERT_TRUE(decode_step(payload, table, whole).is_ok());
    for (TensorId id = 0; id < table.size() + 2; ++id) {
        const auto is_it = [id](const auto& sample) { return sample.tensor == id; };
        const auto expected = std::find_if(whole.tensors.begin(), whole.tensors.end(), is_it);
        TensorSample sample = sample_step(99).tensors[1];  // what was in it must not show through
        const auto found = decode_sample_of(payload, table, id, SampleParts::kAll, sample);
        ASSERT_TRUE(found.is_ok());
        ASSERT_EQ(*found, expected != whole.tensors.end()) << id;
        if (*found) {
            EXPECT_EQ(sample, *expected) << id;
        }

        TensorSample moments;
        const auto found_moments = decode_sample_of(payload, table, id, SampleParts::kMoments, moments);
        ASSERT_TRUE(found_moments.is_ok());
        ASSERT_EQ(*found_moments, *found);
        if (*found) {
            EXPECT_EQ(moments.statistics.min, expected->statistics.min);
            EXPECT_EQ(moments.statistics.mean, expected->statistics.mean);
            EXPECT_EQ(moments.statistics.l2, expected->statistics.l2);
            EXPECT_EQ(moments.statistics.count, 0U);
        }

        const auto scalar = std::find_if(whole.scalars.begin(), whole.scalars.end(), is_it);
        double value = -1;
        const auto found_scalar = decode_scalar_of(payload, table, id, value);
        ASSERT_TRUE(found_scalar.is_ok());
        ASSERT_EQ(*found_scalar, scalar != whole.scalars.end()) << id;
        if (*found_scalar) {
            EXPECT_EQ(value, scalar->value) << id;
        }
    }
}

TEST(StepSampleTest, OneTensorIsAsInTheWholeStep) {
    for (std::uint64_t step = 0; step < 6; ++step)
        expect_the_same(encoded(sample_step(step), sample_tensors()), sample_tensors());
    expect_the_same(encoded(StepRecord{}, {}), sample_tensors());
}

TEST(StepSampleTest, TensorsInAnyOrderAndWithGaps) {
    TensorTable table(300);
    for (TensorId id = 0; id < table.size(); ++id) {
        table[id].id = id;
        table[id].name = "t" + std::to_string(id);
        table[id].shape = {50};
    }
    std::mt19937 random(4);
    for (int round = 0; round < 30; ++round) {
        StepRecord record;
        for (TensorId id = 0; id < table.size(); ++id) {
            if (round != 0 && random() % 3 == 0) continue;
            TensorSample sample;
            sample.tensor = id;
            sample.statistics = {50 + random() % 2,
                                 random() % 3,
                                 random() % 2,
                                 random() % 2,
                                 random() % 4,
                                 -1.0 * id,
                                 1.5 * id,
                                 0.25,
                                 2,
                                 3,
                                 4};
            if (random() % 2 == 0)
                sample.units = {9, static_cast<std::uint32_t>(random() % 9), random() % 1000,
                                random() % 1000};
            record.tensors.push_back(sample);
            if (random() % 4 == 0) record.scalars.push_back({id, 0.5 * id});
        }
        if (round % 2 == 1) std::shuffle(record.tensors.begin(), record.tensors.end(), random);
        if (round % 3 == 1) std::shuffle(record.scalars.begin(), record.scalars.end(), random);
        expect_the_same(encoded(record, table), table);
    }
}

TEST(StepSampleTest, TensorsThatNobodyDescribedAreNotThere) {
    const ByteBuffer payload = encoded(sample_step(1), sample_tensors());
    TensorTable table = sample_tensors();
    table[1].name.clear();
    table.pop_back();
    expect_the_same(payload, table);
}

TEST(StepSampleTest, NothingIsReadBeyondATruncatedStep) {
    const ByteBuffer payload = encoded(sample_step(3), sample_tensors());
    for (std::size_t size = 0; size < payload.size(); ++size) {
        const ByteBuffer cut(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
        for (TensorId id = 0; id < 4; ++id) {
            TensorSample sample;
            double value = 0;
            static_cast<void>(decode_sample_of(cut, sample_tensors(), id, SampleParts::kAll, sample));
            static_cast<void>(decode_scalar_of(cut, sample_tensors(), id, value));
        }
    }
}

TEST(StepSampleTest, WhatTheWholeStepAcceptsIsReadTheSame) {
    const ByteBuffer payload = encoded(sample_step(2), sample_tensors());
    for (std::size_t at = 0; at < payload.size(); ++at) {
        for (const int bit : {0, 3, 7}) {
            ByteBuffer flipped = payload;
            flipped[at] ^= static_cast<std::byte>(1 << bit);
            StepRecord whole;
            if (decode_step(flipped, sample_tensors(), whole).is_ok()) {
                bool has_nan = false;
                for (const TensorSample& sample : whole.tensors) has_nan = has_nan || !(sample == sample);
                for (const auto& scalar : whole.scalars) has_nan = has_nan || scalar.value != scalar.value;
                if (!has_nan) expect_the_same(flipped, sample_tensors());
            } else {
                TensorSample sample;
                static_cast<void>(decode_sample_of(flipped, sample_tensors(), 1, SampleParts::kAll, sample));
            }
        }
    }
}

}  // namespace
}  // namespace traindbg::format
