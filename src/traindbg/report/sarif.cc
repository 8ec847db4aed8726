// The verdict as a SARIF 2.1.0 log: what code-scanning pages and editors read.
//
// Source: "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", OASIS Standard, 2020.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/text.h"
#include "traindbg/model/json.h"
#include "traindbg/model/rule_instance.h"
#include "traindbg/report/report.h"
#include "traindbg/report/words.h"

namespace traindbg::report {
namespace {

using model::Json;

constexpr std::string_view kSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

std::string_view level_of(model::Severity severity) {
    switch (severity) {
        case model::Severity::kError: return "error";
        case model::Severity::kWarning: return "warning";
        case model::Severity::kInfo: break;
    }
    return "note";
}

// A relative path as a URI reference.
std::string uri_of(std::string_view path) {
    constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string uri;
    for (const char c : path) {
        if (kPlain.find(c) != std::string_view::npos) {
            uri += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        uri += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
    return uri;
}

// A file that is not below the directory where the training was started has a whole path.
Json place_in(std::string_view file, std::uint32_t line) {
    Json artifact = {{"uri", (file.starts_with('/') ? "file://" : "") + uri_of(file)}};
    if (!file.starts_with('/')) artifact["uriBaseId"] = "SRCROOT";
    return {{"artifactLocation", std::move(artifact)}, {"region", {{"startLine", line}}}};
}

// The training's script, relative to where it was started; empty where the command names none below it.
std::string script_of(const model::RunMeta& run) {
    for (const std::string& word : run.command) {
        if (!word.ends_with(".py")) continue;
        std::string_view path = word;
        if (path.starts_with('/')) {
            if (run.working_directory.empty() || !path.starts_with(run.working_directory + "/")) return {};
            path.remove_prefix(run.working_directory.size() + 1);
        }
        while (path.starts_with("./")) path.remove_prefix(2);
        return path.starts_with("../") ? std::string() : std::string(path);
    }
    return {};
}

Json in_sarif(std::string_view content) { return {{"text", base::printable(content)}}; }

// Of several lines, of which each is made printable.
std::string several_lines(std::string_view content) {
    std::string out;
    for (const std::string_view line : lines_of(content)) {
        if (!out.empty()) out += '\n';
        out += base::printable(line);
    }
    return out;
}

// The first line to look at; the script's beginning where the training told none.
Json location_of(const model::Finding& finding, const std::string& script) {
    Json location = Json::object();
    if (!finding.sources.empty())
        location["physicalLocation"] = place_in(finding.sources[0].file, finding.sources[0].line);
    else if (!script.empty()) location["physicalLocation"] = place_in(script, 1);
    Json logical = Json::array();
    if (!finding.layer.empty())
        logical.push_back({{"fullyQualifiedName", base::printable(finding.layer)}, {"kind", "module"}});
    if (!finding.tensor.empty())
        logical.push_back({{"fullyQualifiedName", base::printable(finding.tensor)}, {"kind", "variable"}});
    if (!logical.empty()) location["logicalLocations"] = std::move(logical);
    return location;
}

Json descriptor_of(const std::string& name, std::span<const model::RuleInfo* const> rules) {
    const auto known = std::find_if(rules.begin(), rules.end(), [&](const model::RuleInfo* info) {
        return info->name == model::rule_of(name);
    });
    Json descriptor = {{"id", name}};
    if (known == rules.end()) return descriptor;
    const model::RuleInfo& info = **known;
    descriptor["shortDescription"] = in_sarif(info.title);
    descriptor["fullDescription"] = in_sarif(info.summary);
    descriptor["help"] = in_sarif(info.why + " " + info.fix);
    descriptor["defaultConfiguration"] = {{"level", level_of(info.severity)}};
    return descriptor;
}

Json result_of(const model::Finding& finding, std::size_t rule, const model::Verdict& verdict,
               const std::string& script) {
    std::string message = several_lines(finding.message);
    if (!finding.fix.empty()) message += "\n\nFix: " + several_lines(finding.fix);
    Json properties = model::to_json(finding);
    for (const char* told : {"rule", "message", "severity"}) properties.erase(told);
    properties["tags"] = Json::array({finding.kind.empty() ? finding.rule : base::printable(finding.kind)});
    for (const model::Cause& cause : verdict.causes) {
        if (std::find(cause.rules.begin(), cause.rules.end(), finding.rule) == cause.rules.end()) continue;
        properties["cause"] = cause.name;
        break;
    }
    Json result = {{"ruleId", finding.rule},
                   {"ruleIndex", rule},
                   {"level", level_of(finding.severity)},
                   {"message", {{"text", std::move(message)}}},
                   // The same fault of another run of the same script.
                   {"partialFingerprints",
                    {{"faultPlace/v1", finding.rule + "/" + base::printable(finding.key) + "/" +
                                           base::printable(finding.layer)}}},
                   {"properties", std::move(properties)}};
    // Not decided yet: section 3.27.9.
    if (finding.times == 0) {
        result["kind"] = "open";
        result["level"] = "none";
    }
    if (Json location = location_of(finding, script); !location.empty())
        result["locations"] = Json::array({std::move(location)});
    for (std::size_t i = 0; i < finding.sources.size(); ++i) {
        const model::SourceLine& source = finding.sources[i];
        result["relatedLocations"].push_back({{"id", i},
                                              {"physicalLocation", place_in(source.file, source.line)},
                                              {"message", in_sarif(source_in_words(source))}});
    }
    return result;
}

}  // namespace

std::string sarif_log(const model::RunMeta& run, const model::Verdict& verdict,
                      std::span<const model::RuleInfo* const> rules) {
    const std::string script = script_of(run);
    std::vector<std::string> names;
    Json descriptors = Json::array();
    const auto index_of = [&](const std::string& name) {
        const auto known = std::find(names.begin(), names.end(), name);
        if (known != names.end()) return static_cast<std::size_t>(known - names.begin());
        names.push_back(name);
        descriptors.push_back(descriptor_of(name, rules));
        return names.size() - 1;
    };
    Json notifications = Json::array();
    for (const model::RuleOutcome& outcome : verdict.outcomes) {
        const std::size_t rule = index_of(outcome.rule);
        if (outcome.state != model::CheckState::kNotChecked) continue;
        notifications.push_back(
            {{"level", "note"},
             {"message", in_sarif("not checked: " + (outcome.reason.empty() ? "no data" : outcome.reason))},
             {"associatedRule", {{"id", outcome.rule}, {"index", rule}}}});
    }
    Json results = Json::array();
    for (const model::Finding& finding : verdict.findings)
        results.push_back(result_of(finding, index_of(finding.rule), verdict, script));
    Json causes = Json::array();
    for (const model::Cause& cause : verdict.causes) causes.push_back(model::to_json(cause));

    Json invocation = {{"executionSuccessful", true}};
    if (!notifications.empty()) invocation["toolExecutionNotifications"] = std::move(notifications);
    Json driver = {{"name", "traindbg"}, {"rules", std::move(descriptors)}};
    if (!run.traindbg.empty()) driver["version"] = base::printable(run.traindbg);
    const Json log = {
        {"$schema", kSchema},
        {"version", "2.1.0"},
        {"runs", Json::array({{{"tool", {{"driver", std::move(driver)}}},
                               {"automationDetails", {{"id", "traindbg/" + uri_of(run.run_id)}}},
                               {"invocations", Json::array({std::move(invocation)})},
                               {"results", std::move(results)},
                               {"properties", {{"causes", std::move(causes)}}}}})}};
    return log.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace traindbg::report
