// Ranks, or workers of a loader, that are to go through different parts of the data go through the same.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/ranks.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kDuplicateShards = {
    .name = "duplicate_shards",
    .title = "Ranks or workers that see the same data",
    .summary =
        "Ranks that hold the same model are given the same batches, or each worker of a DataLoader goes "
        "through all of the data.",
    .when =
        "In each of `steps` training steps in a row the model's inputs of two ranks have one fingerprint, "
        "bit for bit, in inputs of at least 8 numbers, while the weights of all ranks are the same (error). "
        "Or, of a rank, the inputs of W steps in a row have one fingerprint, `steps` times in a row, and W "
        "processes of a DataLoader read one IterableDataset (warning).",
    .why =
        "The mean of equal gradients is that gradient: N ranks compute what one would, the batch is N times "
        "smaller than the learning rate was chosen for, and one epoch takes N times as long. Where each "
        "worker of a loader goes through the whole stream, an epoch holds each sample W times, in steps that "
        "follow each other.",
    .fix =
        "Give each rank its part: DataLoader(dataset, sampler=DistributedSampler(dataset)), with "
        "sampler.set_epoch(epoch) in each epoch; by hand, data[rank::world_size]. Where batches are drawn by "
        "chance, seed with the rank added. In an IterableDataset, ask torch.utils.data.get_worker_info() "
        "which of how many workers this is.",
    .healthy =
        "Ranks that hold different weights (tensor parallel, pipelines, ensembles), or parts of them, as far "
        "as they are recorded as such; a few equal batches at the end of an epoch; several steps on one "
        "batch on purpose.",
    .cost =
        "None of its own: fingerprints of the model's inputs at the steps at which repeated_batch needs "
        "them, statistics of weights at those of replica_divergence, and a fact that hooks know.",
    .original = "",
    .source = "PyTorch documentation, torch.utils.data.IterableDataset: duplicates of several workers",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "steps in a row with one fingerprint on two ranks"}},
};

