// What the process of a rule in Python says, over any bytes.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "traindbg/extend/protocol.h"

using namespace traindbg::extend;

namespace {

void expect(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 4) {
        case 0:
            if (const auto answer = answer_in(text); answer.is_ok() && answer->has_value())
                expect(frame(**answer) == text);
            break;
        case 1:
            if (const auto rules = rules_from_answer(text); rules.is_ok()) expect(rules->size() <= 1000);
            break;
        case 2:
            if (const auto needs = needs_from_answer(text, "a"); needs.is_ok()) expect(needs->size() <= 1000);
            break;
        default:
            if (const auto judgement = judgement_from_answer(text); judgement.is_ok()) {
                expect(judgement->events.size() <= 1000);
                for (const auto& event : judgement->events)
                    if (const auto* finding = std::get_if<traindbg::model::Finding>(&event))
                        expect(!finding->message.empty() && finding->message.size() <= 4096);
            }
            break;
    }
    return 0;
}
