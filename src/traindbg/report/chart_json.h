// The numbers behind the charts, as the JSON that assets/report_data.d.ts describes.
#pragma once

#include <string>

#include "traindbg/report/report_data.h"

namespace traindbg::report {

// May stand inside a <script> element: holds no '<'.
[[nodiscard]] std::string chart_json(const ReportData& data);

}  // namespace traindbg::report
