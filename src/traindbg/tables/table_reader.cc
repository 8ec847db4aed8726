#include "traindbg/tables/table_reader.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/histogram.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::tables {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::StepView;
using model::TensorInfo;
using model::WorkerId;

constexpr std::array kTables = {
    TableInfo{TableKind::kScalars, "scalars", "losses and metrics, one row per value"},
    TableInfo{TableKind::kStatistics, "statistics", "one row per tensor and step, one column per statistic"},
    TableInfo{TableKind::kHistograms, "histograms", "one row per bin that is not empty"},
    TableInfo{TableKind::kChannels, "channels", "extremes and share of zeros, one row per channel"},
    TableInfo{TableKind::kDigests, "digests", "fingerprint and product, one row per tensor and step"},
    TableInfo{TableKind::kClasses, "classes", "labels, predictions and hits, one row per class"},
    TableInfo{TableKind::kSteps, "steps", "one row per step: its times"},
    TableInfo{TableKind::kTensors, "tensors", "one row per tensor: what it is"},
    TableInfo{TableKind::kEvents, "events", "what is worth knowing and no measurement"},
    TableInfo{TableKind::kFindings, "findings", "what the rules found"},
};

constexpr std::array kKeys = {Field{"worker", Type::kUInt32}, Field{"mode", Type::kWord},
                              Field{"step", Type::kUInt64}, Field{"wall_time", Type::kTime}};

// A column of the statistics: a moment, a count (`units` and what belongs to it are null where not taken),
// or, where neither is set, what follows from the others: a column for who names it.
struct StatisticField {
    Field field;
    double model::Statistics::*moment = nullptr;
    std::uint64_t (*count)(const model::TensorSample& sample) = nullptr;

    [[nodiscard]] bool is_derived() const noexcept { return moment == nullptr && count == nullptr; }
};
using Sample = model::TensorSample;
constexpr std::array kStatisticFields = {
    StatisticField{{"min", Type::kDouble}, &model::Statistics::min},
    StatisticField{{"max", Type::kDouble}, &model::Statistics::max},
    StatisticField{{"mean", Type::kDouble}, &model::Statistics::mean},
    StatisticField{{"std", Type::kDouble}, &model::Statistics::std},
    StatisticField{{"l1", Type::kDouble}, &model::Statistics::l1},
    StatisticField{{"l2", Type::kDouble}, &model::Statistics::l2},
    StatisticField{{"count", Type::kUInt64}, nullptr, [](const Sample& s) { return s.statistics.count; }},
    StatisticField{{"nan", Type::kUInt64}, nullptr, [](const Sample& s) { return s.statistics.nan; }},
    StatisticField{{"inf", Type::kUInt64}, nullptr, [](const Sample& s) { return s.statistics.infinite(); }},
    StatisticField{{"positive_infinite", Type::kUInt64},
                   nullptr,
                   [](const Sample& s) { return s.statistics.positive_infinite; }},
    StatisticField{{"negative_infinite", Type::kUInt64},
                   nullptr,
                   [](const Sample& s) { return s.statistics.negative_infinite; }},
    StatisticField{{"zero", Type::kUInt64}, nullptr, [](const Sample& s) { return s.statistics.zero; }},
    StatisticField{{"units", Type::kUInt64, true},
                   nullptr,
                   [](const Sample& s) { return std::uint64_t{s.units.units}; }},
    StatisticField{{"inactive_units", Type::kUInt64, true},
                   nullptr,
                   [](const Sample& s) { return std::uint64_t{s.units.inactive_units}; }},
    StatisticField{{"low", Type::kUInt64, true}, nullptr, [](const Sample& s) { return s.units.low; }},
    StatisticField{{"high", Type::kUInt64, true}, nullptr, [](const Sample& s) { return s.units.high; }},
    StatisticField{{"variance", Type::kDouble}},
    StatisticField{{"sum", Type::kDouble}},
    StatisticField{{"mean_abs", Type::kDouble}},
    StatisticField{{"rms", Type::kDouble}},
};

