// The page as a whole, of runs that are written by the real writer and read by the real reader.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/sample_run.h"
#include "storage/temporary_directory.h"
#include "traindbg/model/json.h"
#include "traindbg/report/markup.h"
#include "traindbg/report/report.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::report {
namespace {

using testing::kHostileEnd;
using testing::kHostileName;
using testing::make_sample_run;
using testing::SampleOptions;
using testing::SampleRun;
using traindbg::testing::TemporaryDirectory;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

void put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(storage::posix_file_system().put_atomic(path, base::as_bytes(text)).is_ok());
}

// Writes the run as a training and its supervisor would.
void write_run(const SampleRun& sample, const std::string& path,
               const std::vector<std::pair<std::string, std::string>>& events = {}) {
    const storage::RunLayout layout{path};
    put(layout.run_json(), model::to_json(sample.meta).dump());
    put(layout.end_json(), model::to_json(sample.end).dump());
    model::CaptureConfig plan;
    plan.requirements.push_back({"gradients",
                                 model::Mode::kTrain,
                                 model::What::kStatistics,
                                 {10, 20, 0, UINT64_MAX},
                                 "vanishing_gradient"});
    put(layout.plan_json(), model::to_json(plan).dump());
    write::WriterOptions options;
    options.run_directory = path;
    options.seals_parts = false;  // a log can be torn
    auto writer = write::RunWriter::open(storage::posix_file_system(), options);
    ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
    for (const model::TensorInfo& info : sample.tensors) (*writer)->add_tensor(info);
    (*writer)->describe(sample.worker);
    for (const auto& [kind, json] : events) (*writer)->event(kind, json);
    for (const model::StepRecord& step : sample.steps) (*writer)->append(model::StepRecord(step));
    ASSERT_TRUE((*writer)->close(std::chrono::seconds(60)).is_ok());
}

std::string report_of(const std::string& path, const model::Verdict& verdict,
                      std::size_t most_points = 1000) {
    auto run = read::Run::open(path);
    EXPECT_TRUE(run.is_ok()) << run.status().to_string();
    if (!run.is_ok()) return {};
    auto page = html_report(**run, verdict, {most_points});
    EXPECT_TRUE(page.is_ok()) << page.status().to_string();
    return page.is_ok() ? *page : std::string();
}

std::string sample_page(const SampleOptions& options = {}) {
    const TemporaryDirectory directory;
    const SampleRun sample = make_sample_run(options);
    write_run(sample, directory.path());
    return report_of(directory.path(), sample.verdict);
}

