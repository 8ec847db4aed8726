#include "traindbg/rules/input_names.h"

#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

constexpr std::string_view kDigits = "0123456789";

// Whose input it is: a name without its number, of the model or of a part that stands in for it.
std::string_view owner_of_input(std::string_view name) {
    return name.substr(0, name.find_last_not_of(kDigits) + 1);
}

}  // namespace

void InputNames::count(const model::StepView& step) {
    std::map<std::string_view, std::size_t> given;
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        const std::string_view name = info.name;
        if (info.role == model::Role::kInput && name.find(kFurtherBatch) == std::string_view::npos)
            ++given[owner_of_input(name)];
    }
    for (const auto& [owner, count] : given) {
        const auto known = given_.find(owner);
        if (known == given_.end()) given_.emplace(owner, count);
        else if (known->second != count) known->second = kVarying;
    }
}

void InputNames::note_computed(const model::StepView& step) {
    for (const LoopFact& fact : loop_facts(step, "input_is_computed"))
        computed_.insert("input/" + std::string(fact.place));
}

bool InputNames::is_one_input(std::string_view name) const {
    name = name.substr(0, name.find(kFurtherBatch));
    const std::string_view owner = owner_of_input(name);
    const auto known = given_.find(owner);
    return name.substr(owner.size()) == "0" || known == given_.end() || known->second != kVarying;
}

bool InputNames::is_data(std::string_view name) const {
    const std::string_view number = name.substr(name.find('/') + 1);
    return number.find_first_not_of(kDigits) == std::string_view::npos && !computed_.contains(name);
}

}  // namespace traindbg::rules
