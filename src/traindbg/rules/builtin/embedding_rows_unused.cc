// An embedding of which only a few rows are ever looked up: numbers that were mapped wrongly.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/settings.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kEmbeddingRowsUnused = {
    .name = "embedding_rows_unused",
    .title = "Embedding rows unused",
    .summary = "Nearly all rows of an embedding never get a gradient: its numbers all fall on a few rows.",
    .when =
        "Only few rows of an embedding ever get a gradient, or the rows are numbered anew in each batch.\n"
        "- Few rows (warning): at `looks` captured steps or more, the rows whose gradient was not all 0 are "
        "together at most `share` of a table of `rows` rows or more. None was new in the later half of the "
        "steps.\n"
        "- One row (warning): likewise, where one row alone is in use in a table of 16 rows or more, and "
        "each sample looks up one row. In a table below `rows` rows, a note (info) in a training that has "
        "learned.\n"
        "- One row, the first, at the end of the run (warning): such a note becomes a warning where the "
        "training has "
        "not come far and no other came before it: its first losses are those of a constant answer, or its "
        "weights began as an initialiser drew them.\n"
        "- One row, the first, of a table of kinds (info): likewise of 5 to 15 rows of which samples "
        "look up any number, as of kinds of words, where no training came before. It stays a note: more "
        "kinds may be planned, and noisy data is not learned far either.\n"
        "- First rows: where the rows in use are the first ones, all of them at every step, they count only "
        "if they are looked up in no order, which is never so for positions.\n"
        "- First rows, early or learned (info): a note in the first 100 steps and in a training that has "
        "learned, because there may be no more rows to use. At the end of the run a warning if it has not "
        "come far.\n"
        "- Large table (info): tables of more than 20,000 rows or with more than 200 rows in use, as large "
        "vocabularies and small data have.\n"
        "- Scattered (info): 20 rows or more lie over four fifths of the table or more, with gaps that "
        "differ as a hash makes them, in the first 100 steps or in a training that has learned.\n"
        "- Cast (warning): the rows in use are the first 128, 256, 32,768 or 65,536 and all of them, as a "
        "cast to 8 or 16 bits leaves, in a table with at least twice as many. `share` does not matter here.\n"
        "- Fields without offsets (warning): each sample looks up two numbers or more, in no order. Counted "
        "from 0, the greatest numbers of these columns give as many rows together as the table has, within 2 "
        "%. The widest column has twice as many as the narrowest or more, and at most four fifths of the "
        "table; no row beyond it is ever used.\n"
        "- Numbered anew (warning): each sample looks up one row, in no order, and the rows in use at every "
        "look are the first ones, all of them. How many they are goes up and down.\n"
        "- Rows numbered anew must also be beyond chance. The rows of a look include those of every look "
        "with fewer rows. If each row came by itself, the chance of that would have to be less than one in a "
        "million.\n"
        "- Numbered anew, early or learned (info): a note up to step 300 and where the training learns much.",
    .why =
        "What should have a row of its own shares one with others, so that the model cannot tell them apart. "
        "The loss falls all the same, part of the way.",
    .fix =
        "Check how numbers are mapped to rows: a clamp, a modulo, an offset, a cast; make the table as large "
        "as there are values. Make the numbers once, of all data, and not in the collate function.",
    .healthy =
        "A table that is far larger than what is hashed into it; rows that come up one by one, as rare words "
        "do; positions, which are the first rows, all of them at every step, in order; classes that are "
        "added as a training goes on; numbers that are made anew for each episode, as in few-shot learning, "
        "once they are learned by (info); a small table of tasks or kinds of which this data has the first "
        "alone (info); a table that is frozen; a gradient that is 0 throughout. Sparse gradients are not "
        "looked at.",
    .cost =
        "Extremes of each row of all gradients at the first three steps, a few more below 100 and every "
        "50th.",
    .original = "",
    .source = "PyTorch documentation, torch.nn.Embedding: rows are chosen by index",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.05, 1e-6, 1, "rows in use"},
                   {"rows", "rows", 50, 2, 1e9, "smallest table that is looked at"},
                   {"looks", "captures", 8, 4, 1e9, "captured steps with a gradient before it judges"}},
};

// How many rows the columns ask for of which an embedding is given a table.
struct Columns {
    double fields = 0;  // 0: it is given none, or they ask for more rows than there are
    double rows = 0, widest = 0, narrowest = 0;
};

