// All that the page shows, as plain values: what lies between reading a run and writing HTML.
//
// `collect` is the only part of the report that reads a run. It visits every step once and keeps
// memory bounded by the number of tensors and scalars, not by what was captured of them.
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_source.h"
#include "traindbg/read/run.h"
#include "traindbg/report/heat_map.h"
#include "traindbg/report/series.h"

namespace traindbg::report {

// A chart of several curves over steps.
struct Chart {
    std::string title;
    std::vector<std::size_t> series;  // indexes into ReportData::series
};

// A quantity of many tensors over steps.
struct HeatQuantity {
    std::string key;    // "gradient_l2"
    std::string title;  // "Gradient, L2 norm"
    std::string note;   // how to read it, one sentence
    bool logarithmic = false;
    std::vector<model::TensorId> tensors;  // rows, in forward order, of `ReportData::detail_worker`
    HeatMap map{0, 2};
};

// Labels and predictions of one classification loss in one mode.
struct ClassSummary {
    struct Row {
        std::size_t index = 0;
        std::uint64_t labels = 0;
        std::uint64_t predictions = 0;
        std::uint64_t hits = 0;
    };
    std::string tensor;
    model::Mode mode = model::Mode::kTrain;
    model::WorkerId worker = 0;
    std::size_t accuracy = 0;   // index into ReportData::series
    std::size_t classes = 0;    // in all; `rows` may hold fewer
    std::uint64_t samples = 0;  // in the part that `rows` count
    std::uint64_t first_x = 0;  // the part: the last quarter of the run, in TRAIN steps
    std::uint64_t last_x = 0;
    std::vector<Row> rows;
};

// The last numbers of one tensor of a layer.
struct LayerTensor {
    model::TensorId tensor = 0;
    std::uint64_t last_step = 0;
    model::TensorSample last;
    std::uint64_t not_finite_steps = 0;  // recorded steps at which an element was not finite
    std::uint64_t first_not_finite = 0;  // TRAIN step
};

struct LayerRow {
    std::string module;
    std::string type;
    std::int32_t layer = -1;
    std::vector<model::TensorId> parameters;
    std::uint64_t parameter_count = 0;
    std::vector<LayerTensor> tensors;
};

struct FindingPlot {
    std::uint64_t first_x = 0;  // where the finding lies on the axis of TRAIN steps
    std::uint64_t x = 0;
    std::uint64_t last_x = 0;
    std::vector<std::size_t> series;
};

struct StepCounts {
    model::Mode mode = model::Mode::kTrain;
    std::uint64_t recorded = 0;
    std::uint64_t last = 0;
};

struct ReportData {
    std::string path;
    model::RunMeta meta;
    std::vector<model::WorkerMeta> workers;
    std::optional<model::RunEnd> end;
    bool complete = false;  // every worker wrote its end record
    read::WorkerGaps worker_gaps;
    read::RunTotals totals;
    std::vector<read::Damage> damage;
    std::vector<read::RunEvent> events;
    std::vector<std::pair<std::string, std::string>> capture_notes;  // see capture_notes.h
    std::optional<model::CaptureConfig> plan;
    std::vector<StepCounts> steps;
    std::int64_t last_wall_nanos = 0;  // of the last recorded step

    model::Verdict verdict;
    std::vector<FindingPlot> finding_plots;  // one per finding, in its order

    std::vector<Series> series;
    std::vector<Chart> charts;  // losses first, then metrics
    std::vector<ClassSummary> classes;

    model::WorkerId detail_worker = 0;  // the worker whose layers are shown
    model::TensorTable tensors;         // its tensors
    std::vector<HeatQuantity> heat;
    std::vector<LayerRow> layers;  // in forward order
};

[[nodiscard]] base::Result<ReportData> collect(read::Run& run, const model::Verdict& verdict,
                                               std::size_t most_points);

}  // namespace traindbg::report
