#include "traindbg/report/report_data.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/json.h"
#include "traindbg/model/micro_batch.h"
#include "traindbg/report/capture_notes.h"
#include "traindbg/storage/plan_files.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::report {
namespace {

using model::Mode;
using model::Role;
using model::TensorId;

// All cells of all heat maps together: what keeps the page below about 1 MB for wide and deep models.
constexpr std::size_t kMostCells = 90'000;
constexpr std::size_t kMostColumns = 160;
constexpr std::size_t kFewestColumns = 20;
constexpr std::size_t kMostClassRows = 40;
constexpr std::size_t kMostMetricCharts = 24;
constexpr std::size_t kMostClassParts = 32;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? kNaN : static_cast<double>(part) / static_cast<double>(whole);
}

// A moment of a tensor without one finite element says nothing.
double finite_only(const model::TensorSample& sample, double moment) {
    return sample.statistics.finite() == 0 ? kNaN : moment;
}

// What a heat map shows of a sample; NaN: this sample does not have it.
struct Quantity {
    const char* key;
    const char* title;
    const char* note;
    bool logarithmic;
    bool (*wants)(const model::TensorInfo& info);
    double (*value)(const model::TensorSample& sample);
    bool marks_not_finite;  // a tensor that holds NaN or Inf is marked, not coloured
};

bool is_output(const model::TensorInfo& info) {
    return (info.role == Role::kActivation || info.role == Role::kOutput) &&
           !model::is_of_later_micro_batch(info);
}
double zero_share(const model::TensorSample& sample) {
    return share(sample.statistics.zero, sample.statistics.count);
}

constexpr Quantity kQuantities[] = {
    {"gradient_l2", "Gradient, L2 norm",
     "Gradients should be of similar size in all layers: rows that fade out vanish, rows that flare up "
     "explode.",
     true, [](const model::TensorInfo& info) { return info.role == Role::kGradient; },
     [](const model::TensorSample& sample) { return finite_only(sample, sample.statistics.l2); }, true},
    {"weight_l2", "Weight, L2 norm",
     "Weights should change slowly: a row that keeps its exact colour is not learning, one that runs away "
     "diverges.",
     true,
     [](const model::TensorInfo& info) { return info.role == Role::kWeight || info.role == Role::kBias; },
     [](const model::TensorSample& sample) { return finite_only(sample, sample.statistics.l2); }, true},
    {"activation_std", "Layer output, standard deviation",
     "Signals should keep their size on their way through the layers.", true, is_output,
     [](const model::TensorSample& sample) { return finite_only(sample, sample.statistics.std); }, true},
    {"zero_share", "Layer output, share of zeros",
     "About half is usual after a ReLU; nearly all means that the layer passes nothing on.", false, is_output,
     zero_share, true},
    {"inactive_units", "Inactive units",
     "The share of units that were not above zero for any sample of the batch. Units that stay so are dead.",
     false, is_output,
     [](const model::TensorSample& sample) { return share(sample.units.inactive_units, sample.units.units); },
     true},
    {"saturated", "Saturated elements",
     "The share of elements at the flat ends of tanh or sigmoid, where no gradient comes back.", false,
     [](const model::TensorInfo& info) {
         return info.activation == model::ActivationKind::kTanh ||
                info.activation == model::ActivationKind::kSigmoid;
     },
     [](const model::TensorSample& sample) {
         return sample.units.units == 0
                    ? kNaN
                    : share(sample.units.low + sample.units.high, sample.statistics.finite());
     },
     true},
    {"gradient_zero_share", "Gradient, share of zeros",
     "Where a gradient is exactly zero, nothing is learnt.", false,
     [](const model::TensorInfo& info) { return info.role == Role::kGradient; }, zero_share, true},
    {"not_finite", "NaN and Inf, share of elements",
     "Only tensors that ever held one are listed. The leftmost mark is where the trouble began.", false,
     // A mask that a module keeps is made of infinities, from the beginning on: no trouble begins there.
     [](const model::TensorInfo& info) { return info.role != Role::kBuffer; },
     [](const model::TensorSample& sample) {
         return share(sample.statistics.not_finite(), sample.statistics.count);
     },
     false},
};

