#include "traindbg/rules/neighbours.h"

#include <cmath>
#include <string>

#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

constexpr double kFewestRows = 96;

}  // namespace

std::vector<model::Requirement> neighbour_requirements(std::string_view rule) {
    constexpr model::Schedule kFirst = {.every = 0, .dense_until = 10};
    return {{"inputs", model::Mode::kTrain, model::What::kStatistics, kFirst, std::string(rule)},
            loop_requirement(rule)};
}

void Neighbours::observe(const model::StepView& step) {
    const std::optional<LoopFact> rows = loop_fact(step, "neighbours_rows");
    const std::optional<LoopFact> differ = loop_fact(step, "neighbours_differ");
    const std::optional<LoopFact> any = loop_fact(step, "neighbours_any_differ");
    if (!rows || !differ || !any) return;
    rows_ = rows->value;
    differ_ = differ->value;
    any_differ_ = any->value;
}

std::optional<double> Neighbours::unlike() const {
    if (!(rows_ >= kFewestRows) || !(any_differ_ > 0) || !std::isfinite(differ_ / any_differ_))
        return std::nullopt;
    return differ_ / any_differ_;
}

std::vector<model::Evidence> Neighbours::evidence() const {
    const std::optional<double> share = unlike();
    if (!share) return {};
    return {{"difference of labels between nearest inputs", *share, "between any two", 1}};
}

}  // namespace traindbg::rules
