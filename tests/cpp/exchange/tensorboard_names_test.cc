#include "traindbg/exchange/tensorboard_names.h"

#include <gtest/gtest.h>

namespace traindbg::exchange {
namespace {

using model::Mode;
using model::Role;

struct Case {
    const char* tag;
    std::optional<Mode> mode;
    Role role;
    const char* name;
};

TEST(TensorboardNames, Scalars) {
    const std::vector<Case> cases = {
        {"loss", std::nullopt, Role::kLoss, "loss"},
        {"Loss", std::nullopt, Role::kLoss, "loss"},
        {"train/loss", Mode::kTrain, Role::kLoss, "loss"},
        {"Loss/train", Mode::kTrain, Role::kLoss, "loss"},
        {"Loss/test", Mode::kEval, Role::kLoss, "loss"},
        {"val_loss", Mode::kEval, Role::kLoss, "loss"},
        {"loss_val", Mode::kEval, Role::kLoss, "loss"},
        {"train_loss_step", Mode::kTrain, Role::kLoss, "loss_step"},
        {"epoch_loss", std::nullopt, Role::kLoss, "epoch_loss"},
        {"loss/cross_entropy", std::nullopt, Role::kLoss, "loss/cross_entropy"},
        {"train/mse_loss", Mode::kTrain, Role::kLoss, "mse_loss"},
        {"BCELoss", std::nullopt, Role::kLoss, "BCELoss"},
        {"nll", std::nullopt, Role::kLoss, "nll"},
        {"amp/loss_scale", std::nullopt, Role::kMetric, "metric/amp/loss_scale"},
        {"lr", std::nullopt, Role::kMetric, "metric/lr"},
        {"grad/norm", std::nullopt, Role::kMetric, "metric/grad/norm"},
        {"metric/acc", std::nullopt, Role::kMetric, "metric/acc"},
        {"Accuracy/validation", Mode::kEval, Role::kMetric, "metric/Accuracy"},
        {"lossless_ratio", std::nullopt, Role::kMetric, "metric/lossless_ratio"},
        {"train", std::nullopt, Role::kMetric, "metric/train"},
        {"a/val/b", std::nullopt, Role::kMetric, "metric/a/val/b"},
        {"/", std::nullopt, Role::kMetric, "metric/value"},
    };
    for (const Case& row : cases) {
        const TagMeaning meaning = meaning_of_scalar(row.tag, std::nullopt);
        EXPECT_EQ(meaning.mode, row.mode) << row.tag;
        EXPECT_EQ(meaning.info.role, row.role) << row.tag;
        EXPECT_EQ(meaning.info.name, row.name) << row.tag;
    }
}

TEST(TensorboardNames, Histograms) {
    const std::vector<Case> cases = {
        {"fc1.weight", std::nullopt, Role::kWeight, "weight/fc1.weight"},
        {"fc1.bias", std::nullopt, Role::kBias, "bias/fc1.bias"},
        {"fc1.weight.grad", std::nullopt, Role::kGradient, "gradient/fc1.weight"},
        {"grad/fc1.weight", std::nullopt, Role::kGradient, "gradient/fc1.weight"},
        {"gradients/layers.0.conv.bias", std::nullopt, Role::kGradient, "gradient/layers.0.conv.bias"},
        {"weight/fc1.weight", std::nullopt, Role::kWeight, "weight/fc1.weight"},
        {"bias/fc1.bias", std::nullopt, Role::kBias, "bias/fc1.bias"},
        {"dense/kernel_0/histogram", std::nullopt, Role::kWeight, "weight/dense/kernel_0"},
        {"dense/bias", std::nullopt, Role::kBias, "bias/dense/bias"},
        {"activation/relu1", std::nullopt, Role::kActivation, "activation/relu1"},
        {"block.relu", std::nullopt, Role::kActivation, "activation/block.relu"},
        {"train/weights/fc1", Mode::kTrain, Role::kWeight, "weight/fc1"},
        {"scores", std::nullopt, Role::kOther, "other/scores"},
    };
    for (const Case& row : cases) {
        const TagMeaning meaning = meaning_of_histogram(row.tag, std::nullopt);
        EXPECT_EQ(meaning.mode, row.mode) << row.tag;
        EXPECT_EQ(meaning.info.role, row.role) << row.tag;
        EXPECT_EQ(meaning.info.name, row.name) << row.tag;
    }
    EXPECT_EQ(meaning_of_histogram("block.relu", std::nullopt).info.activation, model::ActivationKind::kRelu);
    // A gradient and its weight have one module: rules that compare them find both.
    EXPECT_EQ(meaning_of_histogram("fc1.weight.grad", std::nullopt).info.module,
              meaning_of_histogram("fc1.weight", std::nullopt).info.module);
}

TEST(TensorboardNames, AChosenRoleWins) {
    EXPECT_EQ(meaning_of_scalar("cost", Role::kLoss).info.name, "cost");
    EXPECT_EQ(meaning_of_scalar("train/loss", Role::kMetric).info.name, "metric/loss");
    EXPECT_EQ(meaning_of_histogram("scores", Role::kOutput).info.name, "output/scores");
}

TEST(TensorboardNames, ShapesFollowFromBiasesAndNames) {
    const auto gradient = [](const char* module, std::int64_t elements) {
        model::TensorInfo info;
        info.role = Role::kGradient;
        info.module = module;
        info.shape = {elements};
        return info;
    };
    std::vector<model::TensorInfo> tensors = {
        gradient("fc1.weight", 128),       gradient("fc1.bias", 16),  gradient("bn.weight", 16),
        gradient("bn.bias", 16),           gradient("q.weight", 64),  gradient("ln_1.weight", 64),
        gradient("dense/kernel", 6),       gradient("odd.weight", 7), gradient("odd.bias", 2),
        gradient("3.layer_norm.weight", 8)};
    infer_shapes(tensors);
    using Shape = std::vector<std::int64_t>;
    EXPECT_EQ(tensors[0].shape, (Shape{16, 8}));
    EXPECT_EQ(tensors[1].shape, (Shape{16}));
    EXPECT_EQ(tensors[2].shape, (Shape{16}));
    EXPECT_EQ(tensors[4].shape, (Shape{1, 64}));
    EXPECT_EQ(tensors[5].shape, (Shape{64}));
    EXPECT_EQ(tensors[6].shape, (Shape{1, 6}));
    EXPECT_EQ(tensors[7].shape, (Shape{1, 7}));
    EXPECT_EQ(tensors[9].shape, (Shape{8}));
}

TEST(TensorboardNames, SubRuns) {
    EXPECT_EQ(parse_sub_run("").name, "");
    EXPECT_EQ(parse_sub_run("train").mode, Mode::kTrain);
    EXPECT_EQ(parse_sub_run("validation").mode, Mode::kEval);
    EXPECT_EQ(parse_sub_run("w3/eval").worker, 3U);
    EXPECT_EQ(parse_sub_run("w3/eval").mode, Mode::kEval);
    EXPECT_EQ(parse_sub_run("rank_12").worker, 12U);
    EXPECT_EQ(parse_sub_run("exp7/train").name, "exp7");
    EXPECT_EQ(parse_sub_run("wide").name, "wide");
    EXPECT_EQ(parse_sub_run("w99999999999").name, "w99999999999");
}

}  // namespace
}  // namespace traindbg::exchange
