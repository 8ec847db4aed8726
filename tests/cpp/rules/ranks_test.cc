#include "traindbg/rules/ranks.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/rules/rule.h"

namespace traindbg::rules {
namespace {

// Two ranks, each of which tells of a step some weights.
class RanksTest : public testing::Test {
  protected:
    RanksTest() {
        meta_.optimizers = {{"SGD", {}}};
        meta_.environment = {{"WORLD_SIZE", "2"}};
    }

    const Ranks::Together* tell(model::WorkerId worker, model::StepIndex step, std::size_t weights = 1) {
        while (tensors_.size() < 2 * weights) {
            const std::string number = std::to_string(tensors_.size() / 2);
            add_tensor("weight/" + number, model::Role::kWeight);
            add_tensor("gradient/" + number, model::Role::kGradient);
        }
        model::StepRecord record;
        record.step = step;
        record.tensors.resize(2 * weights);
        for (std::size_t i = 0; i < 2 * weights; ++i)
            record.tensors[i].tensor = static_cast<model::TensorId>(i);
        return ranks_.observe({worker, &record, &tensors_, &meta_});
    }

    void add_tensor(std::string name, model::Role role) {
        model::TensorInfo& info = tensors_.emplace_back();
        info.name = std::move(name);
        info.role = role;
    }

    model::WorkerMeta meta_;
    model::TensorTable tensors_;
    Ranks ranks_{true};
};

TEST_F(RanksTest, TheFirstStepsWaitForARankThatIsFarBehind) {
    for (model::StepIndex step = 0; step < 500; ++step) EXPECT_EQ(tell(0, step), nullptr);
    std::vector<model::StepIndex> together;
    for (model::StepIndex step = 0; step < 500; ++step)
        if (tell(1, step) != nullptr) together.push_back(step);
    ASSERT_EQ(together.size(), 64U);
    EXPECT_EQ((std::vector<model::StepIndex>(together.begin(), together.begin() + 5)),
              (std::vector<model::StepIndex>{0, 1, 2, 3, 440}));
    EXPECT_EQ(together.back(), 499U);
}

TEST_F(RanksTest, LargeStepsWaitInABoundedMemory) {
    // 20000 tensors each: ten of them fit.
    for (model::StepIndex step = 0; step < 40; ++step) EXPECT_EQ(tell(0, step, 10'000), nullptr);
    std::vector<model::StepIndex> together;
    for (model::StepIndex step = 0; step < 40; ++step)
        if (tell(1, step, 10'000) != nullptr) together.push_back(step);
    EXPECT_EQ(together, (std::vector<model::StepIndex>{0, 1, 2, 3, 34, 35, 36, 37, 38, 39}));
}

TEST_F(RanksTest, SaysThatTheRanksWereTooFarApart) {
    tell(0, 0);
    EXPECT_EQ(ranks_.why_not(), "not all of the 2 ranks recorded the same steps");
    for (model::StepIndex step = 1; step < 100; ++step) tell(0, step);
    EXPECT_EQ(ranks_.why_not(),
              "not all of the 2 ranks recorded the same steps, or too far apart from each other");
    EXPECT_NE(tell(1, 0), nullptr);
    EXPECT_EQ(ranks_.why_not(), "");
}

TEST_F(RanksTest, NamesAreComparedButForExperts) {
    RankStep both, first, expert;
    both.weights = {{"weight/a", {}}, {"weight/b", {}}};
    first.weights = {{"weight/a", {}}};
    expert.weights = {{"weight/a", {}}, {"weight/experts.3", {}}};
    EXPECT_TRUE(have_same_names({{0, both}, {1, both}}));
    EXPECT_FALSE(have_same_names({{0, both}, {1, first}}));
    EXPECT_FALSE(have_same_names({{0, first}, {1, both}}));
    EXPECT_TRUE(have_same_names({{0, first}, {1, expert}}));
}

struct LastFinding final : FindingSink {
    void fire(model::Finding finding) override {
        ++fired;
        last = std::move(finding);
    }
    void clear(std::string_view) override {}
    int fired = 0;
    model::Finding last;
};

// A scenario has one table of tensors for all ranks.
TEST(ReplicaDivergence, ItsLastWordIsNotAboutModelsThatBecameDifferent) {
    const auto entry = find_rule("replica_divergence");
    ASSERT_TRUE(entry.is_ok());
    const auto rule = (*entry)->make(defaults_of(*(*entry)->info));
    model::WorkerMeta meta;
    meta.optimizers = {{"SGD", {}}};
    meta.environment = {{"WORLD_SIZE", "2"}, {"data_parallel", "DistributedDataParallel"}};
    LastFinding found;
    model::TensorTable tables[2];
    for (model::WorkerId worker = 0; worker < 2; ++worker) {
        tables[worker].resize(1);
        tables[worker][0].name = "weight/fc.weight";
        tables[worker][0].role = model::Role::kWeight;
        tables[worker][0].shape = {4, 2};
    }
    for (model::StepIndex step = 0; step < 3; ++step) {
        if (step == 2) tables[1][0].shape = {2, 4};
        for (model::WorkerId worker = 0; worker < 2; ++worker) {
            model::StepRecord record;
            record.step = step;
            record.tensors.resize(1);
            record.tensors[0].statistics.count = 8;
            record.tensors[0].statistics.l2 = 1.0 + worker;
            rule->on_step({worker, &record, &tables[worker], &meta}, found);
        }
    }
    EXPECT_EQ(found.fired, 1);
    EXPECT_EQ(found.last.key, "copies");
    rule->on_end(found);
    EXPECT_EQ(found.fired, 1);
    EXPECT_EQ(rule->steps_judged(), 2U);
}

TEST(DuplicateShards, ChosenAloneItCanTellTheWorkersOfALoader) {
    const auto entry = find_rule("duplicate_shards");
    ASSERT_TRUE(entry.is_ok());
    const auto needs = (*entry)->needs(defaults_of(*(*entry)->info));
    ASSERT_TRUE(needs.is_ok());
    bool is_told_of_workers = false;
    for (const model::Requirement& need : *needs) {
        is_told_of_workers = is_told_of_workers || need.collection == "loop";
        if (need.collection != "inputs") continue;
        EXPECT_GE(need.schedule.dense_until, 3U * 32) << "three batches of each of 32 workers";
    }
    EXPECT_TRUE(is_told_of_workers);
}

}  // namespace
}  // namespace traindbg::rules
