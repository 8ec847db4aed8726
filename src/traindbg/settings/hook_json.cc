#include "traindbg/settings/hook_json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/base/text.h"
#include "traindbg/model/due_steps.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/settings/json_problem.h"
#include "traindbg/settings/original_names.h"

namespace traindbg::settings {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::Mode;
using model::Requirement;
using model::What;
using nlohmann::json;

constexpr std::uint64_t kUsualInterval = 500;
constexpr std::string_view kHook = "HookParameters: ";  // where in the file
constexpr std::string_view kAll = "all";
constexpr std::string_view kDefault = "default";  // what the hook's own patterns match
// What the original saves of `all`: everything that is a tensor.
constexpr std::array kAllTensors = {"weights", "biases",        "gradients",   "losses", "inputs",
                                    "outputs", "block_outputs", "activations", "metrics"};
struct ModePrefix {
    Mode mode;
    std::string_view prefix;
};
constexpr std::array kModes = {ModePrefix{Mode::kTrain, "train."}, ModePrefix{Mode::kEval, "eval."},
                               ModePrefix{Mode::kPredict, "predict."}, ModePrefix{Mode::kGlobal, "global."}};

class HookReader {
  public:
    explicit HookReader(std::string name) : name_(std::move(name)) { out_.name = name_; }

    Result<Settings> read(const json& file) {
        if (!file.is_object()) return wrong("expected an object");
        const json* const hook = object(file, "HookParameters");
        TRAINDBG_RETURN_IF_ERROR(look_at_hook(hook));
        const auto list = file.find("CollectionConfigurations");
        if (list != file.end() && !list->is_null()) {
            if (!list->is_array()) return wrong("CollectionConfigurations: expected a list");
            for (const json& item : *list) {
                const auto called = item.is_object() ? item.find("CollectionName") : item.end();
                if (!item.is_object() || called == item.end() || !called->is_string())
                    return wrong(
                        base::format("CollectionConfigurations: a CollectionName is missing in entry {}",
                                     &item - &list->front() + 1));
                place_ =
                    base::format("collection {}: ", base::printable(called->get_ref<const std::string&>()));
                TRAINDBG_RETURN_IF_ERROR(
                    add(called->get<std::string>(), object(item, "CollectionParameters"), hook));
            }
        }
        place_ = kHook;
        if (hook != nullptr) {
            TRAINDBG_ASSIGN_OR_RETURN(const bool is_all, truth(*hook, "save_all", false));
            if (is_all && !is_added(kAll)) TRAINDBG_RETURN_IF_ERROR(add(std::string(kAll), nullptr, hook));
            if (hook->contains("include_regex") && !is_added(kDefault))
                TRAINDBG_RETURN_IF_ERROR(add(std::string(kDefault), nullptr, hook));
        }
        if (!problem_.is_ok()) return problem_;
        if (!is_added("losses") && !is_added(kAll)) TRAINDBG_RETURN_IF_ERROR(add("losses", nullptr, hook));
        return std::move(out_);
    }

  private:
    [[nodiscard]] Status wrong(std::string_view what) const {
        return {Code::kInvalidArgument, base::format("{}: {}{}", name_, place_, what)};
    }

    // What the hook itself says wrongly is told of it, not of the first collection that takes it over.
    Status look_at_hook(const json* hook) {
        if (!problem_.is_ok() || hook == nullptr) return problem_;
        place_ = kHook;
        for (const ModePrefix& each : kModes)
            TRAINDBG_RETURN_IF_ERROR(schedule_of(nullptr, hook, each.prefix).status());
        TRAINDBG_RETURN_IF_ERROR(what_of(nullptr, hook).status());
        place_.clear();
        return Status::ok();
    }

    const json* object(const json& parent, const char* key) {
        const auto found = parent.find(key);
        if (found == parent.end() || found->is_null()) return nullptr;
        if (found->is_object()) return &*found;
        problem_ = wrong(base::format("{}: expected an object", key));
        return nullptr;
    }

    [[nodiscard]] Result<bool> truth(const json& parameters, const char* key, bool fallback) const {
        const auto found = parameters.find(key);
        if (found == parameters.end()) return fallback;
        if (found->is_boolean()) return found->get<bool>();
        if (found->is_string()) {
            const auto& word = found->get_ref<const std::string&>();
            if (word == "True" || word == "true") return true;
            if (word == "False" || word == "false") return false;
        }
        return wrong(base::format("{}: expected true or false", key));
    }

    [[nodiscard]] Result<std::uint64_t> number(std::string_view text, std::string_view key) const {
        while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
        while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
        std::uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (text.empty() || error != std::errc() || end != text.data() + text.size())
            return wrong(base::format("{}: '{}' is not a whole number", key, base::printable(text)));
        return value;
    }

    static std::vector<std::string> parts_of(const std::string& text) {
        std::vector<std::string> parts;
        for (std::size_t begin = 0; begin <= text.size();) {
            const std::size_t end = std::min(text.find(',', begin), text.size());
            std::string part = text.substr(begin, end - begin);
            part.erase(0, std::min(part.find_first_not_of(' '), part.size()));
            part.erase(part.find_last_not_of(' ') + 1);
            if (!part.empty()) parts.push_back(std::move(part));
            begin = end + 1;
        }
        return parts;
    }

