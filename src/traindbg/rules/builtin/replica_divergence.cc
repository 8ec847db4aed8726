// The ranks of a data-parallel training hold different weights.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/ranks.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kReplicaDivergence = {
    .name = "replica_divergence",
    .title = "Ranks that drift apart",
    .summary = "The ranks train one model together, and their copies of its weights are not the same.",
    .when =
        "Weights differ between ranks that see different batches, at `steps` looked-at steps in a row, "
        "though these seem to be meant as copies of one model.\n"
        "- Different weights: the statistics of a weight differ between ranks by more than 1e-6 of its "
        "size.\n"
        "- Copies, by their gradients (error): the gradients of these weights are the same on all ranks.\n"
        "- Copies, by other weights (error): other weights that change are the same on all ranks, while "
        "each rank is seen to have batches of its own.\n"
        "- Copies, by the wrapper (error): the model is wrapped in DistributedDataParallel.\n"
        "- Copies, reduced in vain (error): between backward() and the optimizer's step, all_reduce() is "
        "called on copies of all gradients, and the gradients themselves stay as they are.\n"
        "- Copies, reduced too late (error): all_reduce() is called on the gradients themselves once the "
        "step is over, and still so at step 50 or later.\n"
        "- Never averaged (warning): gradients were recorded, and no gradient and no weight is the same. "
        "As this may be a training that averages its weights now and then, the weights must have begun "
        "differently and still differ at step 50, or drift further apart from step 50 to step 100 without "
        "ever meeting.",
    .why =
        "What is trained is not one model but several that disturb each other: gradients of one copy are "
        "applied to another. Only one of them is saved and evaluated, and the loss of rank 0 does not show "
        "it.",
    .fix =
        "Wrap the model in DistributedDataParallel and call the wrapper, not model.module: it copies rank "
        "0's weights at the start and averages gradients in each backward pass. By hand: dist.broadcast all "
        "parameters and buffers once from rank 0, and dist.all_reduce every gradient before each step.",
    .healthy =
        "Ranks that hold parts of a model (tensor parallel, known by ranks that share their batches; "
        "pipelines, where only some ranks have a loss; experts: names with \"expert\" are left out), that "
        "train different models or with different settings; local SGD, whose ranks meet; one process.",
    .cost =
        "None of its own: statistics of weights and gradients, losses and fingerprints of inputs that other "
        "rules need, at the first steps and at every 50th.",
    .original = "",
    .source = "BLOOM's diary (deepspeed-1801): replicas out of sync; TrainCheck (OSDI'25)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 2, 1, 1000, "looked-at steps in a row with different weights"}},
};