class DuplicateShards final : public Rule {
  public:
    explicit DuplicateShards(const Parameters& parameters)
        : steps_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        for (const model::DigestSample& sample : step.record->digests) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kInput) continue;
            std::int64_t values = 1;
            for (const std::int64_t size : info.shape) values *= size;
            is_large_ = is_large_ || values >= kFewestValues;
            if (tensor_.empty()) tensor_ = info.name;
        }
        look_at_workers(step, sink);
        const Ranks::Together* together = ranks_.observe(step);
        if (together == nullptr || ranks_.has_parts()) return;
        look_at_weights(*together);
        std::map<std::uint64_t, model::WorkerId> seen;
        std::optional<std::pair<model::WorkerId, model::WorkerId>> same;
        for (const auto& [worker, rank] : *together) {
            if (rank.inputs == 0) return;
            const auto [place, is_new] = seen.try_emplace(rank.inputs, worker);
            if (!is_new && !same) same = {place->second, worker};
        }
        ++judged_;
        if (!same || !is_large_) {
            if (!is_firing_) in_a_row_ = 0;
            else if (++others_ >= steps_) {
                sink.clear(kKey);
                is_firing_ = false;
                in_a_row_ = 0;
            }
            return;
        }
        others_ = 0;
        if (in_a_row_++ == 0) first_ = step.step();
        if (in_a_row_ < steps_ || !were_alike_ || were_apart_) return;
        is_firing_ = true;
        fire(step.step(), *same, seen.size(), sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (ranks_.has_parts()) return "each rank holds a part of the weights";
        const std::string why = ranks_.why_not();
        return why.empty() ? "no input of the model was seen"
                           : why + ", and no workers of a loader read one IterableDataset";
    }

  private:
    static constexpr const char* kKey = "inputs";
    static constexpr const char* kWorkers = "workers";
    static constexpr std::int64_t kFewestValues = 8;  // fewer may be the same by chance

    // Ranks that hold the same weights are to see different data; others may be parts of one model.
    // Where a rank lacks a weight that may be for this step alone, and the next look tells.
    void look_at_weights(const Ranks::Together& together) {
        if (!have_same_names(together)) return;
        for (const auto& weight : together.begin()->second.weights) {
            const bool are_alike = std::all_of(together.begin(), together.end(), [&](const auto& rank) {
                const auto copy = rank.second.weights.find(weight.first);
                return copy != rank.second.weights.end() && copy->second.shape == weight.second.shape &&
                       distance_between(copy->second.statistics, weight.second.statistics) <= kEqualWithin;
            });
            (are_alike ? were_alike_ : were_apart_) = true;
        }
    }

    // What one rank sees, where several processes read one stream for it. Batches of loader workers come in
    // turns: each one as often as there are workers, when all of them read the same.
    struct Stream {
        std::uint64_t workers = 0;
        std::uint64_t inputs = 0, alike = 0, turns = 0;  // alike: steps in a row with these inputs
        model::StepIndex last = 0, first = 0;
        bool is_told = false;
    };
    void look_at_workers(const model::StepView& step, FindingSink& sink) {
        if (step.mode() != model::Mode::kTrain) return;
        Stream& stream = streams_[step.worker];
        if (const auto told = loop_fact(step, "stream_workers"))
            stream.workers = static_cast<std::uint64_t>(told->value);
        std::uint64_t inputs = 0;
        for (const model::DigestSample& sample : step.record->digests)
            if (step.info(sample.tensor).role == model::Role::kInput)
                inputs = (inputs ^ sample.digest.fingerprint) * 0x9E3779B97F4A7C15ULL;
        if (inputs == 0 || stream.workers < 2 || !is_large_) return;
        ++judged_;
        const bool is_next = stream.alike > 0 && step.step() == stream.last + 1;
        stream.last = step.step();
        if (is_next && inputs == stream.inputs) {
            ++stream.alike;
        } else {
            if (!is_next || stream.alike != stream.workers) stream.turns = 0;
            if (stream.turns == 0) stream.first = step.step();
            stream.inputs = inputs;
            stream.alike = 1;
        }
        if (stream.alike == stream.workers && ++stream.turns >= steps_ && !stream.is_told) {
            stream.is_told = true;
            fire_workers(step, stream, sink);
        }
    }

    void fire_workers(const model::StepView& step, const Stream& stream, FindingSink& sink) const {
        model::Finding finding;
        finding.key = kWorkers;
        finding.severity = model::Severity::kWarning;
        finding.worker = step.worker;
        finding.first_step = stream.first;
        finding.tensor = tensor_;
        finding.last_step = finding.step = step.step();
        finding.message = base::format(
            "Each batch comes {} times in a row, from step {} on: {} processes of a DataLoader read one "
            "IterableDataset, and each of them goes through all of it.",
            stream.workers, stream.first, stream.workers);
        finding.evidence.push_back({"times that a batch comes in a row", static_cast<double>(stream.workers),
                                    "workers", static_cast<double>(stream.workers)});
        finding.fix =
            "In __iter__ of the dataset: info = torch.utils.data.get_worker_info(), and where it is not None "
            "yield only itertools.islice(samples, info.id, None, info.num_workers).";
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    void fire(model::StepIndex now, std::pair<model::WorkerId, model::WorkerId> same, std::size_t different,
              FindingSink& sink) {
        model::Finding finding;
        finding.key = kKey;
        finding.severity = model::Severity::kError;
        finding.worker = same.second;
        finding.first_step = first_;
        finding.last_step = finding.step = now;
        finding.tensor = tensor_;
        finding.message = base::format(
            "Rank {} is given the same batches as rank {}, bit for bit, in each of {} captured steps from "
            "step {} to {}: of {} ranks, {} see{} data of their own.",
            same.second, same.first, in_a_row_, first_, now, ranks_.world(), different,
            different == 1 ? "s" : "");
        finding.evidence.push_back({"captured steps with the same inputs", static_cast<double>(in_a_row_),
                                    "limit", static_cast<double>(steps_)});
        finding.evidence.push_back({"ranks with inputs of their own", static_cast<double>(different), "ranks",
                                    static_cast<double>(ranks_.world())});
        finding.fix =
            "DataLoader(dataset, sampler=torch.utils.data.DistributedSampler(dataset)) instead of "
            "shuffle=True, and sampler.set_epoch(epoch) in each epoch. By hand: dataset[rank::world_size]; "
            "where batches are drawn by chance, torch.manual_seed(seed + rank) after the model is made.";
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    std::uint64_t steps_;
    Ranks ranks_{false};
    std::uint64_t judged_ = 0, in_a_row_ = 0, others_ = 0;
    std::map<model::WorkerId, Stream> streams_;
    bool were_alike_ = false, were_apart_ = false, is_large_ = false, is_firing_ = false;
    model::StepIndex first_ = 0;
    std::string tensor_;
};

std::vector<model::Requirement> duplicate_shards_needs(const Parameters&) {
    using enum model::Mode;
    return {
        {"weights", kTrain, model::What::kStatistics, {.every = 50, .dense_until = 3}, kDuplicateShards.name},
        {"inputs", kTrain, model::What::kDigest, {.every = 50, .dense_until = 100}, kDuplicateShards.name},
        loop_requirement(kDuplicateShards.name)};  // how many workers read one stream
}

}  // namespace

RuleEntry builtin::duplicate_shards() {
    return {.info = &kDuplicateShards,
            .needs = &duplicate_shards_needs,
            .make = [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<DuplicateShards>(p);
            },
            .sees_all_workers = true};
}

}  // namespace traindbg::rules
