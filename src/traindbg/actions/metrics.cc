#include "traindbg/actions/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"

namespace traindbg::actions {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return base::format("{}", value);
}

std::string seconds(std::uint64_t nanos) { return number(static_cast<double>(nanos) / 1e9); }

// A label's value: UTF-8, with backslash, quote and line end escaped.
std::string escaped(std::string_view text) {
    std::string out;
    for (const char letter : base::printable(text)) {
        if (letter == '\\') out += "\\\\";
        else if (letter == '"') out += "\\\"";
        else if (letter == '\n') out += "\\n";
        else out += letter;
    }
    return out;
}

// Families one after the other, each with its HELP and TYPE before its samples.
class Writer {
  public:
    Writer(MetricsForm form, const std::string& run)
        : is_open_(form == MetricsForm::kOpenMetrics), run_(run) {}

    void gauge(std::string_view name, std::string_view help) { family(name, name, "gauge", help); }
    // `name` ends in "_total"; of OpenMetrics, that belongs to the samples.
    void counter(std::string_view name, std::string_view help) {
        family(is_open_ ? name.substr(0, name.size() - std::string_view("_total").size()) : name, name,
               "counter", help);
    }
    // `name` ends in "_info".
    void info(std::string_view name, std::string_view help) {
        family(is_open_ ? name.substr(0, name.size() - std::string_view("_info").size()) : name, name,
               is_open_ ? "info" : "gauge", help);
    }
    void sample(const std::string& value, const Labels& labels = {}) {
        text_ += sample_name_;
        text_ += "{run=\"" + escaped(run_) + "\"";
        for (const auto& [label, word] : labels) text_ += base::format(",{}=\"{}\"", label, escaped(word));
        text_ += "} " + value + "\n";
    }
    void sample(std::uint64_t value, const Labels& labels = {}) { sample(base::format("{}", value), labels); }
    [[nodiscard]] std::string take() {
        if (is_open_) text_ += "# EOF\n";
        return std::move(text_);
    }

  private:
    void family(std::string_view name, std::string_view sample_name, std::string_view type,
                std::string_view help) {
        text_ += base::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
        sample_name_ = sample_name;
    }

    bool is_open_;
    std::string run_;
    std::string sample_name_;
    std::string text_;
};

void write_findings(const model::Verdict& verdict, Writer& out) {
    std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> findings;
    for (const model::Finding& finding : verdict.findings)
        ++findings[{finding.rule, std::string(model::to_string(finding.severity)),
                    std::string(model::to_string(finding.state))}];
    out.gauge("traindbg_findings",
              "Findings so far, by rule, severity and state (pending, firing, resolved).");
    for (const auto& [key, count] : findings)
        out.sample(count,
                   {{"rule", std::get<0>(key)}, {"severity", std::get<1>(key)}, {"state", std::get<2>(key)}});

    std::map<model::CheckState, std::uint64_t> outcomes = {
        {model::CheckState::kNotChecked, 0}, {model::CheckState::kClean, 0}, {model::CheckState::kFired, 0}};
    for (const model::RuleOutcome& outcome : verdict.outcomes) ++outcomes[outcome.state];
    out.gauge("traindbg_rules", "Rules by what became of them (clean, fired, not_checked).");
    for (const auto& [state, count] : outcomes)
        out.sample(count, {{"state", std::string(model::to_string(state))}});
}

