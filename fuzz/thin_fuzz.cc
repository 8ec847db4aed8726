// Steps are taken out of any sealed part. What comes out must be whole, and hold the very steps that were to
// stay, with the values that they had before.
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "segment_input.h"
#include "traindbg/read/run.h"
#include "traindbg/seal/thin.h"
#include "traindbg/storage/memory_file_system.h"

using namespace traindbg;

namespace {

bool stays(model::StepIndex step) { return step % 3 == 0; }

// The steps of a run with this part alone.
std::map<std::pair<model::Mode, model::StepIndex>, model::StepRecord> steps_of(base::ByteBuffer part,
                                                                               bool& is_whole) {
    storage::MemoryFileSystem files;
    files.create_directories("/run/w0000").ignore();
    files.set_content("/run/RUN.json", {std::byte{'{'}, std::byte{'}'}});
    files.set_content("/run/w0000/000000.seg", std::move(part));
    std::map<std::pair<model::Mode, model::StepIndex>, model::StepRecord> steps;
    const auto run = read::Run::open("/run", files);
    if (!run) return steps;
    (*run)
        ->for_each_step([&](const model::StepView& view) {
            steps.emplace(std::pair(view.record->mode, view.record->step), *view.record);
            return true;
        })
        .ignore();
    is_whole = (*run)->damage().empty();
    return steps;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const base::ByteBuffer part = fuzz::segment_of(data, size);
    auto thinned = seal::thin_segment(
        part, [](model::Mode, model::StepIndex step) { return stays(step); }, nullptr);
    if (!thinned) return 0;
    bool was_whole = false;
    bool is_whole = false;
    const auto before = steps_of(part, was_whole);
    const auto after = steps_of(std::move(thinned).value(), is_whole);
    if (was_whole && !is_whole) std::abort();
    for (const auto& [key, record] : after)
        if (!stays(key.second) || !before.contains(key)) std::abort();
    if (!was_whole) return 0;
    for (const auto& [key, record] : before)
        if (stays(key.second) && !(after.contains(key) && after.at(key) == record)) std::abort();
    return 0;
}
