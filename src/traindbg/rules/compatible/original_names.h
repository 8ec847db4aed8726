// What the SageMaker Debugger client calls what our hooks recorded. One table for the compatible rules and
// for rules of users that were written for the original.
//
// Pure functions of plain values: any thread. Errors: none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/tensor_info.h"

namespace traindbg::rules::compatible {

// What the original calls a tensor that our hooks named; the name itself where it has none of its own.
// `root`: the class of the root module, which it puts before names of parameters.
[[nodiscard]] std::string original_name(const model::TensorInfo& info, const std::string& root);
// The original's collections that a tensor is in, beside that of its role and the user's own.
[[nodiscard]] std::vector<std::string_view> original_collections(const model::TensorInfo& info);
// By our names of collections and the original's, and by the user's own.
[[nodiscard]] bool is_in_collection(const model::TensorInfo& info, std::string_view collection);

}  // namespace traindbg::rules::compatible
