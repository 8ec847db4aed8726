#include "traindbg/actions/notification.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>

#include "traindbg/base/format.h"
#include "traindbg/base/sha256.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {

std::string notification_id(const std::string& run_identity, const model::Finding& finding) {
    std::string what = run_identity;
    for (const std::string& part : {finding.rule, finding.key, base::format("{}", finding.worker)}) {
        what += '\0';
        what += part;
    }
    return base::hex(base::sha256(std::as_bytes(std::span(what)))).substr(0, 32);
}

model::Json to_json(const Notification& notification) {
    return {{"schema_version", 1},
            {"event", "finding"},
            {"id", notification.id},
            {"run", base::printable(notification.run)},
            {"directory", base::printable(notification.directory)},
            {"host", base::printable(notification.host)},
            {"withheld", notification.withheld},
            {"finding", model::to_json(notification.finding)}};
}

std::string title_of(const Notification& notification) {
    const model::Finding& finding = notification.finding;
    std::string title =
        base::format("{}: {} at step {}", model::to_string(finding.severity), finding.rule, finding.step);
    if (!finding.layer.empty()) title += " in " + base::printable(finding.layer);
    return title;
}

std::string body_of(const Notification& notification) {
    const model::Finding& finding = notification.finding;
    std::string body = finding.message;
    if (!finding.fix.empty()) body += "\nFix: " + finding.fix;
    for (std::size_t i = 0; i < finding.sources.size(); ++i)
        body += base::format("{}{}:{}", i == 0 ? "\nCode: " : ", ", base::printable(finding.sources[i].file),
                             finding.sources[i].line);
    body += base::format("\nRun {} on {}", base::printable(notification.run),
                         base::printable(notification.host.empty() ? "this machine" : notification.host));
    if (notification.withheld != 0)
        body += base::format("; {} more {} withheld", notification.withheld,
                             notification.withheld == 1 ? "finding was" : "findings were");
    return body + ".";
}

}  // namespace traindbg::actions
