#include "traindbg/rules/training_loss.h"

#include <algorithm>
#include <cmath>

namespace traindbg::rules {
namespace {

constexpr std::size_t kStart = 5;
constexpr double kNearGuessing = 0.2;  // of the loss of guessing: an untrained model's first loss
constexpr std::string_view kFunctionPrefix = "loss/";
constexpr std::string_view kRoot = "loss";                            // what backward() was called on
constexpr std::string_view kWrittenOut = "loop/loss_is_written_out";  // and is a squared error, say
constexpr std::string_view kReducedLater = "loop/loss_is_reduced_later";
constexpr int kReducedLooks = 5;
constexpr std::string_view kTrainings = "loop/trainings";  // recorded where another one begins

}  // namespace

bool is_first_loss(const model::TensorInfo& info) {
    return info.role == model::Role::kLoss && info.name.find_first_of("@#") == std::string::npos;
}

std::vector<model::Requirement> loss_requirements(std::string_view rule) {
    const std::string name(rule);
    return {{"losses", model::Mode::kTrain, model::What::kStatistics, {.every = 1}, name},
            {"classes", model::Mode::kTrain, model::What::kClasses, {.every = 5, .dense_until = 20}, name}};
}

void TrainingLoss::choose(const model::StepView& step) {
    const model::TensorInfo* total = nullptr;
    const model::TensorInfo* function = nullptr;
    std::optional<model::TensorId> classes;
    for (const model::ScalarSample& sample : step.record->scalars) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (!is_first_loss(info)) continue;
        if (!info.name.starts_with(kFunctionPrefix)) {
            if (total == nullptr) total = &info;
            continue;
        }
        if (function == nullptr) function = &info;
        if (classes) continue;
        const std::string wanted = "classes/" + info.name.substr(kFunctionPrefix.size());
        for (const model::ClassSample& counted : step.record->classes) {
            if (step.info(counted.tensor).name != wanted) continue;
            classes = counted.tensor;
            function = &info;
        }
    }
    // Several calls of the function to one loss, weighted perhaps: their mean is not what is trained.
    const std::optional<LoopFact> calls = loop_fact(step, "calls_of_one_loss");
    const bool is_made_of_several = calls && calls->value > 1;
    calls_ = is_made_of_several ? calls->value : 1;
    const model::TensorInfo* chosen = total == nullptr || (classes && !is_made_of_several) ? function : total;
    if (chosen == nullptr) return;
    chosen_ = true;
    name_ = chosen->name;
    loss_ = chosen->id;
    known_function_ = function != nullptr;
    classes_ = classes;
}

// A loss without a value of a loss function beside it may be one all the same.
void TrainingLoss::look_for_function(const model::StepView& step) {
    for (const model::ScalarSample& sample : step.record->scalars) {
        const std::string& name = step.info(sample.tensor).name;
        if (name == kWrittenOut && sample.value != 0) known_function_ = true;
        if (name != kReducedLater) continue;
        // The objective of a policy may look like it by chance.
        reduced_later_ = sample.value != 0 && reduced_later_ >= 0 ? reduced_later_ + 1 : -1;
        if (reduced_later_ >= kReducedLooks) known_function_ = true;
    }
}

bool TrainingLoss::observe(const model::StepView& step) {
    if (step.mode() != model::Mode::kTrain) return false;
    bool begins = false;
    for (const model::ScalarSample& sample : step.record->scalars)
        begins = begins || step.info(sample.tensor).name == kTrainings;
    if (begins) *this = TrainingLoss();
    is_another_ = is_another_ || begins;
    game_.observe(step);
    const bool was_chosen = chosen_;
    if (!chosen_) choose(step);
    if (!chosen_) return false;
    if (begins && !known_function_) {
        // What its first loss was made of was computed before anybody knew of it: the next one shows.
        early_ = EarlyLoss{value_of(step, loss_), step.step()};
        chosen_ = false;
        return false;
    }
    if (!was_chosen && early_) take_early(step);
    if (is_another_ && known_function_ && !classes_) look_for_classes(step);
    if (!known_function_) look_for_function(step);
    if (classes_) {
        for (const model::ClassSample& sample : step.record->classes) {
            if (sample.tensor != *classes_) continue;
            if (labels_.size() < sample.counts.labels.size()) labels_.resize(sample.counts.labels.size());
            for (std::size_t i = 0; i < sample.counts.labels.size(); ++i)
                labels_[i] += sample.counts.labels[i];
            labels_per_batch_ = 0;
            for (const std::uint32_t label : sample.counts.labels) labels_per_batch_ += label;
        }
    }
    double sum = 0;
    std::size_t samples = 0;
    for (const model::ScalarSample& sample : step.record->scalars) {
        if (sample.tensor != loss_) continue;
        sum += sample.value;
        ++samples;
    }
    if (samples == 0 || !std::isfinite(sum)) return false;
    if (!name_.starts_with(kFunctionPrefix)) {
        // Of several calls of one function a step may keep one value: then that is less than the sum.
        double of_functions = 0;
        std::size_t parts = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info) || !info.name.starts_with(kFunctionPrefix)) continue;
            of_functions += sample.value;
            ++parts;
        }
        sum_of_several_ = parts >= 2 * samples || (parts > 0 && of_functions > 0 && of_functions < 0.9 * sum);
    }
    add(sum / static_cast<double>(samples), step.step());
    return true;
}

