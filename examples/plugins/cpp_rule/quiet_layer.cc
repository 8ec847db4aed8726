// A rule as a plugin: a layer whose gradient is far smaller than that of the others, step after step.
//
// It looks at several tensors of a step, remembers something of each, and reads a parameter of every type.

#include <traindbg/plugin.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

// One object judges one worker.
class QuietLayer {
  public:
    QuietLayer(const traindbg_host& host, const traindbg_parameters* parameters) {
        const char* skip = "";
        int biases = 0;
        double patience = 0;
        host.number(parameters, "share", &share_);
        host.number(parameters, "patience", &patience);
        host.flag(parameters, "biases", &biases);
        host.text(parameters, "skip", &skip);
        patience_ = static_cast<unsigned>(patience);
        biases_ = biases != 0;
        skip_ = skip;
    }

    int judge(const traindbg_host& host, const traindbg_step* step, traindbg_sink* sink) {
        std::vector<std::pair<std::string, double>> norms;
        for (std::size_t number = 0; number < host.tensor_count(step); ++number) {
            traindbg_tensor tensor{};
            traindbg_statistics statistics{};
            tensor.size = sizeof tensor;
            statistics.size = sizeof statistics;
            if (host.tensor(step, number, &tensor) == 0 || host.statistics(step, number, &statistics) == 0)
                continue;
            if (!biases_ && tensor.rank < 2) continue;
            if (!skip_.empty() && std::string(tensor.name).find(skip_) != std::string::npos) continue;
            norms.emplace_back(tensor.name, statistics.l2);
        }
        if (norms.size() < 3) {
            host.say(sink, "fewer than three layers with gradients");
            return TRAINDBG_NOTHING;
        }
        const double median = median_of(norms);
        for (const auto& [name, norm] : norms) {
            unsigned& steps = quiet_steps_[name];
            steps = norm < share_ * median ? steps + 1 : 0;
            if (steps >= patience_) fire(host, sink, name, norm, median);
            else if (steps == 0) host.clear(sink, name.c_str());
        }
        return TRAINDBG_JUDGED;
    }

  private:
    static double median_of(const std::vector<std::pair<std::string, double>>& norms) {
        std::vector<double> sorted;
        for (const auto& each : norms) sorted.push_back(each.second);
        std::sort(sorted.begin(), sorted.end());
        return sorted[sorted.size() / 2];
    }

    void fire(const traindbg_host& host, traindbg_sink* sink, const std::string& name, double norm,
              double median) const {
        char message[300];
        std::snprintf(message, sizeof message,
                      "The gradient of %s has norm %.3g, that of the median layer %.3g.", name.c_str(), norm,
                      median);
        const traindbg_evidence evidence[] = {{"gradient norm", norm, "of the median layer", median}};
        traindbg_finding finding{};
        finding.size = sizeof finding;
        finding.key = name.c_str();
        finding.message = message;
        finding.fix =
            "Look at what is between this layer and the loss: a detach, a scale, a saturated activation.";
        finding.severity = TRAINDBG_WARNING;
        finding.tensor = name.c_str();
        finding.first_step = TRAINDBG_THIS_STEP;
        finding.evidence = evidence;
        finding.evidence_count = 1;
        host.fire(sink, &finding);
    }

    double share_ = 0;
    unsigned patience_ = 0;
    bool biases_ = false;
    std::string skip_;
    std::map<std::string, unsigned> quiet_steps_;
};

void needs(const traindbg_rule*, const traindbg_host* host, const traindbg_parameters*,
           traindbg_needs* needs) {
    host->need(needs, "gradients", TRAINDBG_STATISTICS, TRAINDBG_TRAIN, /*every=*/5, /*dense_until=*/20);
}

// No exception may leave a plugin.
void* create(const traindbg_rule*, const traindbg_host* host, const traindbg_parameters* parameters,
             traindbg_sink* sink) {
    try {
        return std::make_unique<QuietLayer>(*host, parameters).release();
    } catch (const std::exception& error) {
        host->say(sink, error.what());
        return nullptr;
    }
}

void destroy(void* state) { std::unique_ptr<QuietLayer>(static_cast<QuietLayer*>(state)).reset(); }

int on_step(void* state, const traindbg_host* host, const traindbg_step* step, traindbg_sink* sink) {
    try {
        return static_cast<QuietLayer*>(state)->judge(*host, step, sink);
    } catch (const std::exception& error) {
        host->say(sink, error.what());
        return TRAINDBG_FAILED;
    }
}

const traindbg_parameter kParameters[] = {
    {sizeof(traindbg_parameter), "share", "of the median layer's norm below which a layer is quiet", "ratio",
     TRAINDBG_NUMBER, 1e-3, "", 0, 1},
    {sizeof(traindbg_parameter), "patience", "recorded steps in a row", "steps", TRAINDBG_WHOLE, 5, "", 1,
     1e6},
    {sizeof(traindbg_parameter), "biases", "whether biases are looked at, too", "", TRAINDBG_FLAG, 0, "", 0,
     0},
    {sizeof(traindbg_parameter), "skip", "a part of the names that are left out", "", TRAINDBG_TEXT, 0, "", 0,
     0},
};

const traindbg_rule kRules[] = {{
    sizeof(traindbg_rule),
    "quiet_layer",
    "Quiet layer",
    "A layer gets next to no gradient while the others do.",
    "The norm of a layer's gradient is below `share` of the median layer's at `patience` recorded steps in a "
    "row. "
    "`biases`: of biases, too. Names with `skip` in them are left out.",
    "What gets no gradient does not learn.",
    "Look at what is between this layer and the loss.",
    "Layers that are frozen have no gradient at all, and are not recorded.",
    TRAINDBG_WARNING,
    kParameters,
    sizeof kParameters / sizeof kParameters[0],
    &needs,
    &create,
    &destroy,
    &on_step,
    nullptr,
}};

const traindbg_plugin kPlugin = {TRAINDBG_PLUGIN_ABI, sizeof kRules / sizeof kRules[0], kRules};

}  // namespace

extern "C" const traindbg_plugin* traindbg_plugin_describe(void) { return &kPlugin; }
