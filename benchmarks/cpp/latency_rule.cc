// A rule for judge_latency_bench, as a plugin: it finds something new at every second step.
#include <cstddef>
#include <cstdio>
#include <string>

#include "traindbg/plugin.h"

namespace {

void needs(const traindbg_rule*, const traindbg_host* host, const traindbg_parameters*,
           traindbg_needs* needs) {
    host->need(needs, "losses", TRAINDBG_STATISTICS, TRAINDBG_TRAIN, 0, 1);
    host->need(needs, "gradients", TRAINDBG_STATISTICS, TRAINDBG_TRAIN, 1, 0);
}

void* create(const traindbg_rule*, const traindbg_host*, const traindbg_parameters*, traindbg_sink*) {
    return nullptr;
}

int on_step(void*, const traindbg_host* host, const traindbg_step* step, traindbg_sink* sink) {
    const uint64_t index = host->index(step);
    if (index % 2 != 0) return TRAINDBG_JUDGED;
    const std::string name = "latency probe of step " + std::to_string(index) + " end";
    traindbg_finding finding{};
    finding.size = sizeof finding;
    finding.key = name.c_str();
    finding.message = name.c_str();
    finding.fix = "";
    finding.first_step = TRAINDBG_THIS_STEP;
    host->fire(sink, &finding);
    return TRAINDBG_JUDGED;
}

const traindbg_rule kRule = {sizeof(traindbg_rule),
                             "latency_probe",
                             "Latency probe",
                             "Every second step.",
                             "Every second step.",
                             "",
                             "",
                             "",
                             TRAINDBG_INFO,
                             nullptr,
                             0,
                             &needs,
                             &create,
                             nullptr,
                             &on_step,
                             nullptr};
const traindbg_plugin kPlugin = {TRAINDBG_PLUGIN_ABI, 1, &kRule};

}  // namespace

extern "C" TRAINDBG_PLUGIN_EXPORT const traindbg_plugin* traindbg_plugin_describe(void) { return &kPlugin; }
