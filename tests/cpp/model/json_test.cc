#include "traindbg/model/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "traindbg/model/what_words.h"

namespace traindbg::model {
namespace {

using base::Code;

TEST(Json, ACapturePlanComesBack) {
    CaptureConfig config;
    config.queue_bytes = 12345;
    config.compiled = CompiledModels::kSkip;
    config.micro_batches = MicroBatches::kAll;
    config.corrections = {
        .skip_bad_steps = true, .snapshot_every = 50, .lr_factor = 0.1, .most = 3, .dry_run = true};
    config.budget = 0.02;
    config.probe = true;
    config.flight = {.steps = 20, .collect = {"gradients", "first"}, .raw = {"losses"}};
    config.collections = {{.name = "first", .include = {"^fc1"}, .exclude = {"bias", "x\"y"}}};
    config.requirements = {
        {.collection = "gradients",
         .mode = Mode::kTrain,
         .what = What::kStatistics,
         .schedule = {.every = 10, .dense_until = 20},
         .asked_by = "vanishing_gradient"},
        {.collection = "first",
         .mode = Mode::kEval,
         .what =
             What::kRaw | What::kUnits | What::kClasses | What::kHistogram | What::kChannels | What::kDigest,
         .schedule = {.every = 0, .dense_until = 5, .start = 2, .end = 9},
         .asked_by = "user",
         .steps = {3, 8},
         .every_ms = 1500},
    };
    const auto back = capture_config_from_json(to_json(config).dump());
    ASSERT_TRUE(back) << back.status().message();
    EXPECT_EQ(*back, config);
}

TEST(Json, APlanMayLeaveOutWhatHasADefault) {
    const auto config = capture_config_from_json(R"({"requirements": [{"collection": "losses"}]})");
    ASSERT_TRUE(config) << config.status().message();
    ASSERT_EQ(config->requirements.size(), 1U);
    EXPECT_EQ(config->requirements[0], (Requirement{.collection = "losses", .schedule = {}, .asked_by = ""}));
    EXPECT_EQ(*capture_config_from_json("{}"), CaptureConfig{});
}

void expect_refused(const std::string& text, const std::string& part) {
    const auto config = capture_config_from_json(text);
    ASSERT_FALSE(config) << text;
    EXPECT_EQ(config.status().code(), Code::kInvalidArgument);
    EXPECT_NE(config.status().message().find(part), std::string::npos) << config.status().message();
}

TEST(Json, UnknownWordsInAPlanAreRefusedWithTheNearest) {
    expect_refused(R"({"requirement": []})", "did you mean 'requirements'");
    expect_refused(R"({"requirements": [{"collection": "gradient"}]})", "did you mean 'gradients'");
    expect_refused(R"({"requirements": [{"collections": "x", "collection": "losses"}]})",
                   "did you mean 'collection'");
    expect_refused(R"({"requirements": [{"collection": "losses", "schedule": {"evry": 1}}]})",
                   "did you mean 'every'");
    expect_refused(R"({"requirements": [{"collection": "losses", "mode": "training"}]})", "mode");
    expect_refused(R"({"requirements": [{"collection": "losses", "what": ["mean"]}]})", "mean");
    expect_refused(R"({"collections": [{"nme": "x"}]})", "did you mean 'name'");
    expect_refused(R"({"compiled": "yes"})", "compiled");
    expect_refused(R"({"micro_batches": "each"})", "micro_batches");
    expect_refused(R"({"corrections": {"lr_factor": 0}})", "lr_factor");
    expect_refused(R"({"corrections": {"lr_factor": 1.5}})", "lr_factor");
    expect_refused(R"({"corrections": {"skip": true}})", "skip");
    expect_refused(R"({"budget": 1.0})", "budget");
    expect_refused(R"({"budget": "nan"})", "budget");
    expect_refused(R"({"flight": {"stepz": 3}})", "did you mean 'steps'");
    expect_refused(R"({"flight": {"collect": ["gradient"]}})", "did you mean 'gradients'");
}

TEST(Json, AWrongTypeInAPlanIsRefused) {
    expect_refused("[]", "not an object");
    expect_refused("{", "not valid JSON");
    expect_refused(R"({"queue_bytes": -1})", "queue_bytes");
    expect_refused(R"({"queue_bytes": 1.5})", "queue_bytes");
    expect_refused(R"({"requirements": {}})", "not a list");
    expect_refused(R"({"requirements": [3]})", "not an object");
    expect_refused(R"({"requirements": [{}]})", "'collection' is missing");
    expect_refused(R"({"schema_version": 2})", "newer");
}

TEST(Json, NumbersThatAreNotFiniteAreWords) {
    EXPECT_EQ(number_to_json(std::nan("")).dump(), "\"nan\"");
    EXPECT_EQ(number_to_json(-std::numeric_limits<double>::infinity()).dump(), "\"-inf\"");
    EXPECT_EQ(number_to_json(0.1).dump(), "0.1");
    EXPECT_TRUE(std::isnan(number_from_json("nan", 0)));
    EXPECT_EQ(number_from_json("inf", 0), std::numeric_limits<double>::infinity());
    EXPECT_EQ(number_from_json("infinite", 7), 7);
    EXPECT_EQ(number_from_json(nullptr, 7), 7);
}

Finding sample_finding() {
    Finding finding;
    finding.rule = "exploding_gradient";
    finding.key = "fc1";
    finding.severity = Severity::kError;
    finding.state = FindingState::kResolved;
    finding.mode = Mode::kEval;
    finding.worker = 3;
    finding.first_step = 10;
    finding.step = 12;
    finding.last_step = 99;
    finding.times = 2;
    finding.tensor = "gradient/fc1.weight";
    finding.layer = "fc1";
    finding.places = 4;
    finding.message = "The gradient \"grew\" 100-fold.";
    finding.fix = "Clip it.";
    finding.evidence = {
        {.name = "gradient norm", .value = 3.1e7, .relation = "limit", .reference = 100},
        {.name = "loss", .value = std::numeric_limits<double>::infinity(), .relation = "", .reference = 0}};
    finding.plots = {{"gradient/fc1.weight", "l2"}};
    finding.sources = {{"module/fc1", "net.py", 12, "Net.__init__"}, {"backward", "train.py", 40, ""}};
    return finding;
}

TEST(Json, AFindingComesBack) {
    const auto back = finding_from_json(to_json(sample_finding()).dump());
    ASSERT_TRUE(back) << back.status().message();
    EXPECT_EQ(*back, sample_finding());
}

TEST(Json, AVerdictComesBack) {
    Verdict verdict;
    verdict.findings = {sample_finding()};
    verdict.outcomes = {
        {.rule = "dead_relu", .state = CheckState::kNotChecked, .reason = "no ReLU", .steps_judged = 0},
        {.rule = "exploding_gradient", .state = CheckState::kFired, .reason = "", .steps_judged = 120}};
    verdict.causes = {{.name = "learning_rate_too_high",
                       .title = "Learning rate too high",
                       .confidence = 0.75,
                       .explanation = "Loss and gradients grew together.",
                       .fix = "lr=0.01",
                       .rules = {"exploding_gradient"},
                       .evidence_for = {{"It grew.", "exploding_gradient", "fc1", StepIndex{10}}},
                       .evidence_against = {{"SGD has a usual rate.", "", "", std::nullopt}},
                       .sources = {{"optimizer", "train.py", 24, "main"}}}};
    const auto back = verdict_from_json(to_json(verdict).dump());
    ASSERT_TRUE(back) << back.status().message();
    EXPECT_EQ(*back, verdict);
}

TEST(Json, AVerdictOfBeforeThereWasEvidenceIsRead) {
    const auto verdict = verdict_from_json(
        R"({"findings": [{"rule": "overfit", "state": "firing"}],
            "causes": [{"name": "overfit", "confidence": 0.4, "explanation": "So.", "rules": ["overfit"]}]})");
    ASSERT_TRUE(verdict) << verdict.status().message();
    EXPECT_EQ(verdict->findings.at(0).times, 1U);
    EXPECT_TRUE(verdict->causes.at(0).evidence_for.empty());
    EXPECT_TRUE(verdict->causes.at(0).sources.empty());
    EXPECT_TRUE(verdict->findings.at(0).sources.empty());
    EXPECT_FALSE(to_json(*verdict)["causes"][0]["sure"]);
}

TEST(Json, AWorkersDescriptionComesBack) {
    WorkerMeta meta;
    meta.worker = 2;
    meta.pid = 4711;
    meta.host = "node-1";
    meta.framework = "torch 2.13.0";
    meta.python = "3.11.7";
    meta.traindbg = "0.1.0";
    meta.model_type = "ResNet";
    meta.parameters = 11'000'000;
    meta.optimizers = {{.type = "SGD", .settings = {{"lr", 0.1}, {"momentum", 0.9}}}};
    meta.environment = {{"RANK", "2"}};
    meta.sources = {{"optimizer", "train.py", 24, "main"}};
    const auto back = worker_meta_from_json(to_json(meta).dump());
    ASSERT_TRUE(back) << back.status().message();
    EXPECT_EQ(*back, meta);
}

TEST(Json, ARunAndItsEndComeBack) {
    RunMeta meta;
    meta.run_id = "a";
    meta.uuid = "u";
    meta.command = {"python", "train.py", "--lr=0.1"};
    meta.working_directory = "/home/x";
    meta.started_wall_nanos = 1'700'000'000'000'000'000;
    meta.host = "h";
    meta.platform = "Linux";
    meta.traindbg = "0.1.0";
    EXPECT_EQ(*run_meta_from_json(to_json(meta).dump()), meta);
    const RunEnd end{.wall_nanos = 5, .exit_code = 137, .stopped_by_rule = true, .reason = "killed"};
    EXPECT_EQ(*run_end_from_json(to_json(end).dump()), end);
}

TEST(Json, ReadersOfRunFilesAreLenientAboutUnknownKeys) {
    const auto meta = run_meta_from_json(R"({"run_id": "a", "of_a_later_version": {"x": 1}})");
    ASSERT_TRUE(meta);
    EXPECT_EQ(meta->run_id, "a");
    EXPECT_FALSE(run_meta_from_json(R"({"run_id": 3})"));
    EXPECT_FALSE(run_end_from_json(R"({"exit_code": 99999999999})")) << "out of range";
    EXPECT_FALSE(finding_from_json(R"({"severity": "dreadful"})"));
}

TEST(Json, NamesThatAreNoTextDoNotBreakTheJson) {
    TensorInfo info;
    info.name = "w\xff\n<b>";
    info.shape = {2, 3};
    info.activation = ActivationKind::kRelu;
    info.collections = {"mine"};
    const Json json = to_json(info);
    EXPECT_EQ(json["name"], "w\\xff\\x0a<b>");
    EXPECT_EQ(json["activation"], "relu");
    EXPECT_NO_THROW(static_cast<void>(json.dump()));
}

TEST(Json, ProseKeepsItsLinesButNoOtherControlCharacter) {
    Finding finding;
    finding.rule = "dead_relu";
    finding.message = "first\nsecond\r\n\x1b[31m";
    finding.fix = "\tcode(\n\t\tx)\n";
    finding.layer = "a\nb";
    const Json json = to_json(finding);
    EXPECT_EQ(json["message"], "first\nsecond\\x0d\n\\x1b[31m");
    EXPECT_EQ(json["fix"], finding.fix);
    EXPECT_EQ(json["layer"], "a\\x0ab") << "a name is one line";
    const auto back = finding_from_json(json.dump());
    ASSERT_TRUE(back);
    EXPECT_EQ(back->fix, finding.fix);
    const Cause cause{"c", "t", 0.5, "one\ntwo", "a\nb", {}};
    EXPECT_EQ(to_json(cause)["explanation"], "one\ntwo");
    EXPECT_EQ(to_json(cause)["fix"], "a\nb");
}

TEST(TensorInfo, ANumberHasNoElementType) {
    TensorInfo info;
    for (const auto& [role, as_unknown, as_float] :
         {std::tuple(Role::kLoss, true, true), std::tuple(Role::kMetric, true, true),
          std::tuple(Role::kOptimizerState, true, false), std::tuple(Role::kWeightUpdate, true, false),
          std::tuple(Role::kLoop, true, false), std::tuple(Role::kGradientBefore, true, false),
          std::tuple(Role::kOther, false, false), std::tuple(Role::kGradient, false, false),
          std::tuple(Role::kBuffer, false, false)}) {
        info.role = role;
        info.dtype = tensor::DType::kUnknown;
        EXPECT_EQ(is_number(info), as_unknown) << to_string(role);
        info.dtype = tensor::DType::kFloat32;
        EXPECT_EQ(is_number(info), as_float) << to_string(role);
    }
}

TEST(Json, EveryEnumerationHasItsWords) {
    for (std::uint8_t i = 0; i < kRoleCount; ++i) {
        const auto role = static_cast<Role>(i);
        EXPECT_EQ(parse_role(to_string(role)), role);
        EXPECT_EQ(role_of_collection(collection_of(role)), role);
    }
    EXPECT_EQ(builtin_collections().size(), std::size_t{kRoleCount});
    EXPECT_EQ(role_of_collection("gradient"), std::nullopt) << "that is the role, not the collection";
    for (std::uint8_t i = 1; i < kModeCount; ++i)
        EXPECT_EQ(parse_mode(to_string(static_cast<Mode>(i))), static_cast<Mode>(i));
    for (const auto kind : {ActivationKind::kNone, ActivationKind::kRelu, ActivationKind::kTanh,
                            ActivationKind::kSigmoid, ActivationKind::kSmooth})
        EXPECT_EQ(parse_activation_kind(to_string(kind)), kind);
    EXPECT_EQ(to_string(static_cast<Role>(200)), "unknown");
}

TEST(WhatWords, EveryThingThatCanBeTakenHasItsWords) {
    What all = What::kNothing;
    std::string in_words;
    for (const WhatWord& row : kWhatWords) {
        const auto config = capture_config_from_json(
            R"({"requirements": [{"collection": "losses", "what": [")" + std::string(row.word) + R"("]}]})");
        ASSERT_TRUE(config) << config.status().message();
        EXPECT_EQ(config->requirements.at(0).what, row.bit);
        EXPECT_EQ(to_json(config->requirements[0])["what"].dump(), "[\"" + std::string(row.word) + "\"]");
        EXPECT_FALSE(has(all, row.bit)) << row.word << ": twice";
        all |= row.bit;
        in_words += (in_words.empty() ? "" : ", ") + std::string(row.in_words);
    }
    EXPECT_EQ(what_in_words(all), in_words);
    EXPECT_EQ(what_in_words(What::kStatistics | What::kRaw), "statistics, whole tensors");
    EXPECT_EQ(what_in_words(What::kNothing), "nothing");
}

TEST(Schedule, IsDueByIntervalAndDenselyAtTheBeginning) {
    const Schedule schedule{.every = 10, .dense_until = 3, .start = 1, .end = 31};
    std::vector<StepIndex> due;
    for (StepIndex step = 0; step < 60; ++step)
        if (schedule.is_due(step)) due.push_back(step);
    EXPECT_EQ(due, (std::vector<StepIndex>{1, 2, 10, 20, 30}));
}

}  // namespace
}  // namespace traindbg::model