// Rows by position in the forward pass, then in the order in which they were registered.
std::vector<TensorId> forward_order(const model::TensorTable& tensors,
                                    bool (*wants)(const model::TensorInfo&)) {
    std::vector<TensorId> ids;
    for (std::size_t i = 0; i < tensors.size(); ++i)
        if (wants(tensors[i])) ids.push_back(static_cast<TensorId>(i));
    const auto key = [&](TensorId id) {
        const std::int32_t layer = tensors[id].layer;
        return layer < 0 ? std::numeric_limits<std::int32_t>::max() : layer;
    };
    std::stable_sort(ids.begin(), ids.end(), [&](TensorId a, TensorId b) { return key(a) < key(b); });
    return ids;
}

// The module of a parameter's tensor is either its module or the parameter's own path.
std::string module_of(const model::TensorInfo& info) {
    const bool of_parameter =
        info.role == Role::kWeight || info.role == Role::kBias || info.role == Role::kGradient;
    const std::size_t slash = info.name.find('/');
    if (!of_parameter || slash == std::string::npos) return info.module;
    const std::string_view parameter = std::string_view(info.name).substr(slash + 1);
    if (info.module != parameter) return info.module;
    const std::size_t dot = parameter.rfind('.');
    return dot == std::string_view::npos ? std::string("model") : std::string(parameter.substr(0, dot));
}

// Counts per class in a bounded number of parts of the run; neighbours are merged in pairs.
class ClassParts {
  public:
    struct Part {
        std::uint64_t first_x = 0;
        std::uint64_t last_x = 0;
        std::vector<ClassSummary::Row> rows;
    };

    void add(std::uint64_t x, const model::ClassCounts& counts) {
        if (parts_.empty() || in_last_ == per_part_) {
            if (parts_.size() == kMostClassParts) halve();
            parts_.push_back({x, x, {}});
            in_last_ = 0;
        }
        ++in_last_;
        Part& part = parts_.back();
        part.last_x = x;
        if (part.rows.size() < counts.labels.size()) part.rows.resize(counts.labels.size());
        for (std::size_t i = 0; i < counts.labels.size(); ++i) {
            part.rows[i].labels += counts.labels[i];
            if (i < counts.predictions.size()) part.rows[i].predictions += counts.predictions[i];
            if (i < counts.hits.size()) part.rows[i].hits += counts.hits[i];
        }
    }
    // The last quarter of the run, at least one part.
    [[nodiscard]] Part last_quarter() const {
        Part sum;
        if (parts_.empty()) return sum;
        sum = parts_.back();
        const std::size_t wanted = std::max<std::size_t>(1, parts_.size() / 4);
        for (std::size_t i = parts_.size() - wanted; i + 1 < parts_.size(); ++i) add_up(sum, parts_[i]);
        return sum;
    }

  private:
    static void add_up(Part& into, const Part& from) {
        into.first_x = std::min(into.first_x, from.first_x);
        into.last_x = std::max(into.last_x, from.last_x);
        if (into.rows.size() < from.rows.size()) into.rows.resize(from.rows.size());
        for (std::size_t i = 0; i < from.rows.size(); ++i) {
            into.rows[i].labels += from.rows[i].labels;
            into.rows[i].predictions += from.rows[i].predictions;
            into.rows[i].hits += from.rows[i].hits;
        }
    }
    void halve() {
        for (std::size_t i = 0; i + 1 < parts_.size(); i += 2) {
            Part merged = std::move(parts_[i]);
            add_up(merged, parts_[i + 1]);
            parts_[i / 2] = std::move(merged);
        }
        parts_.resize(parts_.size() / 2);
        per_part_ *= 2;
    }

    std::vector<Part> parts_;
    std::uint64_t per_part_ = 1;
    std::uint64_t in_last_ = 0;
};