// Offsets into texts are of 32 bits.
constexpr std::size_t kBatchTextBytes = std::size_t{256} << 20;

// Columns under construction, with the dictionaries that outlive a batch.
class Builder {
  public:
    Builder(std::vector<Field> fields, std::size_t batch_rows)
        : fields_(std::move(fields)), dictionaries_(fields_.size()), batch_rows_(batch_rows) {
        start();
    }

    [[nodiscard]] const std::vector<Field>& fields() const noexcept { return fields_; }
    [[nodiscard]] bool is_full() const noexcept {
        return rows_ >= batch_rows_ || text_bytes_ >= kBatchTextBytes;
    }
    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }

    // The cells of a row, from the left.
    template <typename T>
    Builder& number(T value) {
        next().add(value);
        return *this;
    }
    Builder& word(std::string_view text) { return number(dictionaries_[at_].number_of(text)); }
    Builder& word_number(std::int32_t known) { return number(known); }
    Builder& text(std::string_view text) {
        text_bytes_ += text.size();
        next().add_text(text);
        return *this;
    }
    template <typename List>
    Builder& list(const List& list) {
        next().add_list(list);
        return *this;
    }
    Builder& null() {
        next().add_null();
        return *this;
    }
    void end_row() noexcept {
        at_ = 0;
        ++rows_;
    }
    [[nodiscard]] Dictionary& dictionary(std::size_t column) noexcept { return dictionaries_[column]; }

    [[nodiscard]] Batch take() {
        Batch batch = std::exchange(batch_, {});
        batch.rows = rows_;
        for (std::size_t i = 0; i < batch.columns.size(); ++i)
            if (fields_[i].type == Type::kWord) batch.columns[i].words = dictionaries_[i].snapshot();
        start();
        return batch;
    }

  private:
    Column& next() noexcept { return batch_.columns[at_++]; }
    void start() {
        rows_ = 0;
        text_bytes_ = 0;
        at_ = 0;
        for (const Field& field : fields_) batch_.columns.emplace_back(field.type);
    }

    std::vector<Field> fields_;
    std::vector<Dictionary> dictionaries_;  // one per column; used by words only
    std::size_t batch_rows_;
    Batch batch_;
    std::size_t rows_ = 0;
    std::size_t text_bytes_ = 0;
    std::size_t at_ = 0;
};

// ---- tables about steps ----

std::vector<Field> with_keys(std::initializer_list<Field> fields) {
    std::vector<Field> out(kKeys.begin(), kKeys.end());
    out.insert(out.end(), fields);
    return out;
}

class StepTable : public TableReader {
  public:
    StepTable(std::unique_ptr<read::RunTail> tail, Selection selection, std::vector<Field> fields,
              std::size_t batch_rows)
        : tail_(std::move(tail)),
          selection_(std::move(selection)),
          filter_(selection_),
          builder_(std::move(fields), batch_rows) {
        tail_->finish_when_idle();
    }

    [[nodiscard]] const std::vector<Field>& fields() const noexcept override { return builder_.fields(); }
    [[nodiscard]] std::uint64_t steps_read() const noexcept override { return steps_read_; }
    [[nodiscard]] const std::vector<read::Damage>& damage() const override { return tail_->damage(); }

    [[nodiscard]] Result<std::optional<Batch>> next() override {
        while (!ended_) {
            if (!view_) {
                TRAINDBG_ASSIGN_OR_RETURN(view_, tail_->next(std::chrono::nanoseconds::zero()));
                if (!view_) {
                    ended_ = true;
                    break;
                }
                ++steps_read_;
                if (!selection_.wants(view_->worker) || !selection_.wants(view_->mode(), view_->step())) {
                    view_.reset();
                    continue;
                }
                begin_step();
            }
            // A step with more rows than a batch goes on in the next one.
            if (add_rows(*view_)) view_.reset();
            if (builder_.is_full()) return std::optional(builder_.take());
        }
        if (builder_.rows() == 0) return std::optional<Batch>();
        return std::optional(builder_.take());
    }

