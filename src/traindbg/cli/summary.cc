#include "traindbg/cli/summary.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/console.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/worker_gaps_json.h"
#include "traindbg/model/json.h"
#include "traindbg/report/report.h"

namespace traindbg::cli {
namespace {

// The options of the interpreter itself, before the script: -I and -E ignore PYTHONPATH, -S skips
// sitecustomize.
std::string deaf_python_option(const std::vector<std::string>& command) {
    const std::string program = base_name(command.empty() ? "" : command.front());
    if (!program.starts_with("python")) return {};
    for (std::size_t i = 1; i < command.size(); ++i) {
        const std::string& argument = command[i];
        if (argument.size() < 2 || argument[0] != '-' || argument[1] == '-') return {};
        for (const char letter : argument.substr(1)) {
            if (letter == 'c' || letter == 'm') return {};
            if (letter == 'I' || letter == 'E' || letter == 'S') return argument;
            if (letter == 'W' || letter == 'X') break;  // the rest, or the next argument, is its value
        }
        if (argument == "-W" || argument == "-X") ++i;
    }
    return {};
}

// The rules look at nearly all of the first steps and at few of the later ones: the share of a run that was
// stopped early says nothing about a longer one.
constexpr std::uint64_t kStepsOfShortRun = 50;

std::string share(std::uint64_t part, std::uint64_t whole) {
    return whole == 0
               ? "0 %"
               : base::format("{:.2f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string line(std::string_view label, std::string_view text, bool colour) {
    return "  " + styled(padded(label, 9), Style::kDim, colour) + " " + std::string(text) + "\n";
}

}  // namespace

std::string how_it_ended(const Supervised& supervised) {
    const int status = supervised.wait_status;
    if (WIFSIGNALED(status)) {
        const char* words = ::strsignal(WTERMSIG(status));
        return base::format("killed by signal {} ({})", WTERMSIG(status),
                            words != nullptr ? words : "unknown");
    }
    return base::format("ended with code {}", exit_code_of_wait_status(status));
}

std::string why_not_attached(const std::vector<std::string>& command, int exit_code) {
    const std::string what = "no model was seen, so nothing was recorded: ";
    if (const std::string option = deaf_python_option(command); !option.empty())
        return what + base::format(
                          "python's option {} keeps it from loading traindbg; leave it out, or call "
                          "traindbg.watch(model) in the script",
                          base::printable(option));
    if (exit_code != 0)
        return what +
               "the training ended before a step of an optimizer was done; its own messages stand above";
    return what +
           "the command did not train with PyTorch, or its Python has no traindbg; traindbg doctor --python "
           "PYTHON checks that, and traindbg.watch(model) in the script attaches by hand. Or it trained with "
           "neither backward() nor an optimizer, as with gradients of torch.func alone: such steps cannot be "
           "followed";
}

std::string summary_text(const Summary& summary, bool colour, std::size_t columns) {
    const Supervised& supervised = *summary.supervised;
    const int code = exit_code_of_wait_status(supervised.wait_status);
    std::string text = "\n" + styled("traindbg", Style::kBold, colour) + " " +
                       base::printable(summary.run_name) + ": " + how_it_ended(supervised) + " after " +
                       base::human_duration(supervised.wall_nanos);
    if (supervised.stopped_by_rule && supervised.stop_cause)
        text += base::format(", stopped by rule {} at step {}", supervised.stop_cause->rule,
                             supervised.stop_cause->step);
    else if (supervised.stop_cause) text += ", before it saw the request to stop";
    text += "\n";
    if (!supervised.attached) {
        // Nothing was recorded: that no rule could judge it goes without saying.
        const std::size_t width = columns - std::min<std::size_t>(columns - 1, 2);
        text += "  " + wrapped(why_not_attached(summary.command, code), width, 2) + "\n";
        if (supervised.verdict.findings.empty()) return text;
    }
    if (supervised.was_judged) {
        std::string verdict = report::terminal_verdict(supervised.verdict, colour, columns);
        while (!verdict.empty() && verdict.back() == '\n') verdict.pop_back();
        text += "\n" + verdict + "\n\n";
    }
    if (summary.totals) {
        const read::RunTotals& totals = *summary.totals;
        const std::string evaluations = summary.evaluation_steps == 0
                                            ? ""
                                            : base::format(", {} of evaluations", summary.evaluation_steps);
        text += line(
            "recorded",
            base::format("{} steps{}, {}", summary.train_steps, evaluations, base::human_bytes(totals.bytes)),
            colour);
        text += line("cost",
                     base::format("{} of the time of the recorded steps ({}){}",
                                  share(totals.capture_nanos, totals.step_nanos),
                                  base::human_duration(static_cast<std::int64_t>(totals.capture_nanos)),
                                  totals.steps < kStepsOfShortRun ? "; the first steps cost most" : ""),
                     colour);
        if (totals.steps_dropped != 0 || totals.raw_tensors_dropped != 0)
            text += line("dropped",
                         base::format("{} steps, {} whole tensors: the disk did not keep up",
                                      totals.steps_dropped, totals.raw_tensors_dropped),
                         colour);
    }
    for (const auto& [label, note] : summary.notes)
        text += line(label, wrapped(note, columns - std::min<std::size_t>(columns - 1, 12), 12), colour);
    if (summary.cut_off)
        text += line("cut off",
                     "the training ended without closing its record: its last steps may be missing", colour);
    for (const std::string& gap : summary.workers.in_words()) text += line("missing", gap, colour);
    if (summary.damaged_places != 0)
        text += line("damage",
                     base::format("{} not readable; traindbg show names it",
                                  summary.damaged_places == 1
                                      ? "1 place of the record is"
                                      : base::format("{} places of the record are", summary.damaged_places)),
                     colour);
    if (!summary.report.empty()) text += line("report", base::printable(summary.report), colour);
    const std::string run = shell_word(summary.run);
    if (summary.is_gone) text += line("gone", run + ", so that there is no record to look at", colour);
    else text += line("next", "traindbg show " + run, colour);
    const std::vector<model::Finding>& findings = supervised.verdict.findings;
    const auto first = std::find_if(findings.begin(), findings.end(),
                                    [](const model::Finding& finding) { return finding.times > 0; });
    if (first != findings.end()) {
        text += line("", "traindbg rules explain " + first->rule, colour);
        if (!first->tensor.empty() && !summary.is_gone)
            text += line("", "traindbg get " + run + " " + shell_word(first->tensor), colour);
    }
    return text;
}

std::string summary_json(const Summary& summary) {
    const Supervised& supervised = *summary.supervised;
    nlohmann::ordered_json troubles = nlohmann::ordered_json::array();
    for (const std::string& trouble : supervised.troubles) troubles.push_back(base::printable(trouble));
    nlohmann::ordered_json json = {{"schema_version", 1},
                                   {"run", base::printable(summary.run_name)},
                                   {"path", base::printable(summary.run)},
                                   {"exit_code", summary.exit_code},
                                   {"end", model::to_json(summary.end)},
                                   {"duration_nanos", supervised.wall_nanos},
                                   {"attached", supervised.attached},
                                   {"steps", supervised.steps_seen}};
    if (!supervised.attached)
        json["why_not_attached"] =
            why_not_attached(summary.command, exit_code_of_wait_status(supervised.wait_status));
    if (supervised.stop_cause) json["stop_asked_by"] = supervised.stop_cause->rule;
    if (summary.totals)
        json["totals"] = {{"steps", summary.totals->steps},
                          {"bytes", summary.totals->bytes},
                          {"step_nanos", summary.totals->step_nanos},
                          {"capture_nanos", summary.totals->capture_nanos},
                          {"steps_dropped", summary.totals->steps_dropped},
                          {"raw_tensors_dropped", summary.totals->raw_tensors_dropped}};
    json["damaged_places"] = summary.damaged_places;
    json["cut_off"] = summary.cut_off;
    put_worker_gaps(json, summary.workers);
    json["report"] = summary.report.empty() ? nlohmann::ordered_json()
                                            : nlohmann::ordered_json(base::printable(summary.report));
    if (!summary.upload_url.empty())
        json["upload"] = {{"url", base::printable(summary.upload_url)},
                          {"complete", summary.upload_is_whole},
                          {"objects_put", summary.upload_objects},
                          {"bytes_put", summary.upload_bytes}};
    json["verdict"] = supervised.was_judged ? model::to_json(supervised.verdict) : nlohmann::ordered_json();
    json["troubles"] = std::move(troubles);
    return json.dump() + "\n";
}

}  // namespace traindbg::cli