// The data that the page's script draws from.
nlohmann::json data_of(const std::string& page) {
    constexpr std::string_view kOpen = "id=\"report-data\">";
    const std::size_t begin = page.find(kOpen) + kOpen.size();
    return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(HtmlReportTest, EssentialsStandInThePageWithoutAScript) {
    const std::string page = sample_page();
    const std::string text = page.substr(0, page.find("id=\"report-data\""));
    for (const char* part :
         {"<h1>2 findings: 1 error and 1 warning</h1>", "was stopped by a rule (exit code 90)",
          "Learning rate too high", "likely, 86 %",
          "optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)", "1. Vanishing gradient",
          "2.96e-05", "limit 0.001", "fewer than 30 evaluations", "torch 2.13.0", "SGD: lr=0.5, momentum=0.9",
          "Time in traindbg", "every 10 steps, and each step below 20", "from step 180"})
        EXPECT_TRUE(has(text, part)) << part;
}

TEST(HtmlReportTest, HostileNamesAreNeverMarkup) {
    const std::string page = sample_page();
    EXPECT_FALSE(has(page, "<img"));
    EXPECT_TRUE(has(page, "&lt;img src=x onerror=alert(1)&gt;"));
    EXPECT_FALSE(has(page, "<script>alert"));
    EXPECT_EQ(count_of(page, "<script"), 2U);
    EXPECT_EQ(count_of(page, "</script"), 2U);
    EXPECT_FALSE(has(page, "<b>bold"));
    // ... and are still there, whole, for the charts.
    bool found = false;
    const nlohmann::json data = data_of(page);
    for (const auto& chart : data["charts"])
        found = found || chart["title"].get<std::string>() == std::string("metric/") + kHostileEnd;
    EXPECT_TRUE(found);
}

TEST(HtmlReportTest, LoadsNothingAndAllowsNothing) {
    const std::string page = sample_page();
    EXPECT_TRUE(has(page, "default-src 'none'; style-src 'sha256-"));
    EXPECT_FALSE(has(page, "unsafe-inline"));
    for (const char* part : {"src=\"", "@import", "url(", " style=\"", "<link", "innerHTML", "eval("})
        EXPECT_FALSE(has(page, part)) << part;
    EXPECT_EQ(count_of(page, "http"), count_of(page, "http-equiv") + 1);  // the name space of SVG
}

TEST(HtmlReportTest, FindingIsPlottedWhereItFired) {
    const nlohmann::json data = data_of(sample_page());
    ASSERT_EQ(data["findings"].size(), 2U);
    const auto& finding = data["findings"][0];
    EXPECT_EQ(finding["first"], 80);
    EXPECT_EQ(finding["last"], 199);
    ASSERT_EQ(finding["series"].size(), 2U);
    const auto& series = data["series"][finding["series"][0].get<std::size_t>()];
    EXPECT_EQ(series["tensor"], "gradient/conv1.weight");
    EXPECT_EQ(series["statistic"], "l2");
    EXPECT_EQ(series["x"].size(), series["y"].size());
    EXPECT_EQ(series["x"].size(), 110U);  // 20 steps, then every other one
}

TEST(HtmlReportTest, EvaluationsStandAtTheirTrainingStepAsOneMeanEach) {
    const nlohmann::json data = data_of(sample_page());
    bool found = false;
    for (const auto& series : data["series"]) {
        if (series["tensor"] != "loss/cross_entropy" || series["mode"] != "eval") continue;
        found = true;
        EXPECT_EQ(series["x"], nlohmann::json::parse("[19,39,59,79,99,119,139,159,179,199]"));
    }
    EXPECT_TRUE(found);
}

TEST(HtmlReportTest, LossThatIsRepeatedIsDrawnOnce) {
    const nlohmann::json data = data_of(sample_page());
    ASSERT_EQ(data["charts"][0]["title"], "Loss");
    EXPECT_EQ(data["charts"][0]["series"].size(), 2U);  // train and eval, not `loss` once more
}

TEST(HtmlReportTest, HeatMapMarksWhatIsNotFinite) {
    const nlohmann::json data = data_of(sample_page());
    ASSERT_FALSE(data["heat"].empty());
    const auto& gradient = data["heat"][0];
    EXPECT_EQ(gradient["key"], "gradient_l2");
    const std::size_t columns = gradient["first"].size();
    EXPECT_EQ(gradient["values"].size(), columns * gradient["rows"].size());
    EXPECT_FALSE(gradient["not_finite"].empty());
    for (const auto& index : gradient["not_finite"])
        EXPECT_GE(gradient["last"][index.get<std::size_t>() % columns].get<int>(), 180);
    EXPECT_EQ(data["tensors"][gradient["rows"][0].get<std::size_t>()][0], "gradient/conv1.weight");
}

TEST(HtmlReportTest, MasksThatModulesKeepAreNotAmongWhatIsNotFinite) {
    SampleRun sample = make_sample_run();
    model::TensorInfo mask = sample.tensors.front();
    mask.id = static_cast<model::TensorId>(sample.tensors.size());
    mask.name = "buffer/mask";
    mask.role = model::Role::kBuffer;
    sample.tensors.push_back(mask);
    model::Statistics statistics;
    statistics.count = 64;
    statistics.negative_infinite = 28;
    for (model::StepRecord& step : sample.steps) step.tensors.push_back({mask.id, statistics, {}});
    const TemporaryDirectory directory;
    write_run(sample, directory.path());
    const nlohmann::json data = data_of(report_of(directory.path(), sample.verdict));
    bool is_there = false;
    for (const auto& heat : data["heat"]) {
        if (heat["key"] != "not_finite") continue;
        is_there = true;
        for (const auto& row : heat["rows"])
            EXPECT_NE(data["tensors"][row.get<std::size_t>()][0], "buffer/mask");
    }
    EXPECT_TRUE(is_there) << "of the gradients, at the end";
}

TEST(HtmlReportTest, ClassThatIsNeverPredictedIsSeen) {
    const nlohmann::json data = data_of(sample_page());
    ASSERT_EQ(data["classes"].size(), 2U);
    for (const auto& classes : data["classes"]) {
        ASSERT_EQ(classes["rows"].size(), 10U);
        EXPECT_GT(classes["rows"][9][1].get<int>(), 0);
        EXPECT_EQ(classes["rows"][9][3].get<int>(), 0);
    }
}

TEST(HtmlReportTest, ThousandStepsStaySmall) { EXPECT_LT(sample_page({1000, 8, true}).size(), 1'000'000U); }

TEST(HtmlReportTest, ManyLayersStaySmallAndComplete) {
    const std::string page = sample_page({60, 500, true});
    EXPECT_LT(page.size(), 2'500'000U);
    const nlohmann::json data = data_of(page);
    EXPECT_EQ(data["heat"][0]["rows"].size(), 1002U);
    EXPECT_TRUE(has(page, ">fc499</span>"));
}

TEST(HtmlReportTest, LongSeriesAreThinned) {
    const TemporaryDirectory directory;
    const SampleRun sample = make_sample_run({3000, 1, true});
    write_run(sample, directory.path());
    const nlohmann::json data = data_of(report_of(directory.path(), sample.verdict, 100));
    for (const auto& series : data["series"]) {
        EXPECT_LE(series["x"].size(), 100U);
        if (series["tensor"] == "loss/cross_entropy" && series["mode"] == "train") {
            EXPECT_EQ(series["recorded"], 3000);
        }
    }
}

TEST(HtmlReportTest, CleanRunSaysSo) {
    const std::string page = sample_page({50, 1, false});
    EXPECT_TRUE(has(page, "<h1>Clean: no rule found a fault</h1>"));
    EXPECT_TRUE(has(page, "ended normally (exit code 0) after 50 steps recorded"));
    EXPECT_TRUE(has(page, "No rule found a fault. What was checked"));
    EXPECT_FALSE(has(page, "id=\"causes\""));
}

TEST(HtmlReportTest, RunWithoutAStepStillHasAReport) {
    const TemporaryDirectory directory;
    SampleRun sample = make_sample_run({0, 1, false});
    sample.end.exit_code = 1;
    write_run(sample, directory.path());
    const std::string page = report_of(directory.path(), {});
    EXPECT_TRUE(has(page, "<h1>Could not judge this training</h1>"));
    EXPECT_TRUE(has(page, "failed (exit code 1) before a step was recorded"));
    EXPECT_TRUE(data_of(page)["heat"].empty());
}

TEST(HtmlReportTest, RunWithoutAWorkerStillHasAReport) {
    const TemporaryDirectory directory;
    put(storage::RunLayout{directory.path()}.run_json(),
        model::to_json(make_sample_run({0, 1, false}).meta).dump());
    const std::string page = report_of(directory.path(), {});
    EXPECT_TRUE(has(page, "has no recorded end"));
}

TEST(HtmlReportTest, WhatCaptureLeftOutAndKeptIsTold) {
    const TemporaryDirectory directory;
    const SampleRun sample = make_sample_run({40, 1, false});
    const std::string run = directory.path() + "/run";
    std::filesystem::create_directories(run + "/flight");
    write_run(sample, run,
              {{"budget", R"({"budget":0.02,"spent":0.0194,"steps_due":400,"steps_left_out":360})"},
               {"flight_recorder", R"({"step":31,"reason":"rule <b>non_finite</b>"})"},
               {"evaluation_losses", R"({"loss":"mse_loss"})"},
               {"evaluation_losses", R"({"loss":"cross_entropy","of":"tensors"})"},
               {"not_captured", R"({"what":"attention maps","reason":"the model is compiled"})"}});
    write_run(sample, run + "/flight");
    const std::string page = report_of(run, sample.verdict);
    EXPECT_TRUE(has(page,
                    "<dt>Budget</dt><dd>2 %: 360 of 400 steps that were due were left out; "
                    "capture took 1.94 %</dd>"));
    EXPECT_TRUE(has(page,
                    "<dt>Flight</dt><dd>40 steps around what went wrong "
                    "(rule &lt;b&gt;non_finite&lt;/b&gt; at step 31): traindbg show "));
    EXPECT_TRUE(has(page,
                    "<dt>Evaluations</dt><dd>compute no loss; mse_loss is that of the labels in their "
                    "loader&#39;s batches</dd>"));
    EXPECT_TRUE(has(page, "cross_entropy is that of the labels that were found beside the tensor"));
    EXPECT_TRUE(has(page, "<dt>Not seen</dt><dd>attention maps: the model is compiled</dd>"));
}

TEST(HtmlReportTest, WhatWasSkippedAndWhatFailedIsToldOnceForAReason) {
    const TemporaryDirectory directory;
    const SampleRun sample = make_sample_run({40, 1, false});
    std::vector<std::pair<std::string, std::string>> events;
    for (const char* name : {"a", "b", "b", "c", "d", "e"})  // one of them by two workers
        events.emplace_back("tensor_skipped", std::string(R"({"tensor":"buffer/)") + name +
                                                  R"(","reason":"it is <quantized>"})");
    events.emplace_back("tensor_skipped", R"({"tensor":"output/0","reason":"it is nested"})");
    events.emplace_back("tensors_skipped", R"({"more":7})");
    events.emplace_back("hook_error", R"({"part":"optimizer","error":"ValueError: no","step":3})");
    events.emplace_back("hook_off", R"({"part":"optimizer","error":"","failures":3,"step":5})");
    write_run(sample, directory.path(), events);
    const std::string page = report_of(directory.path(), sample.verdict);
    EXPECT_TRUE(has(page, "<dd>buffer/a, buffer/b, buffer/c and 2 more: it is &lt;quantized&gt;</dd>"));
    EXPECT_TRUE(has(page, "<dd>output/0: it is nested</dd>"));
    EXPECT_TRUE(has(page, "<dd>and 7 tensors more, which events do not name</dd>"));
    EXPECT_TRUE(has(page, "<dt>Failed</dt><dd>optimizer, first at step 3: ValueError: no</dd>"));
    EXPECT_TRUE(has(page, "optimizer: off after 3 failures; nothing of it is recorded from step 5 on"));
}

