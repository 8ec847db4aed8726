#include "traindbg/engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "traindbg/engine/scenario.h"

namespace traindbg::engine {
namespace {

model::RuleInfo named(std::string name) {
    model::RuleInfo info;
    info.name = std::move(name);
    return info;
}
const model::RuleInfo kThrows = named("throws");
const model::RuleInfo kOdd = named("odd");

class Throws final : public rules::Rule {
  public:
    void on_step(const model::StepView& step, rules::FindingSink&) override {
        ++judged_;
        if (step.step() == 2) throw std::runtime_error("index 7 of 3");
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "never"; }

  private:
    std::uint64_t judged_ = 0;
};

// Fires at odd steps and clears at even ones.
class Odd final : public rules::Rule {
  public:
    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        if (step.step() % 2 == 0) return sink.clear("odd");
        model::Finding finding;
        finding.key = "odd";
        finding.severity = step.step() == 3 ? model::Severity::kError : model::Severity::kWarning;
        finding.message = "step " + std::to_string(step.step());
        finding.places = step.step() == 1 ? 4 : 2;
        sink.fire(finding);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return 0; }
    [[nodiscard]] std::string why_not_judged() const override { return "not by this one"; }
};

model::Finding keyed(std::string key) {
    model::Finding finding;
    finding.key = std::move(key);
    return finding;
}

// Fires at every step, and at the end.
const model::RuleInfo kAlways = named("always");
class Always final : public rules::Rule {
  public:
    void on_step(const model::StepView&, rules::FindingSink& sink) override { on_end(sink); }
    void on_end(rules::FindingSink& sink) override { sink.fire(keyed("always")); }
    [[nodiscard]] std::uint64_t steps_judged() const override { return 1; }
    [[nodiscard]] std::string why_not_judged() const override { return {}; }
};

template <typename T>
std::unique_ptr<rules::Rule> make(const rules::Parameters&) {
    return std::make_unique<T>();
}
std::vector<model::Requirement> nothing(const rules::Parameters&) { return {}; }

const std::vector<rules::RuleEntry>& table() {
    static const std::vector<rules::RuleEntry> entries = {{&kAlways, &nothing, &make<Always>},
                                                          {&kOdd, &nothing, &make<Odd>},
                                                          {&kThrows, &nothing, &make<Throws>}};
    return entries;
}

// Can judge no more from step 2 on.
const model::RuleInfo kFails = named("fails");
class Fails final : public rules::Rule {
  public:
    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        sink.fire(keyed("a"));
        if (step.step() == 2) failure_ = "took longer than 5 s";
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return 1; }
    [[nodiscard]] std::string why_not_judged() const override { return {}; }
    [[nodiscard]] std::string failure() const override { return failure_; }

  private:
    std::string failure_;
};

// Shows `steps` TRAIN steps without content.
void show(Engine& engine, std::uint64_t steps, model::WorkerId worker = 0) {
    const model::TensorTable tensors;
    const model::WorkerMeta meta;
    model::StepRecord record;
    for (record.step = 0; record.step < steps; ++record.step)
        engine.on_step({worker, &record, &tensors, &meta});
}

TEST(Engine, ARuleThatThrowsIsTakenOutAndTheOthersGoOn) {
    const auto engine = Engine::make({{"throws", {}}, {"odd", {}}}, table());
    ASSERT_TRUE(engine.is_ok());
    show(**engine, 6);
    const model::Verdict verdict = (*engine)->verdict();
    ASSERT_EQ(verdict.outcomes.size(), 2U);
    EXPECT_EQ(verdict.outcomes[0].state, model::CheckState::kNotChecked);
    EXPECT_EQ(verdict.outcomes[0].reason, "internal error: index 7 of 3");
    EXPECT_EQ(verdict.outcomes[1].state, model::CheckState::kFired);
    ASSERT_EQ(verdict.findings.size(), 1U);
    EXPECT_EQ(verdict.findings[0].last_step, 5U);
}

