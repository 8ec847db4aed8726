#include "traindbg/report/capture_notes.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::report {
namespace {

using base::printable;
using model::Json;

// Of an event, which anybody may have written.
std::uint64_t number(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}
double fraction(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? found->get<double>() : 0;
}
std::string text(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<Json> events(const read::Run& run, std::string_view kind) {
    std::vector<Json> out;
    for (const read::RunEvent& event : run.events()) {
        if (event.kind != kind) continue;
        Json json = Json::parse(event.json, nullptr, false);
        if (json.is_object()) out.push_back(std::move(json));
    }
    return out;
}

// Of an event "correction": a checkpoint, and what was refused, changed nothing in the training.
const char* kind_of_correction(const Json& event) {
    const auto refused = event.find("refused");
    if (refused != event.end() && refused->is_boolean() && refused->get<bool>()) return "refused";
    return text(event, "action").find("checkpoint") == std::string::npos ? "corrected" : "checkpoint";
}

// What the workers' budgets left out, as each of them told last; nothing: none of them has one.
struct BudgetNote {
    double share = 0;
    bool is_standing = false;  // nobody set one: what capture keeps to by itself
    double spent = 0;          // the most of a worker
    std::uint64_t due = 0, left_out = 0;
};

std::optional<BudgetNote> budget_of(const read::Run& run) {
    std::map<model::WorkerId, Json> last;
    for (const read::RunEvent& event : run.events()) {
        if (event.kind != "budget" && event.kind != "budget_thins") continue;
        Json json = Json::parse(event.json, nullptr, false);
        if (json.is_object()) last[event.worker] = std::move(json);
    }
    if (last.empty()) return std::nullopt;
    BudgetNote out;
    for (const auto& [worker, json] : last) {
        out.share = fraction(json, "budget");
        out.is_standing = out.is_standing || json["is_standing"] == true;
        out.spent = std::max(out.spent, fraction(json, "spent"));
        out.due += number(json, "steps_due");
        out.left_out += number(json, "steps_left_out");
    }
    return out;
}

struct Flight {
    std::uint64_t steps = 0;
    model::StepIndex first = 0, last = 0;
    struct Copy {
        model::StepIndex step;
        std::string reason;
    };
    std::vector<Copy> copies;  // empty: it was not asked for, the training was cut off (or still runs)
};

std::optional<Flight> flight_of(const read::Run& run) {
    const std::string path = storage::RunLayout{run.path()}.flight();
    if (!run.files().exists(storage::RunLayout{path}.run_json())) return std::nullopt;
    const auto opened = read::Run::open(path, run.files());
    if (!opened) return std::nullopt;
    const std::vector<model::StepIndex> steps = (*opened)->steps(model::Mode::kTrain);
    if (steps.empty()) return std::nullopt;
    Flight out{steps.size(), steps.front(), steps.back(), {}};
    for (const Json& event : events(run, "flight_recorder"))
        out.copies.push_back({number(event, "step"), text(event, "reason")});
    return out;
}

// What was due of tensors and could not be taken, with those of one reason in one sentence.
std::vector<std::string> skipped_in_words(const read::Run& run) {
    constexpr std::size_t kNamed = 3;
    std::vector<std::pair<std::string, std::vector<std::string>>> by_reason;  // in their order
    for (const Json& event : events(run, "tensor_skipped")) {
        const std::string reason = text(event, "reason");
        const std::string name = text(event, "tensor");
        auto at = std::find_if(by_reason.begin(), by_reason.end(),
                               [&](const auto& known) { return known.first == reason; });
        if (at == by_reason.end()) at = by_reason.insert(at, {reason, {}});
        // Each of several workers tells it.
        if (std::find(at->second.begin(), at->second.end(), name) == at->second.end())
            at->second.push_back(name);
    }
    std::vector<std::string> out;
    for (const auto& [reason, names] : by_reason) {
        std::vector<std::string> named;
        for (std::size_t i = 0; i < std::min(names.size(), kNamed); ++i) named.push_back(printable(names[i]));
        const std::string rest =
            names.size() > kNamed ? base::format(" and {} more", names.size() - kNamed) : std::string();
        out.push_back(base::format("{}{}: {}", base::join(named, ", "), rest, printable(reason)));
    }
    std::uint64_t more = 0;
    for (const Json& event : events(run, "tensors_skipped")) more += number(event, "more");
    if (more > 0) out.push_back(base::format("and {} tensors more, which events do not name", more));
    return out;
}

// What failed in the recording itself, part by part: where first, and from where on the part is off.
std::vector<std::string> failures_in_words(const read::Run& run) {
    std::vector<std::string> out;
    const auto add = [&out](std::string sentence) {  // once for all workers
        if (std::find(out.begin(), out.end(), sentence) == out.end()) out.push_back(std::move(sentence));
    };
    for (const Json& event : events(run, "hook_error"))
        add(base::format("{}, first at step {}: {}", printable(text(event, "part")), number(event, "step"),
                         printable(text(event, "error"))));
    for (const Json& event : events(run, "hook_off"))
        add(base::format("{}: off after {} failures; nothing of it is recorded from step {} on",
                         printable(text(event, "part")), number(event, "failures"), number(event, "step")));
    return out;
}

std::string percent(double share) { return base::format("{:.3g} %", 100 * share); }

}  // namespace

std::vector<std::pair<std::string, std::string>> capture_notes(const read::Run& run,
                                                               const std::string& run_words) {
    std::vector<std::pair<std::string, std::string>> out;
    if (const std::optional<BudgetNote> budget = budget_of(run))
        out.emplace_back(
            budget->is_standing ? "limit" : "budget",
            base::format(
                "{}{}: {}; {}", percent(budget->share),
                budget->is_standing ? " of the time for the default rules" : "",
                budget->left_out == 0 ? "nothing was left out"
                                      : base::format("{} of {} steps that were due were left out",
                                                     budget->left_out, budget->due),
                budget->is_standing ? "--budget 0 lifts it" : "capture took " + percent(budget->spent)));
    if (const std::optional<Flight> flight = flight_of(run)) {
        std::string what;
        for (const Flight::Copy& copy : flight->copies)
            what +=
                base::format("{}{} at step {}", what.empty() ? "" : "; ", printable(copy.reason), copy.step);
        if (what.empty()) what = base::format("the last {} steps, to step {}", flight->steps, flight->last);
        else what = base::format("{} steps around what went wrong ({})", flight->steps, what);
        out.emplace_back("flight", base::format("{}: traindbg show {}/flight", what, run_words));
    }
    for (const Json& event : events(run, "correction"))
        out.emplace_back(kind_of_correction(event), base::format("at step {}: {}", number(event, "step"),
                                                                 printable(text(event, "text"))));
    for (const Json& event : events(run, "evaluation_losses"))
        out.emplace_back(
            "evaluations",
            base::format("compute no loss; {} is that of the labels {}", printable(text(event, "loss")),
                         text(event, "of") == "tensors"
                             ? "that were found beside the tensor that is evaluated"
                             : "in their loader's batches"));
    std::vector<std::string> told;
    for (const Json& event : events(run, "not_captured")) {
        const std::string sentence =
            base::format("{}: {}", printable(text(event, "what")), printable(text(event, "reason")));
        if (std::find(told.begin(), told.end(), sentence) != told.end()) continue;  // of several workers
        told.push_back(sentence);
        out.emplace_back("not seen", sentence);
    }
    for (std::string& sentence : skipped_in_words(run)) out.emplace_back("not seen", std::move(sentence));
    for (std::string& sentence : failures_in_words(run)) out.emplace_back("failed", std::move(sentence));
    return out;
}

void put_capture_notes(Json& json, const read::Run& run) {
    json["budget"] = nullptr;
    if (const std::optional<BudgetNote> budget = budget_of(run))
        json["budget"] = {{"budget", budget->share},
                          {"is_standing", budget->is_standing},
                          {"spent", budget->spent},
                          {"steps_due", budget->due},
                          {"steps_left_out", budget->left_out}};
    json["flight"] = nullptr;
    if (const std::optional<Flight> flight = flight_of(run)) {
        Json copies = Json::array();
        for (const Flight::Copy& copy : flight->copies)
            copies.push_back({{"step", copy.step}, {"reason", printable(copy.reason)}});
        json["flight"] = {{"path", printable(storage::RunLayout{run.path()}.flight())},
                          {"steps", flight->steps},
                          {"first", flight->first},
                          {"last", flight->last},
                          {"copies", std::move(copies)}};
    }
    json["corrections"] = events(run, "correction");
    json["evaluation_losses"] = events(run, "evaluation_losses");
    json["not_captured"] = events(run, "not_captured");
    json["tensors_skipped"] = events(run, "tensor_skipped");
    json["failures"] = events(run, "hook_error");
    json["parts_off"] = events(run, "hook_off");
}

std::string why_not_captured(const read::Run& run, const std::string& tensor) {
    for (const Json& event : events(run, "tensor_skipped"))
        if (text(event, "tensor") == tensor) return text(event, "reason");
    for (const Json& event : events(run, "not_captured"))
        if (text(event, "what") == tensor) return text(event, "reason");
    return {};
}

}  // namespace traindbg::report