    // What the collection says for this mode, else for all; else what the hook says.
    static const json* look_up(const json* own, const json* hook, std::string_view prefix,
                               std::string_view key) {
        for (const json* place : {own, hook}) {
            if (place == nullptr) continue;
            for (const std::string& name : {std::string(prefix) + std::string(key), std::string(key)})
                if (const auto found = place->find(name); found != place->end() && !found->is_null())
                    return &*found;
        }
        return nullptr;
    }

    [[nodiscard]] Result<Requirement> schedule_of(const json* own, const json* hook,
                                                  std::string_view prefix) const {
        Requirement out;
        out.schedule.every = kUsualInterval;
        const auto read = [&](std::string_view key, std::uint64_t& into) -> Status {
            const json* value = look_up(own, hook, prefix, key);
            if (value == nullptr) return Status::ok();
            const std::string text = value->is_string() ? value->get<std::string>() : value->dump();
            TRAINDBG_ASSIGN_OR_RETURN(into, number(text, key));
            return Status::ok();
        };
        TRAINDBG_RETURN_IF_ERROR(read("save_interval", out.schedule.every));
        if (out.schedule.every == 0) return wrong("save_interval: must not be 0");
        TRAINDBG_RETURN_IF_ERROR(read("start_step", out.schedule.start));
        TRAINDBG_RETURN_IF_ERROR(read("end_step", out.schedule.end));
        if (const json* steps = look_up(own, hook, prefix, "save_steps")) {
            if (!steps->is_string()) return wrong("save_steps: expected a text, as \"0,10,100\"");
            for (const std::string& part : parts_of(steps->get<std::string>())) {
                TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t step, number(part, "save_steps"));
                out.steps.push_back(step);
            }
            std::sort(out.steps.begin(), out.steps.end());
        }
        return out;
    }

    // The original takes a schedule that comes to nothing, and saves nothing.
    void tell_if_never_due(const Requirement& requirement, std::string_view place) const {
        // Steps that are named count wherever they are.
        if (!requirement.steps.empty() || model::next_due(requirement, 0)) return;
        const model::Schedule& schedule = requirement.schedule;
        const std::string mode = requirement.mode == Mode::kGlobal
                                     ? std::string()
                                     : base::format(" in {}", model::to_string(requirement.mode));
        const std::string why =
            schedule.end <= schedule.start
                ? base::format("end_step {} is not after start_step {}", schedule.end, schedule.start)
                : base::format(
                      "there is no multiple of save_interval {} from start_step {} on, before "
                      "end_step {}",
                      schedule.every, schedule.start, schedule.end);
        const std::string text =
            base::format("{}: {}no step is due{}, so that nothing is recorded by it: {}; change one of them",
                         name_, place, mode, why);
        base::log_once(base::LogLevel::kWarning, text, text);
    }

    [[nodiscard]] Result<What> what_of(const json* own, const json* hook) const {
        // Whether tensors are whole beside them is said where they are.
        const json* const place = look_up(own, nullptr, "", "reductions") != nullptr ? own : hook;
        const json* const reductions = look_up(place, nullptr, "", "reductions");
        if (reductions == nullptr) return What::kStatistics | What::kRaw;
        if (!reductions->is_string()) return wrong("reductions: expected a text, as \"min,max,mean\"");
        static const std::vector<std::string> kWords = {
            "min",     "max",     "mean",     "std",          "variance",    "sum",
            "prod",    "l1_norm", "l2_norm",  "abs_min",      "abs_max",     "abs_mean",
            "abs_std", "abs_sum", "abs_prod", "abs_variance", "abs_l1_norm", "abs_l2_norm"};
        What what = What::kStatistics;
        for (const std::string& word : parts_of(reductions->get<std::string>())) {
            if (word.ends_with("prod")) what |= What::kDigest;
            if (std::find(kWords.begin(), kWords.end(), word) == kWords.end())
                return wrong(base::format("reductions: '{}' does not exist{}; there are {}",
                                          base::printable(word), base::did_you_mean(word, kWords),
                                          base::join(kWords, ", ")));
        }
        const json* whole = look_up(place, nullptr, "", "save_raw_tensor");
        if (whole == nullptr) return what;
        if (!whole->is_boolean()) return wrong("save_raw_tensor: expected true or false");
        return whole->get<bool>() ? what | What::kRaw : what;
    }

    [[nodiscard]] bool is_added(std::string_view collection) const {
        return std::find(added_.begin(), added_.end(), collection) != added_.end();
    }

    // Steps that are named count also where the interval's steps have not begun yet or have ended.
    static std::vector<Requirement> apart(Requirement requirement) {
        const auto outside =
            std::stable_partition(requirement.steps.begin(), requirement.steps.end(),
                                  [&](std::uint64_t step) { return requirement.schedule.holds(step); });
        if (outside == requirement.steps.end()) return {std::move(requirement)};
        Requirement named = requirement;
        named.schedule = {.every = 0};
        named.steps.assign(outside, requirement.steps.end());
        requirement.steps.erase(outside, requirement.steps.end());
        return {std::move(requirement), std::move(named)};
    }