TEST(Engine, ARuleThatFailsIsTakenOutAndTold) {
    const std::vector<rules::RuleEntry> known = {{&kFails, &nothing, &make<Fails>},
                                                 {&kOdd, &nothing, &make<Odd>}};
    const auto engine = Engine::make({{"fails", {}}, {"odd", {}}}, known);
    ASSERT_TRUE(engine.is_ok());
    std::vector<std::string> told;
    (*engine)->set_failure_listener(
        [&](const std::string& rule, const std::string& why) { told.push_back(rule + ": " + why); });
    show(**engine, 6);
    EXPECT_EQ(told, std::vector<std::string>{"fails: took longer than 5 s"});
    const model::Verdict verdict = (*engine)->verdict();
    EXPECT_EQ(verdict.outcomes[0].state, model::CheckState::kNotChecked);
    EXPECT_EQ(verdict.outcomes[0].reason, "took longer than 5 s");
    EXPECT_EQ(verdict.outcomes[1].state, model::CheckState::kFired);
    ASSERT_EQ(verdict.findings.size(), 2U);
    EXPECT_EQ(verdict.findings[0].last_step, 2U);  // what it had found stays
    EXPECT_EQ(verdict.findings[1].last_step, 5U);
}

TEST(Engine, OneFindingPerFaultThroughFiringAndResolving) {
    const auto engine = Engine::make({{"odd", {}}}, table());
    ASSERT_TRUE(engine.is_ok());
    std::vector<std::pair<model::FindingState, model::StepIndex>> heard;
    (*engine)->set_listener([&](const model::Finding& f) { heard.emplace_back(f.state, f.last_step); });
    show(**engine, 4);
    const model::Verdict verdict = (*engine)->verdict();
    ASSERT_EQ(verdict.findings.size(), 1U);
    const model::Finding& finding = verdict.findings[0];
    EXPECT_EQ(finding.state, model::FindingState::kFiring);
    EXPECT_EQ(finding.first_step, 1U);
    EXPECT_EQ(finding.step, 1U);       // the step that made it fire
    EXPECT_EQ(finding.last_step, 3U);  // and where it was last seen
    EXPECT_EQ(finding.message, "step 3");
    EXPECT_EQ(finding.severity, model::Severity::kError);
    EXPECT_EQ(finding.places, 4U);
    EXPECT_EQ(finding.times, 2U);
    using enum model::FindingState;
    const std::vector<std::pair<model::FindingState, model::StepIndex>> expected = {
        {kFiring, 1}, {kResolved, 1}, {kFiring, 3}};
    EXPECT_EQ(heard, expected);
}

// What it told at step 1 turns out to be nothing at step 3.
const model::RuleInfo kMistaken = named("mistaken");
class Mistaken final : public rules::Rule {
  public:
    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        if (step.step() == 0) sink.take_back(keyed("told"));  // nothing was told
        if (step.step() == 1) sink.fire(keyed("told"));
        if (step.step() != 3) return;
        model::Finding note = keyed("told");
        note.message = "it is as it should be";
        sink.take_back(note);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return 1; }
    [[nodiscard]] std::string why_not_judged() const override { return ""; }
};

TEST(Engine, WhatIsTakenBackStaysAsANote) {
    const std::vector<rules::RuleEntry> known = {{&kMistaken, &nothing, &make<Mistaken>}};
    const auto engine = Engine::make({{"mistaken", {}}}, known);
    ASSERT_TRUE(engine.is_ok());
    std::vector<std::pair<model::FindingState, model::Severity>> heard;
    (*engine)->set_listener([&](const model::Finding& f) { heard.emplace_back(f.state, f.severity); });
    show(**engine, 6);
    const model::Verdict verdict = (*engine)->verdict();
    ASSERT_EQ(verdict.findings.size(), 1U);
    EXPECT_EQ(verdict.findings[0].step, 1U);
    EXPECT_EQ(verdict.findings[0].message, "it is as it should be");
    using enum model::FindingState;
    const std::vector<std::pair<model::FindingState, model::Severity>> expected = {
        {kFiring, model::Severity::kWarning}, {kResolved, model::Severity::kInfo}};
    EXPECT_EQ(heard, expected);
}