class Collector {
  public:
    Collector(read::Run& run, const model::Verdict& verdict, std::size_t most_points)
        : run_(run), most_points_(most_points) {
        data_.verdict = verdict;
    }

    base::Result<ReportData> collect() {
        take_facts();
        prepare_detail();
        prepare_finding_plots();
        TRAINDBG_RETURN_IF_ERROR(run_.for_each_step([this](const model::StepView& step) {
            visit(step);
            return true;
        }));
        finish_series();
        finish_findings();
        finish_classes();
        finish_heat();
        finish_layers();
        return std::move(data_);
    }

  private:
    // Which curve: worker, tensor, statistic, mode.
    using SeriesKey = std::tuple<model::WorkerId, std::string, std::string, Mode>;

    void take_facts() {
        data_.path = run_.path();
        data_.meta = run_.meta();
        data_.end = run_.end();
        data_.complete = run_.is_complete();
        data_.worker_gaps = run_.worker_gaps();
        data_.totals = run_.totals();
        data_.damage = run_.damage();
        data_.events = run_.events();
        data_.capture_notes = capture_notes(run_, base::printable(data_.path));
        for (const model::WorkerId worker : run_.workers()) data_.workers.push_back(run_.worker_meta(worker));
        for (const Mode mode : {Mode::kTrain, Mode::kEval, Mode::kPredict, Mode::kGlobal}) {
            const std::vector<model::StepIndex> steps = run_.steps(mode);
            if (!steps.empty()) data_.steps.push_back({mode, steps.size(), steps.back()});
        }
        has_train_ = !data_.steps.empty() && data_.steps.front().mode == Mode::kTrain;

        const storage::RunLayout layout{data_.path};
        // Of a plan that was changed meanwhile, what held at the end; the events tell since when.
        const auto change = storage::newest_plan_change(run_.files(), layout);
        auto bytes = storage::read_whole(run_.files(), change.is_ok() && *change != 0
                                                           ? layout.plan_change_json(*change)
                                                           : layout.plan_json());
        if (!bytes.is_ok()) return;  // a run without a plan has none to show
        const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        auto plan = model::capture_config_from_json(text);
        if (plan.is_ok()) data_.plan = std::move(plan).value();
    }

    // Heat maps and layers are shown for one worker: the one with the first finding.
    void prepare_detail() {
        const std::vector<model::WorkerId> workers = run_.workers();
        if (workers.empty()) return;
        data_.detail_worker = workers.front();
        for (const model::Finding& finding : data_.verdict.findings) {
            if (std::find(workers.begin(), workers.end(), finding.worker) == workers.end()) continue;
            data_.detail_worker = finding.worker;
            break;
        }
        data_.tensors = run_.tensors(data_.detail_worker);
        std::size_t rows = 0;
        for (const Quantity& quantity : kQuantities) {
            HeatQuantity heat;
            heat.key = quantity.key;
            heat.title = quantity.title;
            heat.note = quantity.note;
            heat.logarithmic = quantity.logarithmic;
            heat.tensors = forward_order(data_.tensors, quantity.wants);
            // Rows of this one are rare: they do not take from the others' room.
            if (heat.key != "not_finite") rows += heat.tensors.size();
            data_.heat.push_back(std::move(heat));
        }
        const std::size_t columns =
            std::clamp(kMostCells / std::max<std::size_t>(rows, 1), kFewestColumns, kMostColumns);
        places_.assign(data_.tensors.size(), {});
        for (std::size_t q = 0; q < data_.heat.size(); ++q) {
            HeatQuantity& heat = data_.heat[q];
            heat.map = HeatMap(heat.tensors.size(), columns);
            for (std::size_t row = 0; row < heat.tensors.size(); ++row)
                places_[heat.tensors[row]].emplace_back(q, row);
        }
        last_.assign(data_.tensors.size(), {});
    }

    void prepare_finding_plots() {
        for (const model::Finding& finding : data_.verdict.findings)
            for (const auto& [tensor, statistic] : finding.plots) {
                std::vector<std::string>& statistics = wanted_[{finding.worker, tensor}];
                if (std::find(statistics.begin(), statistics.end(), statistic) == statistics.end())
                    statistics.push_back(statistic);
            }
    }

