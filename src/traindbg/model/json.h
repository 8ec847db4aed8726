// The model's values as JSON: one spelling for run files, `--json` output, reports and Python.
//
// Reading is strict about types and unknown words and lenient about unknown keys, except where a
// person writes the file: `capture_config_from_json` refuses unknown keys and names the nearest one.
// Numbers that are not finite are written as the strings "nan", "inf", "-inf" (JSON has none).
//
// Cost: include this header in few translation units; <nlohmann/json.hpp> is slow to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/rule_info.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/statistics.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::model {

using Json = nlohmann::ordered_json;

[[nodiscard]] Json number_to_json(double value);
[[nodiscard]] double number_from_json(const Json& json, double fallback);  // fallback: not a number

[[nodiscard]] Json parameter_to_json(const ParameterValue& value);  // null: nothing
// Nothing: JSON that is no such value.
[[nodiscard]] std::optional<ParameterValue> parameter_from_json(const Json& json);

[[nodiscard]] Json to_json(const Retention& retention);
[[nodiscard]] Json to_json(const CaptureConfig& config);
[[nodiscard]] Json to_json(const Requirement& requirement);
[[nodiscard]] Json to_json(const RuleInfo& info);
[[nodiscard]] Json to_json(const Finding& finding);
[[nodiscard]] Json to_json(const RuleOutcome& outcome);
[[nodiscard]] Json to_json(const Cause& cause);
[[nodiscard]] Json to_json(const Verdict& verdict);
[[nodiscard]] Json to_json(const WorkerMeta& meta);
[[nodiscard]] Json to_json(const RunMeta& meta);
[[nodiscard]] Json to_json(const RunEnd& end);
[[nodiscard]] Json to_json(const TensorInfo& info);
[[nodiscard]] Json to_json(const Statistics& statistics);

[[nodiscard]] base::Result<CaptureConfig> capture_config_from_json(std::string_view text);
[[nodiscard]] base::Result<Finding> finding_from_json(std::string_view text);
[[nodiscard]] base::Result<Verdict> verdict_from_json(std::string_view text);
[[nodiscard]] base::Result<WorkerMeta> worker_meta_from_json(std::string_view text);
[[nodiscard]] base::Result<RunMeta> run_meta_from_json(std::string_view text);
[[nodiscard]] base::Result<RunEnd> run_end_from_json(std::string_view text);

}  // namespace traindbg::model
