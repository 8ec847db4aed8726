// Every step gets the same batch although there is more data.

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kRepeatedBatch = {
    .name = "repeated_batch",
    .title = "The same batch at every step",
    .summary = "All training steps see one and the same batch, although there is more data.",
    .when =
        "The model gets the same inputs, bit for bit, at each of `steps` training steps in a row, although "
        "there is more data. Also, an evaluation resets the random numbers that training draws.\n"
        "- Same inputs (warning): the model's inputs have one fingerprint in each of `steps` training steps "
        "in a row, and one of the following signs shows more data.\n"
        "- Sign: a DataLoader of more than one batch was asked for batches in training.\n"
        "- Sign: the batch is a slice of a tensor with at least four times as many rows.\n"
        "- Sign: one evaluation has at least two batches of the same size.\n"
        "- Sign: the very same tensor lies in four places of lists, as batches do that were all written into "
        "one buffer.\n"
        "- Sign, after three times `steps` steps: the batch is another tensor each time, no loader has one "
        "batch only, and it has 2^n rows (8 to 256) of at least 5 values. Rows of 4 values are enough where "
        "an evaluation has at least eight times as many rows. All combinations of bits do not count, nor "
        "inputs that had another size at some step.\n"
        "- Note only (info): no such sign after three times `steps` steps. Training on all data at once "
        "looks the same.\n"
        "- Memorised on purpose (info): the very same tensor, made once, is given at each step, and the sign "
        "of four places in lists is not there.\n"
        "- The note becomes a warning where that tensor comes from a DataLoader of more batches and the "
        "model is evaluated on other data (twice, where no loss of it is computed).\n"
        "- Random numbers set back (warning): after each of three evaluations in a row, a random number "
        "generator (torch, NumPy, Python) is in the state that it had after the evaluation before, and "
        "training draws from it.",
    .why =
        "The model learns this one batch by heart: the training loss falls to zero and means nothing; the "
        "rest of the data is never seen.",
    .fix =
        "Go through the loader: for x, y in loader. next(iter(loader)) begins anew at each call; keep one "
        "iterator, and check that the index of the loop is used.",
    .healthy =
        "Training on the whole data set at each step; a few steps on one batch in a row, as in some kinds of "
        "reinforcement learning and of adversarial training; data whose order is the same in each epoch.",
    .cost =
        "A fingerprint of the model's inputs at the first 100 steps and then at every 50th; of the "
        "generators' states (20 µs) at two steps after each of the first 64 evaluations.",
    .original = "",
    .source = "Karpathy, \"A recipe for training neural networks\", 2019 (overfit one batch)",
    .severity = model::Severity::kWarning,
    .parameters = {{"steps", "steps", 20, 3, 1000, "steps in a row with one fingerprint"}},
};