void write_channels(const std::vector<ChannelCounts>& channels, Writer& out) {
    // Two targets may be of one kind.
    std::map<std::string, ChannelCounts> sums;
    for (const ChannelCounts& each : channels) {
        ChannelCounts& sum = sums[each.channel];
        sum.done += each.done;
        sum.failed += each.failed;
        sum.dry_run += each.dry_run;
        sum.withheld += each.withheld;
        sum.retries += each.retries;
        sum.waiting += each.waiting;
    }
    if (sums.empty()) return;
    out.counter("traindbg_notifications_total",
                "Notifications by channel and what came of them (done, failed, dry_run, withheld).");
    for (const auto& [name, sum] : sums)
        for (const auto& [result, count] :
             {std::pair("done", sum.done), std::pair("failed", sum.failed), std::pair("dry_run", sum.dry_run),
              std::pair("withheld", sum.withheld)})
            out.sample(count, {{"channel", name}, {"result", result}});
    out.counter("traindbg_notification_retries_total", "Attempts to notify after a first one that failed.");
    for (const auto& [name, sum] : sums) out.sample(sum.retries, {{"channel", name}});
    out.gauge("traindbg_notifications_waiting", "Notifications that have not been told yet.");
    for (const auto& [name, sum] : sums) out.sample(sum.waiting, {{"channel", name}});
}

// The weight that an Accept header gives to a type, without its wildcards: 0 where it does not name it.
double weight_of(std::string_view accept, std::string_view type) {
    double most = 0;
    while (!accept.empty()) {
        std::string_view one = accept.substr(0, accept.find(','));
        accept.remove_prefix(std::min(accept.size(), one.size() + 1));
        while (one.starts_with(' ')) one.remove_prefix(1);
        const std::string_view name = one.substr(0, one.find_first_of("; "));
        if (name != type) continue;
        double weight = 1;
        if (std::size_t at = one.find("q="); at != std::string_view::npos) {
            const std::string_view digits = one.substr(at + 2);
            if (std::from_chars(digits.data(), digits.data() + digits.size(), weight).ec != std::errc())
                weight = 0;
        }
        most = std::max(most, weight);
    }
    return most;
}

}  // namespace

MetricsForm preferred_form(std::string_view accept) {
    const double open = weight_of(accept, "application/openmetrics-text");
    return open > 0 && open >= weight_of(accept, "text/plain") ? MetricsForm::kOpenMetrics
                                                               : MetricsForm::kPrometheus;
}

std::string_view content_type(MetricsForm form) noexcept {
    return form == MetricsForm::kOpenMetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string metrics_text(const Metrics& metrics, MetricsForm form) {
    Writer out(form, metrics.run);
    out.info("traindbg_run_info", "What the run is and where it runs.");
    out.sample(1, {{"host", metrics.host}, {"version", std::string(base::version())}});
    out.gauge("traindbg_running", "1 while the training is followed, 0 once it has ended.");
    out.sample(metrics.is_running ? 1 : 0);
    out.gauge("traindbg_last_update_timestamp_seconds", "When these numbers were taken.");
    out.sample(number(static_cast<double>(metrics.wall_nanos) / 1e9));
    if (metrics.step) {
        out.gauge("traindbg_step", "Last training step that was judged.");
        out.sample(*metrics.step);
    }
    out.counter("traindbg_train_steps_total", "Training steps of all workers that were judged.");
    out.sample(metrics.train_steps);
    if (metrics.loss) {
        out.gauge("traindbg_loss", "Latest loss of worker 0.");
        out.sample(number(*metrics.loss));
    }
    if (metrics.steps_per_second) {
        out.gauge("traindbg_steps_per_second", "Training steps in a second, of late.");
        out.sample(number(*metrics.steps_per_second));
    }
    out.counter("traindbg_step_seconds_total", "Time that the judged training steps took.");
    out.sample(seconds(metrics.step_nanos));
    out.counter("traindbg_capture_seconds_total", "Time of these steps that capture took: the overhead.");
    out.sample(seconds(metrics.capture_nanos));
    out.counter("traindbg_steps_dropped_total",
                "Steps that were not recorded, as the disk was too slow or full.");
    out.sample(metrics.steps_dropped);
    if (metrics.raw_tensors_dropped) {
        out.counter("traindbg_raw_tensors_dropped_total",
                    "Whole tensors that were not recorded; told at the end.");
        out.sample(*metrics.raw_tensors_dropped);
    }
    write_findings(metrics.verdict, out);
    write_channels(metrics.channels, out);
    return out.take();
}

}  // namespace traindbg::actions
