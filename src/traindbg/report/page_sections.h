// The page's text, section by section, as static HTML: all that matters can be read without a script.
// The charts are empty elements that the script fills (data-chart, data-finding, data-classes, data-heat).
#pragma once

#include <string>

#include "traindbg/report/report_data.h"

namespace traindbg::report {

[[nodiscard]] std::string banner_section(const ReportData& data);
[[nodiscard]] std::string contents_section(const ReportData& data);
[[nodiscard]] std::string causes_section(const ReportData& data);
[[nodiscard]] std::string findings_section(const ReportData& data);
[[nodiscard]] std::string curves_section(const ReportData& data);
[[nodiscard]] std::string classes_section(const ReportData& data);
[[nodiscard]] std::string heat_section(const ReportData& data);
[[nodiscard]] std::string layers_section(const ReportData& data);
[[nodiscard]] std::string rules_section(const ReportData& data);
[[nodiscard]] std::string run_section(const ReportData& data);  // environment, cost, what was captured
[[nodiscard]] std::string footer_section(const ReportData& data);

}  // namespace traindbg::report