    // Whether some key of the modes' own is there.
    static bool tells_modes_apart(const json* parameters) {
        if (parameters == nullptr) return false;
        for (const auto& [key, value] : parameters->items())
            for (const ModePrefix& each : kModes)
                if (key.starts_with(each.prefix)) return true;
        return false;
    }

    Status add(const std::string& collection, const json* own, const json* hook) {
        TRAINDBG_ASSIGN_OR_RETURN(const What what, what_of(own, hook));
        added_.push_back(collection);
        TRAINDBG_ASSIGN_OR_RETURN(const std::vector<std::string> parts,
                                  make_collections(collection, own, hook));
        const bool differs = tells_modes_apart(own) || tells_modes_apart(hook);
        for (const ModePrefix& each : kModes) {
            if (differs == (each.mode == Mode::kGlobal)) continue;
            TRAINDBG_ASSIGN_OR_RETURN(Requirement requirement, schedule_of(own, hook, each.prefix));
            requirement.mode = each.mode;
            requirement.what = what;
            requirement.asked_by = "user";
            TRAINDBG_ASSIGN_OR_RETURN(const Requirement of_hook, schedule_of(nullptr, hook, each.prefix));
            const bool is_own = own != nullptr && (of_hook.schedule != requirement.schedule ||
                                                   of_hook.steps != requirement.steps);
            tell_if_never_due(requirement, is_own ? std::string_view(place_) : kHook);
            for (Requirement& one : apart(std::move(requirement)))
                for (const std::string& part : parts) {
                    one.collection = part;
                    out_.captures.push_back(one);
                }
        }
        return Status::ok();
    }

    [[nodiscard]] Result<std::vector<std::string>> patterns_of(const json* parameters) const {
        const json* const given = look_up(parameters, nullptr, "", "include_regex");
        if (given == nullptr) return std::vector<std::string>();
        if (!given->is_string()) return wrong("include_regex: expected a text");
        return parts_of(given->get<std::string>());
    }

    // What it is in ours: itself where we have one of that name, and one of the tensors that it adds by
    // patterns.
    Result<std::vector<std::string>> make_collections(const std::string& collection, const json* own,
                                                      const json* hook) {
        TRAINDBG_ASSIGN_OR_RETURN(std::vector<std::string> patterns, patterns_of(own));
        if (collection == kAll) return std::vector<std::string>(kAllTensors.begin(), kAllTensors.end());
        if (collection == kDefault) {
            TRAINDBG_ASSIGN_OR_RETURN(const std::vector<std::string> more, patterns_of(hook));
            patterns.insert(patterns.end(), more.begin(), more.end());
            if (patterns.empty()) return std::vector<std::string>();  // nothing is in it
        }
        std::vector<std::string> out;
        std::string added = collection;
        if (model::role_of_collection(collection)) {
            out.push_back(collection);
            if (patterns.empty()) return out;
            added += ".include_regex";
        }
        std::vector<std::string> include = translated(patterns);
        if (patterns.empty() && collection == "relu_output") include = {"^activation/.*[Rr]e[Ll][Uu]"};
        const auto same = std::find_if(out_.collections.begin(), out_.collections.end(),
                                       [&](const auto& spec) { return spec.name == added; });
        if (include.empty() && same == out_.collections.end())
            return wrong(base::format("is none of ours{}; give it an include_regex",
                                      base::did_you_mean(collection, model::builtin_collections())));
        if (same == out_.collections.end()) out_.collections.push_back({added, std::move(include), {}});
        else same->include.insert(same->include.end(), include.begin(), include.end());
        out.push_back(std::move(added));
        return out;
    }

    // Each as it is, then what it means in our names. What is not captured is said, once.
    [[nodiscard]] std::vector<std::string> translated(const std::vector<std::string>& patterns) const {
        std::vector<std::string> out;
        for (const std::string& pattern : patterns) {
            OurPatterns ours = in_our_names(pattern);
            if (!ours.missing.empty()) {
                const std::string text =
                    base::format("{}: include_regex '{}' asks for {}, which traindbg does not capture", name_,
                                 base::printable(pattern), ours.missing);
                base::log_once(base::LogLevel::kWarning, text, text);
            }
            out.push_back(pattern);
            std::move(ours.patterns.begin(), ours.patterns.end(), std::back_inserter(out));
        }
        return out;
    }

    std::string name_;
    std::string place_;               // in the file, of what is read: "collection weights: "
    std::vector<std::string> added_;  // collections that were given
    Settings out_;
    Status problem_;
};

}  // namespace

Result<Settings> parse_hook_json(std::string_view text, const std::string& name) {
    const json file = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (file.is_discarded())
        return Status(Code::kInvalidArgument, base::format("{}: {}", name, json_problem(text)));
    HookReader reader(name);
    return reader.read(file);
}

}  // namespace traindbg::settings
