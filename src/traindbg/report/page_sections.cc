#include "traindbg/report/page_sections.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/model/what_words.h"
#include "traindbg/report/markup.h"
#include "traindbg/report/words.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::report {
namespace {

constexpr std::size_t kMostLayerRows = 2000;
constexpr std::size_t kMostEvents = 50;
constexpr std::size_t kMostDamage = 20;

std::string_view class_of(Tone tone) {
    switch (tone) {
        case Tone::kError: return "error";
        case Tone::kWarning: return "warning";
        case Tone::kNote: return "info";
        case Tone::kClean: return "clean";
        case Tone::kUnknown: break;
    }
    return "unknown";
}

// A shape beside the colour, for eyes that do not tell colours apart.
std::string_view sign_of(Tone tone) {
    switch (tone) {
        case Tone::kError: return "✕";
        case Tone::kWarning: return "!";
        case Tone::kNote: return "i";
        case Tone::kClean: return "✓";
        case Tone::kUnknown: break;
    }
    return "?";
}

Tone tone_of(model::Severity severity) {
    if (severity == model::Severity::kError) return Tone::kError;
    return severity == model::Severity::kWarning ? Tone::kWarning : Tone::kNote;
}

void sign(Markup& out, Tone tone) {
    out.raw("<span class=\"sign ")
        .raw(class_of(tone))
        .raw("\" aria-hidden=\"true\">")
        .raw(sign_of(tone))
        .raw("</span>");
}

void open_section(Markup& out, std::string_view id, std::string_view title) {
    out.raw("<section id=\"").raw(id).raw("\" aria-labelledby=\"").raw(id).raw("-title\"><h2 id=\"");
    out.raw(id).raw("-title\">").text(title).raw("</h2>\n");
}

// <dt>term</dt><dd>text</dd>; nothing when there is no text.
void fact(Markup& out, std::string_view term, std::string_view text) {
    if (text.empty()) return;
    out.raw("<div>").element("dt", term).element("dd", text).raw("</div>\n");
}

std::string capitalized(std::string word) {
    if (!word.empty() && word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
    return word;
}

std::uint64_t recorded_steps(const ReportData& data, model::Mode mode) {
    for (const StepCounts& steps : data.steps)
        if (steps.mode == mode) return steps.recorded;
    return 0;
}

std::int64_t duration_nanos(const ReportData& data) {
    const std::int64_t end =
        data.end && data.end->wall_nanos != 0 ? data.end->wall_nanos : data.last_wall_nanos;
    if (data.meta.started_wall_nanos == 0 || end <= data.meta.started_wall_nanos) return 0;
    return end - data.meta.started_wall_nanos;
}

// "2026-11-20 21:04:05 UTC"
std::string time_in_words(std::int64_t wall_nanos) {
    if (wall_nanos == 0) return {};
    std::string text = base::iso_time(wall_nanos);
    const std::size_t at = text.find('T');
    if (at != std::string::npos) text[at] = ' ';
    if (text.ends_with('Z')) text.replace(text.size() - 1, 1, " UTC");
    return text;
}

std::string command_line(const model::RunMeta& meta) {
    std::string line;
    for (const std::string& word : meta.command) {
        if (!line.empty()) line += ' ';
        const bool plain =
            !word.empty() && word.find_first_of(" \t\n\"'\\$`;&|<>()*?#~") == std::string::npos;
        if (plain) {
            line += word;
            continue;
        }
        line += '\'';
        for (const char c : word) {
            if (c == '\'') line += "'\\''";
            else line += c;
        }
        line += '\'';
    }
    return line;
}

bool is_incomplete(const ReportData& data) {
    return !data.damage.empty() || data.totals.steps_dropped != 0 || data.totals.raw_tensors_dropped != 0 ||
           !data.worker_gaps.missing.empty() ||
           std::any_of(data.worker_gaps.stopped.begin(), data.worker_gaps.stopped.end(),
                       [](const read::StoppedWorker& worker) { return !worker.has_closed; }) ||
           (!data.complete && data.end.has_value());
}

std::string fraction_in_words(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return "0 %";
    return base::format("{:.2g} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string shape_in_words(const std::vector<std::int64_t>& shape) {
    std::string out;
    for (const std::int64_t size : shape) out += base::format("{}{}", out.empty() ? "" : "×", size);
    return out.empty() ? "scalar" : out;
}

std::string percent_or_nothing(double share) {
    return std::isnan(share) ? "" : base::format("{:.1f} %", 100 * share);
}

void put_evidence(Markup& out, const model::Finding& finding) {
    if (finding.evidence.empty()) return;
    out.raw(
        "<table class=\"evidence\"><caption>Evidence</caption><thead><tr><th scope=\"col\">Measured</th>"
        "<th scope=\"col\" class=\"number\">Value</th><th scope=\"col\">Compare</th></tr></thead><tbody>\n");
    for (const model::Evidence& item : finding.evidence) {
        out.raw("<tr><th scope=\"row\">").text(item.name).raw("</th>");
        out.element("td", number_in_words(item.value), "number");
        out.element("td", reference_in_words(item)).raw("</tr>\n");
    }
    out.raw("</tbody></table>\n");
}

void put_fix(Markup& out, std::string_view fix) {
    if (fix.empty()) return;
    out.raw("<div class=\"fix\"><h4>What to change</h4>").paragraphs(fix).raw("</div>\n");
}

void put_sources(Markup& out, const std::vector<model::SourceLine>& sources) {
    if (sources.empty()) return;
    out.raw("<div class=\"sources\"><h4>Where in the code</h4><ul>\n");
    for (const model::SourceLine& source : sources)
        out.raw("<li>").text(source_in_words(source)).raw("</li>\n");
    out.raw("</ul></div>\n");
}

void put_finding(Markup& out, const ReportData& data, std::size_t index) {
    const model::Finding& finding = data.verdict.findings[index];
    const Tone tone = tone_of(finding.severity);
    const std::string number = base::format("{}", index + 1);
    out.raw("<article class=\"finding ").raw(class_of(tone)).raw("\" id=\"finding-").raw(number);
    out.raw("\" aria-labelledby=\"finding-title-").raw(number).raw("\">\n<header>");
    sign(out, tone);
    out.raw("<h3 id=\"finding-title-").raw(number).raw("\">").raw(number).raw(". ");
    out.text(title_of_rule(finding.rule)).raw("</h3>");
    out.raw("<span class=\"severity ")
        .raw(class_of(tone))
        .raw("\">")
        .text(to_string(finding.severity))
        .raw("</span>");
    out.raw("<ul class=\"where\">");
    out.raw("<li>").text(steps_in_words(finding)).raw("</li>");
    if (!finding.layer.empty()) out.raw("<li>layer ").name(finding.layer).raw("</li>");
    if (!finding.tensor.empty()) out.raw("<li>").name(finding.tensor).raw("</li>");
    if (finding.places > 1) out.raw("<li>").text(grouped(finding.places)).raw(" tensors</li>");
    if (data.workers.size() > 1) out.raw("<li>worker ").text(base::format("{}", finding.worker)).raw("</li>");
    if (finding.mode != model::Mode::kTrain) out.raw("<li>").text(to_string(finding.mode)).raw("</li>");
    if (finding.times > 1) out.raw("<li>").text(grouped(finding.times)).raw(" times</li>");
    if (finding.state == model::FindingState::kResolved) out.raw("<li>over by the end</li>");
    if (finding.state == model::FindingState::kPending)
        out.raw("<li>pending: it has not lasted for its hold</li>");
    out.raw("</ul></header>\n<div class=\"finding-body\"><div class=\"finding-text\">\n");
    out.paragraphs(finding.message, "message");
    put_evidence(out, finding);
    put_fix(out, finding.fix);
    put_sources(out, finding.sources);
    out.raw("</div>\n");
    if (!data.finding_plots[index].series.empty())
        out.raw("<div class=\"chart\" data-finding=\"").raw(base::format("{}", index)).raw("\"></div>\n");
    out.raw("</div></article>\n");
}

// What a layer passes on: behind its activation function where it has one.
const LayerTensor* output_of(const ReportData& data, const LayerRow& row) {
    const LayerTensor* output = nullptr;
    for (const LayerTensor& tensor : row.tensors) {
        const model::Role role = data.tensors[tensor.tensor].role;
        if (role == model::Role::kActivation || (role == model::Role::kOutput && output == nullptr))
            output = &tensor;
    }
    return output;
}

// The norm of several tensors together; "nan" where one of them holds something that is not finite.
std::string joint_norm(const ReportData& data, const LayerRow& row, model::Role a, model::Role b) {
    double squares = 0;
    bool any = false;
    for (const LayerTensor& tensor : row.tensors) {
        const model::Role role = data.tensors[tensor.tensor].role;
        if (role != a && role != b) continue;
        if (tensor.last.statistics.not_finite() != 0) return "nan";
        squares += tensor.last.statistics.l2 * tensor.last.statistics.l2;
        any = true;
    }
    return any ? number_in_words(std::sqrt(squares)) : std::string();
}

void put_layer(Markup& out, const ReportData& data, const LayerRow& row) {
    using model::Role;
    out.raw("<tr><th scope=\"row\">")
        .name(row.module)
        .raw("</th>")
        .element("td", row.type)
        .raw("<td class=\"shapes\">");
    for (std::size_t i = 0; i < row.parameters.size(); ++i) {
        const model::TensorInfo& info = data.tensors[row.parameters[i]];
        const std::size_t dot = info.name.rfind('.');
        const std::string_view leaf = dot == std::string::npos ? std::string_view(info.name)
                                                               : std::string_view(info.name).substr(dot + 1);
        if (i != 0) out.raw(", ");
        out.text(leaf).raw(" ").text(shape_in_words(info.shape));
    }
    out.raw("</td>").element("td", row.parameter_count == 0 ? std::string() : grouped(row.parameter_count),
                             "number");
    out.element("td", joint_norm(data, row, Role::kWeight, Role::kBias), "number");
    out.element("td", joint_norm(data, row, Role::kGradient, Role::kGradient), "number");
    const LayerTensor* output = output_of(data, row);
    if (output != nullptr && output->last.statistics.finite() == 0) {
        out.raw("<td class=\"number\">nan</td><td class=\"number\">nan</td><td></td>");
    } else if (output != nullptr) {
        const model::Statistics& statistics = output->last.statistics;
        out.element("td", number_in_words(statistics.mean), "number");
        out.element("td", number_in_words(statistics.std), "number");
        out.element(
            "td",
            percent_or_nothing(static_cast<double>(statistics.zero) / static_cast<double>(statistics.count)),
            "number");
    } else {
        out.raw("<td></td><td></td><td></td>");
    }
    const LayerTensor* worst = nullptr;
    for (const LayerTensor& tensor : row.tensors)
        if (tensor.not_finite_steps != 0 &&
            (worst == nullptr || tensor.first_not_finite < worst->first_not_finite))
            worst = &tensor;
    if (worst == nullptr) out.raw("<td></td>");
    else out.element("td", base::format("from step {}", worst->first_not_finite), "bad");
    out.raw("</tr>\n");
}

void put_environment(Markup& out, const ReportData& data) {
    out.raw("<div class=\"panel\"><h3>Environment</h3><dl class=\"facts\">\n");
    if (!data.meta.command.empty())
        out.raw("<div class=\"wide\"><dt>Command</dt><dd><code>")
            .text(command_line(data.meta))
            .raw("</code></dd></div>\n");
    fact(out, "Run", data.meta.run_id);
    fact(out, "Directory", data.meta.working_directory);
    fact(out, "Host", data.meta.host);
    fact(out, "Platform", data.meta.platform);
    fact(out, "Started", time_in_words(data.meta.started_wall_nanos));
    if (const std::int64_t duration = duration_nanos(data); duration != 0)
        fact(out, "Duration", base::human_duration(duration));
    fact(out, "End", "The training " + end_in_words(data.end) + ".");
    if (data.end) fact(out, "Reason", data.end->reason);
    for (const StepCounts& steps : data.steps)
        fact(out, base::format("{} steps", title_of_rule(to_string(steps.mode))),
             base::format("{} recorded, last {}", grouped(steps.recorded), steps.last));
    for (const model::WorkerMeta& worker : data.workers) {
        if (data.workers.size() > 1)
            fact(out, base::format("Worker {}", worker.worker),
                 base::format("pid {} on {}", worker.pid, worker.host));
        if (data.workers.size() > 1 && worker.worker != data.detail_worker) continue;
        fact(out, "Framework", worker.framework);
        fact(out, "Python", worker.python);
        fact(out, "Recorded by", worker.traindbg.empty() ? std::string() : "traindbg " + worker.traindbg);
        if (!worker.model_type.empty())
            fact(out, "Model",
                 base::format("{}, {} parameters", worker.model_type, grouped(worker.parameters)));
        for (const model::OptimizerInfo& optimizer : worker.optimizers) {
            std::string text = optimizer.type;
            for (std::size_t i = 0; i < optimizer.settings.size(); ++i) {
                const auto& [key, value] = optimizer.settings[i];
                text += base::format("{}{}={}", i == 0 ? ": " : ", ", key, number_in_words(value));
            }
            fact(out, "Optimizer", text);
        }
        for (const auto& [key, value] : worker.environment) fact(out, key, value);
    }
    out.raw("</dl></div>\n");
}

void put_cost(Markup& out, const ReportData& data) {
    const read::RunTotals& totals = data.totals;
    out.raw("<div class=\"panel\"><h3>Cost of the recording</h3><dl class=\"facts\">\n");
    if (totals.step_nanos != 0) {
        fact(out, "Time in traindbg",
             base::format("{} of {} ({} of the training steps' time)",
                          base::human_duration(static_cast<std::int64_t>(totals.capture_nanos)),
                          base::human_duration(static_cast<std::int64_t>(totals.step_nanos)),
                          fraction_in_words(totals.capture_nanos, totals.step_nanos)));
        const std::uint64_t steps = recorded_steps(data, model::Mode::kTrain);
        if (steps != 0)
            fact(out, "Per step",
                 base::format("{} of {}",
                              base::human_duration(static_cast<std::int64_t>(totals.capture_nanos / steps)),
                              base::human_duration(static_cast<std::int64_t>(totals.step_nanos / steps))));
    }
    fact(out, "Written", base::human_bytes(totals.bytes));
    fact(out, "Dropped",
         totals.steps_dropped == 0 && totals.raw_tensors_dropped == 0
             ? std::string("nothing")
             : base::format("{}, {}", counted(totals.steps_dropped, "step", "steps"),
                            counted(totals.raw_tensors_dropped, "whole tensor", "whole tensors")));
    fact(out, "Damage",
         data.damage.empty() ? std::string("none found")
                             : counted(data.damage.size(), "damaged place", "damaged places"));
    for (const auto& [label, note] : data.capture_notes) fact(out, capitalized(label), note);
    if (!data.complete) fact(out, "Record", "has no end mark: the training was cut off, or is still running");
    for (const std::string& gap : data.worker_gaps.in_words()) fact(out, "Missing", gap);
    out.raw("</dl>\n");
    if (!data.damage.empty()) {
        out.raw("<ul class=\"plain\">");
        for (std::size_t i = 0; i < std::min(data.damage.size(), kMostDamage); ++i) {
            const read::Damage& damage = data.damage[i];
            out.raw("<li><code>")
                .text(damage.file)
                .raw("</code>, byte ")
                .text(base::format("{}", damage.offset));
            out.raw(": ")
                .text(damage.what)
                .text(base::format(" ({} {}", base::human_bytes(damage.bytes),
                                   damage.newer ? "not read" : "lost"));
            out.raw(damage.tail ? ", at the end of the file: what a crash leaves behind)</li>" : ")</li>");
        }
        if (data.damage.size() > kMostDamage)
            out.raw("<li>and ").text(base::format("{} more", data.damage.size() - kMostDamage)).raw("</li>");
        out.raw("</ul>\n");
    }
    out.raw("</div>\n");
}

std::string schedule_in_words(const model::Requirement& requirement) {
    const model::Schedule& schedule = requirement.schedule;
    const bool is_other = !requirement.steps.empty() || requirement.every_ms != 0;
    std::string out = schedule.every == 0   ? std::string(is_other ? "" : "by interval never")
                      : schedule.every == 1 ? std::string("every step")
                                            : base::format("every {} steps", schedule.every);
    if (schedule.dense_until != 0 && schedule.every != 1)
        out += base::format(", and each step below {}", schedule.dense_until);
    const auto also = [&out](const std::string& more) { out += (out.empty() ? "" : ", and ") + more; };
    if (!requirement.steps.empty()) {
        std::vector<std::string> words;
        for (const model::StepIndex step : requirement.steps) words.push_back(base::format("{}", step));
        also(base::format("step{} {}", words.size() == 1 ? "" : "s", base::join(words, ", ")));
    }
    if (requirement.every_ms != 0)
        also(base::format("every {} s", static_cast<double>(requirement.every_ms) / 1000));
    if (schedule.start != 0) out += base::format(", from step {}", schedule.start);
    if (schedule.end != UINT64_MAX) out += base::format(", before step {}", schedule.end);
    return out;
}

void put_plan(Markup& out, const ReportData& data) {
    if (!data.plan || data.plan->requirements.empty()) return;
    out.raw(
        "<details class=\"panel\"><summary><h3>What was captured, and for whom</h3></summary>\n"
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Capture plan\"><table><thead><tr>"
        "<th scope=\"col\">Collection</th><th scope=\"col\">Mode</th><th scope=\"col\">What</th>"
        "<th scope=\"col\">When</th><th scope=\"col\">Asked by</th></tr></thead><tbody>\n");
    for (const model::Requirement& requirement : data.plan->requirements) {
        out.raw("<tr><th scope=\"row\">").text(requirement.collection).raw("</th>");
        out.element("td", to_string(requirement.mode)).element("td", model::what_in_words(requirement.what));
        out.element("td", schedule_in_words(requirement)).element("td", requirement.asked_by).raw("</tr>\n");
    }
    out.raw("</tbody></table></div></details>\n");
}

void put_events(Markup& out, const ReportData& data) {
    if (data.events.empty()) return;
    out.raw(
        "<details class=\"panel\"><summary><h3>Events of the recording</h3></summary>\n"
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Events\"><table><thead><tr>"
        "<th scope=\"col\">Time</th><th scope=\"col\">Worker</th>"
        "<th scope=\"col\">Event</th><th scope=\"col\">Details</th></tr></thead><tbody>\n");
    for (std::size_t i = 0; i < std::min(data.events.size(), kMostEvents); ++i) {
        const read::RunEvent& event = data.events[i];
        out.raw("<tr>").element("td", time_in_words(event.wall_nanos));
        out.element("td", base::format("{}", event.worker), "number").element("td", event.kind);
        out.raw("<td><code>").text(event.json).raw("</code></td></tr>\n");
    }
    if (data.events.size() > kMostEvents)
        out.raw("<tr><td colspan=\"4\">and ")
            .text(base::format("{} more", data.events.size() - kMostEvents))
            .raw("</td></tr>");
    out.raw("</tbody></table></div></details>\n");
}

}  // namespace

std::string banner_section(const ReportData& data) {
    const Headline summary = headline(data.verdict);
    Markup out;
    out.raw("<div class=\"verdict ").raw(class_of(summary.tone)).raw("\" role=\"status\">");
    sign(out, summary.tone);
    out.raw("<div><h1>").text(summary.title).raw("</h1>\n<p>The training ").text(end_in_words(data.end));
    const std::uint64_t steps = recorded_steps(data, model::Mode::kTrain);
    out.text(steps == 0 ? std::string(" before a step was recorded")
                        : base::format(" after {} recorded", counted(steps, "step", "steps")));
    if (const std::int64_t duration = duration_nanos(data); duration != 0)
        out.text(base::format(", {}", base::human_duration(duration)));
    out.raw(". ").text(summary.detail).raw("</p>\n");
    if (data.end && data.end->stopped_by_rule && !data.end->reason.empty())
        out.raw("<p>").text(data.end->reason).raw("</p>\n");
    if (is_incomplete(data))
        out.raw(
            "<p class=\"caution\"><strong>The record is not complete:</strong> some data is missing or "
            "damaged. "
            "<a href=\"#run\">What is missing</a></p>\n");
    out.raw("</div></div>\n<p class=\"identity\"><span class=\"brand\">traindbg report</span> <span>")
        .text(data.meta.run_id)
        .raw("</span> <code>")
        .text(command_line(data.meta))
        .raw("</code></p>\n");
    return out.str();
}

std::string contents_section(const ReportData& data) {
    Markup out;
    const auto entry = [&out](bool shown, std::string_view id, std::string_view title) {
        if (shown) out.raw("<li><a href=\"#").raw(id).raw("\">").text(title).raw("</a></li>\n");
    };
    entry(!data.verdict.causes.empty(), "causes", "Likely cause");
    entry(true, "findings", base::format("Findings ({})", data.verdict.findings.size()));
    entry(!data.charts.empty(), "curves", "Curves");
    entry(!data.classes.empty(), "classes", "Classes");
    entry(!data.heat.empty(), "heat", "Layers over steps");
    entry(!data.layers.empty(), "layers", "Layers");
    entry(true, "rules", "Rules");
    entry(true, "run", "Run and cost");
    return out.str();
}

namespace {

void put_cause_evidence(Markup& out, std::string_view title,
                        const std::vector<model::CauseEvidence>& evidence) {
    if (evidence.empty()) return;
    out.raw("<div class=\"evidence-of-cause\"><h4>").text(title).raw("</h4><ul>\n");
    for (const model::CauseEvidence& item : evidence)
        out.raw("<li>").text(evidence_in_words(item)).raw("</li>\n");
    out.raw("</ul></div>\n");
}

}  // namespace

std::string causes_section(const ReportData& data) {
    const std::vector<model::Cause>& causes = data.verdict.causes;
    if (causes.empty()) return {};
    Markup out;
    open_section(out, "causes", causes.size() == 1 ? "Likely cause" : "Likely causes");
    if (!model::is_sure(causes.front()))
        out.raw(
            "<p class=\"unsure\">Not sure: nothing that was found points to one cause. These are the "
            "likeliest.</p>\n");
    for (std::size_t i = 0; i < causes.size(); ++i) {
        const model::Cause& cause = causes[i];
        out.raw(i == 0 ? "<article class=\"cause first\">" : "<article class=\"cause\">");
        out.raw("<header>").element("h3", cause.title);
        out.raw("<span class=\"confidence\">").text(confidence_in_words(cause.confidence));
        out.text(base::format(", {:.0f} %", 100 * cause.confidence)).raw("</span></header>\n");
        out.paragraphs(cause.explanation);
        put_fix(out, cause.fix);
        put_sources(out, cause.sources);
        put_cause_evidence(out, "What speaks for it", cause.evidence_for);
        put_cause_evidence(out, "What speaks against it", cause.evidence_against);
        std::string_view separator = "<p class=\"explains\">Explains ";
        for (const std::string& rule : cause.rules) {
            for (std::size_t f = 0; f < data.verdict.findings.size(); ++f) {
                if (data.verdict.findings[f].rule != rule) continue;
                out.raw(separator)
                    .raw("<a href=\"#finding-")
                    .raw(base::format("{}", f + 1))
                    .raw("\">finding ");
                out.raw(base::format("{}", f + 1)).raw(": ").text(title_of_rule(rule)).raw("</a>");
                separator = ", ";
            }
        }
        if (separator == ", ") out.raw("</p>");
        out.raw("</article>\n");
    }
    return out.raw("</section>\n").str();
}

std::string findings_section(const ReportData& data) {
    Markup out;
    open_section(out, "findings", "Findings");
    if (data.verdict.findings.empty())
        out.raw(
            "<p class=\"empty\">No rule found a fault. What was checked, and what could not be, is listed "
            "under "
            "<a href=\"#rules\">Rules</a>.</p>\n");
    for (std::size_t i = 0; i < data.verdict.findings.size(); ++i) put_finding(out, data, i);
    return out.raw("</section>\n").str();
}

std::string curves_section(const ReportData& data) {
    if (data.charts.empty()) return {};
    Markup out;
    open_section(out, "curves", "Curves");
    out.raw("<div class=\"charts\">");
    for (std::size_t i = 0; i < data.charts.size(); ++i)
        out.raw("<div class=\"chart")
            .raw(i == 0 ? " large" : "")
            .raw("\" data-chart=\"")
            .raw(base::format("{}", i))
            .raw("\"></div>\n");
    return out.raw("</div></section>\n").str();
}

std::string classes_section(const ReportData& data) {
    if (data.classes.empty()) return {};
    Markup out;
    open_section(out, "classes", "Classes");
    out.raw(
        "<p class=\"lead\">How often each class was the label and how often it was predicted. A bar that "
        "differs much "
        "from its neighbour is a class that the model ignores or prefers.</p>\n<div class=\"charts\">");
    for (std::size_t i = 0; i < data.classes.size(); ++i)
        out.raw("<div class=\"chart\" data-classes=\"").raw(base::format("{}", i)).raw("\"></div>\n");
    return out.raw("</div></section>\n").str();
}

std::string heat_section(const ReportData& data) {
    if (data.heat.empty()) return {};
    Markup out;
    open_section(out, "heat", "Layers over steps");
    if (data.workers.size() > 1)
        out.raw("<p class=\"lead\">Of worker ").text(base::format("{}", data.detail_worker)).raw(".</p>\n");
    return out.raw("<div class=\"heat\" data-heat></div></section>\n").str();
}

std::string layers_section(const ReportData& data) {
    if (data.layers.empty()) return {};
    Markup out;
    open_section(out, "layers", "Layers");
    out.raw(
        "<p class=\"lead\">In forward order, with the numbers of the last step at which each was recorded. "
        "Numbers are of "
        "the finite elements, outputs are behind the activation function where there is one.</p>\n<div "
        "class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Table "
        "of layers\">"
        "<table class=\"layers\"><thead><tr><th scope=\"col\">Layer</th><th scope=\"col\">Type</th>"
        "<th scope=\"col\">Parameters</th><th scope=\"col\" class=\"number\">Count</th>"
        "<th scope=\"col\" class=\"number\">Weight L2</th><th scope=\"col\" class=\"number\">Gradient L2</th>"
        "<th scope=\"col\" class=\"number\">Output mean</th><th scope=\"col\" class=\"number\">Output "
        "std</th>"
        "<th scope=\"col\" class=\"number\">Output zeros</th><th scope=\"col\">NaN or "
        "Inf</th></tr></thead><tbody>\n");
    for (std::size_t i = 0; i < std::min(data.layers.size(), kMostLayerRows); ++i)
        put_layer(out, data, data.layers[i]);
    out.raw("</tbody></table></div>\n");
    if (data.layers.size() > kMostLayerRows)
        out.raw("<p class=\"lead\">")
            .text(base::format("{} more layers are in the run, not in this table.",
                               data.layers.size() - kMostLayerRows))
            .raw("</p>");
    return out.raw("</section>\n").str();
}

std::string rules_section(const ReportData& data) {
    Markup out;
    open_section(out, "rules", "Rules");
    if (data.verdict.outcomes.empty()) {
        out.raw("<p class=\"empty\">No rule was evaluated.</p></section>\n");
        return out.str();
    }
    out.raw(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table of rules\"><table "
        "class=\"rules\"><thead><tr>"
        "<th scope=\"col\">Rule</th><th scope=\"col\">Outcome</th><th scope=\"col\" class=\"number\">Steps "
        "judged</th>"
        "<th scope=\"col\">Why not</th></tr></thead><tbody>\n");
    // What fired first, then what nobody could judge: both need a look.
    for (const model::CheckState state :
         {model::CheckState::kFired, model::CheckState::kNotChecked, model::CheckState::kClean}) {
        for (const model::RuleOutcome& outcome : data.verdict.outcomes) {
            if (outcome.state != state) continue;
            out.raw("<tr><th scope=\"row\">").text(outcome.rule).raw("</th><td>");
            Tone tone = state == model::CheckState::kClean ? Tone::kClean : Tone::kUnknown;
            if (state == model::CheckState::kFired) {
                tone = Tone::kNote;
                for (const model::Finding& finding : data.verdict.findings)
                    if (finding.rule == outcome.rule) tone = std::max(tone, tone_of(finding.severity));
            }
            sign(out, tone);
            out.raw(state == model::CheckState::kFired   ? " fired"
                    : state == model::CheckState::kClean ? " clean"
                                                         : " not checked");
            out.raw("</td>")
                .element("td", grouped(outcome.steps_judged), "number")
                .element("td", outcome.reason)
                .raw("</tr>\n");
        }
    }
    return out.raw("</tbody></table></div></section>\n").str();
}

std::string run_section(const ReportData& data) {
    Markup out;
    open_section(out, "run", "Run and cost");
    out.raw("<div class=\"panels\">\n");
    put_environment(out, data);
    put_cost(out, data);
    out.raw("</div>\n");
    put_plan(out, data);
    put_events(out, data);
    return out.raw("</section>\n").str();
}

std::string footer_section(const ReportData& data) {
    Markup out;
    out.raw("<p>Made by traindbg ").text(base::version());
    out.raw(
        ". This file is complete in itself: it loads nothing and sends nothing. Make it again with "
        "<code>traindbg report ");
    out.text(data.path).raw("</code>.</p>\n");
    return out.str();
}

}  // namespace traindbg::report
