#include "traindbg/cli/plan_edit.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/model/due_steps.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/model/what_words.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::CaptureConfig;
using model::CollectionSpec;
using model::Requirement;
using model::What;

bool is_users(const Requirement& requirement) { return requirement.asked_by == "user"; }

// Whether both ask for the same thing, though perhaps at other steps.
bool is_same_wish(const Requirement& a, const Requirement& b) {
    return a.collection == b.collection && a.mode == b.mode &&
           (a.what | What::kStatistics) == (b.what | What::kStatistics);
}

template <typename T>
bool contains(const std::vector<T>& all, const T& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
}

Status drop(const std::string& name, CaptureConfig& config) {
    const auto is_meant = [&](const Requirement& each) { return is_users(each) && each.collection == name; };
    if (std::any_of(config.requirements.begin(), config.requirements.end(), is_meant)) {
        std::erase_if(config.requirements, is_meant);
        return Status::ok();
    }
    std::vector<std::string> wished;
    std::vector<std::string> others;
    for (const Requirement& each : config.requirements) {
        if (is_users(each) && !contains(wished, each.collection)) wished.push_back(each.collection);
        if (each.collection == name && !contains(others, each.asked_by)) others.push_back(each.asked_by);
    }
    const std::string why = !others.empty()  ? base::format("{} need{} it", base::join(others, ", "),
                                                           others.size() == 1 ? "s" : "")
                            : wished.empty() ? std::string("nothing of what is captured was asked for by you")
                                             : "you asked for " + base::join(wished, ", ");
    return {Code::kInvalidArgument,
            base::format("--drop: you asked for nothing of '{}'{}; {}", base::printable(name),
                         base::did_you_mean(name, wished), why)};
}

// A collection of the user's that nothing refers to any more goes.
void forget_unused(const CaptureConfig& before, CaptureConfig& config) {
    std::erase_if(config.collections, [&](const CollectionSpec& spec) {
        const auto names_it = [&](const Requirement& each) { return each.collection == spec.name; };
        const auto is_used = [&](const CaptureConfig& plan) {
            return std::any_of(plan.requirements.begin(), plan.requirements.end(), names_it);
        };
        return is_used(before) && !is_used(config) && !contains(config.flight.collect, spec.name) &&
               !contains(config.flight.raw, spec.name);
    });
}

Status reschedule(const options::CaptureOptions& options, CaptureConfig& config) {
    TRAINDBG_ASSIGN_OR_RETURN(const Requirement form, options.form());
    const bool says_which = options.every != 0 || !form.steps.empty() || form.every_ms != 0;
    bool has_any = false;
    for (Requirement& each : config.requirements) {
        if (!is_users(each)) continue;
        has_any = true;
        if (says_which) {
            each.schedule.every = form.schedule.every;
            each.steps = form.steps;
            each.every_ms = form.every_ms;
        }
        if (options.first_step != 0) each.schedule.start = form.schedule.start;
        if (options.end_step != UINT64_MAX) each.schedule.end = form.schedule.end;
        if (!options.mode.empty()) each.mode = form.mode;
        if (each.schedule.end <= each.schedule.start)
            return {Code::kInvalidArgument,
                    base::format("{}: would never be due: its first step would be {}, its end {}",
                                 in_words(each), each.schedule.start, each.schedule.end)};
        if (!model::next_due(each, 0))
            return {Code::kInvalidArgument, base::format("{}: would never be due", in_words(each))};
    }
    if (has_any) return Status::ok();
    return {Code::kInvalidArgument,
            "the steps are those of what you asked for, and that is nothing yet; name something, as in "
            "--collect gradients"};
}

}  // namespace

