#include "traindbg/cli/plan_costs.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "traindbg/cli/probe.h"

namespace traindbg::cli {
namespace {

using model::CaptureConfig;
using model::Mode;
using model::Requirement;
using model::Role;
using model::TensorInfo;
using model::What;

Requirement need(std::string collection, std::uint64_t every, What what, std::string by) {
    return {.collection = std::move(collection),
            .what = what,
            .schedule = {.every = every},
            .asked_by = std::move(by)};
}

TensorInfo tensor(std::string name, Role role, std::vector<std::int64_t> shape) {
    TensorInfo info;
    info.name = std::move(name);
    info.role = role;
    info.dtype = tensor::DType::kFloat32;
    info.shape = std::move(shape);
    return info;
}

// Bytes per second that are easy to reckon with.
constexpr Speeds kSpeeds{.statistics = 1e9,
                         .histogram = 1e8,
                         .channels = 5e7,
                         .digest = 2e8,
                         .copy = 5e8,
                         .nanos_per_tensor = 100,
                         .nanos_per_number = 7,
                         .nanos_per_loop_number = 11,
                         .nanos_of_first_step = 1000};

PlanCosts costs_of(CaptureConfig config, std::vector<TensorInfo> tensors, double step_nanos = 1e6) {
    auto plan = capture::CapturePlan::make(std::move(config));
    EXPECT_TRUE(plan) << plan.status().message();
    for (model::TensorId id = 0; id < tensors.size(); ++id) tensors[id].id = id;
    return {std::move(plan).value(), std::move(tensors), {}, kSpeeds, step_nanos};
}

TEST(PlanCosts, NumbersOfTheLoopHaveATimeOfTheirOwnAndTheFirstStepTakesMoreOnce) {
    CaptureConfig config;
    config.requirements = {{.collection = "loop", .schedule = {.every = 2}, .asked_by = "user"}};
    TensorInfo number = tensor("loop/passes", Role::kLoop, {});
    number.dtype = tensor::DType::kUnknown;  // it was no tensor
    const PlanCosts costs = costs_of(std::move(config), {number});
    EXPECT_DOUBLE_EQ(costs.cost(0, What::kStatistics).nanos, 11);
    EXPECT_DOUBLE_EQ(costs.summary(4).all.nanos, 1000 + 2 * 11);
}

TEST(PlanCosts, BytesAreThoseOfTheFormatAndTimesThoseOfTheSpeeds) {
    const PlanCosts costs =
        costs_of({}, {tensor("weight/a", Role::kWeight, {250, 1000}), tensor("loss", Role::kLoss, {})});
    constexpr double kBytes = 1e6;
    const Cost statistics = costs.cost(0, What::kStatistics);
    EXPECT_GE(statistics.bytes, 6 * 4 + 1);  // six columns of float32, the marks
    EXPECT_LE(statistics.bytes, 40);
    EXPECT_DOUBLE_EQ(statistics.nanos, kBytes / 1e9 * 1e9 + 100);
    const Cost raw = costs.cost(0, What::kStatistics | What::kRaw);
    EXPECT_GE(raw.bytes, kBytes + statistics.bytes);
    EXPECT_LE(raw.bytes, kBytes + statistics.bytes + 100);
    EXPECT_DOUBLE_EQ(raw.nanos, kBytes / 5e8 * 1e9 + 100);
    EXPECT_DOUBLE_EQ(costs.cost(0, What::kStatistics | What::kHistogram).nanos, 11e6 + 100);
    const Cost channels = costs.cost(0, What::kStatistics | What::kChannels);
    EXPECT_DOUBLE_EQ(channels.nanos, 21e6 + 100);
    EXPECT_EQ(channels.bytes, statistics.bytes + 250 * 12);
    const Cost digest = costs.cost(0, What::kStatistics | What::kDigest);
    EXPECT_DOUBLE_EQ(digest.nanos, 6e6 + 100);
    EXPECT_EQ(digest.bytes, statistics.bytes + 17);
    const Cost loss = costs.cost(1, What::kStatistics);
    EXPECT_GE(loss.bytes, 8);
    EXPECT_LE(loss.bytes, 16);
    EXPECT_DOUBLE_EQ(loss.nanos, 7);
    EXPECT_EQ(costs.cost(0, What::kNothing).bytes, 0);
}

TEST(PlanCosts, ARowIsWhatIsTakenOfTensorsOfARoleAtTheSameSteps) {
    CaptureConfig config;
    config.collections = {{.name = "head", .include = {"fc"}, .exclude = {}}};
    config.requirements = {need("weights", 10, What::kStatistics, "rule_a"),
                           need("weights", 10, What::kStatistics, "rule_b, rule_a"),
                           need("head", 5, What::kStatistics | What::kRaw, "user"),
                           need("gradients", 1, What::kStatistics, "rule_a")};
    const PlanCosts costs = costs_of(
        config, {tensor("weight/fc", Role::kWeight, {4}), tensor("weight/conv", Role::kWeight, {4})});
    const std::vector<PlanRow> rows = costs.rows();
    ASSERT_EQ(rows.size(), 3U);
    std::size_t tensors = 0;
    for (const PlanRow& row : rows) {
        EXPECT_EQ(row.collection, "weights");
        if (model::has(row.what, What::kRaw)) {
            EXPECT_EQ(row.asked_by, std::vector<std::string>{"user"});
            EXPECT_EQ(row.when, "at every 5th step");
            EXPECT_EQ(row.tensors, std::vector<model::TensorId>{0});
        } else {
            EXPECT_EQ(row.asked_by, (std::vector<std::string>{"rule_a", "rule_b"}));
            tensors += row.tensors.size();
        }
    }
    EXPECT_EQ(tensors, 2U);
    EXPECT_EQ(costs.without_tensors(), std::vector<std::size_t>{3});
}

TEST(PlanCosts, ASummaryCountsATensorOnceAStepAndNamesTheIdleSteps) {
    CaptureConfig config;
    config.requirements = {need("weights", 10, What::kStatistics, "a"),
                           need("weights", 20, What::kStatistics, "b"),
                           need("losses", 1, What::kStatistics, "a")};
    const PlanCosts costs =
        costs_of(config, {tensor("weight/a", Role::kWeight, {1000}), tensor("loss", Role::kLoss, {})});
    const PlanSummary summary = costs.summary(1000);
    EXPECT_EQ(summary.captured, 100U);
    EXPECT_EQ(summary.idle.size(), 90U);
    EXPECT_EQ(summary.idle.front(), 1U);
    const double weight = costs.cost(0, What::kStatistics).bytes;
    const double loss = costs.cost(1, What::kStatistics).bytes;
    EXPECT_DOUBLE_EQ(summary.all.bytes, 100 * weight + 1000 * loss);
    EXPECT_DOUBLE_EQ(summary.most.bytes, weight + loss);
    // A short horizon does not shorten what is said of the first 100.
    EXPECT_EQ(costs.summary(3).idle.size(), 90U);
    EXPECT_EQ(costs.summary(3).captured, 1U);
}

TEST(PlanCosts, WhatIsDueByTimeIsCountedByTheTimeOfAStep) {
    CaptureConfig config;
    config.requirements = {need("weights", 0, What::kStatistics, "user")};
    config.requirements[0].every_ms = 50;
    const PlanCosts costs = costs_of(config, {tensor("weight/a", Role::kWeight, {4})}, 10e6);
    EXPECT_EQ(costs.summary(100).captured, 20U);  // each fifth of 10 ms
}

TEST(PlanCosts, WhatWasSeenTellsTheSizeOfAHistogram) {
    auto plan = capture::CapturePlan::make({});
    ASSERT_TRUE(plan);
    model::StepRecord record;
    model::HistogramSample sample;
    sample.tensor = 0;
    record.histograms = {sample};
    record.channels = {{0, {{1}, {2}, {0}}}};
    const PlanCosts seen(*plan, {tensor("a", Role::kWeight, {4})}, {&record, 1}, kSpeeds, 1e6);
    const PlanCosts guessed(*plan, {tensor("a", Role::kWeight, {4})}, {}, kSpeeds, 1e6);
    EXPECT_LT(seen.cost(0, What::kHistogram).bytes, 10);  // it has no bins
    EXPECT_GT(guessed.cost(0, What::kHistogram).bytes, 50);
    EXPECT_LT(seen.cost(0, What::kChannels).bytes, 20);  // of one channel, without zeros
    EXPECT_EQ(guessed.cost(0, What::kChannels).bytes, 48);
}

TEST(ProbingPlan, TakesEverythingAtOnceButWholeTensors) {
    CaptureConfig config;
    Requirement late = need("weights", 0, What::kRaw, "user");
    late.steps = {500};
    late.schedule.start = 100;
    late.every_ms = 1000;
    config.requirements = {late, need("outputs", 7, What::kHistogram, "user")};
    config.compiled = model::CompiledModels::kSkip;
    const CaptureConfig probing = probing_plan(config);
    EXPECT_EQ(probing.requirements[0], need("weights", 1, What::kStatistics, "user"));
    EXPECT_EQ(probing.requirements[1], need("outputs", 1, What::kHistogram, "user"));
    EXPECT_EQ(probing.compiled, config.compiled);
}

}  // namespace
}  // namespace traindbg::cli
