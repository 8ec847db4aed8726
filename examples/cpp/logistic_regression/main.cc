// A small training, written out by hand, and recorded.
//
// Two clouds of points in the plane overlap a little; a logistic regression learns to tell them apart:
//     p = 1 / (1 + exp(-(w·x + b)))          the probability that a point is of the second cloud
//     loss = -mean(y log p + (1-y) log(1-p))  cross entropy
//     gradient = mean((p - y) x)              and mean(p - y) for b
//
// usage: logistic_regression [run-directory [learning-rate [epochs]]]
#include <traindbg/recorder.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

struct Sample {
    std::array<double, 2> x;
    double y;  // 0 or 1
};

std::vector<Sample> two_clouds(std::size_t count, unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<double> noise(0, 1);
    std::vector<Sample> samples;
    for (std::size_t i = 0; i < count; ++i) {
        const double y = i % 2 == 0 ? 0 : 1;
        samples.push_back({{3 * y - 1 + noise(random), 1 - 2 * y + noise(random)}, y});
    }
    return samples;
}

class LogisticRegression {
  public:
    std::vector<double> weights = {0, 0};
    std::vector<double> bias = {0};

    [[nodiscard]] double score(const Sample& sample) const {
        return weights[0] * sample.x[0] + weights[1] * sample.x[1] + bias[0];
    }
};

// log(1 + exp(s)) - y s, which is the cross entropy without the logarithm of a rounded probability.
double cross_entropy(double score, double y) {
    return std::max(score, 0.0) + std::log1p(std::exp(-std::abs(score))) - y * score;
}

double probability(double score) { return 1 / (1 + std::exp(-score)); }

struct Evaluation {
    double loss = 0;
    double accuracy = 0;
};

Evaluation evaluate(const LogisticRegression& model, const std::vector<Sample>& samples) {
    Evaluation out;
    for (const Sample& sample : samples) {
        const double score = model.score(sample);
        out.loss += cross_entropy(score, sample.y);
        if ((score > 0) == (sample.y > 0.5)) out.accuracy += 1;
    }
    const auto count = static_cast<double>(samples.size());
    out.loss /= count;
    out.accuracy /= count;
    return out;
}

}  // namespace

int main(int argc, char** argv) {
    const char* const directory = argc > 1 ? argv[1] : "traindbg-runs/logistic_regression";
    const double learning_rate = argc > 2 ? std::strtod(argv[2], nullptr) : 0.5;
    constexpr std::size_t kBatch = 64;
    const long epochs = argc > 3 ? std::strtol(argv[3], nullptr, 10) : 10;
    constexpr std::array<std::int64_t, 2> kWeightShape = {1, 2};  // outputs, inputs

    const std::vector<Sample> training = two_clouds(4096, 1);
    const std::vector<Sample> validation = two_clouds(1024, 2);
    LogisticRegression model;

    traindbg::Recorder recorder = traindbg::Recorder::open(directory);
    if (!recorder.is_open()) std::fprintf(stderr, "not recorded: %s\n", recorder.error().c_str());

    for (long epoch = 0; epoch < epochs; ++epoch) {
        for (std::size_t begin = 0; begin < training.size(); begin += kBatch) {
            std::vector<double> weight_gradient = {0, 0};
            std::vector<double> bias_gradient = {0};
            double loss = 0;
            for (std::size_t i = begin; i < begin + kBatch; ++i) {
                const Sample& sample = training[i];
                const double score = model.score(sample);
                const double error = (probability(score) - sample.y) / kBatch;
                weight_gradient[0] += error * sample.x[0];
                weight_gradient[1] += error * sample.x[1];
                bias_gradient[0] += error;
                loss += cross_entropy(score, sample.y) / kBatch;
            }

            // Weights and gradients as they are before the update, then the end of the step.
            recorder.scalar("loss", loss);
            recorder.tensor("linear.weight", traindbg::Role::kWeight, model.weights, kWeightShape);
            recorder.tensor("linear.bias", traindbg::Role::kBias, model.bias);
            recorder.tensor("linear.weight", traindbg::Role::kGradient, weight_gradient, kWeightShape);
            recorder.tensor("linear.bias", traindbg::Role::kGradient, bias_gradient);
            if (recorder.end_step().stop_requested) {
                std::printf("stopped by a rule at step %llu\n",
                            static_cast<unsigned long long>(recorder.step()));
                recorder.close();
                return 90;  // what `traindbg run` reports for a training that a rule stopped
            }

            for (std::size_t k = 0; k < 2; ++k) model.weights[k] -= learning_rate * weight_gradient[k];
            model.bias[0] -= learning_rate * bias_gradient[0];
        }
        const Evaluation result = evaluate(model, validation);
        recorder.scalar("loss", result.loss, traindbg::Mode::kEval);
        recorder.scalar("accuracy", result.accuracy, traindbg::Mode::kEval);
        recorder.end_eval_step();
        std::printf("epoch %ld: loss %.4g, accuracy %.3f\n", epoch, result.loss, result.accuracy);
    }
    recorder.close();
    std::printf("recorded in %s\n", recorder.run_directory().c_str());
    return 0;
}