class ReplicaDivergence final : public Rule {
  public:
    explicit ReplicaDivergence(const Parameters& parameters)
        : steps_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (const std::optional<LoopFact> reduced = loop_fact(step, "reduced_in_vain")) {
            reduced_looks_ = reduced->value > 0 ? reduced_looks_ + 1 : 0;
            is_too_late_ = false;
        } else if (const std::optional<LoopFact> late = loop_fact(step, "reduced_after_step")) {
            ++reduced_looks_;
            is_too_late_ = true;
            reduced_at_ = step.step();
        } else if (is_too_late_ && loop_fact(step, "backward_passes")) {
            reduced_looks_ = 0;
        }
        const Ranks::Together* together = ranks_.observe(step);
        if (together == nullptr || !are_alike_models_) return;
        const bool have_all = std::none_of(together->begin(), together->end(),
                                           [](const auto& rank) { return rank.second.weights.empty(); });
        were_recorded_ = were_recorded_ || have_all;
        if (!have_all || !have_same_names(*together)) {
            look_at_inputs(*together, false);
            return;
        }
        if (!have_same_shapes(*together)) {
            are_alike_models_ = false;
            in_a_row_ = 0;  // nothing is left to say at the end
            key_.clear();
            return;
        }
        compare(*together);
        look_at_inputs(*together, !apart_.empty());
        look_at_losses(*together);
        ++judged_;
        if (apart_.empty()) {
            meet(sink);
            return;
        }
        if (in_a_row_++ == 0) {
            first_ = step.step();
            looks_ = {};
        }
        looks_.add({step.step(), distance_});
        judge(step.step(), false, sink);
    }
    void on_end(FindingSink& sink) override {
        if (in_a_row_ > 0) judge(looks_.last().step, true, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (were_recorded_) return "the ranks do not hold the same weights by name and shape";
        if (ranks_.has_parts()) return "each rank holds a part of the weights";
        const std::string why = ranks_.why_not();
        return why.empty() ? "no weight was recorded by all ranks" : why;
    }

  private:
    static constexpr model::StepIndex kLate = 40;
    struct Look {
        model::StepIndex step;
        double distance;
    };
    // Those at which the ranks were apart, as far as they count: the first and the last, early and late.
    struct Looks {
        std::optional<Look> first_early, last_early, first_late, last_late;

        void add(const Look& look) {
            auto& first = look.step < kLate ? first_early : first_late;
            (look.step < kLate ? last_early : last_late) = look;
            if (!first) first = look;
        }
        [[nodiscard]] const Look& last() const { return last_late ? *last_late : *last_early; }
    };

    // Whether ranks were given inputs of their own. Those that hold different weights and are given the same
    // ones hold parts of one model.
    void look_at_inputs(const Ranks::Together& together, bool are_apart) {
        std::map<std::uint64_t, const RankStep*> seen;
        bool share = false;
        for (const auto& [worker, rank] : together) {
            if (rank.inputs == 0) return;
            const auto [place, is_new] = seen.try_emplace(rank.inputs, &rank);
            if (is_new || !are_apart) continue;
            const RankStep& other = *place->second;
            for (const std::string& name : apart_)
                share = share || !are_alike(rank.weights.at(name), other.weights.at(name));
        }
        if (share) ++parts_;
        else if (are_apart || seen.size() == together.size()) ++own_inputs_;
    }

    // Of the stages of a pipeline the last one has the loss.
    void look_at_losses(const Ranks::Together& together) {
        const auto with = std::count_if(together.begin(), together.end(),
                                        [](const auto& rank) { return rank.second.has_loss; });
        are_stages_ = with > 0 && with < static_cast<std::ptrdiff_t>(together.size());
    }

    static bool are_alike(const RankStep::Tensor& a, const RankStep::Tensor& b) {
        return distance_between(a.statistics, b.statistics) <= kEqualWithin;
    }

    static bool have_same_shapes(const Ranks::Together& together) {
        const auto& first = together.begin()->second.weights;
        return std::all_of(together.begin(), together.end(), [&](const auto& rank) {
            return std::all_of(first.begin(), first.end(), [&](const auto& weight) {
                return is_of_expert(weight.first) ||
                       rank.second.weights.at(weight.first).shape == weight.second.shape;
            });
        });
    }

    // Which weights are not the same, and on which rank: the first that is not like most.
    void compare(const Ranks::Together& together) {
        apart_.clear();
        distance_ = 0;
        are_some_same_ = false;
        const RankStep& first = together.begin()->second;
        weights_ = first.weights.size();
        for (const auto& [name, tensor] : first.weights) {
            if (is_of_expert(name)) continue;
            Copies copies;
            for (const auto& [worker, rank] : together) copies.emplace_back(worker, &rank.weights.at(name));
            const auto odd = odd_one(copies);
            if (odd) {
                if (apart_.empty()) {
                    worker_ = *odd;
                    norms_.clear();
                    for (const auto& [worker, copy] : copies)
                        norms_.emplace_back(worker, copy->statistics.l2);
                }
                apart_.emplace_back(name);
            } else if (const auto began = began_.find(name); began == began_.end()) {
                began_.emplace(name, tensor.statistics);
            } else if (distance_between(began->second, tensor.statistics) > kEqualWithin) {
                are_some_same_ = true;  // it changed, and on all ranks likewise
            }
        }
        look_at_gradients(together);
    }

    // Whether the weights that are apart were given the same gradients.
    void look_at_gradients(const Ranks::Together& together) {
        std::uint64_t same = 0, other = 0;
        const auto& of_first = together.begin()->second.gradients;
        for (const std::string& name : apart_) {
            const auto gradient = of_first.find("gradient" + name.substr(name.find('/')));
            if (gradient == of_first.end() || gradient->second.statistics.l2 == 0) continue;
            std::size_t told = 0, alike = 0;
            for (const auto& [worker, rank] : together) {
                const auto copy = rank.gradients.find(gradient->first);
                if (copy == rank.gradients.end()) continue;
                ++told;
                if (are_alike(copy->second, gradient->second)) ++alike;
            }
            if (told == together.size()) (alike == told ? same : other) += 1;
        }
        are_gradients_same_ = same > 0 && other == 0;
        are_gradients_other_ = other > 0;
    }

    // The first rank whose copy is not like that of most; nothing where all are alike.
    using Copies = std::vector<std::pair<model::WorkerId, const RankStep::Tensor*>>;
    std::optional<model::WorkerId> odd_one(const Copies& copies) {
        std::size_t most = 0;
        const RankStep::Tensor* usual = nullptr;
        for (const auto& one : copies) {
            const auto like =
                static_cast<std::size_t>(std::count_if(copies.begin(), copies.end(), [&](const auto& each) {
                    return are_alike(*each.second, *one.second);
                }));
            if (like <= most) continue;
            most = like;
            usual = one.second;
            if (2 * most >= copies.size()) break;  // no other can be like more
        }
        std::optional<model::WorkerId> odd;
        for (const auto& [worker, copy] : copies) {
            if (are_alike(*copy, *usual)) continue;
            distance_ = std::max(distance_, distance_between(copy->statistics, usual->statistics));
            if (!odd) odd = worker;
        }
        return odd;
    }

    // They are the same, after they were not: weights that are averaged now and then.
    void meet(FindingSink& sink) {
        if (in_a_row_ == 0) return;
        have_met_ = true;
        in_a_row_ = 0;
        if (!key_.empty()) sink.clear(key_);
        key_.clear();
    }

    void judge(model::StepIndex now, bool is_end, FindingSink& sink) {
        // A batch may be the same on two ranks by chance, or padded; parts of a model always share theirs.
        if (!ranks_.are_of_one_training() || parts_ > own_inputs_) return;
        const bool is_known = ranks_.is_data_parallel() && !have_met_;
        // Parts of a model have some weights in common, too: batches of their own must show that they are
        // none.
        const bool are_copies = are_some_same_ && !have_met_ && own_inputs_ > 0 && !are_stages_;
        const bool are_tied = are_gradients_same_ || are_copies || is_known || is_reduced_in_vain();
        if (key_.empty()) {
            if (in_a_row_ < steps_) return;
            if (are_tied) key_ = "copies";
            else if (may_be_alone() && do_drift(is_end)) key_ = "never_averaged";
            else return;
        }
        is_by_reduction_ = is_by_reduction_ || is_reduced_in_vain();
        fire(now, sink);
    }

    // Whether the ranks, as far as they were looked at, have nothing in common, and each has a whole model.
    [[nodiscard]] bool may_be_alone() const {
        return !have_met_ && are_gradients_other_ && !are_some_same_ && !are_stages_;
    }

    // Of gradients that are not the same on all ranks, copies are averaged that nobody uses.
    [[nodiscard]] bool is_reduced_in_vain() const {
        // Gradients may be reduced for a log where weights are averaged, which is not at every step.
        return reduced_looks_ >= kReducedLooks && are_gradients_other_ && !have_met_ &&
               (!is_too_late_ || reduced_at_ >= kUntilMet);
    }

    // Nothing ties the copies. Those of local SGD begin alike and come back to each other.
    [[nodiscard]] bool do_drift(bool is_end) const {
        if (!looks_.first_early || !looks_.first_late) return false;  // without an early one: alike at first
        const double first = looks_.first_early->distance, late = looks_.first_late->distance;
        const double before = looks_.last_early->distance, last = looks_.last_late->distance;
        if (before < 1.3 * first && last >= 0.5 * first) return true;  // began apart
        const bool is_again = looks_.last_late->step > looks_.first_late->step;
        return (is_again || is_end) && late >= 3 * before && last >= 0.8 * late;
    }

    void fire(model::StepIndex now, FindingSink& sink) {
        model::Finding finding;
        finding.key = key_;
        finding.severity = key_ == "copies" ? model::Severity::kError : model::Severity::kWarning;
        finding.worker = worker_;
        finding.first_step = first_;
        finding.last_step = finding.step = now;
        finding.tensor = apart_.front();
        const std::size_t slash = finding.tensor.find('/');
        const std::string parameter = finding.tensor.substr(slash + 1);
        const std::size_t dot = parameter.rfind('.');
        finding.layer = dot == std::string::npos ? "" : parameter.substr(0, dot);
        finding.places = apart_.size();
        std::vector<std::string> norms;
        for (const auto& [worker, norm] : norms_)
            if (norms.size() < 4)
                norms.push_back(base::format("{} on rank {}", base::human_number(norm), worker));
        finding.message =
            base::format("{} of {} weights {} not the same on all ranks, since step {}: the norm of {} is {}",
                         apart_.size(), weights_, apart_.size() == 1 ? "is" : "are", first_, parameter,
                         base::join(norms, ", "));
        if (key_ == "never_averaged") {
            finding.message += "; gradients are not the same either: each rank trains a model of its own.";
        } else if (are_gradients_same_) {
            finding.message +=
                "; their gradients are: the copies did not begin alike, or one was changed alone.";
        } else if (are_some_same_) {
            finding.message +=
                base::format("; others are: where gradients are averaged, {} is left out.", parameter);
        } else if (is_by_reduction_ && is_too_late_) {
            finding.message +=
                "; all_reduce() is called on the gradients when the optimizer's step is over: it uses those "
                "that each rank has by itself.";
        } else if (is_by_reduction_) {
            finding.message +=
                "; all_reduce() is called on copies of the gradients, and the optimizer uses those that each "
                "rank has by itself.";
        } else {
            finding.message +=
                "; DistributedDataParallel is there, and the gradients that are used are not averaged: the "
                "model inside is called, not the wrapper, or always under no_sync().";
        }
        finding.evidence.push_back({"largest difference / size", distance_, "limit", kEqualWithin});
        finding.evidence.push_back({"looked-at steps in a row", static_cast<double>(in_a_row_), "limit",
                                    static_cast<double>(steps_)});
        finding.fix =
            are_gradients_same_ ? "Give all ranks the same weights before the first step: wrap the model in "
                                  "DistributedDataParallel after its weights are made or loaded, or for t in "
                                  "model.state_dict().values(): dist.broadcast(t, 0)."
            : ranks_.is_data_parallel() && are_some_same_
                ? base::format(
                      "Put the model into DistributedDataParallel when its last layer is in place: it "
                      "averages gradients of the parameters that it was given then, and {} was none of them.",
                      parameter)
            : is_by_reduction_ && is_too_late_
                ? "Call all_reduce() on the gradients between loss.backward() and optimizer.step()."
            : is_by_reduction_ ? "Copy what all_reduce() made back to where the optimizer looks, e.g. "
                                 "p.grad.copy_(part) for each parameter, before optimizer.step(); or reduce "
                                 "p.grad itself."
            : ranks_.is_data_parallel()
                ? "Call the wrapper (ddp_model(x)), not ddp_model.module(x), and leave no_sync() for the "
                  "last micro-batch of each step."
                : base::format(
                      "Before each optimizer.step(): for p in model.parameters(): dist.all_reduce(p.grad); "
                      "p.grad /= dist.get_world_size(), {} included; or wrap the model in "
                      "DistributedDataParallel.",
                      parameter);
        finding.plots = {{finding.tensor, "l2"}, {"loss", "value"}};
        sink.fire(std::move(finding));
    }

    std::uint64_t steps_;
    Ranks ranks_{true};
    std::uint64_t judged_ = 0, in_a_row_ = 0;
    static constexpr model::StepIndex kUntilMet = 50;
    static constexpr std::uint64_t kReducedLooks = 3;
    std::uint64_t reduced_looks_ = 0;  // in a row, of all ranks
    model::StepIndex reduced_at_ = 0;
    bool is_too_late_ = false;      // gradients are reduced, but after the step
    bool is_by_reduction_ = false;  // that is what ties the copies
    // Looks at inputs that speak for parts of a model, and against.
    std::uint64_t parts_ = 0, own_inputs_ = 0;
    bool are_alike_models_ = true, were_recorded_ = false, have_met_ = false;
    // At the last look: other weights; gradients of those that are apart; only some ranks have a loss.
    bool are_some_same_ = false, are_gradients_same_ = false, are_gradients_other_ = false,
         are_stages_ = false;
    std::map<std::string, model::Statistics, std::less<>> began_;  // of weights that were the same
    std::vector<std::string> apart_;                         // weights that are not the same at this look
    std::vector<std::pair<model::WorkerId, double>> norms_;  // of the first of them
    std::size_t weights_ = 0;
    double distance_ = 0;
    model::WorkerId worker_ = 0;  // the one that is not like most
    Looks looks_;                 // since they are apart
    model::StepIndex first_ = 0;
    std::string key_;
};

std::vector<model::Requirement> replica_divergence_needs(const Parameters&) {
    using enum model::Mode;
    constexpr auto kStatistics = model::What::kStatistics;
    return {
        {"weights", kTrain, kStatistics, {.every = 50, .dense_until = 3}, kReplicaDivergence.name},
        {"gradients", kTrain, kStatistics, {.every = 50, .dense_until = 3}, kReplicaDivergence.name},
        {"losses", kTrain, kStatistics, {.every = 50, .dense_until = 3}, kReplicaDivergence.name},
        loop_requirement(kReplicaDivergence.name),
        {"inputs", kTrain, model::What::kDigest, {.every = 50, .dense_until = 10}, kReplicaDivergence.name}};
}

}  // namespace

RuleEntry builtin::replica_divergence() {
    return {.info = &kReplicaDivergence,
            .needs = &replica_divergence_needs,
            .make = [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<ReplicaDivergence>(p);
            },
            .sees_all_workers = true};
}

}  // namespace traindbg::rules
