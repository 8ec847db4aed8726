#include "traindbg/rules/channel_order.h"

#include <cmath>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_ratio.h"

namespace traindbg::rules {

bool ChannelOrder::observe(const model::StepView& step) {
    if (loop_fact(step, "trainings")) {  // of another model
        in_training_ = in_evaluation_ = 0;
        apart_ = {};
        exchanged_in_a_row_ = 0;
    }
    const auto ours = loop_fact(step, "channels_difference"),
               theirs = loop_fact(step, "channels_difference_evaluated");
    const auto apart = loop_fact(step, "channels_apart"),
               exchanged = loop_fact(step, "channels_apart_exchanged");
    if (!ours || !theirs || !apart || !exchanged) return false;
    in_training_ = ours->value;
    in_evaluation_ = theirs->value;
    apart_ = {.as_they_are = apart->value, .exchanged = exchanged->value};
    exchanged_in_a_row_ = are_exchanged(apart_) ? exchanged_in_a_row_ + 1 : 0;
    return true;
}

bool ChannelOrder::are_colours_turned() const {
    return std::abs(in_training_) < kTurned * std::abs(in_evaluation_) &&
           apart_.as_they_are > kClearlyApart && apart_.exchanged > kClearlyApart;
}

bool ChannelOrder::judge(const std::optional<double>& ratio, FindingSink& sink) {
    if (exchanged_in_a_row_ < kFewestExchanged || !is_worse(ratio)) {
        firing_.clear(kKey, sink);
        return false;
    }
    model::Finding finding;
    finding.key = kKey;
    finding.mode = model::Mode::kEval;
    finding.severity = model::Severity::kWarning;
    finding.tensor = "input/0";
    finding.message = base::format(
        "The channels of the images that are evaluated come the other way round than in training, as with "
        "BGR and RGB: the mean of the first less that of the last is {} in training and {} in evaluation. "
        "With the first and the last exchanged, all that was compared is alike. The evaluation's loss is "
        "{:.3g} times that of the training.",
        base::human_number(in_training_), base::human_number(in_evaluation_), *ratio);
    finding.fix =
        "Read the images of both in one way, by one function: OpenCV gives BGR (image[..., ::-1] or "
        "cv2.cvtColor), Pillow and torchvision RGB.";
    finding.evidence = {{"squared distance, in standard errors", apart_.as_they_are,
                         "with channels exchanged", apart_.exchanged},
                        {"evaluation loss, as a multiple", *ratio, "limit", LossRatio::kWorse}};
    firing_.fire(std::move(finding), sink);
    return true;
}

}  // namespace traindbg::rules
