#include "traindbg/rules/input_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {

std::vector<model::Requirement> input_order_requirements(std::string_view rule) {
    std::vector<model::Requirement> all = loss_requirements(rule);
    all.push_back({"inputs",
                   model::Mode::kTrain,
                   model::What::kChannels,
                   {.every = 0, .dense_until = 20},  // only such as follow each other
                   std::string(rule)});
    all.push_back(loop_requirement(rule));
    return all;
}

void InputOrder::observe(const model::StepView& step) {
    // Of another training in the same process the steps are not counted from its beginning.
    is_off_ = is_off_ || loop_fact(step, "trainings").has_value();
    if (is_off_) return;
    if (per_pass_ == 0) {
        const std::optional<LoopFact> loader = loop_fact(step, "batches_in_loader");
        const std::optional<LoopFact> storage = loop_fact(step, "batches_in_storage");
        if (!loader || !storage) return;
        const double batches = std::ceil(loader->value > 0 ? loader->value : storage->value);
        is_off_ = step.step() > 0 || !(batches >= static_cast<double>(kFewestOfPass)) || batches > 1e9;
        if (is_off_) return;
        per_pass_ = static_cast<std::uint64_t>(batches);
    }
    look_at_columns(step);
    if (loss_.observe(step)) add_loss(loss_.recent().values().back(), step.step());
}

void InputOrder::look_at_columns(const model::StepView& step) {
    if (step.record->channels.empty() || step.step() >= per_pass_) return;
    for (const model::TensorInfo& info : *step.tensors) {
        // A state that goes on from batch to batch wants their order, and is empty where it begins.
        is_off_ = is_off_ || info.module_type.starts_with("LSTM") || info.module_type.starts_with("GRU") ||
                  info.module_type.starts_with("RNN");
    }
    if (is_off_) return;
    for (const model::ChannelSample& sample : step.record->channels) {
        const model::TensorInfo& info = step.info(sample.tensor);
        const bool is_table = info.role == model::Role::kInput && info.shape.size() == 2;
        if (!is_table || info.shape[0] < kFewestRows || sample.channels.channels() == 0) continue;
        Table& table = tables_[sample.tensor];
        if (table.batches == 0) table.name = info.name;
        table.is_over = table.is_over || step.step() != table.next_step ||
                        (table.batches > 0 && sample.channels.channels() != table.first.channels());
        table.next_step = step.step() + 1;
        if (!table.is_over) add(table, sample.channels);
    }
}

void InputOrder::add(Table& table, const model::ChannelStatistics& channels) {
    const std::size_t count = channels.channels();
    if (table.batches == 0) {
        table.first = channels;
        table.spread.assign(count, 0);
        table.rises.assign(count, true);
        table.falls.assign(count, true);
    }
    for (std::size_t i = 0; i < count; ++i) {
        table.spread[i] += static_cast<double>(channels.max[i]) - static_cast<double>(channels.min[i]);
        if (table.batches == 0) continue;
        const double way = middle(channels, i) - middle(table.last, i);
        table.rises[i] = table.rises[i] && way > 0;
        table.falls[i] = table.falls[i] && way < 0;
    }
    table.last = channels;
    ++table.batches;
}

double InputOrder::middle(const model::ChannelStatistics& of, std::size_t column) {
    return (static_cast<double>(of.min[column]) + static_cast<double>(of.max[column])) / 2;
}

void InputOrder::add_loss(double loss, model::StepIndex step) {
    const std::uint64_t place = step % per_pass_;
    if (place == 0) pass_ = {};
    const bool is_head = static_cast<double>(place) < std::max(kHead * static_cast<double>(per_pass_), 1.0);
    (is_head ? pass_.head : pass_.rest) += loss;
    ++(is_head ? pass_.heads : pass_.rests);
    if (place + 1 == per_pass_) close();
}

void InputOrder::close() {
    const Pass pass = std::exchange(pass_, {});
    if (pass.heads + pass.rests != per_pass_) return;
    last_pass_ = {pass.head / static_cast<double>(pass.heads), pass.rest / static_cast<double>(pass.rests), 1,
                  1};
    const bool is_first = closed_++ == 0;  // it begins with what was never learned
    const bool shows = !is_first && last_pass_.rest > 0 && last_pass_.head > kForgotten * last_pass_.rest;
    shown_ = shows ? shown_ + 1 : 0;
}

std::optional<InputOrder::Found> InputOrder::in_order(const Table& table) {
    if (table.batches < kFewestBatches) return std::nullopt;
    for (std::size_t i = 0; i < table.spread.size(); ++i) {
        if (!table.rises[i] && !table.falls[i]) continue;
        const double first = middle(table.first, i), last = middle(table.last, i);
        const double spread = table.spread[i] / static_cast<double>(table.batches);
        if (!(std::abs(last - first) > kWay * spread)) continue;
        return Found{.input = table.name,
                     .column = i,
                     .first = first,
                     .last = last,
                     .spread = spread,
                     .batches = table.batches};
    }
    return std::nullopt;
}

std::optional<InputOrder::Found> InputOrder::take() {
    if (is_off_ || shown_ < kFewestPasses) return std::nullopt;
    for (const auto& [id, table] : tables_) {
        std::optional<Found> found = in_order(table);
        if (!found) continue;
        found->head = last_pass_.head;
        found->rest = last_pass_.rest;
        found->passes = shown_;
        is_off_ = true;
        return found;
    }
    return std::nullopt;
}

}  // namespace traindbg::rules