  protected:
    virtual void begin_step() = 0;
    // Adds rows until the step has no more (true) or the batch is full (false).
    virtual bool add_rows(const StepView& view) = 0;

    Builder& keys(const StepView& view) {
        return builder_.number(view.worker)
            .word(model::to_string(view.mode()))
            .number(view.step())
            .number(view.record->wall_nanos);
    }
    Builder& keys(const StepView& view, const TensorInfo& info) {
        keys(view);
        // Looking a name up by its number is cheaper than by its text.
        std::vector<std::int32_t>& numbers = name_numbers_[view.worker];
        if (numbers.size() <= info.id) numbers.resize(std::size_t{info.id} + 1, -1);
        if (numbers[info.id] < 0) numbers[info.id] = builder_.dictionary(kKeys.size()).number_of(info.name);
        return builder_.word_number(numbers[info.id]);
    }
    // Calls `add` for wanted samples from `sample_` on while there is room. False: no room for the rest.
    template <typename Samples, typename Add>
    bool each_sample(const StepView& view, const Samples& samples, Add&& add) {
        for (; sample_ < samples.size(); ++sample_) {
            const auto& sample = samples[sample_];
            if (sample.tensor >= view.tensors->size()) continue;
            const TensorInfo& info = view.info(sample.tensor);
            if (!filter_.wants(view.worker, info)) continue;
            if (builder_.is_full()) return false;
            if (!add(sample, info)) return false;
        }
        return true;
    }

    std::unique_ptr<read::RunTail> tail_;
    Selection selection_;
    TensorFilter filter_;
    Builder builder_;
    std::optional<StepView> view_;
    std::size_t sample_ = 0;  // the next of the step's samples
    std::map<WorkerId, std::vector<std::int32_t>> name_numbers_;
    std::uint64_t steps_read_ = 0;
    bool ended_ = false;
};

class ScalarTable final : public StepTable {
  public:
    ScalarTable(std::unique_ptr<read::RunTail> tail, Selection selection, std::size_t batch_rows)
        : StepTable(std::move(tail), std::move(selection),
                    with_keys({{"name", Type::kWord}, {"value", Type::kDouble}}), batch_rows) {}

  private:
    void begin_step() override { sample_ = 0; }
    bool add_rows(const StepView& view) override {
        return each_sample(view, view.record->scalars,
                           [&](const model::ScalarSample& sample, const TensorInfo& info) {
                               keys(view, info).number(sample.value).end_row();
                               return true;
                           });
    }
};

class StatisticTable final : public StepTable {
  public:
    StatisticTable(std::unique_ptr<read::RunTail> tail, Selection selection,
                   std::vector<const StatisticField*> chosen, std::size_t batch_rows)
        : StepTable(std::move(tail), std::move(selection), fields_of(chosen), batch_rows),
          chosen_(std::move(chosen)) {}

  private:
    static std::vector<Field> fields_of(const std::vector<const StatisticField*>& chosen) {
        std::vector<Field> fields = with_keys({{"name", Type::kWord}});
        for (const StatisticField* statistic : chosen) fields.push_back(statistic->field);
        return fields;
    }
    void begin_step() override { sample_ = 0; }
    bool add_rows(const StepView& view) override {
        return each_sample(view, view.record->tensors, [&](const Sample& sample, const TensorInfo& info) {
            keys(view, info);
            for (const StatisticField* statistic : chosen_) {
                if (statistic->moment != nullptr) builder_.number(sample.statistics.*statistic->moment);
                else if (statistic->is_derived())
                    builder_.number(read::Run::statistic_of(sample, statistic->field.name).value_or(0));
                else if (statistic->field.nullable && sample.units.units == 0) builder_.null();
                else builder_.number(statistic->count(sample));
            }
            builder_.end_row();
            return true;
        });
    }

    std::vector<const StatisticField*> chosen_;
};

