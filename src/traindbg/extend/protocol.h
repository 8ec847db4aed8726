// What is said between the program and the process of a rule in Python, as bytes and back.
//
// A frame is two numbers of 32 bits (little-endian), the size of a JSON text and of what follows it (whole
// tensors), then both. The program asks, the process answers, one frame each. What the process says is not
// trusted: it runs somebody's code. Texts are cut, lists are bounded, and anything that is not as it must be
// is an error.
//
// Asked first: {"do": "describe", "source": S}, and then for each class {"do": "try", "class": C}, which
// makes an object with its defaults, or {"do": "load", "source": S, "class": C, "parameters": {...}} of the
// one that is to judge, and {"do": "try"}; {"do": "needs"} asks the object that was tried. Then {"do":
// "make", "rule": N},
// {"do": "step", "rule": N, "step": {...}}, {"do": "end", "rule": N}. Each request is one call of the rule's
// code, so that each has a limit and a name. Answered: {"error": "..."} (with "out_of_memory": true where
// that was the reason), or {}, {"rules": [...]}, {"needs": [...]}, {"judged": true, "events": [...]}.
//
// Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/extend/shown_step.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/rule_info.h"
#include "traindbg/rules/parameters.h"

namespace traindbg::extend {

inline constexpr std::size_t kFrameHead = 8;
// What an answer may be; larger ones are garbage. A rule's findings of one step are a few hundred bytes.
inline constexpr std::size_t kMostAnswerBytes = std::size_t{4} << 20;
// What is shown of one step.
inline constexpr std::size_t kMostStepBytes = std::size_t{1} << 30;

// Bytes to send: `blob` follows the JSON.
[[nodiscard]] std::string frame(std::string_view json, std::string_view blob = {});

// The JSON of an answer at the beginning of `bytes`; nothing: there is more to come. kDataLoss: it never will
// be one.
[[nodiscard]] base::Result<std::optional<std::string_view>> answer_in(std::string_view bytes);

[[nodiscard]] std::string describe_request(const std::string& source);
[[nodiscard]] std::string load_request(const std::string& source, const std::string& class_name,
                                       const rules::Parameters& parameters);
[[nodiscard]] std::string try_request(const std::string& class_name);
[[nodiscard]] std::string try_loaded_request();
[[nodiscard]] std::string needs_request();
[[nodiscard]] std::string make_request(std::uint64_t rule, model::WorkerId worker);
[[nodiscard]] std::string end_request(std::uint64_t rule);

// Steps of one worker for one rule: what a tensor is, and what the training is, is told once.
class StepEncoder {
  public:
    // The whole frame. kResourceExhausted: more than a rule is shown.
    [[nodiscard]] base::Result<std::string> encode(std::uint64_t rule, const ShownStep& step);

  private:
    std::vector<bool> told_;  // by id
    std::optional<model::WorkerMeta> meta_;
};

// A rule as the process describes it.
struct PythonRuleInfo {
    std::string class_name;
    model::RuleInfo info;
    bool everything = false;  // it is shown all that was recorded, whatever it needs
};
[[nodiscard]] base::Result<std::vector<PythonRuleInfo>> rules_from_answer(std::string_view json);

// Of an answer that says nothing but that it was done, or what went wrong.
[[nodiscard]] base::Status done_from_answer(std::string_view json);

// `asked_by`: the rule's name.
[[nodiscard]] base::Result<std::vector<model::Requirement>> needs_from_answer(std::string_view json,
                                                                              const std::string& asked_by);

struct Cleared {
    std::string key;
};
struct Judgement {
    bool judged = false;
    std::string why_not;  // where it was not
    std::vector<std::variant<model::Finding, Cleared>> events;
};
[[nodiscard]] base::Result<Judgement> judgement_from_answer(std::string_view json);

}  // namespace traindbg::extend