// Fires at every step, in another layer from step 2 on.
const model::RuleInfo kMoves = named("moves");
class Moves final : public rules::Rule {
  public:
    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        model::Finding finding;
        finding.layer = step.step() < 2 ? "first" : "second";
        sink.fire(finding);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return 1; }
    [[nodiscard]] std::string why_not_judged() const override { return ""; }
};

TEST(Engine, AFindingHasTheLinesOfWhereItIsNow) {
    const std::vector<rules::RuleEntry> known = {{&kMoves, &nothing, &make<Moves>}};
    const auto engine = Engine::make({{"moves", {}}}, known);
    ASSERT_TRUE(engine.is_ok());
    model::WorkerMeta meta;
    meta.sources = {{"module/first", "net.py", 1, ""}, {"module/second", "net.py", 2, ""}};
    const model::TensorTable tensors;
    model::StepRecord record;
    std::vector<std::uint32_t> lines;
    for (record.step = 0; record.step < 4; ++record.step) {
        (*engine)->on_step({0, &record, &tensors, &meta});
        lines.push_back((*engine)->findings().at(0).sources.at(0).line);
    }
    EXPECT_EQ(lines, (std::vector<std::uint32_t>{1, 1, 2, 2}));
}

// Fires where a step has more than one loss.
const model::RuleInfo kSeveralLosses = named("several_losses");
class SeveralLosses final : public rules::Rule {
  public:
    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        if (step.record->scalars.size() > 1) sink.fire(keyed("several"));
    }
    void on_end(rules::FindingSink&) override {}
    [[nodiscard]] std::uint64_t steps_judged() const override { return 1; }
    [[nodiscard]] std::string why_not_judged() const override { return {}; }
};

TEST(Engine, RulesAreShownTheFirstMicroBatchOfAStep) {
    const std::vector<rules::RuleEntry> entries = {{&kSeveralLosses, &nothing, &make<SeveralLosses>}};
    const auto engine = Engine::make({{"several_losses", {}}}, entries);
    ASSERT_TRUE(engine.is_ok());
    model::TensorTable tensors(3);
    for (model::TensorInfo& info : tensors) info.role = model::Role::kLoss;
    tensors[0].name = "loss";
    tensors[1].name = "loss@2";
    tensors[2].name = "loss/mse_loss";
    const model::WorkerMeta meta;
    model::StepRecord record;
    record.scalars = {{0, 1.0}, {1, 2.0}};
    (*engine)->on_step({0, &record, &tensors, &meta});
    EXPECT_TRUE((*engine)->verdict().findings.empty());
    record.scalars.push_back({2, 1.0});
    (*engine)->on_step({0, &record, &tensors, &meta});
    EXPECT_EQ((*engine)->verdict().findings.size(), 1U);
}

TEST(Engine, AFindingCountsInTheStepsOfTheModeInWhichItFirstFired) {
    const auto engine = Engine::make({{"always", {}}}, table());
    ASSERT_TRUE(engine.is_ok());
    const model::TensorTable tensors;
    const model::WorkerMeta meta;
    model::StepRecord record;
    const auto see = [&](model::Mode mode, model::StepIndex step) {
        record.mode = mode;
        record.step = step;
        (*engine)->on_step({0, &record, &tensors, &meta});
    };
    see(model::Mode::kTrain, 100);
    see(model::Mode::kTrain, 101);
    see(model::Mode::kEval, 3);  // its own count, below that of training
    (*engine)->on_end();
    const model::Verdict verdict = (*engine)->verdict();
    ASSERT_EQ(verdict.findings.size(), 1U);
    EXPECT_EQ(verdict.findings[0].mode, model::Mode::kTrain);
    EXPECT_EQ(verdict.findings[0].first_step, 100U);
    EXPECT_EQ(verdict.findings[0].step, 100U);
    EXPECT_EQ(verdict.findings[0].last_step, 101U);
}

