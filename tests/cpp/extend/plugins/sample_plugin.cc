// Plugins of the tests, one for each SAMPLE: what each does is in plugin_rules_test.cc.
#include <cstddef>
#include <cstring>

#include "traindbg/plugin.h"

namespace {

struct State {
    double limit = 0;
    int seen = 0;
};

void needs(const traindbg_rule*, const traindbg_host* host, const traindbg_parameters*,
           traindbg_needs* needs) {
    host->need(needs, "losses", SAMPLE == 5 ? 4096 : TRAINDBG_STATISTICS, TRAINDBG_TRAIN, 3, 10);
}

void* create(const traindbg_rule*, const traindbg_host* host, const traindbg_parameters* parameters,
             traindbg_sink* sink) {
    if (SAMPLE == 6) {
        host->say(sink, "no licence");
        return nullptr;
    }
    auto* state = new State;
    host->number(parameters, "limit", &state->limit);
    return state;
}

void destroy(void* state) { delete static_cast<State*>(state); }

int on_step(void* opaque, const traindbg_host* host, const traindbg_step* step, traindbg_sink* sink) {
    auto* state = static_cast<State*>(opaque);
    if (SAMPLE == 7 && ++state->seen == 2) {
        host->say(sink, "lost count");
        return TRAINDBG_FAILED;
    }
    // A struct of an older plugin, which knew less: what is behind it must stay as it is.
    struct {
        size_t size;
        const char* name;
        const char* guard;
    } old = {offsetof(traindbg_tensor, role), nullptr, "untouched"};
    double value = 0;
    if (host->tensor_count(step) != 1 ||
        host->tensor(step, 0, reinterpret_cast<traindbg_tensor*>(&old)) != 1 ||
        std::strcmp(old.guard, "untouched") != 0 || host->value(step, 0, &value) != 1) {
        host->say(sink, "not what was asked for");
        return TRAINDBG_FAILED;
    }
    traindbg_statistics statistics{};
    statistics.size = sizeof statistics;
    if (host->statistics(step, 0, &statistics) != 0 || host->tensor(step, 1, nullptr) != 0)
        return TRAINDBG_FAILED;
    if (value <= state->limit) {
        host->clear(sink, old.name);
        return TRAINDBG_JUDGED;
    }
    traindbg_finding finding{};
    finding.size = sizeof finding;
    finding.key = old.name;
    finding.message = "too large";
    finding.severity = TRAINDBG_ERROR;
    finding.first_step = TRAINDBG_THIS_STEP;
    host->fire(sink, &finding);
    return TRAINDBG_JUDGED;
}

const traindbg_parameter kParameters[] = {{sizeof(traindbg_parameter), "limit", "the limit", "",
                                           TRAINDBG_NUMBER, SAMPLE == 3 ? 1e9 : 10.0, "", 0, 100}};

const traindbg_rule kRules[] = {{sizeof(traindbg_rule), SAMPLE == 2 ? "no name" : "sample", "Sample",
                                 "A sample.", "Above `limit`.", "", "", "", TRAINDBG_ERROR, kParameters, 1,
                                 &needs, &create, &destroy, SAMPLE == 4 ? nullptr : &on_step, nullptr}};

const traindbg_plugin kPlugin = {SAMPLE == 1 ? 99U : TRAINDBG_PLUGIN_ABI, 1, kRules};

}  // namespace

#if SAMPLE != 8
extern "C" const traindbg_plugin* traindbg_plugin_describe(void) { return &kPlugin; }
#else
extern "C" TRAINDBG_PLUGIN_EXPORT const void* something_else(void) { return &kPlugin; }
#endif
