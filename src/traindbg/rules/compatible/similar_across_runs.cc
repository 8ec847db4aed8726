// SimilarAcrossRuns: tensors that are not what they were in another run.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"
#include "traindbg/rules/compatible/original_names.h"
#include "traindbg/rules/other_run.h"

namespace traindbg::rules::compatible {
namespace {

constexpr double kRelative = 1e-5;  // numpy.allclose's
constexpr double kAbsolute = 1e-8;
constexpr std::size_t kMostAhead = 256;  // steps of another run that are kept until this one comes to them

const model::RuleInfo kCompatibleSimilarAcrossRuns = {
    .name = "SimilarAcrossRuns",
    .title = "Similar across runs",
    .summary = "A tensor differs from what it was in another run at the same step.",
    .when =
        "At a step that this run and one of `other_trials` both have, a tensor that both recorded is not the "
        "same in them: its shape differs, or a value by more than 1e-8 + 1e-5 times its absolute value in "
        "the "
        "other run (numpy.allclose with its defaults; NaN equals NaN). The tensors are those of "
        "`collection_names` and those whose names match `tensor_regex`; with neither, all that were "
        "recorded.",
    .why =
        "Two runs of the same script with the same seed and data are the same; where they part, something is "
        "not what it is believed to be.",
    .fix =
        "Begin with the first step and tensor that differ: inputs (order and augmentation of the data), "
        "initial weights (the seed), hyperparameters; then operations that are not deterministic "
        "(torch.use_deterministic_algorithms).",
    .healthy =
        "It knows none: runs of other seeds, data or hyperparameters differ at once, and so may runs on "
        "other "
        "hardware.",
    .cost =
        "Nothing by itself but the losses at every 500th step; statistics of the collections that "
        "`collection_names` names at every 500th step of training. The other run is read once beside this "
        "one, for each worker.",
    .original = "SimilarAcrossRuns",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters =
        [] {
            std::vector<model::ParameterInfo> all = {
                {"other_trials",
                 "",
                 {},
                 0,
                 0,
                 "the runs to compare with: directories or names of runs, or directories that the original "
                 "wrote; has to be given",
                 model::ParameterType::kTexts}};
            for (model::ParameterInfo& each : selection_parameters()) all.push_back(std::move(each));
            return all;
        }(),
    .readings =
        "The documents say that tensors are compared, and not how. Of a tensor that was not recorded whole "
        "in "
        "both runs, the statistics are compared (elements, zeros, NaN, infinities, smallest and largest, "
        "mean, standard deviation, l1 and l2 norm), with the same tolerances. Workers are compared with "
        "those "
        "of the same number. A step or a tensor that only one of the runs has is left alone; a run without "
        "any such step is not compared, and that is told. `other_trials` may name several.",
};

bool is_close(double ours, double other) {
    if (std::isnan(ours) || std::isnan(other)) return std::isnan(ours) && std::isnan(other);
    if (std::isinf(ours) || std::isinf(other)) return ours == other;
    return std::abs(ours - other) <= kAbsolute + kRelative * std::abs(other);
}

// What differs of one tensor: the numbers that say so; nothing: the same.
struct Difference {
    std::string what;
    double ours = 0;
    double other = 0;
};

std::optional<Difference> difference_of(const std::vector<double>& ours, const std::vector<double>& other) {
    if (ours.size() != other.size())
        return Difference{"number of elements", static_cast<double>(ours.size()),
                          static_cast<double>(other.size())};
    for (std::size_t i = 0; i < ours.size(); ++i)
        if (!is_close(ours[i], other[i])) return Difference{base::format("element {}", i), ours[i], other[i]};
    return std::nullopt;
}

std::optional<Difference> difference_of(const model::Statistics& ours, const model::Statistics& other) {
    const std::array<std::tuple<const char*, double, double>, 9> numbers = {{
        {"number of elements", static_cast<double>(ours.count), static_cast<double>(other.count)},
        {"number of NaN", static_cast<double>(ours.nan), static_cast<double>(other.nan)},
        {"number of infinities", static_cast<double>(ours.infinite()), static_cast<double>(other.infinite())},
        {"number of zeros", static_cast<double>(ours.zero), static_cast<double>(other.zero)},
        {"l2 norm", ours.l2, other.l2},
        {"standard deviation", ours.std, other.std},
        {"minimum", ours.min, other.min},
        {"maximum", ours.max, other.max},
        {"l1 norm", ours.l1, other.l1},
    }};
    for (const auto& [what, a, b] : numbers)
        if (!is_close(a, b)) return Difference{what, a, b};
    // Sums of numbers of both signs: as exact as the numbers are, not as the sum is.
    if (!is_close(ours.mean, other.mean) &&
        std::abs(ours.mean - other.mean) > kAbsolute + kRelative * std::abs(other.std))
        return Difference{"mean", ours.mean, other.mean};
    return std::nullopt;
}

// Another run, read as far as this one has come.
class OtherRun {
  public:
    explicit OtherRun(std::string name) : name_(std::move(name)) {}

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::uint64_t shared_steps() const noexcept { return shared_steps_; }
    void count_step() noexcept { ++shared_steps_; }