class HistogramTable final : public StepTable {
  public:
    HistogramTable(std::unique_ptr<read::RunTail> tail, Selection selection, std::size_t batch_rows)
        : StepTable(std::move(tail), std::move(selection),
                    with_keys({{"name", Type::kWord},
                               {"bin", Type::kInt32},
                               {"lower", Type::kDouble},
                               {"upper", Type::kDouble},
                               {"count", Type::kUInt64}}),
                    batch_rows) {}

  private:
    void begin_step() override { sample_ = bin_ = 0; }
    bool add_rows(const StepView& view) override {
        return each_sample(view, view.record->histograms,
                           [&](const model::HistogramSample& sample, const TensorInfo& info) {
                               for (; bin_ < sample.bins.size(); ++bin_) {
                                   if (builder_.is_full()) return false;
                                   const model::HistogramBin& entry = sample.bins[bin_];
                                   const model::BinEdges edges = model::edges(entry.bin);
                                   keys(view, info)
                                       .number(std::int32_t{entry.bin})
                                       .number(edges.lower)
                                       .number(edges.upper)
                                       .number(entry.count)
                                       .end_row();
                               }
                               bin_ = 0;
                               return true;
                           });
    }

    std::size_t bin_ = 0;
};

class ChannelTable final : public StepTable {
  public:
    ChannelTable(std::unique_ptr<read::RunTail> tail, Selection selection, std::size_t batch_rows)
        : StepTable(std::move(tail), std::move(selection),
                    with_keys({{"name", Type::kWord},
                               {"channel", Type::kUInt32},
                               {"min", Type::kDouble},
                               {"max", Type::kDouble},
                               {"zero", Type::kDouble}}),
                    batch_rows) {}

  private:
    void begin_step() override { sample_ = channel_ = 0; }
    bool add_rows(const StepView& view) override {
        return each_sample(view, view.record->channels,
                           [&](const model::ChannelSample& sample, const TensorInfo& info) {
                               const model::ChannelStatistics& of = sample.channels;
                               for (; channel_ < of.channels(); ++channel_) {
                                   if (builder_.is_full()) return false;
                                   keys(view, info)
                                       .number(static_cast<std::uint32_t>(channel_))
                                       .number(static_cast<double>(of.min[channel_]))
                                       .number(static_cast<double>(of.max[channel_]))
                                       .number(static_cast<double>(of.zero[channel_]))
                                       .end_row();
                               }
                               channel_ = 0;
                               return true;
                           });
    }

    std::size_t channel_ = 0;
};

class DigestTable final : public StepTable {
  public:
    DigestTable(std::unique_ptr<read::RunTail> tail, Selection selection, std::size_t batch_rows)
        : StepTable(
              std::move(tail), std::move(selection),
              with_keys({{"name", Type::kWord}, {"fingerprint", Type::kText}, {"product", Type::kDouble}}),
              batch_rows) {}

  private:
    void begin_step() override { sample_ = 0; }
    bool add_rows(const StepView& view) override {
        return each_sample(view, view.record->digests,
                           [&](const model::DigestSample& sample, const TensorInfo& info) {
                               keys(view, info)
                                   .text(base::format("{:016x}", sample.digest.fingerprint))
                                   .number(sample.digest.product)
                                   .end_row();
                               return true;
                           });
    }
};

class ClassTable final : public StepTable {
  public:
    ClassTable(std::unique_ptr<read::RunTail> tail, Selection selection, std::size_t batch_rows)
        : StepTable(std::move(tail), std::move(selection),
                    with_keys({{"name", Type::kWord},
                               {"class", Type::kUInt32},
                               {"labels", Type::kUInt32},
                               {"predictions", Type::kUInt32},
                               {"hits", Type::kUInt32}}),
                    batch_rows) {}

