// A run and its verdict, written for people and for the tools that they look at. One file per form.
//
// The HTML report is one file that opens without network: style, script and data are inside. Text
// from the training (tensor names, messages) is data, never markup.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/read/run.h"

namespace traindbg::report {

// The whole page. Reads all steps of the run once; series longer than `most_points` are thinned
// (extremes kept), so that the page stays small.
struct HtmlOptions {
    std::size_t most_points = 1000;
};
[[nodiscard]] base::Result<std::string> html_report(read::Run& run, const model::Verdict& verdict,
                                                    const HtmlOptions& options = {});

// Findings, causes and outcomes as lines for a terminal. `colour`: ANSI escapes. Prose is broken at
// `columns`, of which 40 to 100 are used; a table of numbers may be wider than a very narrow terminal.
[[nodiscard]] std::string terminal_finding(const model::Finding& finding, bool colour,
                                           std::size_t columns = 100);
[[nodiscard]] std::string terminal_verdict(const model::Verdict& verdict, bool colour,
                                           std::size_t columns = 100);

// The same, with what stands behind each finding: its numbers, its fix and, from what its rule says about
// itself, why it matters and what looks alike.
[[nodiscard]] std::string terminal_explained(const model::Verdict& verdict,
                                             std::span<const model::RuleInfo* const> rules, bool colour,
                                             std::size_t columns = 100);

// The verdict for code scanning: one SARIF 2.1.0 log, JSON that ends with a newline. Every finding is a
// result at the training's script, whose own line is not known, and at the module and tensor as logical
// locations; what could not be checked is a notification. `rules`: what they say about themselves; those of
// them that the verdict names are described.
[[nodiscard]] std::string sarif_log(const model::RunMeta& run, const model::Verdict& verdict,
                                    std::span<const model::RuleInfo* const> rules);

// The verdict for continuous integration: JUnit XML with a test case per rule. One that fired at `fail_on` or
// above has failed, one that could not judge was skipped; what is below `fail_on` stands in its output.
// Without `fail_on` none fails.
[[nodiscard]] std::string junit_xml(const model::RunMeta& run, const model::Verdict& verdict,
                                    std::optional<model::Severity> fail_on);

}  // namespace traindbg::report