TEST(Engine, TheLastWordIsDatedInTrainSteps) {
    class AtTheEnd final : public rules::Rule {
      public:
        void on_step(const model::StepView&, rules::FindingSink&) override {}
        void on_end(rules::FindingSink& sink) override { sink.fire(keyed("end")); }
        [[nodiscard]] std::uint64_t steps_judged() const override { return 1; }
        [[nodiscard]] std::string why_not_judged() const override { return {}; }
    };
    static const std::vector<rules::RuleEntry> entries = {{&kAlways, &nothing, &make<AtTheEnd>}};
    const auto engine = Engine::make({{"always", {}}}, entries);
    ASSERT_TRUE(engine.is_ok());
    const model::TensorTable tensors;
    const model::WorkerMeta meta;
    model::StepRecord record;
    record.step = 40;
    (*engine)->on_step({0, &record, &tensors, &meta});
    record.mode = model::Mode::kEval;
    record.step = 1;
    (*engine)->on_step({0, &record, &tensors, &meta});
    (*engine)->on_end();
    const model::Verdict verdict = (*engine)->verdict();
    ASSERT_EQ(verdict.findings.size(), 1U);
    EXPECT_EQ(verdict.findings[0].mode, model::Mode::kTrain);
    EXPECT_EQ(verdict.findings[0].step, 40U);
}

// Says at its end how many steps it was shown, and at which of the training it saw the first one.
const model::RuleInfo kCounts = named("counts");
class Counts final : public rules::Rule {
  public:
    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        if (steps_.empty()) sink.fire(keyed("began " + std::to_string(step.step())));
        steps_ += (step.mode() == model::Mode::kTrain ? " t" : " e") + std::to_string(step.step_of_run()) +
                  "/" + std::to_string(step.step());
    }
    void on_end(rules::FindingSink& sink) override { sink.fire(keyed("saw" + steps_)); }
    [[nodiscard]] std::uint64_t steps_judged() const override { return steps_.empty() ? 0 : 1; }
    [[nodiscard]] std::string why_not_judged() const override { return {}; }

  private:
    std::string steps_;
};

TEST(Engine, EachTrainingOfAProcessIsJudgedByItself) {
    const std::vector<rules::RuleEntry> entries = {
        {&kCounts, &nothing, &make<Counts>},
        {.info = &kAlways, .needs = &nothing, .make = &make<Counts>, .outlives_trainings = true},
        {.info = &kOdd, .needs = &nothing, .make = &make<Counts>, .sees_all_workers = true}};
    const auto engine = Engine::make({{"counts", {}}, {"always", {}}, {"odd", {}}}, entries);
    ASSERT_TRUE(engine.is_ok());
    model::TensorInfo info;
    info.name = "loop/new_training";
    info.role = model::Role::kLoop;
    const model::TensorTable tensors = {info};
    const model::WorkerMeta meta;
    const auto step = [&](model::Mode mode, model::StepIndex number, double training = 0) {
        model::StepRecord record;
        record.mode = mode;
        record.step = number;
        if (training > 0) record.scalars.push_back({0, training});
        (*engine)->on_step({0, &record, &tensors, &meta});
    };
    std::vector<model::FindingState> told;
    (*engine)->set_listener([&](const model::Finding& finding) {
        if (finding.rule == "counts" && finding.key == "began 0") told.push_back(finding.state);
    });
    using model::Mode;
    step(Mode::kTrain, 0);
    step(Mode::kTrain, 1);
    step(Mode::kEval, 0);
    step(Mode::kEval, 1, 2);  // of the second training, which has made no step yet
    step(Mode::kTrain, 2, 2);
    step(Mode::kTrain, 3);
    (*engine)->on_end();
    const model::Verdict verdict = (*engine)->verdict();
    std::vector<std::string> said;
    for (const model::Finding& finding : verdict.findings)
        if (finding.rule == "counts") said.push_back(finding.key + " @" + std::to_string(finding.step));
    EXPECT_EQ(said, (std::vector<std::string>{"began 0 @0", "saw e1/0 t2/0 t3/1 @3"}));
    // What both found is told in each of them.
    EXPECT_EQ(told,
              (std::vector<model::FindingState>{model::FindingState::kFiring, model::FindingState::kResolved,
                                                model::FindingState::kFiring}));
    for (const std::string rule : {"always", "odd"}) {
        const auto whole = std::find_if(verdict.findings.begin(), verdict.findings.end(), [&](const auto& f) {
            return f.rule == rule && f.key.starts_with("saw");
        });
        ASSERT_NE(whole, verdict.findings.end());
        EXPECT_EQ(whole->key, "saw t0/0 t1/1 e0/0 e1/1 t2/2 t3/3") << rule;
    }
    EXPECT_EQ(verdict.outcomes[0].steps_judged, 2U);
    EXPECT_EQ(verdict.outcomes[1].steps_judged, 1U);
}