    // The step of that worker; null: the run does not have it. Valid until the next call.
    [[nodiscard]] base::Result<const model::StepRecord*> find(const model::StepView& step) {
        if (source_ == nullptr) {
            TRAINDBG_ASSIGN_OR_RETURN(source_, open_other_run(name_));
        }
        const model::Mode mode = step.mode();
        std::map<model::StepIndex, model::StepRecord>& ahead = ahead_[mode];
        ahead.erase(ahead.begin(), ahead.lower_bound(step.step()));
        if (const auto known = ahead.find(step.step()); known != ahead.end()) return &known->second;
        const auto farthest = farthest_.find(mode);
        if (farthest != farthest_.end() && farthest->second >= step.step())
            return static_cast<const model::StepRecord*>(nullptr);
        while (!source_->ended()) {
            TRAINDBG_ASSIGN_OR_RETURN(const std::optional<model::StepView> view,
                                      source_->next(std::chrono::nanoseconds(0)));
            if (!view || view->worker != step.worker) continue;
            learn_names(*view);
            farthest_[view->mode()] = view->step();
            if (view->mode() == mode && view->step() == step.step()) return view->record;
            if (view->mode() == mode && view->step() < step.step()) continue;
            std::map<model::StepIndex, model::StepRecord>& kept = ahead_[view->mode()];
            kept[view->step()] = *view->record;
            if (kept.size() > kMostAhead) kept.erase(kept.begin());
            if (view->mode() == mode) break;
        }
        return static_cast<const model::StepRecord*>(nullptr);
    }

    // Its tensor of our name, or of the original's.
    [[nodiscard]] std::optional<model::TensorId> tensor_of(const model::TensorInfo& info,
                                                           const std::string& root) const {
        for (const std::string& name : {info.name, original_name(info, root)})
            for (const auto* names : {&ids_, &original_ids_})
                if (const auto found = names->find(name); found != names->end()) return found->second;
        return std::nullopt;
    }

  private:
    void learn_names(const model::StepView& view) {
        for (; named_ < view.tensors->size(); ++named_) {
            const model::TensorInfo& info = (*view.tensors)[named_];
            if (info.name.empty()) continue;
            ids_.emplace(info.name, static_cast<model::TensorId>(named_));
            original_ids_.emplace(original_name(info, view.meta->model_type),
                                  static_cast<model::TensorId>(named_));
        }
    }

