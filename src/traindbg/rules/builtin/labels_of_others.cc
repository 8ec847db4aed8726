// Masks that belong to other pictures.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kLabelsOfOthers = {
    .name = "labels_of_others",
    .title = "Masks of other pictures",
    .summary =
        "What the model predicts for a picture fits the mask of another picture nearly as well as its own: "
        "pictures and masks do not belong together.",
    .when =
        "The loss of pictures with their own masks is hardly smaller than with those of other pictures, "
        "though the training has come down from its start (warning).\n"
        "- Compared: a binary cross-entropy or a cross-entropy, without weights, that is given a class for "
        "each pixel of four or more pictures. As many pictures are given to the model.\n"
        "- With whose masks: of up to 16 pictures, with that of the picture half of them further on. Looked "
        "at from the 50th step on, by up to 262,144 scores. Masks that differ in less than 1 % of the pixels "
        "say nothing.\n"
        "- Hardly smaller: at all looks, and at least `looks` of them, the loss with a picture's own mask is "
        "above `share` of that with the other's. It is also above 40 % of the loss of one answer for all "
        "pixels.\n"
        "- When: at the end of a run of at least `steps` steps, or after three times `steps` steps. The loss "
        "fell by a fifth of its start or more, so that the mean of all masks was learned.\n"
        "- Stands still, before the end: over the second half of the run the loss has no downward trend "
        "(Mann-Kendall z > -2.5).",
    .why =
        "A model that is trained with the masks of other pictures learns the mean of all masks. Its loss "
        "falls well below that of a constant, and no picture is told from another; later it learns the wrong "
        "pairs by heart.",
    .fix =
        "Look at a dozen pictures with their masks, as the loader gives them. Pair files by the number in "
        "their names, not by their places in two sorted lists (frame_10 comes before frame_2); shuffle and "
        "filter both together.",
    .healthy =
        "A batch of one film, whose masks are alike; masks of a few pixels; a model that has learned much; a "
        "training that is still at the mean of all masks and about to leave it. Losses of numbers, as of "
        "maps, series and noise, are not judged, nor is what has one label for each picture.",
    .cost =
        "The loss of up to 16 pictures, by up to 262,144 scores, twice, at every 25th step from the 50th on.",
    .original = "",
    .source =
        "Northcutt, Athalye, Mueller, \"Pervasive label errors in test sets\", NeurIPS 2021 (the fault, "
        "not the method)",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.8, 0.4, 1, "of the loss with the mask of another picture"},
                   {"looks", "looks", 4, 2, 1000, "fewest that show it"},
                   {"steps", "steps", 150, 75, 1e9, "fewest steps of a run that is judged at its end"}},
};

class LabelsOfOthers final : public Rule {
  public:
    explicit LabelsOfOthers(const Parameters& parameters)
        : share_(parameters.at("share")),
          looks_(static_cast<std::uint64_t>(parameters.at("looks"))),
          steps_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (loop_fact(step, "trainings")) {
            if (!fired_ && steps_seen_ >= steps_ && shows()) fire(sink);  // it ends here
            fired_ = false;
            shares_ = 0;
            least_ = std::numeric_limits<double>::infinity();
            steps_seen_ = 0;
        }
        loss_.observe(step);
        ++steps_seen_;
        const std::optional<LoopFact> share = loop_fact(step, "own_labels_share");
        if (!share || !std::isfinite(share->value)) return;
        ++judged_;
        ++shares_;
        least_ = std::min(least_, share->value);
        const auto means = loss_.blocks().means();
        const bool stands_still = trend_z(means.last(means.size() / 2)) > kNoTrend;
        const bool on = steps_seen_ >= kLater * steps_ && stands_still && shows();
        if (on) fire(sink);
        else if (fired_ && !shows()) sink.clear(kKey);
        fired_ = on || (fired_ && shows());
    }
    void on_end(FindingSink& sink) override {
        if (!fired_ && steps_seen_ >= steps_ && shows()) fire(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss that compares the pixels of pictures with a mask was seen after 50 steps";
    }

  private:
    static constexpr const char* kKey = "labels";
    static constexpr double kFallen = 0.8;  // of the start: what is left where the mean was learned
    static constexpr double kNoTrend = -2.5;
    static constexpr std::uint64_t kLater = 3;  // times `steps`, while the run goes on

    [[nodiscard]] bool shows() const {
        return shares_ >= looks_ && least_ > share_ && loss_.count() > 10 &&
               loss_.level() < kFallen * loss_.start() && !loss_.is_game();
    }
    void fire(FindingSink& sink) const {
        model::Finding finding;
        finding.key = kKey;
        finding.kind = "label_misalignment";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = loss_.tensor();
        finding.plots = {{loss_.tensor(), "value"}, {"loop/own_labels_share", "value"}};
        finding.message = base::format(
            "What is predicted for a picture fits the mask of another picture of the batch nearly as well as "
            "its own: at all of {} looks the loss with its own was {:.0f} % of that with the other's or "
            "more. The loss fell from {} to {} all the same, as it does where the mean of all masks is "
            "learned.",
            shares_, 100 * least_, human_number(loss_.start()), human_number(loss_.level()));
        finding.fix =
            "Look at a dozen pictures with their masks, as the loader gives them: pair files by the number "
            "in their names, and sort, filter and shuffle both together.";
        finding.evidence.push_back(
            {"loss with a picture's own mask", least_, "of that with another's, limit", share_});
        sink.fire(std::move(finding));
    }

    double share_;
    std::uint64_t looks_, steps_;
    std::uint64_t shares_ = 0, steps_seen_ = 0, judged_ = 0;
    double least_ = std::numeric_limits<double>::infinity();  // share
    bool fired_ = false;
    TrainingLoss loss_;
};

std::vector<model::Requirement> labels_of_others_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kLabelsOfOthers.name);
    all.push_back(loop_requirement(kLabelsOfOthers.name));
    // How many pictures the model is given.
    all.push_back({"inputs",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 50, .dense_until = 1},
                   kLabelsOfOthers.name});
    return all;
}

}  // namespace

RuleEntry builtin::labels_of_others() {
    return {&kLabelsOfOthers, &labels_of_others_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LabelsOfOthers>(p); }};
}

}  // namespace traindbg::rules
