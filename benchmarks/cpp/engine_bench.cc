// What judging costs: the default rules over the statistics of a model with 1,000 tensors.
//
//   engine_bench [--tensors N] [--steps N] [--rules]
//
// The steps are made beforehand, in memory: what is timed is the engine and its rules alone, in CPU time of
// this thread. Every step has all statistics of every tensor, as a run with `--every 1` has; the default
// capture takes a fraction of that. The statistics drift as those of a healthy training do, so that rules
// judge all of them and find nothing, which is the common and the dearest case. `--rules` also times each
// rule by itself.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "healthy_training.h"
#include "traindbg/engine/engine.h"
#include "traindbg/model/step_record.h"
#include "traindbg/rules/rule.h"

namespace traindbg {
namespace {

struct Options {
    std::size_t tensors = 1000;
    std::size_t steps = 2000;
    bool each_rule = false;
};

std::int64_t cpu_nanos() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Microseconds of CPU a step: least, median and most of so many rounds.
struct Cost {
    double least = 0, median = 0, most = 0;
    std::size_t findings = 0;
};
Cost measure(const std::vector<rules::RuleChoice>& choices, const model::TensorTable& table,
             const std::vector<model::StepRecord>& steps, int rounds) {
    const model::WorkerMeta meta;
    std::vector<double> costs;
    Cost out;
    for (int round = 0; round < rounds; ++round) {
        auto engine = engine::Engine::make(choices);
        if (!engine.is_ok()) {
            std::fprintf(stderr, "engine_bench: %s\n", engine.status().message().c_str());
            std::exit(1);
        }
        const std::int64_t begin = cpu_nanos();
        for (const model::StepRecord& record : steps)
            (*engine)->on_step({.worker = 0, .record = &record, .tensors = &table, .meta = &meta});
        (*engine)->on_end();
        costs.push_back(static_cast<double>(cpu_nanos() - begin) / 1e3 / static_cast<double>(steps.size()));
        out.findings = (*engine)->verdict().findings.size();
    }
    std::sort(costs.begin(), costs.end());
    out.least = costs.front();
    out.median = costs[costs.size() / 2];
    out.most = costs.back();
    return out;
}

int run(const Options& options) {
    const model::TensorTable table = bench::table_of(options.tensors);
    const std::vector<model::StepRecord> steps = bench::steps_of(table, options.steps);
    const std::vector<rules::RuleChoice> all = rules::default_rules();
    const Cost cost = measure(all, table, steps, 5);
    std::printf(
        "%zu rules, %zu tensors, %zu steps: %.1f / %.1f / %.1f us a step, %.2f million tensor-steps a "
        "second; %zu findings\n",
        all.size(), table.size(), steps.size(), cost.least, cost.median, cost.most,
        static_cast<double>(table.size()) / cost.median, cost.findings);
    if (!options.each_rule) return 0;
    std::vector<std::pair<double, std::string>> each;
    for (const rules::RuleChoice& choice : all)
        each.emplace_back(measure({choice}, table, steps, 3).median, choice.name);
    std::sort(each.rbegin(), each.rend());
    for (const auto& [micros, name] : each) std::printf("%8.2f us a step  %s\n", micros, name.c_str());
    return 0;
}

}  // namespace
}  // namespace traindbg

int main(int argc, char** argv) {
    traindbg::Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        const bool has_value = i + 1 < argc;
        if (word == "--rules") options.each_rule = true;
        else if (word == "--tensors" && has_value) options.tensors = std::strtoul(argv[++i], nullptr, 10);
        else if (word == "--steps" && has_value) options.steps = std::strtoul(argv[++i], nullptr, 10);
        else {
            std::fprintf(stderr, "usage: engine_bench [--tensors N] [--steps N] [--rules]\n");
            return 2;
        }
    }
    return traindbg::run(options);
}
