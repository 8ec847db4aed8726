// Inputs that come in the order of one of their columns, in every pass over the data, and a model that
// forgets the other end of that order by the time it comes there again.
//
// Both have to show. A column alone may be a time that is meant to go on; losses alone may begin anew where
// something else does. Together they say that shuffling may help: each pass begins with batches whose loss
// is far above that of all others. Their rows may also be harder in themselves, which it does not tell.
//
// Thread-safety: one thread. Cost: linear in the columns of the first 20 batches, then one number a step.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/channel_statistics.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {

[[nodiscard]] std::vector<model::Requirement> input_order_requirements(std::string_view rule);

class InputOrder {
  public:
    struct Found {
        std::string input;
        std::size_t column = 0;
        double first = 0, last = 0;  // middle of the column's values, in the first batch and the last
        double spread = 0;           // of the values of a batch: from the least to the greatest
        std::uint64_t batches = 0;
        double head = 0, rest = 0;  // mean loss of the first batches of the last pass, and of the others
        std::uint64_t passes = 0;
    };

    // Takes a TRAIN step.
    void observe(const model::StepView& step);
    // What was found up to now, told once.
    [[nodiscard]] std::optional<Found> take();

  private:
    struct Table {
        std::string name;
        model::ChannelStatistics first, last;
        std::vector<double> spread;
        std::vector<bool> rises, falls;
        std::uint64_t batches = 0;
        model::StepIndex next_step = 0;
        bool is_over = false;
    };
    // Losses of the pass under way.
    struct Pass {
        double head = 0, rest = 0;
        std::uint64_t heads = 0, rests = 0;
    };

    void look_at_columns(const model::StepView& step);
    static void add(Table& table, const model::ChannelStatistics& channels);
    void add_loss(double loss, model::StepIndex step);
    void close();
    [[nodiscard]] static std::optional<Found> in_order(const Table& table);
    [[nodiscard]] static double middle(const model::ChannelStatistics& of, std::size_t column);

    static constexpr std::uint64_t kFewestBatches = 8;    // that show a column's way
    static constexpr std::uint64_t kFewestOfPass = 10;    // batches
    static constexpr std::int64_t kFewestRows = 8;        // of a batch
    static constexpr double kWay = 2;                     // spreads of a batch
    static constexpr double kHead = 0.1, kForgotten = 2;  // of a pass; times the loss of the others
    static constexpr std::uint64_t kFewestPasses = 3;     // in a row that show it, behind the first

    TrainingLoss loss_;
    std::map<model::TensorId, Table> tables_;
    std::uint64_t per_pass_ = 0;  // batches
    Pass pass_;
    Pass last_pass_;
    std::uint64_t shown_ = 0, closed_ = 0;  // passes
    bool is_off_ = false;                   // nothing can be told, or all was
};

}  // namespace traindbg::rules