TEST(Engine, WhatWasPendingWhenATrainingEndsIsDropped) {
    const std::vector<rules::RuleEntry> entries = {{&kCounts, &nothing, &make<Counts>}};
    const auto engine = Engine::make({{"counts", {{"hold", 5}}}}, entries);
    ASSERT_TRUE(engine.is_ok());
    model::TensorInfo info;
    info.name = "loop/new_training";
    info.role = model::Role::kLoop;
    const model::TensorTable tensors = {info};
    const model::WorkerMeta meta;
    for (model::StepIndex number = 0; number < 12; ++number) {
        model::StepRecord record;
        record.step = number;
        if (number == 3) record.scalars.push_back({0, 2});
        (*engine)->on_step({0, &record, &tensors, &meta});
    }
    const model::Verdict verdict = (*engine)->verdict();
    std::vector<std::string> said;
    for (const model::Finding& finding : verdict.findings)
        said.push_back(finding.key + " @" + std::to_string(finding.step));
    // That of the first training had lasted for three steps of five; that of the second one lasts.
    EXPECT_EQ(said, (std::vector<std::string>{"began 0 @8"}));
}

TEST(Engine, EachWorkerHasItsOwnFinding) {
    const auto engine = Engine::make({{"odd", {}}}, table());
    ASSERT_TRUE(engine.is_ok());
    show(**engine, 2, 0);
    show(**engine, 2, 3);
    const model::Verdict verdict = (*engine)->verdict();
    ASSERT_EQ(verdict.findings.size(), 2U);
    EXPECT_EQ(verdict.findings[0].worker, 0U);
    EXPECT_EQ(verdict.findings[1].worker, 3U);
    EXPECT_EQ((*engine)->steps_judged(), 4U);
}

TEST(Engine, ARunWithoutStepsChecksNothing) {
    const auto engine = Engine::make(rules::default_rules());
    ASSERT_TRUE(engine.is_ok());
    (*engine)->on_end();
    const model::Verdict verdict = (*engine)->verdict();
    EXPECT_EQ(verdict.outcomes.size(), rules::builtin_rules().size());
    for (const model::RuleOutcome& outcome : verdict.outcomes) {
        EXPECT_EQ(outcome.state, model::CheckState::kNotChecked) << outcome.rule;
        EXPECT_EQ(outcome.reason, "no step was recorded");
    }
}