double TrainingLoss::value_of(const model::StepView& step, model::TensorId tensor) {
    for (const model::ScalarSample& sample : step.record->scalars)
        if (sample.tensor == tensor) return sample.value;
    return NAN;
}

// The loss of the step before was that of the function, too, if it is now.
void TrainingLoss::take_early(const model::StepView& step) {
    const EarlyLoss early = *early_;
    early_.reset();
    const double now = value_of(step, loss_);
    const bool is_root = std::any_of(
        step.record->scalars.begin(), step.record->scalars.end(),
        [&](const auto& sample) { return step.info(sample.tensor).name == kRoot && sample.value == now; });
    if (is_root && std::isfinite(early.value)) add(early.value, early.step);
}

// Of another training than the first, labels are not counted at each of its first steps.
void TrainingLoss::look_for_classes(const model::StepView& step) {
    const double loss = value_of(step, loss_);
    for (const model::ClassSample& counted : step.record->classes) {
        const std::string& name = step.info(counted.tensor).name;
        const std::string function = std::string(kFunctionPrefix) + name.substr(name.find('/') + 1);
        for (const model::ScalarSample& sample : step.record->scalars)
            if (sample.value == loss && step.info(sample.tensor).name == function) classes_ = counted.tensor;
    }
}

void TrainingLoss::add(double value, model::StepIndex step) {
    if (first_.size() < kStart) {
        first_.push_back(value);
        start_ = std::min(first_.front(), median(first_));
        top_ = *std::max_element(first_.begin(), first_.end());
    }
    if (count_ == 0) first_step_ = step;
    if (count_ == 0 || value > highest_) {
        highest_ = value;
        highest_step_ = step;
    }
    ++count_;
    recent_.add(value);
    blocks_.add(value);
}

void TrainingLoss::begin_anew() {
    first_.clear();
    count_ = 0;
    start_ = top_ = highest_ = 0;
    first_step_ = highest_step_ = 0;
    recent_.clear();
    blocks_ = Blocks();
}

bool TrainingLoss::has_vague_start() const {
    return !first_.empty() && top_ > 10 * start_ &&
           *std::min_element(first_.begin(), first_.end()) < 0.5 * start_;
}

double TrainingLoss::level() const {
    const auto last = recent_.last(10);
    return median({last.begin(), last.end()});
}

double TrainingLoss::noise() const { return noise_of(recent_.values()); }

std::size_t TrainingLoss::classes() const {
    return static_cast<std::size_t>(
        std::count_if(labels_.begin(), labels_.end(), [](double count) { return count > 0; }));
}

std::optional<double> TrainingLoss::label_entropy() const {
    double total = 0;
    for (const double count : labels_) total += count;
    if (total < 50 || classes() < 2) return std::nullopt;
    double entropy = 0;
    for (const double count : labels_)
        if (count > 0) entropy -= count / total * std::log(count / total);
    return entropy;
}

std::optional<double> TrainingLoss::base_rate() const {
    const std::optional<double> entropy = label_entropy();
    if (!entropy) return std::nullopt;
    if (calls_ > 1 && !name_.starts_with(kFunctionPrefix)) {
        // Of one of the calls it is known; of all it is where the training starts at their mean or sum.
        for (const double times : {1.0, calls_})
            if (std::abs(start_ - times * *entropy) < kNearGuessing * times * *entropy)
                return times * *entropy;
        return std::nullopt;
    }
    // A loss that is summed over the batch, or scaled down, is not measured in these units: an untrained
    // model starts within a few factors of guessing for every sample.
    const double per_label = start_ / std::max(labels_per_batch_, 1.0);
    const bool summed = start_ > 8 * *entropy && per_label > 0.3 * *entropy;
    if (summed || start_ < *entropy / 50) return std::nullopt;
    return entropy;
}

bool TrainingLoss::has_learned_much() const {
    return has_learned() && level() < 0.6 * base_rate().value_or(std::abs(start_));
}

bool TrainingLoss::has_learned() const {
    if (count_ < 10) return false;
    const double now = level();
    if (const std::optional<double> base = base_rate(); base && now > 0.9 * *base) return false;
    const double gain = start_ - now;
    if (base_rate() && now < 0.6 * *base_rate()) return true;  // resumed: good from the start
    return gain > 3 * noise() / std::sqrt(10.0) && gain > 0.1 * std::abs(start_);
}

}  // namespace traindbg::rules
