#include "traindbg/rules/ranks.h"

#include <gtest/gtest.h>

#include "traindbg/model/step_source.h"

namespace traindbg::rules {
namespace {

// Two ranks with one weight, one gradient and one input.
class RanksTest : public testing::Test {
  protected:
    RanksTest() {
        meta_.environment = {{"WORLD_SIZE", "2"}};
        meta_.optimizers.resize(1);
        for (const auto& [name, role] :
             {std::pair{"weight/w", model::Role::kWeight}, std::pair{"gradient/w", model::Role::kGradient},
              std::pair{"input/0", model::Role::kInput}}) {
            model::TensorInfo info;
            info.id = static_cast<model::TensorId>(tensors_.size());
            info.name = name;
            info.role = role;
            tensors_.push_back(info);
        }
    }
    // Of a step without weights, the input alone.
    const Ranks::Together* tell(Ranks& ranks, model::WorkerId worker, model::StepIndex step,
                                bool with_weights) {
        record_ = {};
        record_.step = step;
        record_.mode = model::Mode::kTrain;
        model::DigestSample digest;
        digest.tensor = 2;
        digest.digest.fingerprint = step + 1;
        record_.digests.push_back(digest);
        if (with_weights)
            for (const model::TensorId id : {model::TensorId{0}, model::TensorId{1}})
                record_.tensors.push_back({id, {}, {}});
        return ranks.observe({worker, &record_, &tensors_, &meta_});
    }

    model::StepRecord record_;
    model::TensorTable tensors_;
    model::WorkerMeta meta_;
};

TEST_F(RanksTest, TheFirstStepsWaitForARankThatEvaluates) {
    Ranks ranks(true);
    for (model::StepIndex step = 0; step < 20'000; ++step) {
        const bool with_weights = step < 3 || step % 50 == 0;
        if (with_weights || step < 100) {
            EXPECT_EQ(tell(ranks, 1, step, with_weights), nullptr);
        }
    }
    for (model::StepIndex step = 0; step < 3; ++step) {
        const Ranks::Together* both = tell(ranks, 0, step, true);
        ASSERT_NE(both, nullptr) << "step " << step;
        EXPECT_EQ(both->size(), 2U);
        EXPECT_EQ(both->at(1).weights.size(), 1U);
    }
    // The newest ones are there as well, and of those between some are lost.
    EXPECT_NE(tell(ranks, 0, 19'950, true), nullptr);
}

TEST_F(RanksTest, GradientsAreKeptForThoseWhoCompareThem) {
    Ranks with(true), without(false);
    for (Ranks* ranks : {&with, &without}) EXPECT_EQ(tell(*ranks, 0, 0, true), nullptr);
    EXPECT_EQ(tell(with, 1, 0, true)->at(0).gradients.size(), 1U);
    EXPECT_TRUE(tell(without, 1, 0, true)->at(0).gradients.empty());
}

}  // namespace
}  // namespace traindbg::rules
