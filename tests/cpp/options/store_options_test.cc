#include "traindbg/options/store_options.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traindbg::options {
namespace {

using base::Code;
using model::OverflowPolicy;

// What the arguments make of a plan.
base::Result<model::CaptureConfig> plan_of(const std::vector<std::string>& arguments) {
    OptionSet options("run");
    StoreOptions store;
    store.declare(options);
    TRAINDBG_RETURN_IF_ERROR(options.parse(arguments));
    model::CaptureConfig config;
    TRAINDBG_RETURN_IF_ERROR(store.apply(config));
    return config;
}

TEST(StoreOptions, WithoutOptionsThePlanIsAsItWas) { EXPECT_EQ(*plan_of({}), model::CaptureConfig{}); }

TEST(StoreOptions, EachOptionHasItsPlaceInThePlan) {
    const auto plan =
        plan_of({"--overflow", "block_for", "--block-for", "0.2s", "--arena", "512MiB", "--keep-last", "5000",
                 "--thin", "100", "--keep-tensors", "50", "--quota", "2GiB"});
    ASSERT_TRUE(plan.is_ok()) << plan.status().to_string();
    EXPECT_EQ(plan->overflow, OverflowPolicy::kBlockFor);
    EXPECT_EQ(plan->block_for_ms, 200U);
    EXPECT_EQ(plan->arena_bytes, 512ULL << 20);
    EXPECT_EQ(plan->retention, (model::Retention{2ULL << 30, 5000, 100, 50}));
    EXPECT_EQ(plan_of({"--quota", "0"})->retention.quota_bytes, 0U) << "no limit";
    EXPECT_EQ(plan_of({"--overflow", "drop_newest"})->overflow, OverflowPolicy::kDropNewest);
}

TEST(StoreOptions, AMistakeNamesTheOption) {
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--overflow", "drop_oldest"},
                                                      {"--block-for", "soon"},
                                                      {"--block-for", "2h"},
                                                      {"--arena", "0"},
                                                      {"--arena", "much"},
                                                      {"--thin", "10"},
                                                      {"--quota", "10 apples"},
                                                      {"--keep-last", "0"}}) {
        const auto plan = plan_of(arguments);
        ASSERT_FALSE(plan.is_ok()) << arguments[0];
        EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
        EXPECT_NE(plan.status().message().find(arguments[0]), std::string::npos) << plan.status().message();
    }
}

}  // namespace
}  // namespace traindbg::options