struct Table {
    std::string name, module;
    std::vector<bool> used;
    std::size_t in_use = 0, last_row = 0;  // `last_row`: the last one in use
    Columns columns;
    std::uint64_t looks = 0, last_new = 0;  // the look that showed a new row last
    bool is_prefix = true;                  // the first rows and all of them, whenever it was looked at
    bool is_unordered = false;              // samples look up rows that go up and down: no positions
    bool is_one_each = false;               // a sample looks up one row
    std::vector<std::size_t> prefixes;      // how many rows, at each of the first looks, while it is_prefix
    bool is_anew = false;                   // said to be numbered anew in each batch
    bool is_of_fields = false;              // said to be of fields without offsets
    bool firing = false;
};

class EmbeddingRowsUnused final : public Rule {
  public:
    explicit EmbeddingRowsUnused(const Parameters& parameters)
        : share_(parameters.at("share")),
          rows_(static_cast<std::size_t>(parameters.at("rows"))),
          needed_(static_cast<std::uint64_t>(parameters.at("looks"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        guessing_.observe(step);
        if (const auto fresh = loop_fact(step, "trained_are_fresh")) is_fresh_ = fresh->value > 0;
        for (const LoopFact& order : loop_facts(step, "rows_in_order")) {
            if (order.value < kMostInOrder) unordered_.emplace(order.place);
        }
        for (const LoopFact& one : loop_facts(step, "rows_one_each")) one_each_.emplace(one.place);
        for (const LoopFact& of : loop_facts(step, "fields_rows")) columns_of(of).rows = of.value;
        for (const LoopFact& of : loop_facts(step, "fields_widest")) columns_of(of).widest = of.value;
        for (const LoopFact& of : loop_facts(step, "fields_narrowest")) columns_of(of).narrowest = of.value;
        for (const LoopFact& of : loop_facts(step, "fields")) columns_of(of).fields = of.value;
        for (const model::ChannelSample& sample : step.record->channels) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kGradient || info.shape.size() != 2 ||
                info.module_type.find("Embedding") == std::string::npos ||
                sample.channels.channels() < std::min(rows_, kFewestKinds))
                continue;
            Table& table = tables_[sample.tensor];
            table.name = info.name;
            table.module = info.module;
            table.is_unordered = unordered_.contains(table.module);
            table.is_one_each = one_each_.contains(table.module);
            if (const auto known = columns_.find(table.module); known != columns_.end())
                table.columns = known->second;
            look(table, sample.channels);
            last_ = step.step();
            judge(table, sink);
        }
    }
    void on_end(FindingSink& sink) override {
        for (auto& [id, table] : tables_)
            if (table.firing) judge(table, sink, true);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return base::format("no embedding of {} rows with a dense gradient was seen", rows_);
    }

  private:
    Columns& columns_of(const LoopFact& fact) { return columns_[std::string(fact.place)]; }

    static void look(Table& table, const model::ChannelStatistics& channels) {
        const std::size_t n = channels.channels();
        if (table.used.size() != n) table.used.assign(n, false);
        const auto is_used = [&](std::size_t i) { return channels.min[i] != 0 || channels.max[i] != 0; };
        std::size_t now = 0, first_unused = n, fresh = 0, last = 0;
        for (std::size_t i = 0; i < n; ++i) {
            if (!is_used(i)) {
                first_unused = std::min(first_unused, i);
                continue;
            }
            ++now;
            last = i;
            if (!table.used[i]) {
                table.used[i] = true;
                ++fresh;
            }
        }
        if (now == 0) return;
        ++table.looks;
        table.in_use += fresh;
        table.last_row = std::max(table.last_row, last);
        if (fresh > 0) table.last_new = table.looks;
        if (now < 4 || last + 1 != now || first_unused != now) table.is_prefix = false;
        if (table.prefixes.size() < kMostPrefixes) table.prefixes.push_back(now);
    }

