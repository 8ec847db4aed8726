// PyTorch's classes of losses, with the functions that they call: our names of losses have the function,
// those of the SageMaker Debugger client the class. One table for its patterns (settings) and its names
// (rules).
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace traindbg::model {

// Class, function.
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 18> kLossClasses = {{
    {"L1Loss", "l1_loss"},
    {"NLLLoss", "nll_loss"},
    {"PoissonNLLLoss", "poisson_nll_loss"},
    {"GaussianNLLLoss", "gaussian_nll_loss"},
    {"KLDivLoss", "kl_div"},
    {"MSELoss", "mse_loss"},
    {"BCELoss", "binary_cross_entropy"},
    {"BCEWithLogitsLoss", "binary_cross_entropy_with_logits"},
    {"HingeEmbeddingLoss", "hinge_embedding_loss"},
    {"MultiLabelMarginLoss", "multilabel_margin_loss"},
    {"SmoothL1Loss", "smooth_l1_loss"},
    {"HuberLoss", "huber_loss"},
    {"SoftMarginLoss", "soft_margin_loss"},
    {"CrossEntropyLoss", "cross_entropy"},
    {"MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss"},
    {"MultiMarginLoss", "multi_margin_loss"},
    {"CTCLoss", "ctc_loss"},
    {"CosineEmbeddingLoss", "cosine_embedding_loss"},
}};

}  // namespace traindbg::model
