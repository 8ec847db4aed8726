// Gradients at the lower end of float16: most of them are rounded to zero.

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

// What numbers of float16 below its normal range are multiples of: 2^-24.
constexpr double kQuantum = 0x1p-24;

const model::RuleInfo kGradientUnderflow = {
    .name = "gradient_underflow",
    .title = "Gradients underflow in float16",
    .summary = "Gradients are so small that float16 makes zeros of them, and no GradScaler scales the loss.",
    .when =
        "Gradients are computed in float16 without loss scaling, and many of their entries are exactly 0 "
        "while the rest are near the smallest number of float16.\n"
        "- Looked at: gradients of weight matrices (no embeddings), where the weights are float16 or "
        "modules return float16 (autocast).\n"
        "- Not judged: a GradScaler multiplied the loss by something other than 1, or `backward()` is "
        "called on a multiple of the loss function's value.\n"
        "- Many matrices: at least `layers` of them have more than `zeros` of their entries at exactly 0, "
        "and the other entries are on average less than 16 times 2^-24, the smallest float16.\n"
        "- A matrix whose entries are all 0 counts among these where gradients of other layers are in "
        "float16's subnormal range.\n"
        "- One matrix: more than half of its entries are exactly 0, and the others are on average less "
        "than 4 times 2^-24.\n"
        "- All matrices: each has some zeros, and its other entries are on average below 64 times 2^-24.\n"
        "- One of these must show at `patience` captured steps in a row, while the loss is above a tenth "
        "of its start. Severity: warning.",
    .why =
        "float16 ends at 6e-8. A gradient below that is 0: the weight does not move, however often it is "
        "asked to. The early layers lose theirs first.",
    .fix =
        "Scale the loss: scaler = torch.amp.GradScaler(); scaler.scale(loss).backward(); "
        "scaler.step(optimizer); scaler.update(). Or use bfloat16, which has the range of float32.",
    .healthy =
        "Zeros of ReLU units that are off, and of inputs that are 0: the other entries are of ordinary size. "
        "bfloat16. Trainings with a GradScaler. A training that has converged.",
    .cost = "One pass over all gradients at the first 20 steps and then every 10th.",
    .original = "",
    .source = "Micikevicius et al., \"Mixed precision training\", ICLR 2018",
    .severity = model::Severity::kWarning,
    .parameters = {{"zeros", "share", 0.3, 0.01, 1, "entries of a gradient that are exactly 0"},
                   {"layers", "share", 0.33, 0.01, 1, "weight matrices that must show it"},
                   {"patience", "captures", 5, 2, 1000, "captured steps in a row that must show it"}},
};

class GradientUnderflow final : public Rule {
  public:
    explicit GradientUnderflow(const Parameters& parameters)
        : zeros_(parameters.at("zeros")),
          layers_(parameters.at("layers")),
          seen_(parameters.at("patience")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        if (const std::optional<LoopFact> passes = loop_fact(step, "scaled_passes"))
            is_scaled_ = is_scaled_ || (passes->value > 0 && !is_scaled_by_one(step));
        if (is_multiplied(step)) is_scaled_ = true;
        Look look;
        for (const model::TensorSample& sample : step.record->tensors) take(step, sample, look);
        if (look.all == 0) return;
        const bool shows = !is_scaled_ && is_low(look) && !has_converged();
        seen_.add(step, shows);
        // It comes and goes with the batch: over it is when the loss is scaled, or nothing shows for long.
        clean_ = shows ? 0 : clean_ + 1;
        if (is_firing_ && (is_scaled_ || clean_ >= kCleanLooks)) {
            is_firing_ = false;
            sink.clear(kKey);
        }
        if (shows && (is_firing_ || seen_.is_enough())) {
            is_firing_ = true;
            fire(look, sink);
        }
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no gradients that were computed in float16 were captured";
    }

  private:
    static constexpr const char* kKey = "underflow";
    static constexpr int kCleanLooks = 20;
    static constexpr double kPlainZeros = 0.5;
    static constexpr double kCoarse = 64;  // times the least number of float16
    static constexpr double kFewZeros = 0.004;

    struct Look {
        std::size_t all = 0, lost = 0, empty = 0, subnormal = 0, coarse = 0;
        bool is_plain = false;  // of one matrix alone
        double worst = -1;      // share of zeros
        double size = 0;        // of the other entries there
        const model::TensorInfo* place = nullptr;
        const model::TensorInfo* first_empty = nullptr;
    };