    void visit(const model::StepView& step) {
        const model::StepRecord& record = *step.record;
        if (step.worker != worker_ || first_visit_) {
            first_visit_ = false;
            worker_ = step.worker;
            train_x_ = 0;
        }
        if (record.mode == Mode::kTrain) train_x_ = record.step;
        const std::uint64_t x = record.mode == Mode::kTrain || !has_train_ ? record.step : train_x_;
        if (record.mode != Mode::kTrain) axis_[{step.worker, record.mode}].emplace_back(record.step, x);
        data_.last_wall_nanos = std::max(data_.last_wall_nanos, record.wall_nanos);

        for (const model::ScalarSample& sample : record.scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (model::is_of_later_micro_batch(info)) continue;
            if (info.role == Role::kLoss || info.role == Role::kMetric || is_wanted(step.worker, info.name))
                series_of(step.worker, info, "value", record.mode).points.push_back({x, sample.value});
        }
        for (const model::TensorSample& sample : record.tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const auto wanted = wanted_.find({step.worker, info.name});
            if (wanted != wanted_.end())
                add_wanted(step.worker, info, wanted->second, record.mode, x, sample);
            if (step.worker == data_.detail_worker) add_detail(x, record.mode, sample);
        }
        for (const model::ClassSample& sample : record.classes) {
            const model::TensorInfo& info = step.info(sample.tensor);
            std::uint64_t labels = 0;
            std::uint64_t hits = 0;
            for (const std::uint32_t count : sample.counts.labels) labels += count;
            for (const std::uint32_t count : sample.counts.hits) hits += count;
            if (labels == 0) continue;
            series_of(step.worker, info, "accuracy", record.mode).points.push_back({x, share(hits, labels)});
            classes_[{step.worker, info.name, record.mode}].add(x, sample.counts);
        }
    }

    bool is_wanted(model::WorkerId worker, const std::string& tensor) const {
        return wanted_.find({worker, tensor}) != wanted_.end();
    }

    void add_wanted(model::WorkerId worker, const model::TensorInfo& info,
                    const std::vector<std::string>& statistics, Mode mode, std::uint64_t x,
                    const model::TensorSample& sample) {
        for (const std::string& statistic : statistics) {
            const std::optional<double> value = read::Run::statistic_of(sample, statistic);
            if (!value) continue;
            // Moments are of the finite elements; a tensor that has others is shown as what it is.
            const bool counts = statistic == "nan" || statistic == "inf" || statistic == "count";
            const bool hides = sample.statistics.not_finite() != 0 && !counts;
            const double bad = sample.statistics.nan != 0 ? kNaN : std::numeric_limits<double>::infinity();
            series_of(worker, info, statistic, mode).points.push_back({x, hides ? bad : *value});
        }
    }

    void add_detail(std::uint64_t x, Mode mode, const model::TensorSample& sample) {
        if (sample.tensor >= places_.size()) return;
        const bool not_finite = sample.statistics.not_finite() != 0;
        LayerTensor& last = last_[sample.tensor];
        last.tensor = sample.tensor;
        if (not_finite && last.not_finite_steps++ == 0) last.first_not_finite = x;
        if (mode != Mode::kTrain && has_train_) return;
        last.last_step = x;
        last.last = sample;
        for (const auto& [quantity, row] : places_[sample.tensor]) {
            HeatQuantity& heat = data_.heat[quantity];
            const double value = kQuantities[quantity].value(sample);
            const bool mark = not_finite && kQuantities[quantity].marks_not_finite;
            if (!std::isnan(value) || mark) heat.map.add(x, row, value, mark);
        }
    }

    Series& series_of(model::WorkerId worker, const model::TensorInfo& info, const std::string& statistic,
                      Mode mode) {
        const auto [place, is_new] =
            series_index_.try_emplace(SeriesKey{worker, info.name, statistic, mode}, data_.series.size());
        if (is_new) {
            Series series;
            series.worker = worker;
            series.mode = mode;
            series.tensor = info.name;
            series.statistic = statistic;
            data_.series.push_back(std::move(series));
            roles_.push_back(info.role);
        }
        return data_.series[place->second];
    }