    // Whether the numbers of rows are made anew in each batch: from 0 on, as many as it has different ones.
    static bool is_numbered_anew(const Table& table) {
        if (!table.is_prefix || !table.is_unordered || !table.is_one_each) return false;
        std::size_t ups = 0, downs = 0;
        for (std::size_t i = 1; i < table.prefixes.size(); ++i) {
            ups += table.prefixes[i] > table.prefixes[i - 1] ? 1 : 0;
            downs += table.prefixes[i] < table.prefixes[i - 1] ? 1 : 0;
        }
        // Classes that are added as it goes on are used one after the other, too.
        if (4 * std::min(ups, downs) < table.prefixes.size()) return false;
        return log_chance_of_nesting(table.prefixes) < kLogOfMillionth;
    }

    // Of rows that come each by itself, so often as they did: that the looks that have the next row are among
    // those that have the one before, for all rows.
    static double log_chance_of_nesting(std::vector<std::size_t> sizes) {
        std::sort(sizes.begin(), sizes.end());
        const auto looks = static_cast<double>(sizes.size());
        const auto log_choose = [](double n, double k) {
            return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
        };
        const auto with = [&](std::size_t row) {  // looks that have it
            return static_cast<double>(sizes.end() - std::upper_bound(sizes.begin(), sizes.end(), row));
        };
        double chance = 0;
        for (std::size_t row = sizes.front(); row + 1 < sizes.back(); ++row)
            chance += log_choose(with(row), with(row + 1)) - log_choose(looks, with(row + 1));
        return chance;
    }

    // The rows in use are all that 8 or 16 bits can number, with a sign or without, and no other.
    static bool is_range_of_bits(const Table& table) {
        constexpr std::array<std::size_t, 4> kRanges = {128, 256, 32'768, 65'536};
        if (std::find(kRanges.begin(), kRanges.end(), table.in_use) == kRanges.end()) return false;
        const auto end = table.used.begin() + static_cast<std::ptrdiff_t>(table.in_use);
        return std::all_of(table.used.begin(), end, [](bool is_used) { return is_used; });
    }

    // Several fields count from 0 each, in a table that was made as large as they are together. Columns of
    // one width may be words of one text, and a table that is larger than it need be has any size.
    static bool has_fields_without_offsets(const Table& table) {
        const Columns& columns = table.columns;
        const auto rows = static_cast<double>(table.used.size());
        const double unseen = rows - columns.rows;  // numbers that did not come up yet
        return table.is_unordered && columns.fields >= 2 && unseen >= 0 && unseen <= kUnseenOfFields * rows &&
               columns.widest <= kWidestOfFields * rows && 2 * columns.narrowest <= columns.widest &&
               static_cast<double>(table.last_row) < columns.widest + unseen;
    }

    // As a hash scatters them: over all of the table, with gaps of all sizes. What a clamp, a division or a
    // modulo leaves lies close together, or at equal distances.
    static bool is_scattered(const Table& table) {
        if (table.in_use < kFewestScattered) return false;
        std::vector<double> gaps;
        std::optional<std::size_t> last;
        std::size_t first = 0;
        for (std::size_t i = 0; i < table.used.size(); ++i) {
            if (!table.used[i]) continue;
            if (last) gaps.push_back(static_cast<double>(i - *last));
            else first = i;
            last = i;
        }
        const auto count = static_cast<double>(gaps.size());
        const auto range = static_cast<double>(*last - first);
        const double mean = range / count;
        double squares = 0;
        for (const double gap : gaps) squares += (gap - mean) * (gap - mean);
        return range >= kNearlyAll * static_cast<double>(table.used.size()) &&
               std::sqrt(squares / count) >= kIrregular * mean;
    }