Result<CaptureConfig> edited(const CaptureConfig& plan, const PlanEdit& edit) {
    if (edit.capture.has_flight())
        return Status(
            Code::kInvalidArgument,
            "--flight-recorder: is begun with the training; one that runs gets none, and its own stays");
    CaptureConfig out = plan;
    if (edit.drop_all) std::erase_if(out.requirements, is_users);
    else
        for (const std::string& name : edit.drop) TRAINDBG_RETURN_IF_ERROR(drop(name, out));

    options::CaptureOptions options = edit.capture;
    if (options.has_names()) {
        for (const CollectionSpec& spec : out.collections) options.defined.push_back(spec.name);
        TRAINDBG_ASSIGN_OR_RETURN(CaptureConfig wished, options.config({}));
        TRAINDBG_RETURN_IF_ERROR(options.check_schedule().status());
        for (CollectionSpec& spec : wished.collections) {
            const auto known = std::find_if(out.collections.begin(), out.collections.end(),
                                            [&](const auto& each) { return each.name == spec.name; });
            if (known != out.collections.end()) *known = std::move(spec);
            else out.collections.push_back(std::move(spec));
        }
        std::erase_if(out.requirements, [&](const Requirement& each) {
            return is_users(each) &&
                   std::any_of(wished.requirements.begin(), wished.requirements.end(),
                               [&](const Requirement& wish) { return is_same_wish(each, wish); });
        });
        out.requirements.insert(out.requirements.end(), wished.requirements.begin(),
                                wished.requirements.end());
    } else if (options.has_schedule()) {
        TRAINDBG_RETURN_IF_ERROR(reschedule(options, out));
    }
    if (const auto choice = model::parse_compiled_models(options.compiled)) out.compiled = *choice;
    if (const auto choice = model::parse_micro_batches(options.micro_batches)) out.micro_batches = *choice;
    TRAINDBG_ASSIGN_OR_RETURN(const std::optional<double> share, options.budget_share());
    if (share) out.budget = *share;
    out.probe = out.probe || options.probe;
    forget_unused(plan, out);
    // What only the training would find, such as a pattern that it does not understand.
    TRAINDBG_RETURN_IF_ERROR(capture::CapturePlan::make(out).status());
    return out;
}

std::string in_words(const Requirement& requirement) {
    return base::format("{} of '{}' in {}, {}, for {}", model::what_in_words(requirement.what),
                        base::printable(requirement.collection),
                        requirement.mode == model::Mode::kGlobal ? std::string_view("every mode")
                                                                 : model::to_string(requirement.mode),
                        capture::when_in_words(requirement),
                        requirement.asked_by.empty() ? std::string("nobody in particular")
                                                     : base::printable(requirement.asked_by));
}

std::string in_words(const CollectionSpec& collection) {
    std::string out =
        base::format("collection '{}': tensors whose names match {}", base::printable(collection.name),
                     base::printable(base::join(collection.include, " or ")));
    if (!collection.exclude.empty())
        out += " and not " + base::printable(base::join(collection.exclude, " or "));
    return out;
}

std::vector<std::string> differences(const CaptureConfig& before, const CaptureConfig& after) {
    std::vector<std::string> lines;
    const auto compare = [&lines](const auto& from, const auto& to, const char* sign) {
        for (const auto& each : from)
            if (!contains(to, each)) lines.push_back(sign + in_words(each));
    };
    compare(before.requirements, after.requirements, "- ");
    compare(before.collections, after.collections, "- ");
    compare(after.collections, before.collections, "+ ");
    compare(after.requirements, before.requirements, "+ ");
    if (before.compiled != after.compiled) {
        lines.push_back(base::format("- compiled models: {}", model::to_string(before.compiled)));
        lines.push_back(base::format("+ compiled models: {}", model::to_string(after.compiled)));
    }
    if (before.micro_batches != after.micro_batches) {
        lines.push_back(base::format("- micro-batches: {}", model::to_string(before.micro_batches)));
        lines.push_back(base::format("+ micro-batches: {}", model::to_string(after.micro_batches)));
    }
    const auto budget = [](const std::optional<double>& share) {
        if (!share) return std::string("the default rules' own");
        return *share == 0 ? std::string("none") : base::format("{:.3g} %", 100 * *share);
    };
    if (before.budget != after.budget) {
        lines.push_back("- budget: " + budget(before.budget));
        lines.push_back("+ budget: " + budget(after.budget));
    }
    if (before.probe != after.probe)
        lines.push_back(base::format("{} probes of the model", after.probe ? '+' : '-'));
    return lines;
}

}  // namespace traindbg::cli