  private:
    void begin_step() override { sample_ = class_ = 0; }
    bool add_rows(const StepView& view) override {
        return each_sample(
            view, view.record->classes, [&](const model::ClassSample& sample, const TensorInfo& info) {
                const model::ClassCounts& counts = sample.counts;
                const std::size_t size =
                    std::max({counts.labels.size(), counts.predictions.size(), counts.hits.size()});
                const auto at = [](const std::vector<std::uint32_t>& values, std::size_t i) {
                    return i < values.size() ? values[i] : 0U;
                };
                for (; class_ < size; ++class_) {
                    if (builder_.is_full()) return false;
                    keys(view, info)
                        .number(static_cast<std::uint32_t>(class_))
                        .number(at(counts.labels, class_))
                        .number(at(counts.predictions, class_))
                        .number(at(counts.hits, class_))
                        .end_row();
                }
                class_ = 0;
                return true;
            });
    }

    std::size_t class_ = 0;
};

class StepsTable final : public StepTable {
  public:
    StepsTable(std::unique_ptr<read::RunTail> tail, Selection selection, std::size_t batch_rows)
        : StepTable(std::move(tail), std::move(selection),
                    with_keys({{"sequence", Type::kUInt64},
                               {"monotonic_nanos", Type::kInt64},
                               {"step_nanos", Type::kUInt64},
                               {"capture_nanos", Type::kUInt64}}),
                    batch_rows) {}

  private:
    void begin_step() override {}
    bool add_rows(const StepView& view) override {
        if (builder_.is_full()) return false;
        keys(view)
            .number(view.record->sequence)
            .number(view.record->monotonic_nanos)
            .number(view.record->step_nanos)
            .number(view.record->capture_nanos)
            .end_row();
        return true;
    }
};

// ---- tables that are small: made at once ----

class SmallTable final : public TableReader {
  public:
    SmallTable(std::vector<Field> fields, const read::Run& run, std::size_t batch_rows)
        : builder_(std::move(fields), batch_rows), damage_(run.damage()) {}

    Builder& row() {
        if (builder_.is_full()) batches_.push_back(builder_.take());
        return builder_;
    }
    [[nodiscard]] const std::vector<Field>& fields() const noexcept override { return builder_.fields(); }
    [[nodiscard]] Result<std::optional<Batch>> next() override {
        if (builder_.rows() > 0) batches_.push_back(builder_.take());
        if (given_ == batches_.size()) return std::optional<Batch>();
        return std::optional(std::move(batches_[given_++]));
    }
    [[nodiscard]] std::uint64_t steps_read() const noexcept override { return 0; }
    [[nodiscard]] const std::vector<read::Damage>& damage() const override { return damage_; }
    void add(read::Damage damage) { damage_.push_back(std::move(damage)); }

  private:
    Builder builder_;
    std::vector<read::Damage> damage_;
    std::vector<Batch> batches_;
    std::size_t given_ = 0;
};

std::unique_ptr<TableReader> tensor_table(const read::Run& run, const Selection& selection,
                                          std::size_t batch_rows) {
    auto table = std::make_unique<SmallTable>(std::vector<Field>{{"worker", Type::kUInt32},
                                                                 {"id", Type::kUInt32},
                                                                 {"name", Type::kText},
                                                                 {"role", Type::kWord},
                                                                 {"collection", Type::kWord},
                                                                 {"activation", Type::kWord},
                                                                 {"module", Type::kText},
                                                                 {"module_type", Type::kWord},
                                                                 {"layer", Type::kInt32, true},
                                                                 {"dtype", Type::kWord},
                                                                 {"shape", Type::kInt64List},
                                                                 {"collections", Type::kTextList}},
                                              run, batch_rows);
    for (const WorkerId worker : run.workers()) {
        if (!selection.wants(worker)) continue;
        for (const TensorInfo& info : run.tensors(worker)) {
            if (!selection.wants(info)) continue;
            Builder& row = table->row();
            row.number(worker)
                .number(info.id)
                .text(info.name)
                .word(model::to_string(info.role))
                .word(model::collection_of(info.role))
                .word(model::to_string(info.activation))
                .text(info.module)
                .word(info.module_type);
            if (info.layer < 0) row.null();
            else row.number(info.layer);
            row.word(tensor::to_string(info.dtype)).list(info.shape).list(info.collections).end_row();
        }
    }
    return table;
}