TEST(Engine, StepsWithoutContentCheckNothingAndSayWhy) {
    const auto engine = Engine::make(rules::default_rules());
    ASSERT_TRUE(engine.is_ok());
    show(**engine, 50);
    (*engine)->on_end();
    for (const model::RuleOutcome& outcome : (*engine)->verdict().outcomes) {
        EXPECT_EQ(outcome.state, model::CheckState::kNotChecked) << outcome.rule;
        EXPECT_GT(outcome.reason.size(), 10U) << outcome.rule;
    }
}

TEST(Engine, RefusesUnknownAndRepeatedRules) {
    EXPECT_EQ(Engine::make({{"overfitt", {}}}).status().code(), base::Code::kNotFound);
    EXPECT_EQ(Engine::make({{"overfit", {}}, {"overfit", {}}}).status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(Engine::make({{"overfit", {{"patients", 3}}}}).status().code(), base::Code::kInvalidArgument);
}

TEST(Engine, TheSameStepsGiveTheSameVerdict) {
    const auto scenario = scenario::parse(
        "scenario: noise\n"
        "optimizer SGD lr=5\n"
        "tensor gradient/a.weight layer=1 shape=9x9\n"
        "tensor weight/a.weight layer=1 shape=9x9\n"
        "series loss value train 0..199: 2.3~0.1x20 9=>1e6~3x180\n"
        "series weight/a.weight l2 train 0..199: 3\n"
        "series gradient/a.weight l2 train 0..199: 1~0.1x20 1=>1e7x180\n");
    ASSERT_TRUE(scenario.is_ok()) << scenario.status().message();
    const auto first = scenario::run(*scenario), second = scenario::run(*scenario);
    ASSERT_TRUE(first.is_ok() && second.is_ok());
    EXPECT_FALSE(first->findings.empty());
    EXPECT_EQ(*first, *second);
}

// Steps of every shape that a damaged or odd recording may have: no crash, no hang.
TEST(Engine, SurvivesStrangeNumbers) {
    const char* values[] = {"nan", "inf", "-inf", "0", "-1", "1e308", "-1e308", "5e-324"};
    std::string text =
        "scenario: strange\n"
        "tensor activation/r kind=relu layer=1 shape=2x2\n"
        "tensor activation/s kind=sigmoid layer=2 shape=2x2\n"
        "tensor gradient/a.weight layer=1 shape=2x2\ntensor gradient/b.weight layer=2 shape=2x2\n"
        "tensor gradient/c.weight layer=3 shape=2x2\ntensor gradient/d.weight layer=4 shape=2x2\n";
    for (const char* name : {"loss", "loss/cross_entropy"}) {
        text += std::string("series ") + name + " value train 0..399:";
        for (int i = 0; i < 400; ++i) text += std::string(" ") + values[(i * i + 3 * i) % 8];
        text += "\n";
    }
    for (const char* name :
         {"gradient/a.weight", "gradient/b.weight", "gradient/c.weight", "gradient/d.weight"}) {
        text += std::string("series ") + name + " l2 train 0..399:";
        for (int i = 0; i < 400; ++i) text += std::string(" ") + values[(i * 5 + i / 7) % 8];
        text += "\n";
    }
    for (const char* name : {"activation/r", "activation/s"})
        text += std::string("series ") + name + " units train 0..399: 4294967295\nseries " + name +
                " inactive_units train 0..399: 4294967295\nseries " + name + " high train 0..399: 1e18\n";
    text += "classes classes/cross_entropy train 0..399: labels=0,4294967295 predictions=0,0 hits=0,0\n";
    const auto scenario = scenario::parse(text);
    ASSERT_TRUE(scenario.is_ok()) << scenario.status().message();
    const auto verdict = scenario::run(*scenario);
    ASSERT_TRUE(verdict.is_ok());
    for (const model::RuleOutcome& outcome : verdict->outcomes)
        EXPECT_EQ(outcome.reason.find("internal error"), std::string::npos) << outcome.reason;
}

}  // namespace
}  // namespace traindbg::engine
