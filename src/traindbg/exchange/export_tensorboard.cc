// Event files that TensorBoard shows: one sub-run per mode and worker, one tag per name and statistic.
//
// Scalars are written as `simple_value` and histograms as `HistogramProto`, the forms that every reader of
// event files knows; TensorBoard turns them into its newer ones when it loads them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <list>
#include <map>
#include <memory>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/exchange/array_names.h"
#include "traindbg/exchange/export_format.h"
#include "traindbg/exchange/output_file.h"
#include "traindbg/format/tf_event.h"
#include "traindbg/format/tfrecord.h"
#include "traindbg/model/histogram.h"
#include "traindbg/read/run.h"
#include "traindbg/tables/table_reader.h"

namespace traindbg::exchange {
namespace {

using base::Result;
using base::Status;
using model::StepView;

// TensorBoard takes files that have this in their names.
constexpr std::string_view kMark = "tfevents";
constexpr std::string_view kFileVersion = "brain.Event:2";
// Statistics that make a chart; the others on request.
constexpr std::array<std::string_view, 9> kUsualStatistics = {"min", "max", "mean", "std", "l1",
                                                              "l2",  "nan", "inf",  "zero"};

class EventFile {
  public:
    explicit EventFile(OutputFile file) : file_(std::move(file)) {}

    [[nodiscard]] Status add(const format::TfEvent& event) {
        payload_.clear();
        record_.clear();
        format::encode_tf_event(payload_, event);
        format::append_record(record_, payload_.bytes());
        return file_.write(record_.bytes());
    }
    [[nodiscard]] Status commit() { return file_.commit(); }
    [[nodiscard]] std::uint64_t size() const noexcept { return file_.size(); }

  private:
    OutputFile file_;
    base::ByteWriter payload_;
    base::ByteWriter record_;
};

double seconds(std::int64_t nanos) noexcept { return static_cast<double>(nanos) * 1e-9; }

// What bins alone tell of the moments, for a tensor whose statistics were not recorded beside them.
void moments_of(const model::Histogram& bins, format::TfHistogram& out) {
    bool any = false;
    for (const model::HistogramBin& entry : bins) {
        const model::BinEdges edges = model::edges(entry.bin);
        if (!std::isfinite(edges.lower)) continue;
        const double middle = edges.lower / 2 + edges.upper / 2;
        const auto count = static_cast<double>(entry.count);
        if (!any) out.min = edges.lower;
        any = true;
        out.max = edges.upper;
        out.num += count;
        out.sum += middle * count;
        out.sum_squares += middle * middle * count;
    }
}

// Bucket i holds the values above limit i - 1, up to limit i. NaN and infinities have no place.
format::TfHistogram to_tensorboard(const model::Histogram& bins, const model::Statistics* statistics) {
    format::TfHistogram out;
    if (statistics != nullptr) {
        out.min = statistics->min;
        out.max = statistics->max;
        out.num = static_cast<double>(statistics->finite());
        out.sum = statistics->mean * out.num;
        out.sum_squares = statistics->l2 * statistics->l2;
    } else {
        moments_of(bins, out);
    }
    const auto bucket = [&](double limit, double count) {
        if (!out.bucket_limit.empty() && limit <= out.bucket_limit.back()) {
            out.bucket.back() += count;  // zeros, after the negative numbers next to them
            return;
        }
        out.bucket_limit.push_back(limit);
        out.bucket.push_back(count);
    };
    for (const model::HistogramBin& entry : bins) {
        const model::BinEdges edges = model::edges(entry.bin);
        if (!std::isfinite(edges.lower)) continue;
        const bool has_gap = out.bucket_limit.empty() || edges.lower > out.bucket_limit.back();
        if (has_gap && edges.lower < edges.upper && edges.lower > -DBL_MAX) bucket(edges.lower, 0);
        bucket(edges.upper, static_cast<double>(entry.count));
    }
    if (out.bucket.empty()) {  // TensorBoard wants one bucket at least
        out.bucket_limit.push_back(DBL_MAX);
        out.bucket.push_back(0);
    }
    return out;
}

class Exporter {
  public:
    Exporter(const ExportRequest& request, read::Run& run, OutputDirectory& directory)
        : request_(request), run_(run), directory_(directory), filter_(request.selection) {
        const auto has = [&](std::string_view table) {
            return std::find(request.tables.begin(), request.tables.end(), table) != request.tables.end();
        };
        scalars_ = has("scalars");
        histograms_ = has("histograms");
        if (has("statistics")) {
            statistics_ = request.selection.statistics;
            if (statistics_.empty()) statistics_.assign(kUsualStatistics.begin(), kUsualStatistics.end());
        }
        several_ = run.workers().size() > 1;
    }