    void judge(Table& table, FindingSink& sink, bool is_over = false) {
        if (table.looks < needed_) return;
        // Of a small table, one row alone tells something, where each sample looks up one, or where the model
        // was made for this data: a model that was trained before has kinds of words that others have.
        // Of larger tables it may be that no gradient comes to the others, as of words that a mask hides.
        const bool is_one_looked_up = table.is_one_each && table.used.size() >= kFewestOfOne;
        const bool is_first_kind = table.used.size() < kFewestOfOne && is_new() && table.used[0];
        if (table.used.size() < rows_ && !(table.in_use == 1 && (is_one_looked_up || is_first_kind))) {
            if (table.firing) sink.clear(table.module);
            table.firing = false;
            return;
        }
        ++judged_;
        const bool is_anew = is_numbered_anew(table);
        if (table.is_anew && !is_anew) sink.clear(table.module + ", numbered anew");
        table.is_anew = is_anew;
        if (is_anew) {
            if (table.firing) sink.clear(table.module);
            table.firing = false;
            // Such numbers are learned by in time, or not.
            fire_anew(table, guessing_.loss().has_learned_much() || guessing_.loss().count() < kEpisodes,
                      sink);
            return;
        }
        const bool is_of_fields = has_fields_without_offsets(table);
        if (table.is_of_fields && !is_of_fields) sink.clear(table.module + ", fields");
        table.is_of_fields = is_of_fields;
        if (is_of_fields) {
            if (table.firing) sink.clear(table.module);
            table.firing = false;
            fire_fields(table, sink);
            return;
        }
        const auto rows = static_cast<double>(table.used.size());
        const bool few = table.in_use == 1 || static_cast<double>(table.in_use) <= share_ * rows;
        // A table for bytes and some more signs has nearly as many rows as there are bytes.
        const bool is_cast = is_range_of_bits(table) && 2 * table.in_use <= table.used.size();
        const bool may_be_positions = table.is_prefix && !table.is_unordered;
        if ((!few && !is_cast) || may_be_positions || 2 * table.last_new > table.looks) {
            if (table.firing) sink.clear(table.module);
            table.firing = false;
            return;
        }
        table.firing = true;
        std::size_t first = 0, last = 0;
        for (std::size_t i = 0; i < table.used.size(); ++i) {
            if (!table.used[i]) continue;
            if (!table.used[first]) first = i;
            last = i;
        }
        const bool is_large = !is_cast && (rows > 20'000 || table.in_use > 200);
        // A table that is larger than it need be does no harm.
        // How far a training comes without the others shows when it is over.
        const bool is_enough = is_over ? guessing_.loss().has_learned_much() : guessing_.loss().has_learned();
        const bool is_early = guessing_.loss().count() < kPatience;
        const bool is_harmless = (table.is_prefix && !is_cast && (is_enough || is_early)) ||
                                 (is_scattered(table) && (guessing_.loss().has_learned() || is_early));
        const bool may_be_enough = is_enough || is_first_kind;
        // As one speaker of those that a model was made for. A model that was trained before has little left
        // to learn of it.
        const bool is_one_of_few = table.used.size() < rows_ &&
                                   (is_new() && first == 0 ? may_be_enough : guessing_.loss().has_learned());
        model::Finding finding;
        finding.key = table.module;
        finding.severity =
            is_large || is_harmless || is_one_of_few ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = table.name;
        finding.layer = table.module;
        finding.message = base::format(
            "{} of the {} rows of {} ever got a gradient ({}), at {} steps looked at up to step {}; none was "
            "new in the later half of them.",
            table.in_use, table.used.size(), place_in_words(table.name),
            first == last ? base::format("row {}", first)
                          : base::format("between rows {} and {}", first, last),
            table.looks, last_);
        finding.fix = base::format(
            "Check how numbers are mapped to the rows of {}: {} that makes them alike; if so few are right, "
            "make the table as small.",
            table.module,
            is_cast           ? "a cast to 8 or 16 bits, or a modulo,"
            : table.is_prefix ? "a clamp, a modulo or a cast, or fields without an offset each,"
                              : "a clamp, a modulo, an offset or a cast");
        finding.evidence.push_back({"rows in use", static_cast<double>(table.in_use), "of", rows});
        finding.plots = {{table.name, "zero"}};
        sink.fire(std::move(finding));
    }

    // No training came before this one.
    [[nodiscard]] bool is_new() const {
        const std::optional<double> constant = guessing_.constant_loss();
        return is_fresh_ || (constant && guessing_.loss().start() >= kLikeGuessing * *constant);
    }

    void fire_fields(const Table& table, FindingSink& sink) const {
        const Columns& columns = table.columns;
        model::Finding finding;
        finding.key = table.module + ", fields";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = table.name;
        finding.layer = table.module;
        finding.message = base::format(
            "Each sample looks up {:.0f} numbers in {}, which has {} rows. They count from 0 each, {:.0f} "
            "rows of the narrowest and {:.0f} of the widest, {:.0f} together: these fields share the first "
            "rows, and none after row {} was used up to step {}.",
            columns.fields, place_in_words(table.name), table.used.size(), columns.narrowest, columns.widest,
            columns.rows, table.last_row, last_);
        finding.fix = base::format(
            "Add to each number the offset of its field before it is looked up in {}: the sizes of the "
            "fields before it together, 0 for the first one.",
            table.module);
        finding.evidence.push_back(
            {"rows in use", static_cast<double>(table.in_use), "of", static_cast<double>(table.used.size())});
        finding.evidence.push_back({"rows of all columns", columns.rows, "of the widest", columns.widest});
        finding.plots = {{table.name, "zero"}};
        sink.fire(std::move(finding));
    }

    // Numbers that are of one episode alone, as in few-shot learning, are made anew on purpose, and learned
    // by.
    void fire_anew(const Table& table, bool may_be_meant, FindingSink& sink) const {
        const auto [least, most] = std::minmax_element(table.prefixes.begin(), table.prefixes.end());
        model::Finding finding;
        finding.key = table.module + ", numbered anew";
        finding.severity = may_be_meant ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = table.name;
        finding.layer = table.module;
        finding.message = base::format(
            "Each batch uses the first rows of {} and all of them, {} to {} of {}, at all of {} steps looked "
            "at up to step {}: the numbers are made anew in each batch, so that a row stands for another "
            "thing each time.",
            place_in_words(table.name), *least, *most, table.used.size(), table.looks, last_);
        finding.fix = base::format(
            "Number what {} stands for once, over all data, and keep the table of numbers; numpy.unique, "
            "pandas.factorize or a LabelEncoder in the collate function or in the loop number each batch by "
            "itself.",
            table.module);
        finding.evidence.push_back({"looks at which the first rows are used, and all of them",
                                    static_cast<double>(table.looks), "of",
                                    static_cast<double>(table.looks)});
        finding.plots = {{table.name, "zero"}};
        sink.fire(std::move(finding));
    }

    static constexpr std::size_t kFewestOfOne = 16;  // rows of a table that one alone is used of
    // The same, where samples look up any number of them: a table of fewer, such as the two segments of a
    // BERT, often has rows that are kept for others.
    static constexpr std::size_t kFewestKinds = 5;
    static constexpr std::size_t kFewestScattered = 20;
    static constexpr double kUnseenOfFields = 0.02;  // of the rows of a table that fields share
    static constexpr double kWidestOfFields = 0.8;
    static constexpr double kNearlyAll = 0.8;        // of the table, from the first row in use to the last
    static constexpr double kIrregular = 0.6;        // deviation of gaps, of their mean; by chance it is 1
    static constexpr std::uint64_t kEpisodes = 300;  // steps by which something is learned
    static constexpr std::size_t kMostPrefixes = 256;
    static constexpr double kLogOfMillionth = -13.8;
    static constexpr std::uint64_t kPatience = 100;  // steps in which a training may begin to learn
    static constexpr double kLikeGuessing = 0.9;     // of a constant answer's loss, at the start
    static constexpr double kMostInOrder = 0.5;      // of samples, by chance or because all are alike

    double share_;
    Guessing guessing_;
    std::set<std::string, std::less<>> unordered_, one_each_;  // embeddings
    std::map<std::string, Columns, std::less<>> columns_;      // of embeddings
    std::size_t rows_;
    std::uint64_t needed_;
    std::uint64_t judged_ = 0;
    model::StepIndex last_ = 0;  // that was looked at
    bool is_fresh_ = false;      // the weights were as an initialiser drew them
    std::map<model::TensorId, Table> tables_;
};

std::vector<model::Requirement> embedding_rows_unused_needs(const Parameters&) {
    constexpr auto kWhat = model::What::kStatistics | model::What::kChannels;
    std::vector<model::Requirement> all = loss_requirements(kEmbeddingRowsUnused.name);
    for (model::Requirement& more : argument_requirements(kEmbeddingRowsUnused.name))
        all.push_back(std::move(more));
    all.push_back(loop_requirement(kEmbeddingRowsUnused.name));
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   kWhat,
                   {.every = 50, .dense_until = 3},
                   kEmbeddingRowsUnused.name,
                   {10, 20, 30, 70}});
    return all;
}

}  // namespace

RuleEntry builtin::embedding_rows_unused() {
    return {&kEmbeddingRowsUnused, &embedding_rows_unused_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<EmbeddingRowsUnused>(p);
            }};
}

}  // namespace traindbg::rules