    // A GradScaler whose scale is 1 changes nothing.
    [[nodiscard]] static bool is_scaled_by_one(const model::StepView& step) {
        const std::optional<LoopFact> scale = loop_fact(step, "loss_scale");
        return scale && scale->value <= 1;
    }
    // By hand: then the gradients that the optimizer uses are no longer what backward left.
    [[nodiscard]] static bool is_multiplied(const model::StepView& step) {
        double total = 0, function = 0;
        std::size_t functions = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info)) continue;
            if (info.name == "loss") {
                total = sample.value;
            } else {
                function = sample.value;
                ++functions;
            }
        }
        return functions == 1 && function > 0 && total > 4 * function;
    }

    void take(const model::StepView& step, const model::TensorSample& sample, Look& look) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (info.role == model::Role::kOutput || info.role == model::Role::kActivation) {
            if (info.dtype == tensor::DType::kFloat16) computes_in_half_ = true;
            else if (info.dtype == tensor::DType::kFloat32) whole_modules_.insert(info.module);
        }
        if (info.role != model::Role::kGradient || info.shape.size() < 2) return;
        if (info.module_type.find("Embedding") != std::string::npos) return;
        const bool is_half = info.dtype == tensor::DType::kFloat16 ||
                             (computes_in_half_ && !whole_modules_.contains(info.module) &&
                              info.dtype == tensor::DType::kFloat32);
        const model::Statistics& s = sample.statistics;
        if (!is_half || s.count < 16 || s.not_finite() > 0) return;
        ++look.all;
        const double share = static_cast<double>(s.zero) / static_cast<double>(s.count);
        if (s.zero == s.count) {
            ++look.empty;
            if (look.first_empty == nullptr) look.first_empty = &info;
            return;
        }
        const double size = s.l1 / static_cast<double>(s.count - s.zero);
        if (size < 1024 * kQuantum) ++look.subnormal;
        // Scaled by hand and divided since, they may be smaller than float16 can be, and none is 0.
        if (size >= kQuantum && size < kCoarse * kQuantum && share > kFewZeros) {
            ++look.coarse;
            if (look.lost == 0 && (look.place == nullptr || size < look.size)) {
                look.place = &info;
                look.worst = share;
                look.size = size;
            }
        }
        if (share <= zeros_ || size >= 16 * kQuantum) return;
        if (look.lost == 0) look.worst = -1;
        ++look.lost;
        look.is_plain = look.is_plain || (share > kPlainZeros && size < 4 * kQuantum);
        if (share > look.worst) {
            look.worst = share;
            look.size = size;
            look.place = &info;
        }
    }
    [[nodiscard]] bool is_low(Look& look) const {
        if (look.empty > 0 && look.subnormal > 0) {
            look.lost += look.empty;
            look.worst = 1;
            look.size = 0;
            look.place = look.first_empty;
        }
        return look.is_plain || is_coarse(look) ||
               (look.lost > 0 && static_cast<double>(look.lost) >= layers_ * static_cast<double>(look.all));
    }
    // All of them are a few times the least number: what flows between layers, a sum of fewer, is below it.
    [[nodiscard]] static bool is_coarse(const Look& look) { return look.all >= 2 && look.coarse == look.all; }
    [[nodiscard]] bool has_converged() const {
        return loss_.count() >= 10 && loss_.start() > 0 && loss_.level() < 0.1 * loss_.start();
    }

    void fire(const Look& look, FindingSink& sink) const {
        model::Finding finding;
        finding.key = kKey;
        finding.first_step = seen_.first();
        finding.tensor = look.place->name;
        finding.layer = look.place->module;
        finding.places = std::max<std::uint64_t>(look.lost, 1);
        if (look.lost == 0)
            finding.message = base::format(
                "The gradients of all {} weight matrices are a few times the least number of float16: "
                "entries of that of {} are {} on average, where nothing is below 6e-8, and the loss is not "
                "scaled. What flows from layer to layer is smaller still, and is lost.",
                look.all, place_in_words(look.place->name), human_number(look.size));
        else
            finding.message = base::format(
                "{:.0f} % of the gradient of {} are exactly 0{}: float16 has nothing below 6e-8, and the "
                "loss is not scaled. So it is in {} of {} weight matrices.",
                100 * look.worst, place_in_words(look.place->name),
                look.size > 0 ? base::format(", the other entries {} on average", human_number(look.size))
                              : std::string(),
                look.lost, look.all);
        finding.fix =
            "Scale the loss with torch.amp.GradScaler (scaler.scale(loss).backward(); "
            "scaler.step(optimizer); scaler.update()), or use bfloat16 instead of float16.";
        finding.evidence.push_back({"entries that are exactly 0", look.worst, "limit", zeros_});
        finding.evidence.push_back({"typical size of the others", look.size, "least of float16", kQuantum});
        finding.evidence.push_back(seen_.evidence());
        finding.plots = {{look.place->name, "zero"}};
        sink.fire(std::move(finding));
    }

    double zeros_, layers_;
    InARow seen_;
    bool is_scaled_ = false, computes_in_half_ = false, is_firing_ = false;
    std::set<std::string> whole_modules_;  // that returned float32
    int clean_ = 0;
    TrainingLoss loss_;
};

std::vector<model::Requirement> gradient_underflow_needs(const Parameters&) {
    constexpr auto kStatistics = model::What::kStatistics;
    std::vector<model::Requirement> all = loss_requirements(kGradientUnderflow.name);
    all.push_back(loop_requirement(kGradientUnderflow.name));
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   kStatistics,
                   {.every = 10, .dense_until = 20},
                   kGradientUnderflow.name});
    all.push_back({"outputs",
                   model::Mode::kTrain,
                   kStatistics,
                   {.every = 50, .dense_until = 2},
                   kGradientUnderflow.name});
    return all;
}

}  // namespace

RuleEntry builtin::gradient_underflow() {
    return {&kGradientUnderflow, &gradient_underflow_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<GradientUnderflow>(p);
            }};
}

}  // namespace traindbg::rules