    [[nodiscard]] Result<ExportResult> write() {
        const std::uint64_t total = run_.totals().steps;
        std::uint64_t done = 0;
        Status problem;
        TRAINDBG_RETURN_IF_ERROR(run_.for_each_step([&](const StepView& view) {
            request_.tell(++done, total);
            if (request_.selection.wants(view.worker) && request_.selection.wants(view.mode(), view.step()))
                problem = add_step(view);
            return problem.is_ok();
        }));
        TRAINDBG_RETURN_IF_ERROR(problem);
        for (auto& [name, file] : files_) {
            TRAINDBG_RETURN_IF_ERROR(file->commit());
            result_.bytes += file->size();
        }
        result_.files = files_.size();
        return std::move(result_);
    }

  private:
    [[nodiscard]] Status add_step(const StepView& view) {
        tags_.clear();
        format::TfEvent event;
        event.wall_time = seconds(view.record->wall_nanos);
        event.step = static_cast<std::int64_t>(
            std::min<std::uint64_t>(view.step(), static_cast<std::uint64_t>(INT64_MAX)));
        const auto value = [&](std::string tag) -> format::TfSummaryValue& {
            tags_.push_back(std::move(tag));
            event.values.push_back({});
            event.values.back().tag = tags_.back();
            return event.values.back();
        };
        const auto wanted = [&](model::TensorId id) {
            return id < view.tensors->size() && filter_.wants(view.worker, view.info(id));
        };
        if (scalars_)
            for (const model::ScalarSample& sample : view.record->scalars)
                if (wanted(sample.tensor))
                    value(path_of(view.info(sample.tensor).name)).simple_value =
                        static_cast<float>(sample.value);
        for (const model::TensorSample& sample : view.record->tensors) {
            if (statistics_.empty() || !wanted(sample.tensor)) continue;
            const std::string name = path_of(view.info(sample.tensor).name);
            for (const std::string& statistic : statistics_)
                if (const auto number = statistic_of(sample, statistic))
                    value(name + "/" + statistic).simple_value = static_cast<float>(*number);
        }
        for (const model::HistogramSample& sample : view.record->histograms) {
            if (!histograms_ || !wanted(sample.tensor)) continue;
            const auto& samples = view.record->tensors;
            const auto same = std::find_if(samples.begin(), samples.end(),
                                           [&](const auto& other) { return other.tensor == sample.tensor; });
            value(path_of(view.info(sample.tensor).name)).histogram =
                to_tensorboard(sample.bins, same == samples.end() ? nullptr : &same->statistics);
        }
        if (event.values.empty()) return Status::ok();
        result_.items += event.values.size();
        TRAINDBG_ASSIGN_OR_RETURN(EventFile * file, file_of(view));
        return file->add(event);
    }

    static std::optional<double> statistic_of(const model::TensorSample& sample, const std::string& name) {
        if (name == "positive_infinite") return static_cast<double>(sample.statistics.positive_infinite);
        if (name == "negative_infinite") return static_cast<double>(sample.statistics.negative_infinite);
        return read::Run::statistic_of(sample, name);
    }

    [[nodiscard]] Result<EventFile*> file_of(const StepView& view) {
        const std::string sub_run =
            worker_prefix(view.worker, several_) + std::string(model::to_string(view.mode()));
        if (const auto known = files_.find(sub_run); known != files_.end()) return known->second.get();
        const std::string name =
            base::format("{}/events.out.{}.{:010}.traindbg.0", sub_run, kMark,
                         std::max<std::int64_t>(view.record->wall_nanos, 0) / 1'000'000'000);
        TRAINDBG_ASSIGN_OR_RETURN(const std::string path, directory_.place(name));
        TRAINDBG_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(path, false));
        auto file = std::make_unique<EventFile>(std::move(output));
        format::TfEvent first;
        first.wall_time = seconds(view.record->wall_nanos);
        first.file_version = kFileVersion;
        TRAINDBG_RETURN_IF_ERROR(file->add(first));
        return files_.emplace(sub_run, std::move(file)).first->second.get();
    }

    const ExportRequest& request_;
    read::Run& run_;
    OutputDirectory& directory_;
    tables::TensorFilter filter_;
    bool scalars_ = false;
    bool histograms_ = false;
    bool several_ = false;
    std::vector<std::string> statistics_;
    std::map<std::string, std::unique_ptr<EventFile>> files_;
    std::list<std::string> tags_;  // of the event under way, which borrows them
    ExportResult result_;
};

}  // namespace

Result<ExportResult> export_tensorboard(const ExportRequest& request) {
    TRAINDBG_ASSIGN_OR_RETURN(const auto run, read::Run::open(request.run, *request.files));
    // Looks at the names of statistics and collections as the tables do.
    TRAINDBG_ASSIGN_OR_RETURN(const auto checked,
                              tables::TableReader::open(request.run, tables::TableKind::kStatistics,
                                                        request.selection, *request.files));
    TRAINDBG_ASSIGN_OR_RETURN(OutputDirectory directory,
                              OutputDirectory::create(request.to, request.overwrite, kMark));
    TRAINDBG_ASSIGN_OR_RETURN(ExportResult result, Exporter(request, *run, directory).write());
    TRAINDBG_RETURN_IF_ERROR(directory.commit());
    result.add_damage(run->damage());
    return result;
}

}  // namespace traindbg::exchange
