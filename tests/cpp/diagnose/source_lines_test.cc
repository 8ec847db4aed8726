// From a kind of fault to the lines of the training that it is about.
#include "traindbg/diagnose/source_lines.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "traindbg/diagnose/diagnose.h"
#include "traindbg/diagnose/fault_kinds.h"

namespace traindbg::diagnose {
namespace {

model::WorkerMeta training() {
    model::WorkerMeta meta;
    meta.sources = {{"optimizer", "train.py", 24, "main"},
                    {"step", "train.py", 40, "main"},
                    {"backward", "train.py", 39, "main"},
                    {"loss/cross_entropy", "train.py", 38, "main"},
                    {"loss/mse_loss", "losses.py", 7, "rebuild"},
                    {"evaluation/cross_entropy", "train.py", 52, "validate"},
                    {"model", "net.py", 10, "Net.__init__"},
                    {"module/encoder", "net.py", 12, "Net.__init__"},
                    {"module/encoder.fc1", "net.py", 31, "Encoder.__init__"}};
    return meta;
}

std::vector<std::string> lines(std::string_view kind, const std::string& layer = "",
                               const std::string& tensor = "", const model::WorkerMeta& meta = training()) {
    model::Finding finding;
    finding.layer = layer;
    finding.tensor = tensor;
    std::vector<std::string> found;
    for (const model::SourceLine& line : source_lines(kind, finding, meta))
        found.push_back(line.file + ":" + std::to_string(line.line));
    return found;
}

using Lines = std::vector<std::string>;

TEST(SourceLines, ALoopThatWasLeftEarlyComesBeforeTheOneThroughTheData) {
    model::WorkerMeta meta = training();
    meta.sources.push_back({"loop", "train.py", 36, "main"});
    EXPECT_EQ(lines("stopped_too_early", "", "", meta), (Lines{"train.py:36"}));
    meta.sources.push_back({"rounds", "train.py", 34, "main"});
    EXPECT_EQ(lines("stopped_too_early", "", "", meta), (Lines{"train.py:34", "train.py:36"}));
}

TEST(SourceLines, OfSettingsAreWhereTheOptimizerIsMade) {
    EXPECT_EQ(lines("learning_rate_too_high"), Lines{"train.py:24"});
    EXPECT_EQ(lines("bad_optimizer_settings"), Lines{"train.py:24"});
}

TEST(SourceLines, OfALoopAreItsCalls) {
    EXPECT_EQ(lines("gradients_not_cleared"), (Lines{"train.py:40", "train.py:39"}));
    EXPECT_EQ(lines("train_mode_in_validation"), Lines{"train.py:52"});
}

TEST(SourceLines, OfALayerAreWhereItIsMadeOrWhatItIsIn) {
    EXPECT_EQ(lines("dead_relu", "encoder.fc1"), (Lines{"net.py:31", "net.py:10"}));
    EXPECT_EQ(lines("a_rule_of_mine", "encoder.fc1"), Lines{"net.py:31"}) << "and no loss";
    EXPECT_EQ(lines("a_rule_of_mine"), Lines{"train.py:38"});
    EXPECT_EQ(lines("detached_graph", "encoder.fc2"), (Lines{"net.py:12", "net.py:10"}));
    EXPECT_EQ(lines("detached_graph", "decoder"), Lines{"net.py:10"});
}

TEST(SourceLines, OfALossAreThoseOfItsFunction) {
    EXPECT_EQ(lines("wrong_loss", "", "label/mse_loss"), Lines{"losses.py:7"});
    EXPECT_EQ(lines("wrong_loss", "", "loss/mse_loss#2@critic"), Lines{"losses.py:7"});
    EXPECT_EQ(lines("wrong_loss", "", "loss"), Lines{"train.py:38"}) << "the first one";
}

TEST(SourceLines, TwoCallsInOneStatementAreOneLine) {
    model::WorkerMeta meta;
    meta.sources = {{"backward", "train.py", 39, ""}, {"loss/cross_entropy", "train.py", 39, ""}};
    EXPECT_EQ(lines("loss_sign_flipped", "", "", meta), Lines{"train.py:39"});
}

TEST(SourceLines, ATrainingThatTellsNoneHasNone) {
    EXPECT_TRUE(lines("learning_rate_too_high", "", "", {}).empty());
    EXPECT_TRUE(lines("schedule_collapsed", "", "",
                      [] {
                          model::WorkerMeta meta;
                          meta.sources = {{"backward", "train.py", 39, ""}};
                          return meta;
                      }())
                    .empty());
}

TEST(SourceLines, EveryKindOfFaultLeadsSomewhere) {
    model::WorkerMeta meta = training();
    for (const char* what : {"loader", "loop", "evaluation_loader", "evaluation_loop", "clip", "schedule",
                             "schedule_step", "eval", "weights_taken"})
        meta.sources.push_back({what, "train.py", 100, ""});
    for (const FaultKind& kind : fault_kinds())
        EXPECT_FALSE(lines(kind.kind, "encoder.fc1", "loss/cross_entropy", meta).empty()) << kind.kind;
}

TEST(SourceLines, ACauseHasThoseOfItsOwnKind) {
    model::Finding finding;
    finding.rule = finding.kind = "exploding_gradient";
    finding.key = "gradients";
    finding.severity = model::Severity::kError;
    finding.message = "Gradients grow.";
    model::WorkerMeta meta = training();
    meta.optimizers.push_back({"SGD", {{"lr", 50.0}}});
    const std::vector<model::Finding> findings = {finding};
    const std::vector<model::Cause> causes = likely_causes(findings, {}, meta);
    ASSERT_FALSE(causes.empty());
    EXPECT_EQ(causes[0].name, "learning_rate_too_high");
    ASSERT_EQ(causes[0].sources.size(), 1U);
    EXPECT_EQ(causes[0].sources[0], meta.sources[0]);
}

}  // namespace
}  // namespace traindbg::diagnose