TEST(HtmlReportTest, TornTailIsToldInTheBanner) {
    const TemporaryDirectory directory;
    const SampleRun sample = make_sample_run({40, 1, true});
    write_run(sample, directory.path());
    const std::string log = storage::RunLayout{directory.path()}.log(0, 0);
    std::filesystem::resize_file(log, std::filesystem::file_size(log) - 100);
    const std::string page = report_of(directory.path(), sample.verdict);
    EXPECT_TRUE(has(page, "The record is not complete:"));
    EXPECT_TRUE(has(page, "has no end mark"));
}

TEST(HtmlReportTest, FindingAboutUnknownTensorHasNoPlotAndDoesNoHarm) {
    const TemporaryDirectory directory;
    SampleRun sample = make_sample_run({10, 1, true});
    sample.verdict.findings[0].plots = {{"gradient/no_such", "l2"}, {"weight/conv1.weight", "no_such"}};
    sample.verdict.findings[0].worker = 7;
    write_run(sample, directory.path());
    const std::string page = report_of(directory.path(), sample.verdict);
    EXPECT_FALSE(has(page, "data-finding=\"0\""));
    EXPECT_TRUE(has(page, "data-finding=\"1\""));
}

TEST(MarkupTest, EscapesEveryCharacterThatMatters) {
    EXPECT_EQ(Markup().text("<a href=\"x\" title='y'>&\x01").str(),
              "&lt;a href=&quot;x&quot; title=&#39;y&#39;&gt;&amp;\\x01");
}

TEST(MarkupTest, BackticksMarkCode) {
    EXPECT_EQ(Markup().rich("set `lr=<0.1>` now, not `that").str(),
              "set <code>lr=&lt;0.1&gt;</code> now, not `that");
}

TEST(MarkupTest, IndentedAndAssigningLinesAreCode) {
    EXPECT_EQ(Markup().paragraphs("Do this:\n  a = 1\nb = f(2)\nDone (really).").str(),
              "<p>Do this:</p><pre><code>a = 1\nb = f(2)</code></pre><p>Done (really).</p>");
}

}  // namespace
}  // namespace traindbg::report
