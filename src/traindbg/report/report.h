// A run and its verdict, written for people. One file per form.
//
// The HTML report is one file that opens without network: style, script and data are inside. Text
// from the training (tensor names, messages) is data, never markup.
#pragma once

#include <cstddef>
#include <string>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
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

}  // namespace traindbg::report
