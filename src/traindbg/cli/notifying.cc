#include "traindbg/cli/notifying.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string_view>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/model/rule_instance.h"
#include "traindbg/rules/rule.h"

namespace traindbg::cli {
namespace {

using base::Result;
using base::Status;
using settings::ActionKind;

// As a scraper looks: more often is seen by nobody.
constexpr std::int64_t kNanosBetweenMetrics = 1'000'000'000;
// The rule of which a parameter is an action.
constexpr std::string_view kStalledTraining = "StalledTrainingRule";
// The topic that the original makes.
constexpr std::string_view kOriginalTopic = "SMDebugRules";

std::chrono::nanoseconds seconds(double count) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(count * 1e9));
}

std::string lower(std::string text) {
    for (char& letter : text)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return text;
}

Result<std::vector<actions::Receiver>> receivers_of(const options::NotifyOptions& options,
                                                    const std::vector<RuleAction>& requested) {
    std::vector<actions::Receiver> receivers;
    for (const std::string& target : options.targets) {
        if (actions::is_exposition(target)) continue;
        auto channel = actions::make_channel(target);
        if (!channel.is_ok())
            return Status(base::Code::kInvalidArgument, "--notify: " + channel.status().message());
        receivers.push_back({std::move(channel).value(), {}});
    }
    // Once for each endpoint, with all the rules that name it.
    std::map<std::string, std::set<std::string>> endpoints;
    std::set<std::string> of_any;
    for (const RuleAction& each : requested) {
        if (each.action.kind == ActionKind::kStop) continue;
        endpoints[each.action.endpoint].insert(each.rule);
        if (each.rule.empty()) of_any.insert(each.action.endpoint);
    }
    for (auto& [endpoint, rules] : endpoints) {
        auto channel = actions::make_channel(base::format("sns:{}?topic={}", endpoint, kOriginalTopic));
        if (!channel.is_ok()) return channel.status();
        if (of_any.contains(endpoint)) rules.clear();
        receivers.push_back({std::move(channel).value(), std::move(rules)});
    }
    return receivers;
}

}  // namespace

Result<std::vector<RuleAction>> requested_actions(const options::NotifyOptions& notify,
                                                  const options::RuleOptions& rules) {
    std::vector<RuleAction> requested;
    TRAINDBG_ASSIGN_OR_RETURN(auto of_any, notify.actions());
    for (settings::RequestedAction& action : of_any) requested.push_back({"", std::move(action)});
    TRAINDBG_ASSIGN_OR_RETURN(auto configurations, rules.configurations());
    for (settings::RuleConfiguration& configuration : configurations) {
        const auto rule = rules::find_rule(configuration.rule);
        if (!rule.is_ok()) continue;  // said where the rules are chosen
        for (settings::RequestedAction& action : configuration.actions)
            requested.push_back({configuration.instance, std::move(action)});
    }
    return requested;
}

std::vector<RuleAction> actions_of_parameters(const std::vector<rules::RuleChoice>& choices) {
    std::vector<RuleAction> actions;
    for (const rules::RuleChoice& choice : choices) {
        if (model::rule_of(choice.name) != kStalledTraining) continue;
        const auto entry = rules::find_rule(choice.name);
        if (!entry.is_ok()) continue;
        const auto parameters = rules::complete_parameters(*(*entry)->info, choice.parameters);
        if (!parameters.is_ok() || !parameters->flag("stop_training_on_fire")) continue;
        constexpr std::string_view kPrefix = "training_job_name_prefix";
        actions.push_back(
            {choice.name,
             {ActionKind::kStop, parameters->has(kPrefix) ? parameters->text(kPrefix) : std::string(), ""},
             /*is_parameter=*/true});
    }
    return actions;
}

Acting what_to_do(const std::string& on_finding, const std::vector<RuleAction>& requested,
                  const std::string& run_name, const std::string& job_name) {
    Acting acting;
    if (!on_finding.empty()) acting.action = on_finding;
    bool is_any = false;
    for (const RuleAction& each : requested) {
        if (each.action.kind != ActionKind::kStop) continue;
        const std::string prefix = lower(each.action.prefix);
        const std::string& name = job_name.empty() ? run_name : job_name;
        const std::string what =
            each.is_parameter ? each.rule + ".stop_training_on_fire" : std::string("stoptraining");
        if (!lower(run_name).starts_with(prefix) && !lower(name).starts_with(prefix)) {
            acting.notes.push_back(base::format(
                "{} is for jobs that begin with '{}', and not for {}, which it does not stop; give "
                "it such a --name",
                what, base::printable(prefix), base::printable(name)));
            continue;
        }
        const bool ends_it = acting.action == "stop" || acting.action == "checkpoint-stop";
        if (each.is_parameter && (ends_it || acting.action == "none")) acting.stalls.insert(each.rule);
        if (acting.action != "none" && acting.action != "stop") {
            acting.notes.push_back(
                base::format("{} is left out: --on-finding {} is what is done", what, acting.action));
            continue;
        }
        is_any = is_any || each.rule.empty();
        acting.rules.insert(each.rule);
    }
    // --on-finding is about any rule.
    if (acting.action != "none" || is_any) acting.rules.clear();
    if (acting.action == "none" && (is_any || !acting.rules.empty())) acting.action = "stop";
    return acting;
}

