#include "traindbg/read/merged_series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::read {
namespace {

using base::Code;
using model::Mode;
using model::Role;
using model::ShardInfo;
using model::Statistics;
using storage::MemoryFileSystem;

const std::string kName = "weight/fc";

Statistics of(std::span<const float> values) {
    Statistics s;
    double squares = 0;
    for (const float value : values) {
        s.min = s.count == 0 ? value : std::min<double>(s.min, value);
        s.max = s.count == 0 ? value : std::max<double>(s.max, value);
        ++s.count;
        s.mean += value / static_cast<double>(values.size());
        s.l1 += std::fabs(value);
        squares += static_cast<double>(value) * value;
    }
    for (const float value : values)
        s.std += (value - s.mean) * (value - s.mean) / static_cast<double>(values.size());
    s.std = std::sqrt(s.std);
    s.l2 = std::sqrt(squares);
    return s;
}

class MergedSeriesTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(files_.create_directories("/run").is_ok());
        ASSERT_TRUE(files_.put_atomic("/run/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
    }

    // What a worker recorded of the tensor: at step i the statistics of `parts[i]`, or nothing.
    void write(model::WorkerId worker, Role role, std::optional<ShardInfo> shard,
               const std::vector<std::optional<std::vector<float>>>& parts) {
        write::WriterOptions options;
        options.run_directory = "/run";
        options.worker = worker;
        auto writer = write::RunWriter::open(files_, options);
        ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
        model::TensorInfo info;
        info.name = kName;
        info.role = role;
        info.shard = std::move(shard);
        if (!parts.empty() && parts.front()) info.shape = {static_cast<std::int64_t>(parts.front()->size())};
        (*writer)->add_tensor(info);
        for (std::size_t step = 0; step < parts.size(); ++step) {
            if (!parts[step]) continue;
            model::StepRecord record;
            record.mode = Mode::kTrain;
            record.step = step;
            record.sequence = step;
            if (role == Role::kLoss) record.scalars.push_back({0, parts[step]->front()});
            else record.tensors.push_back({0, of(*parts[step]), {}});
            record.digests.push_back({0, {.fingerprint = worker, .product = parts[step]->front()}});
            (*writer)->append(std::move(record));
        }
        ASSERT_TRUE((*writer)->close(std::chrono::seconds(60)).is_ok());
    }

    static std::optional<ShardInfo> shard(std::int64_t offset, std::string placement = "shard(0)") {
        return ShardInfo{.whole_shape = {6}, .offset = {offset}, .placement = std::move(placement)};
    }

    base::Result<MergedSeries> merged(std::string_view statistic) {
        auto run = Run::open("/run", files_);
        if (!run.is_ok()) return run.status();
        return merged_series(**run, kName, statistic);
    }
    // What `merged` gives of the product: the points of the worker whose fingerprints are the whole's, or an
    // error of both.
    base::Result<MergedSeries> merged_digest() {
        auto run = Run::open("/run", files_);
        if (!run.is_ok()) return run.status();
        const auto worker = worker_of_whole(**run, kName);
        auto series = merged_series(**run, kName, "product");
        EXPECT_EQ(worker.status().code(), series.status().code());
        if (worker.is_ok() && series.is_ok()) {
            EXPECT_EQ(series->workers, std::vector<model::WorkerId>{*worker});
        }
        return series;
    }

    MemoryFileSystem files_;
};

TEST_F(MergedSeriesTest, PartsOfATensorGiveTheStatisticsOfTheWhole) {
    const std::vector<float> whole = {1, -2, 3, 0, 5, 1000};
    write(0, Role::kWeight, shard(0), {std::vector<float>{1, -2, 3, 0}});
    write(1, Role::kWeight, shard(4), {std::vector<float>{5, 1000}});
    write(2, Role::kWeight, shard(6), {});  // nothing is left for it
    const Statistics expected = of(whole);
    for (const auto& [name, value] :
         std::vector<std::pair<std::string_view, double>>{{"min", expected.min},
                                                          {"max", expected.max},
                                                          {"mean", expected.mean},
                                                          {"std", expected.std},
                                                          {"l1", expected.l1},
                                                          {"l2", expected.l2},
                                                          {"count", 6},
                                                          {"variance", expected.std * expected.std},
                                                          {"sum", 1007},
                                                          {"mean_abs", 1011.0 / 6},
                                                          {"rms", expected.l2 / std::sqrt(6.0)}}) {
        const auto series = merged(name);
        ASSERT_TRUE(series.is_ok()) << series.status().to_string();
        ASSERT_EQ(series->points.size(), 1U) << name;
        EXPECT_NEAR(series->points[0].value, value, std::max(1e-3, 1e-6 * std::fabs(value))) << name;
        EXPECT_TRUE(series->left_out.empty());
    }
}

TEST_F(MergedSeriesTest, AStepWithoutAPartIsLeftOutAndTold) {
    const std::vector<float> part = {1, 2, 3};
    write(0, Role::kWeight, shard(0), {part, part, part});
    write(1, Role::kWeight, shard(3), {part, std::nullopt, part});
    const auto series = merged("l1");
    ASSERT_TRUE(series.is_ok()) << series.status().to_string();
    ASSERT_EQ(series->points.size(), 2U);
    EXPECT_EQ(series->points[1].step, 2U);
    EXPECT_EQ(series->points[1].value, 12);
    EXPECT_EQ(series->left_out, (std::vector<std::pair<Mode, model::StepIndex>>{{Mode::kTrain, 1}}));
}

TEST_F(MergedSeriesTest, APartThatSeveralWorkersHoldCountsOnce) {
    // Two groups of two, as in hybrid sharding.
    for (const model::WorkerId worker : {0U, 1U, 2U, 3U})
        write(worker, Role::kGradient, shard(worker % 2 == 0 ? 0 : 3, "replicate,shard(0)"),
              {std::vector<float>{1, 1, 1}});
    const auto series = merged("l1");
    ASSERT_TRUE(series.is_ok()) << series.status().to_string();
    ASSERT_EQ(series->points.size(), 1U);
    EXPECT_EQ(series->points[0].value, 6);
    EXPECT_EQ(series->workers, (std::vector<model::WorkerId>{0, 1}));
}

TEST_F(MergedSeriesTest, WhatEveryWorkerHoldsIsTheFirstOnes) {
    write(0, Role::kGradient, std::nullopt, {std::vector<float>{1, 2}});
    write(1, Role::kGradient, std::nullopt, {std::vector<float>{1, 2}});
    const auto series = merged("l1");
    ASSERT_TRUE(series.is_ok()) << series.status().to_string();
    EXPECT_EQ(series->workers, std::vector<model::WorkerId>{0});
    ASSERT_EQ(series->points.size(), 1U);
    EXPECT_EQ(series->points[0].value, 3);
}

TEST_F(MergedSeriesTest, PartsOfABatchMergeAndLossesAreTheirMean) {
    write(0, Role::kOutput, std::nullopt, {std::vector<float>{1, 2}});
    write(1, Role::kOutput, std::nullopt, {std::vector<float>{5, 4}});
    const auto series = merged("mean");
    ASSERT_TRUE(series.is_ok()) << series.status().to_string();
    ASSERT_EQ(series->points.size(), 1U);
    EXPECT_EQ(series->points[0].value, 3);
    EXPECT_EQ(merged("units").status().code(), Code::kInvalidArgument);
}

TEST_F(MergedSeriesTest, DigestsAreTheFirstWorkersWhereNothingIsMerged) {
    EXPECT_EQ(merged_digest().status().code(), Code::kNotFound) << "no worker at all";
    write(2, Role::kWeight, std::nullopt, {std::vector<float>{3, 4}, std::vector<float>{5, 6}});
    write(4, Role::kWeight, std::nullopt, {std::vector<float>{7, 8}});
    const auto series = merged_digest();
    ASSERT_TRUE(series.is_ok()) << series.status().to_string();
    EXPECT_EQ(series->workers, std::vector<model::WorkerId>{2});
    ASSERT_EQ(series->points.size(), 2U);
    EXPECT_EQ(series->points[0].value, 3);
    EXPECT_EQ(series->points[1].value, 5);
}

TEST_F(MergedSeriesTest, DigestsOfATensorThatEachWorkerHoldsWholeAreTheFirstOnes) {
    const auto whole = [](std::string placement) {
        return ShardInfo{.whole_shape = {2}, .offset = {0}, .placement = std::move(placement)};
    };
    write(0, Role::kWeight, whole("replicate"), {std::vector<float>{3, 4}});
    write(1, Role::kWeight, whole("replicate"), {std::vector<float>{3, 4}});
    const auto series = merged_digest();
    ASSERT_TRUE(series.is_ok()) << series.status().to_string();
    ASSERT_EQ(series->points.size(), 1U);
    EXPECT_EQ(series->points[0].value, 3);
}

TEST_F(MergedSeriesTest, DigestsOfPartsAreRefused) {
    write(0, Role::kWeight, shard(0), {std::vector<float>{1, 2, 3}});
    EXPECT_EQ(merged_digest().status().code(), Code::kInvalidArgument) << "one part of two";
    write(1, Role::kWeight, shard(3), {std::vector<float>{4, 5, 6}});
    EXPECT_EQ(merged_digest().status().code(), Code::kInvalidArgument);
}

TEST_F(MergedSeriesTest, DigestsOfSumsThatAreYetToBeMadeAreRefused) {
    write(0, Role::kGradient, shard(0, "partial(sum)"), {std::vector<float>{1, 1, 1, 1, 1, 1}});
    EXPECT_EQ(merged_digest().status().code(), Code::kInvalidArgument);
}

TEST_F(MergedSeriesTest, DigestsOfABatchAreRefusedWhereSeveralSawAPart) {
    write(0, Role::kOutput, std::nullopt, {std::vector<float>{1, 2}});
    const auto alone = merged_digest();
    ASSERT_TRUE(alone.is_ok()) << alone.status().to_string();
    EXPECT_EQ(alone->points.size(), 1U) << "one process saw all of it";
    write(1, Role::kOutput, std::nullopt, {std::vector<float>{5, 4}});
    EXPECT_EQ(merged_digest().status().code(), Code::kInvalidArgument);
}

TEST_F(MergedSeriesTest, TheLossIsTheMeanWhereAllHaveOne) {
    write(0, Role::kLoss, std::nullopt, {std::vector<float>{1}, std::vector<float>{2}});
    write(1, Role::kLoss, std::nullopt, {std::vector<float>{3}});
    const auto series = merged("value");
    ASSERT_TRUE(series.is_ok()) << series.status().to_string();
    ASSERT_EQ(series->points.size(), 1U);
    EXPECT_EQ(series->points[0].value, 2);
    EXPECT_EQ(series->left_out.size(), 1U);
}

TEST_F(MergedSeriesTest, WhatHasYetToBeReducedIsRefused) {
    write(0, Role::kGradient, shard(0, "partial(sum)"), {std::vector<float>{1, 1, 1, 1, 1, 1}});
    EXPECT_EQ(merged("mean").status().code(), Code::kInvalidArgument);
    EXPECT_EQ(merged("middle").status().code(), Code::kInvalidArgument);
}

TEST_F(MergedSeriesTest, ATensorThatNobodyHasIsNotFound) {
    EXPECT_EQ(merged("mean").status().code(), Code::kNotFound) << "no worker at all";
    write(0, Role::kWeight, std::nullopt, {std::vector<float>{1}});
    auto run = Run::open("/run", files_);
    ASSERT_TRUE(run.is_ok());
    EXPECT_EQ(merged_series(**run, "weight/fx", "mean").status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace traindbg::read