std::unique_ptr<TableReader> event_table(const read::Run& run, const Selection& selection,
                                         std::size_t batch_rows) {
    auto table = std::make_unique<SmallTable>(std::vector<Field>{{"worker", Type::kUInt32},
                                                                 {"wall_time", Type::kTime},
                                                                 {"kind", Type::kWord},
                                                                 {"json", Type::kText}},
                                              run, batch_rows);
    for (const read::RunEvent& event : run.events())
        if (selection.wants(event.worker))
            table->row()
                .number(event.worker)
                .number(event.wall_nanos)
                .word(event.kind)
                .text(event.json)
                .end_row();
    return table;
}

Result<std::unique_ptr<TableReader>> finding_table(const read::Run& run, const Selection& selection,
                                                   std::size_t batch_rows) {
    auto table = std::make_unique<SmallTable>(std::vector<Field>{{"worker", Type::kUInt32},
                                                                 {"mode", Type::kWord},
                                                                 {"step", Type::kUInt64},
                                                                 {"rule", Type::kWord},
                                                                 {"key", Type::kText},
                                                                 {"kind", Type::kWord},
                                                                 {"severity", Type::kWord},
                                                                 {"state", Type::kWord},
                                                                 {"first_step", Type::kUInt64},
                                                                 {"last_step", Type::kUInt64},
                                                                 {"times", Type::kUInt64},
                                                                 {"tensor", Type::kText},
                                                                 {"layer", Type::kText},
                                                                 {"places", Type::kUInt64},
                                                                 {"message", Type::kText},
                                                                 {"fix", Type::kText},
                                                                 {"evidence", Type::kText},
                                                                 {"sources", Type::kText}},
                                              run, batch_rows);
    const std::string path = storage::RunLayout{run.path()}.verdict_json();
    if (!run.files().exists(path)) return std::unique_ptr<TableReader>(std::move(table));  // never judged
    TRAINDBG_ASSIGN_OR_RETURN(const base::ByteBuffer bytes, storage::read_whole(run.files(), path));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (model::check_text(text) == model::TextCheck::kDamaged)
        table->add({path, 0, text.size(), std::string(model::kWrongText), false});
    const auto verdict = model::verdict_from_json(text);
    if (!verdict.is_ok())
        return Status(verdict.status().code(), base::format("{}: {}", path, verdict.status().message()));
    for (const model::Finding& finding : verdict->findings) {
        if (!selection.wants(finding.worker) || !selection.wants(finding.mode, finding.step)) continue;
        if (selection.name && !selection.name(finding.tensor)) continue;
        const model::Json json = model::to_json(finding);
        const auto list = [&json](const char* name) {
            const auto found = json.find(name);
            return found == json.end() ? std::string("[]")
                                       : found->dump(-1, ' ', false, model::Json::error_handler_t::replace);
        };
        table->row()
            .number(finding.worker)
            .word(model::to_string(finding.mode))
            .number(finding.step)
            .word(finding.rule)
            .text(finding.key)
            .word(finding.kind)
            .word(model::to_string(finding.severity))
            .word(model::to_string(finding.state))
            .number(finding.first_step)
            .number(finding.last_step)
            .number(finding.times)
            .text(finding.tensor)
            .text(finding.layer)
            .number(finding.places)
            .text(finding.message)
            .text(finding.fix)
            .text(list("evidence"))
            .text(list("sources"))
            .end_row();
    }
    return std::unique_ptr<TableReader>(std::move(table));
}

// ---- what was asked for ----