Status check_targets(const options::NotifyOptions& options, const std::vector<RuleAction>& requested) {
    for (const std::string& target : options.targets) {
        if (!actions::is_exposition(target)) continue;
        if (const Status status = actions::make_exposition(target).status(); !status.is_ok())
            return {status.code(), "--notify: " + status.message()};
    }
    return receivers_of(options, requested).status();
}

bool tells_somebody(const options::NotifyOptions& options, const std::vector<RuleAction>& requested) {
    return std::any_of(options.targets.begin(), options.targets.end(),
                       [](const std::string& target) { return !actions::is_exposition(target); }) ||
           std::any_of(requested.begin(), requested.end(),
                       [](const RuleAction& each) { return each.action.kind != ActionKind::kStop; });
}

Result<std::unique_ptr<actions::Notifier>> open_notifier(const options::NotifyOptions& options,
                                                         const std::vector<RuleAction>& requested,
                                                         const std::string& run, storage::FileSystem& files,
                                                         bool dry_run, actions::PastActions past) {
    if (!tells_somebody(options, requested)) return std::unique_ptr<actions::Notifier>();
    TRAINDBG_ASSIGN_OR_RETURN(auto receivers, receivers_of(options, requested));
    actions::NotifierOptions notifier;
    notifier.run_directory = run;
    notifier.run = base_name(run);
    notifier.run_identity = run;
    if (const auto meta = read_run_meta(run, files); meta.is_ok()) {
        notifier.run_identity = meta->uuid;
        notifier.host = meta->host;
    }
    notifier.dry_run = options.dry_run || dry_run;
    notifier.past = std::move(past);
    notifier.cooldown = seconds(options.cooldown);
    return std::make_unique<actions::Notifier>(std::move(notifier), std::move(receivers));
}

std::unique_ptr<MetricsPublisher> MetricsPublisher::open(const options::NotifyOptions& options,
                                                         const std::string& run, storage::FileSystem& files) {
    auto publisher = std::make_unique<MetricsPublisher>();
    bool is_asked = false;
    for (const std::string& target : options.targets) {
        if (!actions::is_exposition(target)) continue;
        is_asked = true;
        auto exposition = actions::make_exposition(target);
        Status status = exposition.is_ok() ? (*exposition)->open() : exposition.status();
        if (status.is_ok()) publisher->expositions_.push_back(std::move(exposition).value());
        else publisher->troubles_.push_back(status.message() + "; the metrics are not shown there");
    }
    if (!is_asked) return nullptr;
    publisher->run_ = base_name(run);
    if (const auto meta = read_run_meta(run, files); meta.is_ok()) publisher->host_ = meta->host;
    return publisher;
}

std::int64_t MetricsPublisher::due_in() const noexcept {
    return std::max<std::int64_t>(0, next_nanos_ - base::monotonic_nanos());
}

void MetricsPublisher::publish(actions::Metrics metrics) {
    metrics.run = run_;
    metrics.host = host_;
    metrics.wall_nanos = base::wall_nanos();
    for (const std::unique_ptr<actions::Exposition>& exposition : expositions_) {
        const Status status = exposition->publish(metrics);
        if (!status.is_ok() && told_.insert(exposition->place()).second)
            troubles_.push_back(status.message() + "; the metrics there are out of date");
        else if (status.is_ok()) told_.erase(exposition->place());
    }
    next_nanos_ = base::monotonic_nanos() + kNanosBetweenMetrics;
}

std::vector<std::string> MetricsPublisher::places() const {
    std::vector<std::string> places;
    for (const std::unique_ptr<actions::Exposition>& exposition : expositions_)
        places.push_back(exposition->place());
    return places;
}

std::vector<std::string> MetricsPublisher::take_troubles() { return std::exchange(troubles_, {}); }

std::unique_ptr<MetricsPublisher> open_metrics(const options::NotifyOptions& options, const std::string& run,
                                               storage::FileSystem& files, Console& console) {
    auto publisher = MetricsPublisher::open(options, run, files);
    if (publisher == nullptr) return nullptr;
    for (const std::string& what : publisher->take_troubles()) console.warn(what);
    for (const std::string& place : publisher->places())
        console.error(base::format("traindbg: metrics at {}\n", base::printable(place)));
    return publisher;
}

}  // namespace traindbg::cli