    std::string name_;
    std::unique_ptr<model::StepSource> source_;
    std::uint64_t shared_steps_ = 0;
    std::map<model::Mode, std::map<model::StepIndex, model::StepRecord>> ahead_;
    std::map<model::Mode, model::StepIndex> farthest_;
    std::unordered_map<std::string, model::TensorId> ids_;
    std::unordered_map<std::string, model::TensorId> original_ids_;
    std::size_t named_ = 0;  // of its table
};

template <typename Sample>
const Sample* sample_of(const std::vector<Sample>& samples, model::TensorId tensor) {
    const auto found = std::find_if(samples.begin(), samples.end(),
                                    [&](const Sample& sample) { return sample.tensor == tensor; });
    return found == samples.end() ? nullptr : &*found;
}

class SimilarAcrossRuns final : public CompatibleRule {
  public:
    explicit SimilarAcrossRuns(const Parameters& parameters)
        : CompatibleRule("`other_trials` names no run to compare with"), selection_(parameters) {
        for (const std::string& name : parameters.texts("other_trials")) others_.emplace_back(name);
    }

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        std::string first;  // what is told of the first of them
        for (OtherRun& other : others_) {
            const auto record = other.find(step);
            if (!record.is_ok()) {
                failure_ = base::format("`other_trials`: {}", record.status().message());
                return;
            }
            if (*record == nullptr) continue;
            const bool is_shared = compare(step, **record, other, met, first);
            if (is_shared) other.count_step();
            any = any || is_shared;
        }
        tell_why_not();
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message = base::format("{} at step {}; {} tensor{} not the same.", first, step.step(),
                                       met.size(), met.size() == 1 ? " is" : "s are");
        finding.fix = kCompatibleSimilarAcrossRuns.fix;
        finding.evidence.push_back({"difference", met.front().value, "", 0});
        fire(sink, std::move(finding));
    }

    [[nodiscard]] std::string failure() const override { return failure_; }

  private:
    // Whether there was anything to compare.
    bool compare(const model::StepView& step, const model::StepRecord& record, const OtherRun& other,
                 std::vector<Place>& met, std::string& first) {
        bool any = false;
        const auto take = [&](model::TensorId tensor, const std::optional<Difference>& difference) {
            any = looked(tensor);
            if (!difference) return;
            if (met.empty())
                first = base::format("{} differs from {}: its {} is {:.6g} and there {:.6g}",
                                     step.info(tensor).name, base::printable(other.name()), difference->what,
                                     difference->ours, difference->other);
            if (std::none_of(met.begin(), met.end(),
                             [&](const Place& place) { return place.tensor == tensor; }))
                met.push_back({tensor, difference->ours - difference->other});
        };
        const auto counterpart = [&](model::TensorId tensor) -> std::optional<model::TensorId> {
            if (!selection_.includes(step, tensor)) return std::nullopt;
            return other.tensor_of(step.info(tensor), step.meta->model_type);
        };
        for (const model::ScalarSample& scalar : step.record->scalars)
            if (const auto id = counterpart(scalar.tensor))
                if (const auto* there = sample_of(record.scalars, *id))
                    take(scalar.tensor, difference_of(std::vector{scalar.value}, std::vector{there->value}));
        std::vector<model::TensorId> whole;
        for (const model::RawTensor& raw : step.record->raw) {
            const auto id = counterpart(raw.tensor);
            const model::RawTensor* const there = id ? raw_of(record, *id) : nullptr;
            if (there == nullptr) continue;
            const auto ours = values_of(raw);
            const auto theirs = values_of(*there);
            if (!ours || !theirs) continue;
            whole.push_back(raw.tensor);
            take(raw.tensor, difference_of(*ours, *theirs));
        }
        // By id, so that a step of thousands of tensors is no square.
        std::unordered_map<model::TensorId, const model::TensorSample*> samples;
        if (!step.record->tensors.empty())
            for (const model::TensorSample& sample : record.tensors) samples[sample.tensor] = &sample;
        for (const model::TensorSample& sample : step.record->tensors) {
            if (std::find(whole.begin(), whole.end(), sample.tensor) != whole.end()) continue;
            const auto id = counterpart(sample.tensor);
            const auto there = id ? samples.find(*id) : samples.end();
            if (there != samples.end())
                take(sample.tensor, difference_of(sample.statistics, there->second->statistics));
        }
        return any;
    }

    void tell_why_not() {
        for (const OtherRun& other : others_)
            if (other.shared_steps() == 0)
                return why_not(base::format("{} has no step with a tensor that this run has, too",
                                            base::printable(other.name())));
    }

    Selection selection_;
    std::vector<OtherRun> others_;
    std::string failure_;
};

std::vector<model::Requirement> compatible_similar_across_runs_needs(const Parameters& parameters) {
    return selection_requirements(parameters, kCompatibleSimilarAcrossRuns.name, model::What::kStatistics);
}

}  // namespace

RuleEntry similar_across_runs() {
    return {
        &kCompatibleSimilarAcrossRuns, &compatible_similar_across_runs_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<SimilarAcrossRuns>(p); },
        true};
}

}  // namespace traindbg::rules::compatible
