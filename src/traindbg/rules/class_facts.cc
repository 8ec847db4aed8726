#include "traindbg/rules/class_facts.h"

#include <charconv>

#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {

std::optional<std::size_t> number_in(std::string_view digits) {
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size() || number >= kMostNumbered)
        return std::nullopt;
    return number;
}

void put_numbered(double value, std::size_t number, std::vector<double>& values) {
    if (values.size() <= number) values.resize(number + 1, 0);
    values[number] = value;
}

void read_numbered(const model::StepView& step, std::string_view fact, std::vector<double>& values) {
    for (const LoopFact& told : loop_facts(step, fact))
        if (const auto number = number_in(told.place)) put_numbered(told.value, *number, values);
}

}  // namespace traindbg::rules
