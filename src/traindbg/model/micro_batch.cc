#include "traindbg/model/micro_batch.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace traindbg::model {
namespace {

// Of which roles the hooks tell micro-batches apart.
bool has_micro_batches(Role role) noexcept {
    switch (role) {
        case Role::kLoss:
        case Role::kInput:
        case Role::kOutput:
        case Role::kBlockOutput:
        case Role::kActivation:
        case Role::kPrediction:
        case Role::kLabel:
        case Role::kAttention: return true;
        default: return false;
    }
}

}  // namespace

bool is_of_later_micro_batch(const TensorInfo& info) noexcept {
    if (!has_micro_batches(info.role)) return false;
    const std::string_view name = info.name;
    const std::size_t last = name.find_last_not_of("0123456789");
    return last != std::string_view::npos && last + 1 < name.size() && name[last] == '@';
}

StepView of_first_micro_batch(const StepView& view, StepRecord& scratch) {
    const auto is_later = [&view](const auto& sample) {
        return is_of_later_micro_batch(view.info(sample.tensor));
    };
    const auto in_all_lists = [](auto& record, const auto& function) {
        return function(record.tensors) || function(record.scalars) || function(record.classes) ||
               function(record.histograms) || function(record.channels) || function(record.digests) ||
               function(record.raw);
    };
    const bool has_any = in_all_lists(*view.record, [&](const auto& samples) {
        return std::any_of(samples.begin(), samples.end(), is_later);
    });
    if (!has_any) return view;
    scratch = *view.record;
    in_all_lists(scratch, [&](auto& samples) {
        std::erase_if(samples, is_later);
        return false;
    });
    StepView out = view;
    out.record = &scratch;
    return out;
}

}  // namespace traindbg::model