Result<std::vector<const StatisticField*>> chosen_statistics(const std::vector<std::string>& names) {
    std::vector<const StatisticField*> chosen;
    std::vector<std::string> known;
    for (const StatisticField& statistic : kStatisticFields) {
        known.emplace_back(statistic.field.name);
        const bool is_named = std::find(names.begin(), names.end(), statistic.field.name) != names.end();
        if (is_named || (names.empty() && !statistic.is_derived())) chosen.push_back(&statistic);
    }
    for (const std::string& name : names)
        if (std::find(known.begin(), known.end(), name) == known.end())
            return Status(Code::kInvalidArgument,
                          base::format("statistic '{}' is no column of the table{}; there are: {}",
                                       base::printable(name), base::did_you_mean(name, known),
                                       base::join(known, ", ")));
    return chosen;
}

Status check_collections(const read::Run& run, const std::vector<std::string>& wanted) {
    std::vector<std::string> known = model::builtin_collections();
    for (const WorkerId worker : run.workers())
        for (const TensorInfo& info : run.tensors(worker))
            for (const std::string& name : info.collections)
                if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    for (const std::string& name : wanted)
        if (std::find(known.begin(), known.end(), name) == known.end())
            return {Code::kInvalidArgument,
                    base::format("collection '{}' is not in this run{}; there are: {}", base::printable(name),
                                 base::did_you_mean(name, known), base::join(known, ", "))};
    return Status::ok();
}

}  // namespace

std::span<const TableInfo> all_tables() noexcept { return kTables; }

Result<TableKind> parse_table(std::string_view name) {
    std::vector<std::string> names;
    for (const TableInfo& table : kTables) {
        if (table.name == name) return table.kind;
        names.emplace_back(table.name);
    }
    return Status(Code::kInvalidArgument,
                  base::format("table '{}' does not exist{}; there are: {}", base::printable(name),
                               base::did_you_mean(name, names), base::join(names, ", ")));
}

Result<std::unique_ptr<TableReader>> TableReader::open(const std::string& run, TableKind kind,
                                                       Selection selection, storage::FileSystem& files,
                                                       std::size_t batch_rows) {
    using Reader = std::unique_ptr<TableReader>;
    batch_rows = std::clamp<std::size_t>(batch_rows, 1, kBatchRows);
    TRAINDBG_ASSIGN_OR_RETURN(auto statistics, chosen_statistics(selection.statistics));
    const bool is_small =
        kind == TableKind::kTensors || kind == TableKind::kEvents || kind == TableKind::kFindings;
    if (is_small || !selection.collections.empty()) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto opened, read::Run::open(run, files));
        TRAINDBG_RETURN_IF_ERROR(check_collections(*opened, selection.collections));
        if (kind == TableKind::kTensors) return tensor_table(*opened, selection, batch_rows);
        if (kind == TableKind::kEvents) return event_table(*opened, selection, batch_rows);
        if (kind == TableKind::kFindings) return finding_table(*opened, selection, batch_rows);
    }
    TRAINDBG_ASSIGN_OR_RETURN(auto tail, read::RunTail::open(run, files));
    switch (kind) {
        case TableKind::kScalars:
            return Reader(std::make_unique<ScalarTable>(std::move(tail), std::move(selection), batch_rows));
        case TableKind::kStatistics:
            return Reader(std::make_unique<StatisticTable>(std::move(tail), std::move(selection),
                                                           std::move(statistics), batch_rows));
        case TableKind::kHistograms:
            return Reader(
                std::make_unique<HistogramTable>(std::move(tail), std::move(selection), batch_rows));
        case TableKind::kChannels:
            return Reader(std::make_unique<ChannelTable>(std::move(tail), std::move(selection), batch_rows));
        case TableKind::kDigests:
            return Reader(std::make_unique<DigestTable>(std::move(tail), std::move(selection), batch_rows));
        case TableKind::kClasses:
            return Reader(std::make_unique<ClassTable>(std::move(tail), std::move(selection), batch_rows));
        case TableKind::kSteps:
        case TableKind::kTensors:
        case TableKind::kEvents:
        case TableKind::kFindings: break;
    }
    return Reader(std::make_unique<StepsTable>(std::move(tail), std::move(selection), batch_rows));
}

}  // namespace traindbg::tables
