// Patterns that were written for the names which the SageMaker Debugger client gives to tensors of PyTorch,
// as patterns for ours: "relu1_output_0" is "activation/relu1" here, "Net_conv1.weight"
// "weight/conv1.weight", "CrossEntropyLoss_output_0" "loss/cross_entropy".
//
// Only where both mean the same tensors: a name of the original's that begins with a class is taken for one
// of the model's, which is the only class that stands there, and outputs of modules that return several
// tensors are left out, because nothing in our names tells them from modules that are called by a number.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace traindbg::settings {

struct OurPatterns {
    std::vector<std::string>
        patterns;              // beside the pattern itself, which may have been written for our names
    std::string_view missing;  // what it asks for that is not captured; empty: nothing that is known
};

// `pattern`: a regular expression that is searched in names. One that is none gives nothing.
[[nodiscard]] OurPatterns in_our_names(const std::string& pattern);

}  // namespace traindbg::settings
