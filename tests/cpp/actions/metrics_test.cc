// Metrics as text and where they are shown. Read by Prometheus' own parsers: tests/e2e/test_metrics.py.
#include "traindbg/actions/metrics.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "traindbg/actions/exposition.h"
#include "traindbg/base/file_descriptor.h"

namespace traindbg::actions {
namespace {

Metrics sample() {
    Metrics metrics;
    metrics.run = "a \"run\"\\\n";
    metrics.is_running = true;
    metrics.loss = std::numeric_limits<double>::quiet_NaN();
    metrics.steps_per_second = std::numeric_limits<double>::infinity();
    metrics.step_nanos = 1'500'000'000;
    return metrics;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(MetricsText, LabelsAreEscapedAndNumbersAreWords) {
    const std::string text = metrics_text(sample(), MetricsForm::kPrometheus);
    EXPECT_TRUE(has(text, "traindbg_loss{run=\"a \\\"run\\\"\\\\\\\\x0a\"} NaN\n")) << text;
    EXPECT_TRUE(has(text, "} +Inf\n"));
    EXPECT_TRUE(has(text, "# TYPE traindbg_step_seconds_total counter\n"));
    EXPECT_TRUE(has(text, "\"} 1.5\n"));
    EXPECT_FALSE(has(text, "traindbg_step{")) << "no step was seen";
    EXPECT_FALSE(has(text, "EOF"));
}

TEST(MetricsText, OpenMetricsNamesFamiliesWithoutTheirSuffix) {
    const std::string text = metrics_text(sample(), MetricsForm::kOpenMetrics);
    EXPECT_TRUE(has(text, "# TYPE traindbg_step_seconds counter\ntraindbg_step_seconds_total{"));
    EXPECT_TRUE(has(text, "# TYPE traindbg_run info\ntraindbg_run_info{"));
    EXPECT_TRUE(text.ends_with("# EOF\n"));
}

TEST(MetricsText, TargetsOfOneKindAreOneSeries) {
    Metrics metrics = sample();
    metrics.channels = {{.channel = "webhook", .done = 2}, {.channel = "webhook", .done = 3, .failed = 1}};
    const std::string text = metrics_text(metrics, MetricsForm::kPrometheus);
    EXPECT_TRUE(has(text, "channel=\"webhook\",result=\"done\"} 5\n"));
    EXPECT_TRUE(has(text, "channel=\"webhook\",result=\"failed\"} 1\n"));
}

TEST(MetricsText, TheFormIsTheOneThatIsPreferred) {
    EXPECT_EQ(preferred_form(""), MetricsForm::kPrometheus);
    EXPECT_EQ(preferred_form("*/*"), MetricsForm::kPrometheus);
    EXPECT_EQ(preferred_form("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3"),
              MetricsForm::kOpenMetrics);
    EXPECT_EQ(preferred_form("application/openmetrics-text; q=0.2, text/plain"), MetricsForm::kPrometheus);
    EXPECT_EQ(preferred_form("application/openmetrics-text;q=0"), MetricsForm::kPrometheus);
}

// What a server says to `request`, and then closes.
std::string answer_of(const std::string& place, const std::string& request) {
    const std::string after = place.substr(place.rfind(':') + 1);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(after)));
    const base::FileDescriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    std::string answer;
    std::array<char, 4096> piece{};
    for (ssize_t got = 0; (got = ::recv(client.get(), piece.data(), piece.size(), 0)) > 0;)
        answer.append(piece.data(), static_cast<std::size_t>(got));
    return answer;
}

TEST(MetricsServer, AnswersWhatIsAskedAndNothingElse) {
    auto server = std::move(make_exposition("prometheus:0")).value();
    ASSERT_TRUE(server->open().is_ok());
    Metrics metrics = sample();
    metrics.step = 41;
    ASSERT_TRUE(server->publish(metrics).is_ok());
    const std::string place = server->place();
    const auto status = [&](const std::string& request) { return answer_of(place, request).substr(9, 3); };
    EXPECT_TRUE(
        has(answer_of(place, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), "traindbg_step{run="));
    const std::string head = answer_of(place, "HEAD /metrics HTTP/1.1\r\nhOST: 127.0.0.1:1\r\n\r\n");
    EXPECT_EQ(head.substr(9, 3), "200");
    EXPECT_TRUE(head.ends_with("\r\n\r\n"));
    EXPECT_EQ(status("GET /metrics?x=1 HTTP/1.0\r\n\r\n"), "200");
    EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), "404");
    EXPECT_EQ(status("POST /metrics HTTP/1.1\r\n\r\n"), "405");
    EXPECT_EQ(status("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "403");
    EXPECT_EQ(status("rubbish\r\n\r\n"), "405");
    EXPECT_EQ(answer_of(place, std::string(20000, 'x')), "") << "too long";
    auto second =
        std::move(make_exposition("prometheus:" + place.substr(17, place.find("/metrics") - 17))).value();
    EXPECT_FALSE(second->open().is_ok()) << "the port is taken";
}

TEST(MetricsServer, WhoSaysNothingKeepsNobodyFromLeaving) {
    auto server = std::move(make_exposition("prometheus:0")).value();
    ASSERT_TRUE(server->open().is_ok());
    const std::string place = server->place();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(place.substr(17))));
    const base::FileDescriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(silent.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    server.reset();  // the test ends by its time limit if this waits for ever
}

TEST(MetricsFile, IsReplacedWhole) {
    std::string directory = (std::filesystem::temp_directory_path() / "traindbg-metrics-XXXXXX").string();
    ASSERT_NE(::mkdtemp(directory.data()), nullptr);
    const std::string path = directory + "/run.prom";
    std::ofstream(path) << "of another run";
    const auto file = std::move(make_exposition("prometheus-file:" + path)).value();
    ASSERT_TRUE(file->open().is_ok());
    ASSERT_TRUE(file->publish(sample()).is_ok());
    std::ifstream stream(path);
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    EXPECT_EQ(text, metrics_text(sample(), MetricsForm::kPrometheus));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
    std::filesystem::remove_all(directory);
    EXPECT_FALSE(file->publish(sample()).is_ok());
}

TEST(MakeExposition, WhatIsNoPlaceIsRefused) {
    for (const char* bad : {"prometheus", "prometheus:", "prometheus:http", "prometheus:-1",
                            "prometheus:65536", "prometheus:1x", "prometheus-file:", "prometheus-file:/tmp/"})
        EXPECT_FALSE(make_exposition(bad).is_ok()) << bad;
    EXPECT_FALSE(is_exposition("prometheusfile:x"));
}

}  // namespace
}  // namespace traindbg::actions