    void finish_series() {
        for (Series& series : data_.series) {
            if (series.mode != Mode::kTrain) series.points = mean_by_step(series.points);
            finish(series, most_points_);
        }
        Chart losses{"Loss", {}};
        std::vector<Chart> metrics;
        std::map<std::string, std::size_t> metric_index;
        for (std::size_t i = 0; i < data_.series.size(); ++i) {
            const Series& series = data_.series[i];
            if (series.statistic != "value") continue;
            if (roles_[i] == Role::kLoss && !is_repeated(i, losses.series)) losses.series.push_back(i);
            if (roles_[i] != Role::kMetric) continue;
            const auto [place, is_new] = metric_index.try_emplace(series.tensor, metrics.size());
            if (is_new) {
                if (metrics.size() == kMostMetricCharts) {
                    metric_index.erase(place);
                    continue;
                }
                metrics.push_back({series.tensor, {}});
            }
            metrics[place->second].series.push_back(i);
        }
        if (!losses.series.empty()) data_.charts.push_back(std::move(losses));
        for (Chart& chart : metrics) data_.charts.push_back(std::move(chart));
    }

    // What `backward()` was called on is mostly what the loss function returned: one curve is enough.
    bool is_repeated(std::size_t index, const std::vector<std::size_t>& others) const {
        const Series& series = data_.series[index];
        return std::any_of(others.begin(), others.end(), [&](std::size_t i) {
            const Series& other = data_.series[i];
            return other.worker == series.worker && other.mode == series.mode &&
                   same(other.points, series.points);
        });
    }
    static bool same(const std::vector<Point>& a, const std::vector<Point>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Point& p, const Point& q) {
            return p.x == q.x && (p.y == q.y || (std::isnan(p.y) && std::isnan(q.y)));
        });
    }

    // Where a step of some mode lies on the axis of TRAIN steps.
    std::uint64_t on_axis(model::WorkerId worker, Mode mode, std::uint64_t step) const {
        if (mode == Mode::kTrain || !has_train_) return step;
        const auto axis = axis_.find({worker, mode});
        if (axis == axis_.end()) return step;
        const auto place =
            std::lower_bound(axis->second.begin(), axis->second.end(), step,
                             [](const auto& entry, std::uint64_t s) { return entry.first < s; });
        return place == axis->second.end() ? axis->second.back().second : place->second;
    }

    void finish_findings() {
        for (const model::Finding& finding : data_.verdict.findings) {
            FindingPlot plot;
            const std::uint64_t first =
                finding.first_step == model::kThisStep ? finding.step : finding.first_step;
            plot.first_x = on_axis(finding.worker, finding.mode, first);
            plot.x = on_axis(finding.worker, finding.mode, finding.step);
            plot.last_x = on_axis(finding.worker, finding.mode, finding.last_step);
            for (const auto& [tensor, statistic] : finding.plots) {
                for (std::size_t i = 0; i < data_.series.size(); ++i) {
                    const Series& series = data_.series[i];
                    if (series.worker != finding.worker || series.tensor != tensor) continue;
                    const bool scalar = series.statistic == "value";
                    if (series.statistic != statistic && !(scalar && statistic.empty())) continue;
                    if (std::find(plot.series.begin(), plot.series.end(), i) == plot.series.end())
                        plot.series.push_back(i);
                }
            }
            data_.finding_plots.push_back(std::move(plot));
        }
    }

    void finish_classes() {
        for (const auto& [key, parts] : classes_) {
            const auto& [worker, tensor, mode] = key;
            const ClassParts::Part part = parts.last_quarter();
            ClassSummary summary;
            summary.tensor = tensor;
            summary.mode = mode;
            summary.worker = worker;
            summary.accuracy = series_index_.at({worker, tensor, "accuracy", mode});
            summary.classes = part.rows.size();
            summary.first_x = part.first_x;
            summary.last_x = part.last_x;
            summary.rows = part.rows;
            for (std::size_t i = 0; i < summary.rows.size(); ++i) {
                summary.rows[i].index = i;
                summary.samples += summary.rows[i].labels;
            }
            if (summary.rows.size() > kMostClassRows) keep_farthest(summary.rows);
            data_.classes.push_back(std::move(summary));
        }
    }

    // Of many classes, those whose predictions differ most from their labels.
    static void keep_farthest(std::vector<ClassSummary::Row>& rows) {
        const auto distance = [](const ClassSummary::Row& row) {
            return row.labels > row.predictions ? row.labels - row.predictions : row.predictions - row.labels;
        };
        std::stable_sort(rows.begin(), rows.end(),
                         [&](const auto& a, const auto& b) { return distance(a) > distance(b); });
        rows.resize(kMostClassRows);
        std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
    }

    // Drops the rows that never had a value, and quantities without rows.
    void finish_heat() {
        std::vector<HeatQuantity> kept;
        for (HeatQuantity& heat : data_.heat) {
            const bool only_bad = heat.key == "not_finite";
            std::vector<std::size_t> rows;
            for (std::size_t row = 0; row < heat.tensors.size(); ++row) {
                if (only_bad ? last_[heat.tensors[row]].not_finite_steps != 0 : !heat.map.row_is_empty(row))
                    rows.push_back(row);
            }
            if (rows.empty() || heat.map.columns().empty()) continue;
            std::vector<TensorId> tensors;
            for (const std::size_t row : rows) tensors.push_back(heat.tensors[row]);
            heat.tensors = std::move(tensors);
            heat.map.keep_rows(rows);
            kept.push_back(std::move(heat));
        }
        data_.heat = std::move(kept);
    }

    void finish_layers() {
        std::map<std::string, std::size_t> index;
        for (const TensorId id : forward_order(data_.tensors, [](const model::TensorInfo& info) {
                 return info.role == Role::kWeight || info.role == Role::kBias ||
                        info.role == Role::kGradient || is_output(info);
             })) {
            const model::TensorInfo& info = data_.tensors[id];
            const std::string module = module_of(info);
            const auto [place, is_new] = index.try_emplace(module, data_.layers.size());
            if (is_new) {
                data_.layers.emplace_back();
                data_.layers.back().module = module;
                data_.layers.back().layer = info.layer;
            }
            LayerRow& row = data_.layers[place->second];
            if (row.type.empty()) row.type = info.module_type;
            if (info.role == Role::kWeight || info.role == Role::kBias) {
                row.parameters.push_back(id);
                std::uint64_t count = 1;
                for (const std::int64_t size : info.shape) count *= static_cast<std::uint64_t>(size);
                row.parameter_count += count;
            }
            if (last_[id].last.statistics.count != 0) row.tensors.push_back(last_[id]);
        }
    }

    read::Run& run_;
    std::size_t most_points_;
    ReportData data_;
    bool has_train_ = false;

    std::map<std::pair<model::WorkerId, std::string>, std::vector<std::string>> wanted_;
    std::map<SeriesKey, std::size_t> series_index_;
    std::vector<Role> roles_;  // of data_.series
    std::map<std::tuple<model::WorkerId, std::string, Mode>, ClassParts> classes_;
    std::map<std::pair<model::WorkerId, Mode>, std::vector<std::pair<std::uint64_t, std::uint64_t>>> axis_;
    std::vector<std::vector<std::pair<std::size_t, std::size_t>>> places_;  // tensor -> (quantity, row)
    std::vector<LayerTensor> last_;                                         // by tensor

    bool first_visit_ = true;
    model::WorkerId worker_ = 0;
    std::uint64_t train_x_ = 0;
};

}  // namespace

base::Result<ReportData> collect(read::Run& run, const model::Verdict& verdict, std::size_t most_points) {
    return Collector(run, verdict, most_points).collect();
}

}  // namespace traindbg::report