class RepeatedBatch final : public Rule {
  public:
    explicit RepeatedBatch(const Parameters& parameters)
        : steps_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kEval) return on_evaluation(step);
        if (step.mode() != model::Mode::kTrain) return;
        evaluated_ = values_evaluated_ = 0;
        if (const auto back = loop_fact(step, "random_numbers_set_back"))
            judge_seed(static_cast<std::uint64_t>(back->value), step.step(), sink);
        for (const model::ScalarSample& sample : step.record->scalars) {
            const std::string& name = step.info(sample.tensor).name;
            if (name == "loop/batches_in_loader") in_loader_ = std::max(in_loader_, sample.value);
            else if (name == "loop/input_is_kept") is_kept_ = sample.value != 0;
            else if (name == "loop/input_in_containers") in_containers_ = sample.value;
            else if (name == "loop/batches_in_storage") in_storage_ = std::max(in_storage_, sample.value);
        }
        if (values_ == 0) {
            std::tie(values_, size_) = inputs_of(step);
            take_rows(step);
        } else if (const auto values = std::get<0>(inputs_of(step)); values > 0 && values != values_) {
            has_other_sizes_ = true;
        }
        if (const auto rows = loop_fact(step, "rows_unscored_of"); rows && rows_ > 0)
            times_evaluated_ = std::max(times_evaluated_, rows->value / rows_);
        // Of evaluations that compute no loss.
        const auto others = loop_fact(step, "rows_unscored"),
                   trained = loop_fact(step, "rows_unscored_trained");
        if (others && trained && others->value >= kFewestOthers && trained->value == 0 && ++unscored_ >= 2)
            evaluates_others_ = true;
        // All inputs of the model together.
        std::uint64_t fingerprint = 0;
        bool any = false;
        for (const model::DigestSample& sample : step.record->digests) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kInput) continue;
            any = true;
            if (tensor_.empty()) looks_like_batch_ = has_size_of_batch(step, info);
            tensor_ = tensor_.empty() ? info.name : tensor_;
            fingerprint = (fingerprint ^ sample.digest.fingerprint) * 0x9E3779B97F4A7C15ULL;
        }
        if (!any) return;
        ++judged_;
        if (judged_ > 1 && fingerprint == last_) {
            ++in_a_row_;
            others_ = 0;
        } else if (!firing_.empty() && ++others_ < 3) {
            return;  // a look at other data, at the end of the run say
        } else {
            others_ = 0;
            in_a_row_ = 1;
            first_ = step.step();
            if (!firing_.empty()) sink.clear(firing_);
            firing_.clear();
        }
        last_ = fingerprint;
        judge(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no input of the model was seen"; }

  private:
    // How many batches there are to be had, as far as anything tells.
    [[nodiscard]] const char* more_data() const {
        if (in_loader_ > 1) return "loader";
        if (in_storage_ >= 4) return "storage";
        if (is_in_many_places()) return "containers";
        if (most_evaluated_ >= 2) return "evaluation";
        // A loader of one batch has no more.
        const bool is_made_anew = !is_kept_ && in_loader_ != 1 && in_a_row_ >= 3 * steps_;
        // A part's input, of a model that is not called itself, may be made of all data, as features are.
        const bool is_models_own = tensor_.find('.') == std::string::npos;
        // Of steps in which something else than the batch comes first, a look at a fixed sample, say.
        if (has_other_sizes_) return "";
        if (looks_like_batch_ && is_made_anew && (is_models_own || evaluates_others_)) return "size";
        if (is_few_ && is_made_anew && times_evaluated_ >= kTimes) return "evaluated";
        return "";
    }
    // Whole data sets seldom have 2^n rows; batches do. Few columns may be a grid of coordinates.
    static bool has_size_of_batch(const model::StepView& step, const model::TensorInfo& info) {
        if (info.shape.size() < 2 || info.shape[0] < 8 || info.shape[0] > 256) return false;
        std::int64_t values = 1;
        for (std::size_t i = 1; i < info.shape.size(); ++i) values *= info.shape[i];
        return values >= 5 && std::has_single_bit(static_cast<std::uint64_t>(info.shape[0])) &&
               !may_be_truth_table(step, info, static_cast<double>(info.shape[0]),
                                   static_cast<double>(values));
    }

    // A table of all 2^n combinations of n bits is whole. Its values are two, each as often as the other, so
    // that they deviate from their mean by half of what is between them.
    static bool may_be_truth_table(const model::StepView& step, const model::TensorInfo& info, double rows,
                                   double values) {
        if (rows != std::exp2(values)) return false;
        return std::none_of(
            step.record->tensors.begin(), step.record->tensors.end(), [&](const model::TensorSample& sample) {
                const model::Statistics& s = sample.statistics;
                return sample.tensor == info.id && s.count > 0 && s.std < kOfBits * (s.max - s.min);
            });
    }

    // How many values the inputs have, and their root mean square.
    static std::pair<std::uint64_t, double> inputs_of(const model::StepView& step) {
        std::uint64_t values = 0;
        double squares = 0;
        for (const model::TensorSample& sample : step.record->tensors) {
            if (step.info(sample.tensor).role != model::Role::kInput) continue;
            values += sample.statistics.count;
            squares += sample.statistics.l2 * sample.statistics.l2;
        }
        return {values, values > 0 ? std::sqrt(squares / static_cast<double>(values)) : 0};
    }

    // Whoever evaluates on other data wants the model to learn more than this one batch.
    [[nodiscard]] bool is_on_purpose() const {
        return is_kept_ && !is_in_many_places() && !(in_loader_ > 1 && evaluates_others_);
    }
    // Batches that were put aside one after the other, and are one tensor that was written over.
    [[nodiscard]] bool is_in_many_places() const { return is_kept_ && in_containers_ >= kPlaces; }

    void on_evaluation(const model::StepView& step) {
        const auto [values, size] = inputs_of(step);
        // The model may be called twice in a step, and once in an evaluation.
        if (values > 0 && values_ > 0 && std::abs(size - size_) > 1e-6 * size_) evaluates_others_ = true;
        // All data at once is evaluated at once, or on a grid; batches are evaluated in batches.
        if (values > 0 && values == values_) ++evaluated_;
        most_evaluated_ = std::max(most_evaluated_, evaluated_);
        values_evaluated_ += values;
        if (values_ > 0)
            times_evaluated_ = std::max(
                times_evaluated_, static_cast<double>(values_evaluated_) / static_cast<double>(values_));
    }

    // Of the first input. Few columns may be coordinates, which are evaluated on a grid of many points; rows
    // that are not 2^n may be the few that have labels.
    void take_rows(const model::StepView& step) {
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kInput || info.shape.size() < 2) continue;
            double values = 1;
            for (std::size_t i = 1; i < info.shape.size(); ++i) values *= static_cast<double>(info.shape[i]);
            rows_ = values > 0 ? static_cast<double>(sample.statistics.count) / values : 0;
            is_few_ = values >= 4 && rows_ >= 8 && rows_ <= 256 &&
                      std::has_single_bit(static_cast<std::uint64_t>(rows_)) &&
                      !may_be_truth_table(step, info, rows_, values);
            return;
        }
    }

    // Evaluations in a row after which random numbers were as they had been after the one before.
    void judge_seed(std::uint64_t in_a_row, model::StepIndex now, FindingSink& sink) {
        if (in_a_row == 0) return sink.clear(kSeed);
        if (in_a_row == 1) seed_since_ = now;
        if (in_a_row < kEvaluations) return;
        model::Finding finding;
        finding.key = kSeed;
        finding.severity = model::Severity::kWarning;
        finding.first_step = seed_since_;
        finding.tensor = tensor_;
        finding.message = base::format(
            "After each of {} evaluations, up to step {}, a generator of random numbers is in the same state "
            "again, though training draws from it: what it draws there, such as batches, masks of dropout or "
            "noise, is the same every time. A seed is set in the evaluation.",
            in_a_row + 1, now);
        finding.fix =
            "Give the evaluation a generator of its own (torch.Generator().manual_seed(0)), or run it inside "
            "of torch.random.fork_rng(), which puts the state back.";
        finding.evidence.push_back({"evaluations in a row", static_cast<double>(in_a_row + 1), "limit",
                                    static_cast<double>(kEvaluations + 1)});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    void judge(const model::StepView& step, FindingSink& sink) {
        const std::string_view sign = more_data();
        std::string key;
        if (in_a_row_ >= steps_ && !sign.empty()) key = is_on_purpose() ? "kept" : "batch";
        else if (in_a_row_ >= 3 * steps_) key = "whole_data";
        if (key != firing_ && !firing_.empty()) sink.clear(firing_);
        firing_ = key;
        if (key.empty()) return;
        model::Finding finding;
        finding.key = key;
        finding.severity =
            sign.empty() || is_on_purpose() ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = first_;
        finding.tensor = tensor_;
        finding.message = base::format(
            "The model's input is the same, bit for bit, in each of {} captured steps from step {} to {}",
            in_a_row_, first_, step.step());
        if (sign == "loader") {
            finding.message += base::format("; the DataLoader has {:.0f} batches.", in_loader_);
            finding.evidence.push_back({"batches of the DataLoader", in_loader_, "", 0});
        } else if (sign == "storage") {
            finding.message +=
                base::format("; it is a slice of a tensor with {:.0f} times as many rows.", in_storage_);
            finding.evidence.push_back({"rows of the tensor it is cut from, in batches", in_storage_, "", 0});
        } else if (sign == "containers") {
            finding.message += base::format(
                "; this one tensor lies in {:.0f} places of lists, as batches do that were all written into "
                "one buffer.",
                in_containers_);
            finding.evidence.push_back(
                {"places of the tensor in containers", in_containers_, "limit", kPlaces});
        } else if (sign == "evaluation") {
            finding.message += base::format("; an evaluation has {} batches of this size.", most_evaluated_);
            finding.evidence.push_back(
                {"batches of an evaluation", static_cast<double>(most_evaluated_), "", 0});
        } else if (sign == "evaluated") {
            finding.message +=
                base::format("; it is made anew each time, and an evaluation has {:.0f} times as many rows.",
                             times_evaluated_);
            finding.evidence.push_back(
                {"rows of an evaluation, in batches", times_evaluated_, "limit", kTimes});
        } else if (sign == "size") {
            finding.message +=
                "; it is made anew each time, and has as many rows as batches have, a power of two.";
        } else {
            finding.message += "; nothing shows that there is more data.";
        }
        if (is_kept_ && sign != "containers")
            finding.message +=
                is_on_purpose() ? " It is one tensor, made once, as where a batch is memorised on purpose."
                                : " It is one tensor, taken once, and the model is evaluated on other data.";
        finding.evidence.push_back({"captured steps with this input", static_cast<double>(in_a_row_), "limit",
                                    static_cast<double>(steps_)});
        finding.fix =
            sign == "size" || sign == "evaluated"
                ? "Look at what chooses the rows: a seed that is set in the function that draws "
                  "them, an index that stays. If this is all the data, nothing."
            : sign == "containers" ? "Put copies aside (batch.clone()), or a buffer for each batch: what is "
                                     "written into a buffer later changes all that refer to it."
            : sign.empty()
                ? "Nothing, if this is all the data; else go through it batch by batch."
                : "Go through the loader (for x, y in loader); next(iter(loader)) begins anew at each call. "
                  "Check that the index of the loop is used where the batch is cut out.";
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr const char* kSeed = "seed";
    static constexpr std::uint64_t kEvaluations = 2;
    static constexpr double kPlaces = 4;
    static constexpr double kFewestOthers = 8;  // rows of an evaluation, none of them of the training
    static constexpr double kOfBits = 0.48;     // deviation of bits, of what is between them; 0.5 of many
    static constexpr double kTimes = 8;         // rows of an evaluation, of those of the batch
    std::uint64_t steps_;
    model::StepIndex seed_since_ = 0;
    std::uint64_t judged_ = 0, in_a_row_ = 0, others_ = 0, last_ = 0;
    std::uint64_t values_ = 0;  // in a training batch
    double size_ = 0;           // their root mean square
    bool evaluates_others_ = false;
    int unscored_ = 0;                                  // evaluations of other data that compute no loss
    std::uint64_t evaluated_ = 0, most_evaluated_ = 0;  // batches of that size in one evaluation
    std::uint64_t values_evaluated_ = 0;                // in one evaluation
    double rows_ = 0, times_evaluated_ = 0;             // of the batch; an evaluation's, in batches
    bool is_few_ = false;                               // rows, of as many values as no coordinates have
    double in_loader_ = 0, in_storage_ = 0;
    bool looks_like_batch_ = false;
    bool has_other_sizes_ = false;  // inputs of other steps than the first have
    double in_containers_ = 0;      // places at which that tensor lay, at the last look
    bool is_kept_ = false;          // the very same tensor was given at the last look
    model::StepIndex first_ = 0;
    std::string tensor_, firing_;
};

std::vector<model::Requirement> repeated_batch_needs(const Parameters&) {
    using enum model::Mode;
    return {
        {"inputs", kTrain, model::What::kDigest, {.every = 50, .dense_until = 100}, kRepeatedBatch.name},
        {"inputs", kTrain, model::What::kStatistics, {.every = 50, .dense_until = 10}, kRepeatedBatch.name},
        {"inputs", kEval, model::What::kStatistics, {.every = 50, .dense_until = 10}, kRepeatedBatch.name},
        {"losses", kTrain, model::What::kStatistics, {.every = 1}, kRepeatedBatch.name},
        {"losses", kEval, model::What::kStatistics, {.every = 1}, kRepeatedBatch.name},
        {"loop", kTrain, model::What::kStatistics, {.every = 50, .dense_until = 10}, kRepeatedBatch.name}};
}

}  // namespace

RuleEntry builtin::repeated_batch() {
    return {&kRepeatedBatch, &repeated_batch_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<RepeatedBatch>(p); }};
}

}  // namespace traindbg::rules
