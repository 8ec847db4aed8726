#include "traindbg/report/chart_json.h"

#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/json.h"
#include "traindbg/report/words.h"

namespace traindbg::report {
namespace {

using model::Json;

// Five significant digits: more than a chart or a tooltip can show.
Json short_number(double value) {
    if (!std::isfinite(value)) return model::number_to_json(value);
    return std::strtod(base::format("{:.5g}", value).c_str(), nullptr);
}

Json series_json(const Series& series) {
    Json x = Json::array();
    Json y = Json::array();
    Json smooth = Json::array();
    for (const Point& point : series.points) {
        x.push_back(point.x);
        y.push_back(short_number(point.y));
    }
    for (const double value : series.smooth)
        smooth.push_back(std::isfinite(value) ? short_number(value) : Json());
    return {{"tensor", base::printable(series.tensor)},
            {"statistic", base::printable(series.statistic)},
            {"mode", to_string(series.mode)},
            {"worker", series.worker},
            {"recorded", series.recorded},
            {"x", std::move(x)},
            {"y", std::move(y)},
            {"smooth", std::move(smooth)}};
}

Json heat_json(const HeatQuantity& heat, std::map<model::TensorId, std::size_t>& names) {
    Json rows = Json::array();
    for (const model::TensorId id : heat.tensors)
        rows.push_back(names.try_emplace(id, names.size()).first->second);
    Json first = Json::array();
    Json last = Json::array();
    for (const HeatMap::Column& column : heat.map.columns()) {
        first.push_back(column.first);
        last.push_back(column.last);
    }
    Json values = Json::array();
    Json not_finite = Json::array();
    std::size_t index = 0;
    for (std::size_t row = 0; row < heat.map.rows(); ++row) {
        for (const HeatMap::Column& column : heat.map.columns()) {
            const HeatCell& cell = column.cells[row];
            values.push_back(std::isnan(cell.value) ? Json() : short_number(static_cast<double>(cell.value)));
            if (cell.not_finite) not_finite.push_back(index);
            ++index;
        }
    }
    return {{"key", heat.key},
            {"title", heat.title},
            {"note", heat.note},
            {"logarithmic", heat.logarithmic},
            {"rows", std::move(rows)},
            {"first", std::move(first)},
            {"last", std::move(last)},
            {"values", std::move(values)},
            {"not_finite", std::move(not_finite)}};
}

Json classes_json(const ClassSummary& summary) {
    Json rows = Json::array();
    for (const ClassSummary::Row& row : summary.rows)
        rows.push_back(Json::array({row.index, row.labels, row.predictions, row.hits}));
    return {{"tensor", base::printable(summary.tensor)},
            {"mode", to_string(summary.mode)},
            {"worker", summary.worker},
            {"accuracy", summary.accuracy},
            {"classes", summary.classes},
            {"samples", summary.samples},
            {"first", summary.first_x},
            {"last", summary.last_x},
            {"rows", std::move(rows)}};
}

}  // namespace

std::string chart_json(const ReportData& data) {
    Json series = Json::array();
    for (const Series& item : data.series) series.push_back(series_json(item));
    Json charts = Json::array();
    for (const Chart& chart : data.charts)
        charts.push_back({{"title", base::printable(chart.title)}, {"series", chart.series}});
    Json findings = Json::array();
    for (std::size_t i = 0; i < data.finding_plots.size(); ++i) {
        const FindingPlot& plot = data.finding_plots[i];
        const model::Finding& finding = data.verdict.findings[i];
        findings.push_back({{"title", base::printable(title_of_rule(finding.rule))},
                            {"severity", to_string(finding.severity)},
                            {"worker", finding.worker},
                            {"first", plot.first_x},
                            {"step", plot.x},
                            {"last", plot.last_x},
                            {"series", plot.series}});
    }
    Json classes = Json::array();
    for (const ClassSummary& summary : data.classes) classes.push_back(classes_json(summary));
    std::map<model::TensorId, std::size_t> names;
    Json heat = Json::array();
    for (const HeatQuantity& quantity : data.heat) heat.push_back(heat_json(quantity, names));
    Json tensors = Json::array();
    for (std::size_t i = 0; i < names.size(); ++i) tensors.push_back(nullptr);
    for (const auto& [id, index] : names) {
        const model::TensorInfo& info = data.tensors[id];
        tensors[index] = {base::printable(info.name), base::printable(info.module_type)};
    }
    std::uint64_t steps = 0;
    for (const StepCounts& count : data.steps)
        if (count.mode == model::Mode::kTrain || steps == 0) steps = count.last;
    const Json json = {{"last_step", steps},
                       {"workers", data.workers.size()},
                       {"series", std::move(series)},
                       {"charts", std::move(charts)},
                       {"findings", std::move(findings)},
                       {"classes", std::move(classes)},
                       {"tensors", std::move(tensors)},
                       {"heat", std::move(heat)}};
    // '<' occurs in strings alone: escaped there, nothing can end the script element.
    std::string out;
    for (const char c : json.dump(-1, ' ', false, Json::error_handler_t::replace)) {
        if (c == '<') out += "\\u003c";
        else out += c;
    }
    return out;
}

}  // namespace traindbg::report
