#include "traindbg/rules/loop_facts.h"

#include <algorithm>

#include "traindbg/base/format.h"

namespace traindbg::rules {

namespace {

std::optional<LoopFact> as_fact(const model::StepView& step, const model::ScalarSample& sample,
                                std::string_view fact) {
    constexpr std::string_view kPrefix = "loop/";
    const model::TensorInfo& info = step.info(sample.tensor);
    if (info.role != model::Role::kLoop) return std::nullopt;
    const std::string_view name = info.name;
    if (!name.starts_with(kPrefix)) return std::nullopt;
    const std::string_view rest = name.substr(kPrefix.size());
    if (!rest.starts_with(fact)) return std::nullopt;
    if (rest.size() == fact.size()) return LoopFact{sample.value, {}, name};
    if (rest[fact.size()] == '/') return LoopFact{sample.value, rest.substr(fact.size() + 1), name};
    return std::nullopt;
}

}  // namespace

std::optional<LoopFact> loop_fact(const model::StepView& step, std::string_view fact) {
    for (const model::ScalarSample& sample : step.record->scalars)
        if (std::optional<LoopFact> found = as_fact(step, sample, fact)) return found;
    return std::nullopt;
}

std::vector<LoopFact> loop_facts(const model::StepView& step, std::string_view fact) {
    std::vector<LoopFact> all;
    for (const model::ScalarSample& sample : step.record->scalars)
        if (const std::optional<LoopFact> found = as_fact(step, sample, fact)) all.push_back(*found);
    return all;
}

model::Requirement loop_requirement(std::string_view rule, model::Mode mode) {
    const model::Schedule schedule = mode == model::Mode::kTrain
                                         ? model::Schedule{.every = 25, .dense_until = 10}
                                         : model::Schedule{.every = 10, .dense_until = 50};
    return {"loop", mode, model::What::kStatistics, schedule, std::string(rule)};
}

std::vector<model::Requirement> sequence_requirements(std::string_view rule) {
    constexpr model::Schedule kWhen = {.every = 0, .dense_until = 6};
    constexpr auto kStatistics = model::What::kStatistics;
    const std::string name(rule);
    return {{"loop", model::Mode::kTrain, kStatistics, kWhen, name},
            {"inputs", model::Mode::kTrain, kStatistics, kWhen, name},
            {"activations", model::Mode::kTrain, kStatistics, kWhen, name}};
}

std::vector<model::Requirement> row_requirements(std::string_view rule) {
    using enum model::Mode;
    constexpr auto kStatistics = model::What::kStatistics;
    const std::string name(rule);
    return {{"inputs", kTrain, kStatistics, {.every = 50, .dense_until = 100}, name},
            {"inputs", kEval, kStatistics, {.every = 10, .dense_until = 50}, name},
            loop_requirement(rule),
            loop_requirement(rule, kEval)};
}

double rows_of_input(const model::StepView& step) {
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (info.name != "input/0" || info.shape.empty()) continue;
        // Its shape is that of the first one that was seen, which may have had other numbers of rows.
        double values = 1;
        for (std::size_t i = 1; i < info.shape.size(); ++i) values *= static_cast<double>(info.shape[i]);
        return static_cast<double>(sample.statistics.count) / std::max(values, 1.0);
    }
    return 0;
}

void RowsChange::observe(const model::StepView& step) {
    const auto known = loop_fact(step, "rows_known"), looked = loop_fact(step, "rows_looked_at");
    const auto all = loop_fact(step, "rows_of_training");
    if (!known || !looked || !all) return;
    constexpr double kFewest = 200, kMore = 1.5, kHardlyAny = 0.95;
    known_ = known->value;
    looked_at_ = looked->value;
    of_training_ = all->value;
    are_others_ = of_training_ >= kFewest && looked->value >= kMore * of_training_ &&
                  known_ > kHardlyAny * looked->value;
}

std::vector<model::Evidence> RowsChange::evidence() const {
    if (!are_others_) return {};
    return {{"different rows of the training", known_, "rows that it has", of_training_}};
}

model::Finding loop_finding(std::string_view key, model::Severity severity, const InARow& seen,
                            const LoopFact& fact) {
    model::Finding finding;
    finding.key = key;
    finding.severity = severity;
    finding.first_step = seen.first();
    finding.tensor = fact.tensor;
    finding.layer = fact.place;
    finding.evidence.push_back(seen.evidence());
    finding.plots = {{"loss", "value"}};
    return finding;
}

std::string and_more(const LoopFact& fact) {
    if (fact.place.empty()) return {};
    if (fact.value < 2) return base::format(" ({})", fact.place);
    return base::format(" ({} and {:.0f} more)", fact.place, fact.value - 1);
}

std::string counted(const LoopFact& fact, std::string_view noun) {
    return base::format("{:.0f} {}{}{}", fact.value, noun, form(fact.value, "", "s"), and_more(fact));
}

}  // namespace traindbg::rules
