// The loss jumps all at once, and comes back or not.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kLossSpike = {
    .name = "loss_spike",
    .title = "Loss spike",
    .summary =
        "In the middle of a training that learned, the loss jumps within a few steps far above all that was "
        "usual.",
    .when =
        "The training loss jumps far above its usual level, in one batch or for several steps. It is a "
        "warning where what had been learned stays lost.\n"
        "- Compared: from the 50th step on, the loss with those of steps 5 to 63 before.\n"
        "- One loss jumps (info): it exceeds their median by more than `size` times what had been learned "
        "(from the start to that median, and at least twice the median). It also exceeds it by "
        "`deviations` times their spread, and by half as much again as any of them did.\n"
        "- Five losses jump (info): the same holds for the median of five losses in a row, with a quarter "
        "of `size` in place of `size`.\n"
        "- Spread: the largest of their median absolute deviation, their noise from step to step, and what "
        "a twentieth of them exceeds. Losses that jump often thus have to jump farther.\n"
        "- Not back (warning): `patience` steps after a jump, at least 80 % of what had been learned is "
        "still lost (three standard errors allowed for), and the loss has not fallen since (Mann-Kendall z "
        "> -1.5).\n"
        "- Led astray by a batch (warning): the loss of a single batch was above what had been learned "
        "tenfold, and those before and after it were usual. Then the median of 50 steps shows at least 80 "
        "% of what had been learned lost.\n"
        "- Led astray by several batches running (warning): the same, where their losses were a thousand "
        "times the usual one and alike.\n"
        "- Led astray, until when: the warning is taken back once the loss is back, if that took less than "
        "a quarter of the training.\n"
        "- Batches unlike the others (warning), from the start on: the loss of three or more batches was "
        "above a hundred times its usual value and its start, or that of five or more above a hundred "
        "times its usual value and ten times its start. It was usual right before and after each.\n"
        "- Batches unlike the others, of an agent (info): the model is asked without gradients at nearly all "
        "steps, in training mode and for no loss, and the loss counts no classes.\n"
        "- Note only (info): a loss that goes far above its start, or is not finite any more, stays a note "
        "here. It is reported by loss_not_decreasing, exploding_gradient and non_finite.\n"
        "- Judged, too: an error that is written out and counts some samples more than others, as a "
        "percentage error does. Its weights have no gradient, and none is below 0.\n"
        "- A new level: after twice `patience` steps, a level that is no warning counts as the usual one.",
    .why =
        "One bad batch or one step too far undoes what many steps have learned. What follows is learned "
        "again at best; and what made it once comes again.",
    .fix =
        "Clip gradients (torch.nn.utils.clip_grad_norm_); look at the samples of that batch; raise the "
        "learning rate more slowly where it rose just before. Go on from a checkpoint of before the jump.",
    .healthy =
        "Losses of small batches, which jump often; the first steps; a schedule with restarts, another task "
        "or harder data, from which the loss falls again: notes. Not judged: losses made by hand, which may "
        "be anything (policy gradients), and several optimizers that work against each other (a GAN). A "
        "critic that nobody asks between its steps, and whose first rewards come late, looks the same, and "
        "is told.",
    .cost =
        "One number a step; gradients at the first 20 steps and then every 10th; the learning rate where it "
        "changes.",
    .original = "",
    .source =
        "Chowdhery et al., \"PaLM: Scaling Language Modeling with Pathways\", JMLR 24 (2023), 5.1 (the "
        "fault, not the method)",
    .severity = model::Severity::kWarning,
    .parameters = {{"deviations", "times", 8, 3, 1000,
                    "distance from the usual loss, in units of its spread"},
                   {"size", "share", 1, 0.05, 100, "share of what had been learned that a jump undoes"},
                   {"patience", "steps", 200, 50, 1e9, "steps after which the loss should be back"}},
};

class LossSpike final : public Rule {
  public:
    explicit LossSpike(const Parameters& parameters)
        : deviations_(parameters.at("deviations")),
          size_(parameters.at("size")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        agent_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        note_rate(step);
        note_gradients(step);
        clipping_.observe(step);
        clips_ = clips_ || (clipping_.count() > 0 && clipping_.share() < 0.99);
        const std::uint64_t before = loss_.count();
        const bool has_loss = loss_.observe(step);
        if (loss_.count() < before) begin_anew();
        if (!has_loss) {
            // Its function is known by now: a loss without a value was not finite.
            if (open_ && loss_.count() > 0 && has_wild_loss(step)) open_->is_lost = true;
            return;
        }
        rate_ = rates_.is_known() ? rates_.now() : optimizer_setting(*step.meta, "lr");
        if (const auto weighed = loop_fact(step, "loss_is_weighed_error")) is_weighed_ = weighed->value > 0;
        if (loss_.is_game() || !falls_when_learning()) {
            open_.reset();
            batch_.reset();
            return;
        }
        if (loss_.count() >= kFirst) ++judged_;
        look_for_monsters(step, sink);
        if (batch_) follow_batch(sink);
        if (open_) return follow(step, sink);
        if (loss_.count() >= kFirst) look(step);
    }
    void on_end(FindingSink& sink) override {
        if (!open_ || open_->is_told) return;
        if (open_->is_lost) return tell(sink, "Then it was not finite any more.");
        if (open_->steps < kTested) return tell(sink, "Then the training ended.");
        tell(sink, base::format("When the training ended, {} steps later, it was {}.", open_->steps - 1,
                                human_number(level_now())));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (loss_.count() == 0) return "no training loss was seen";
        if (loss_.is_game()) return "several optimizers work against each other";
        if (!falls_when_learning()) return "the loss is made by hand";
        return base::format("training steps with a loss: {}; it judges from {} on", loss_.count(), kFirst);
    }

  private:
    static constexpr std::uint64_t kFirst = 50;
    static constexpr std::size_t kTested = 5;
    static constexpr std::size_t kFewestBefore = 8;  // losses, before any is called monstrous
    static constexpr std::size_t kLate = 50;         // steps over which it is looked at whether it is back
    static constexpr model::StepIndex kNear = 10;    // steps between a jump and what may have made it
    static constexpr const char* kBack = "spike";
    static constexpr const char* kNotBack = "not_back";
    static constexpr const char* kBatch = "batch";
    static constexpr const char* kBatches = "batches";
    // Of single batches, whose samples are of another kind.
    static constexpr double kMonstrous = 100;  // times the usual loss
    static constexpr double kAboveStart = 10;
    static constexpr double kSteep = 1000;          // times the usual loss, up and down in one step each
    static constexpr double kAlike = 5;             // times: losses of several such batches
    static constexpr std::uint64_t kLongest = 500;  // of them
    static constexpr std::uint64_t kFewMonsters = 5, kFewWild = 3;  // wild: as far above the start, too

    // Losses far above all others, each of one step.
    struct Monsters {
        std::uint64_t count = 0, wild = 0;
        model::StepIndex first = 0, largest_step = 0;
        double largest = 0, usual = 0;
    };

    // Of losses that are made by hand, at least an error of which samples count more or less.
    [[nodiscard]] bool falls_when_learning() const { return loss_.is_known_function() || is_weighed_; }

    void begin_anew() {
        monsters_ = Monsters();
        is_weighed_ = false;
        open_.reset();
        batch_.reset();
        worst_.reset();
        told_ = 0;
        rate_step_ = 0;
        clips_ = false;
        norms_ = Recent{16};
    }
    [[nodiscard]] double level_now() const {
        const auto last = loss_.recent().last(kTested);
        return median({last.begin(), last.end()});
    }

    struct Jump {
        model::StepIndex step = 0, peak_step = 0;
        double usual = 0, spread = 0, scale = 0, learned = 0, start = 0, peak = 0;
        std::uint64_t steps = 0;  // since then
        bool is_lost = false;     // the loss was not finite afterwards
        bool is_told = false;
        bool is_warned = false;
        Blocks since;
        double rate_from = 0, rate_to = 0;  // where it rose just before
        model::StepIndex rate_step = 0;
        double gradient = 0, usual_gradient = 0;  // where one was seen near it
    };

    // One whose loss alone was far off, while the weights were as usual; or several running.
    struct Batch {
        model::StepIndex step = 0;
        double usual = 0, near = 0, loss = 0;  // up to `near` a loss is usual
        double line = 0;                       // above it most of what had been learned is lost
        double next = 0;                       // the loss after it
        std::uint64_t more = 0;                // of its kind, one after the other
        bool is_over = false;
        std::uint64_t steps = 0;  // since then
        std::uint64_t lost = 0;   // of them, until the loss was back; 0: it is not
        bool is_warned = false;
    };

    [[nodiscard]] bool has_wild_loss(const model::StepView& step) const {
        return std::any_of(
            step.record->scalars.begin(), step.record->scalars.end(), [&](const model::ScalarSample& sample) {
                return step.info(sample.tensor).name == loss_.tensor() && !std::isfinite(sample.value);
            });
    }
    void note_rate(const model::StepView& step) {
        const bool was_known = rates_.is_known();
        const double before = rates_.now();
        rates_.observe(step);
        if (!was_known || !(rates_.now() > 1.5 * before) || !(before > 0)) return;
        rate_from_ = before;
        rate_to_ = rates_.now();
        rate_step_ = step.step();
    }
    void note_gradients(const model::StepView& step) {
        double square = 0;
        for (const model::TensorSample& sample : step.record->tensors)
            if (step.info(sample.tensor).role == model::Role::kGradient)
                square += sample.statistics.l2 * sample.statistics.l2;
        if (!(square > 0) || !std::isfinite(square)) return;
        const double norm = std::sqrt(square);
        if (open_ && step.step() <= open_->step + kNear) {
            if (norm > open_->gradient) open_->gradient = norm;
            return;
        }
        if (open_) return;
        norms_.add(norm);
        norms_step_ = step.step();
    }

    // What is usual, of the losses up to five steps ago.
    struct Usual {
        double level = 0, spread = 0, highest = 0;
    };
    [[nodiscard]] Usual usual_of(std::span<const double> window) const {
        Usual found;
        found.level = median({window.begin(), window.end()});
        std::vector<double> distances;
        for (const double value : window) distances.push_back(std::abs(value - found.level));
        std::vector<double> sorted(window.begin(), window.end());
        const auto place =
            sorted.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(sorted.size() - 1) * 0.95);
        std::nth_element(sorted.begin(), place, sorted.end());
        found.spread = std::max({1.4826 * median(std::move(distances)), noise_of(window),
                                 (*place - found.level) / 2, 0.01 * std::abs(found.level)});
        found.highest = *std::max_element(window.begin(), window.end());
        return found;
    }
    void look(const model::StepView& step) {
        const std::span<const double> all = loss_.recent().values();
        const auto window = all.first(all.size() - kTested);
        const auto tested = all.last(kTested);
        const double value = tested.back();
        const double several = median({tested.begin(), tested.end()});
        const double level = median({window.begin(), window.end()});
        const double learned = loss_.start() - level;
        const double scale = std::max(learned, 2 * std::abs(level));
        const bool is_far = value - level > size_ * scale;
        const bool are_far = several - level > size_ / 4 * scale;
        if (!is_far && !are_far) return;
        const Usual usual = usual_of(window);
        const bool one = is_far && value - level > deviations_ * usual.spread &&
                         value - level > 1.5 * (usual.highest - level);
        const bool five = are_far && several - level > deviations_ * usual.spread &&
                          several - level > 1.5 * (usual.highest - level);
        if (!one && !five) return;
        Jump jump;
        std::size_t back = 0;  // how many steps ago it began
        for (std::size_t i = 1; !one && i < kTested; ++i)
            if (tested[kTested - 1 - i] - level > 4 * usual.spread) back = i;
        jump.step = step.step() >= back ? step.step() - back : 0;
        jump.usual = level;
        jump.spread = usual.spread;
        jump.scale = scale;
        jump.learned = learned;
        jump.start = loss_.start();
        const auto peak =
            std::max_element(tested.end() - 1 - static_cast<std::ptrdiff_t>(back), tested.end());
        jump.peak = *peak;
        jump.steps = 1;
        jump.since.add(value);
        if (rate_step_ > 0 && rate_step_ + kNear >= jump.step) {
            jump.rate_from = rate_from_;
            jump.rate_to = rate_to_;
            jump.rate_step = rate_step_;
        }
        const auto norms = norms_.values();
        jump.usual_gradient = median({norms.begin(), norms.end()});
        if (!norms.empty() && norms_step_ + 1 >= jump.step) jump.gradient = norms.back();
        const auto since_peak = static_cast<model::StepIndex>(tested.end() - 1 - peak);
        jump.peak_step = step.step() - std::min(since_peak, step.step());
        const double near = level + std::max(3 * usual.spread, 0.1 * scale);
        const bool is_one_batch = one && tested[kTested - 2] <= near && value - level > 10 * scale;
        if (!batch_ && is_one_batch && learned > 0.3 * loss_.start())
            batch_ = Batch{step.step(), level, near, value, level + 0.8 * learned};
        open_ = std::move(jump);
    }

    // The loss before the last one, between two usual ones.
    void look_for_monsters(const model::StepView& step, FindingSink& sink) {
        const std::span<const double> all = loss_.recent().values();
        const double start = loss_.start();
        if (all.size() < kFewestBefore || !(start > 0)) return;
        const auto three = all.last(3);
        const double value = three[1];
        if (value <= kAboveStart * start) return;
        const double usual = median({all.begin(), all.end()});
        if (value <= kMonstrous * usual || value <= kAboveStart * std::max(three[0], three[2])) return;
        if (std::max(three[0], three[2]) > kAboveStart * std::max(usual, start)) return;
        const model::StepIndex at = step.step() > 0 ? step.step() - 1 : 0;
        if (monsters_.count++ == 0) monsters_.first = at;
        if (value > kMonstrous * start) ++monsters_.wild;
        if (value > monsters_.largest) {
            monsters_.largest = value;
            monsters_.largest_step = at;
        }
        monsters_.usual = usual;
        if (monsters_.wild >= kFewWild || monsters_.count >= kFewMonsters)
            sink.fire(finding_of_monsters(step.step()));
    }
    [[nodiscard]] model::Finding finding_of_monsters(model::StepIndex now) const {
        model::Finding found;
        found.key = kBatches;
        // Rewards that come seldom are such targets, and have nothing wrong.
        const bool may_be_rewards = agent_.is_on() && loss_.classes() == 0;
        found.severity = may_be_rewards ? model::Severity::kInfo : model::Severity::kWarning;
        found.first_step = monsters_.first;
        found.tensor = loss_.tensor();
        found.message = base::format(
            "At {} of {} steps the loss of a single batch was more than {:.0f} times what is usual, and "
            "usual right before and after: {} at step {} is the largest, {} is usual, and {} was the first. "
            "These batches hold samples unlike the others, and a few steps by them undo what many learn.",
            monsters_.count, now, kMonstrous, human_number(monsters_.largest), monsters_.largest_step,
            human_number(monsters_.usual), human_number(loss_.first()));
        found.fix = base::format(
            "Look at the samples and targets of steps {} and {}: another unit, a misplaced decimal point, a "
            "code for a missing value. Mend them or leave them out; a loss that is not squared "
            "(smooth_l1_loss) and gradients that are clipped bear with what is left.",
            monsters_.first, monsters_.largest_step);
        if (is_weighed_)
            found.fix = base::format(
                "Look at the samples of step {}, and at what the loss multiplies their errors with or "
                "divides them by, a target near 0 say: keep that within bounds, as by clamp(min=...), or "
                "train on the plain error.",
                monsters_.largest_step);
        found.evidence.push_back({"largest loss of a batch", monsters_.largest, "usual", monsters_.usual});
        found.evidence.push_back({"such batches", static_cast<double>(monsters_.count), "limit",
                                  static_cast<double>(monsters_.wild >= kFewWild ? kFewWild : kFewMonsters)});
        found.plots = {{loss_.tensor(), "value"}};
        return found;
    }

    void follow_batch(FindingSink& sink) {
        const double value = loss_.recent().values().back();
        if (!batch_->is_over) {
            // Weights that are led astray make a loss grow, and fall again in many steps.
            const bool is_wild = batch_->loss > kSteep * std::max(batch_->usual, loss_.start());
            const bool is_alike = value > batch_->loss / kAlike && value < batch_->loss * kAlike;
            if (is_wild && is_alike && batch_->more < kLongest) {
                ++batch_->more;
                return;
            }
            const double most = batch_->more > 0 ? batch_->loss / kSteep : batch_->near;
            if (value > most) return batch_.reset();  // the weights, or the task
            batch_->next = value;
            batch_->is_over = true;
        }
        ++batch_->steps;
        if (batch_->steps == kLate + kTested) {
            const auto late = loss_.recent().last(kLate);
            const double now = median({late.begin(), late.end()});
            const double error = 1.25 * noise_of(late) / std::sqrt(static_cast<double>(late.size()));
            batch_->is_warned = now - 3 * error > batch_->line;
            if (!batch_->is_warned) return batch_.reset();
            sink.fire(finding_of_batch(now));
        }
        if (!batch_->is_warned) return;
        if (batch_->lost == 0 && level_now() <= batch_->near) batch_->lost = batch_->steps;
        if (batch_->lost == 0 || 4 * batch_->lost >= loss_.count()) return;
        sink.clear(kBatch);
        batch_.reset();
    }
    [[nodiscard]] model::Finding finding_of_batch(double now) const {
        model::Finding found;
        found.key = kBatch;
        found.severity = model::Severity::kWarning;
        found.first_step = batch_->step;
        found.tensor = loss_.tensor();
        const model::StepIndex last = batch_->step + batch_->more;
        const std::string which = batch_->more > 0
                                      ? base::format("The batches of steps {} to {} are", batch_->step, last)
                                      : base::format("The batch of step {} is", batch_->step);
        found.message = base::format(
            "{} unlike the others: the loss was {}, {} is usual, and {} was that of the batch after. What "
            "such a gradient left in the optimizer led the training astray: {} to {} steps later the loss "
            "was at {} (median), {} at the start.",
            which, human_number(batch_->loss), human_number(batch_->usual), human_number(batch_->next),
            kTested + 1, kTested + kLate, human_number(now), human_number(loss_.start()));
        found.fix = base::format(
            "Look at the samples and targets from step {} on: other units, a missing normalisation. Leave "
            "out batches with such a loss, or clip gradients before the optimizer step.",
            batch_->step);
        found.evidence.push_back({"loss of the batch", batch_->loss, "usual", batch_->usual});
        found.evidence.push_back({"median loss later", now, "limit", batch_->line});
        found.plots = {{loss_.tensor(), "value"}};
        return found;
    }

    void follow(const model::StepView& step, FindingSink& sink) {
        const double value = loss_.recent().values().back();
        ++open_->steps;
        open_->is_lost = false;
        open_->since.add(value);
        if (value > open_->peak && open_->steps <= 2 * kNear) {
            open_->peak = value;
            open_->peak_step = step.step();
        }
        if (open_->steps < kTested) return;
        const double level = level_now();
        if (level <= open_->usual + std::max(3 * open_->spread, 0.1 * open_->scale)) {
            if (open_->is_warned) sink.clear(kNotBack);
            tell(sink, base::format("It was back at {} within {} steps.", human_number(level), open_->steps));
            open_.reset();
            return;
        }
        if (open_->steps < patience_ || open_->steps % 10 != 0) return;
        const auto since = open_->since.means();
        const bool falls = trend_z(since) < -1.5;
        const auto late = loss_.recent().last(kLate);
        const double now = median({late.begin(), late.end()});
        const double error = 1.25 * noise_of(late) / std::sqrt(static_cast<double>(late.size()));
        const bool is_elsewhere = now > 1.5 * open_->start;
        const double line = open_->usual + 0.8 * open_->learned;
        const bool is_undone = open_->learned > 0.3 * open_->start && now - 3 * error > line &&
                               median({since.begin(), since.end()}) > line;
        if (is_undone && !falls && !is_elsewhere) {
            open_->is_warned = open_->is_told = true;
            sink.fire(finding(kNotBack, model::Severity::kWarning,
                              base::format("It does not come back: it is {} after {} steps.",
                                           human_number(now), open_->steps)));
        } else if (open_->is_warned && !is_undone) {
            sink.clear(kNotBack);
            open_->is_warned = false;
        }
        // A level of its own, from which the next jump is looked for.
        if (open_->is_warned || open_->steps < 2 * patience_) return;
        tell(sink, base::format("After {} steps it was {}.", open_->steps, human_number(now)));
        open_.reset();
    }
    void tell(FindingSink& sink, const std::string& end) {
        ++told_;
        if (!worst_ || open_->peak - open_->usual > worst_peak_) {
            worst_peak_ = open_->peak - open_->usual;
            worst_ = finding(kBack, model::Severity::kInfo, end);
        }
        model::Finding said = *worst_;
        if (told_ > 1) said.message += base::format(" There were {} such jumps; this is the largest.", told_);
        open_->is_told = true;
        sink.fire(std::move(said));
    }

    [[nodiscard]] model::Finding finding(const char* key, model::Severity severity,
                                         const std::string& end) const {
        const Jump& jump = *open_;
        model::Finding found;
        found.key = key;
        found.severity = severity;
        found.first_step = jump.step;
        found.tensor = loss_.tensor();
        found.message = base::format("The loss jumped from {} to {} at step {}", human_number(jump.usual),
                                     human_number(jump.peak), jump.peak_step);
        if (jump.peak_step > jump.step + 1) found.message += base::format(", from step {} on", jump.step);
        found.message += ".";
        const bool has_gradient = jump.usual_gradient > 0 && jump.gradient > 3 * jump.usual_gradient;
        if (jump.rate_to > 0)
            found.message +=
                base::format(" The learning rate rose from {} to {} at step {}.",
                             human_number(jump.rate_from), human_number(jump.rate_to), jump.rate_step);
        if (has_gradient)
            found.message += base::format(
                " Near it the gradient norm was {}, {} times its usual {}.", human_number(jump.gradient),
                human_number(jump.gradient / jump.usual_gradient), human_number(jump.usual_gradient));
        found.message += " " + end;
        if (jump.rate_to > 0)
            found.fix = base::format(
                "Raise the learning rate more slowly, or to less than {}; if it is to restart, expect this.",
                human_number(jump.rate_to));
        else if (clips_)
            found.fix = base::format(
                "Look at the samples of step {}; lower the limit that gradients are clipped to.", jump.step);
        else
            found.fix = base::format(
                "Look at the samples of step {}; clip gradients before the optimizer step: "
                "torch.nn.utils.clip_grad_norm_(model.parameters(), {}).",
                jump.step,
                jump.usual_gradient > 0 ? human_number(round_for_people(2 * jump.usual_gradient)) : "1.0");
        if (key == kNotBack)
            found.fix += " Go on from a checkpoint of before it" +
                         (jump.rate_to > 0 ? std::string(".") : ", and " + lower_rate() + ".");
        found.evidence.push_back({"loss", jump.peak, "usual", jump.usual});
        if (jump.spread > 0)
            found.evidence.push_back(
                {"distance / spread", (jump.peak - jump.usual) / jump.spread, "limit", deviations_});
        if (has_gradient)
            found.evidence.push_back({"gradient norm", jump.gradient, "usual", jump.usual_gradient});
        if (jump.rate_to > 0)
            found.evidence.push_back({"learning rate", jump.rate_to, "before", jump.rate_from});
        found.plots = {{loss_.tensor(), "value"}};
        return found;
    }
    [[nodiscard]] std::string lower_rate() const {
        if (!rate_ || !(*rate_ > 0)) return "with a lower learning rate";
        return base::format("with a learning rate of about {} instead of {}",
                            human_number(round_for_people(*rate_ / 3)), human_number(*rate_));
    }

    double deviations_, size_;
    std::uint64_t patience_;
    std::uint64_t judged_ = 0, told_ = 0;
    std::optional<Jump> open_;
    std::optional<Batch> batch_;
    Monsters monsters_;
    std::optional<model::Finding> worst_;
    double worst_peak_ = 0;
    std::optional<double> rate_;
    double rate_from_ = 0, rate_to_ = 0;
    model::StepIndex rate_step_ = 0;
    bool clips_ = false;
    bool is_weighed_ = false;  // the loss is an error that counts some samples more than others
    Recent norms_{16};
    model::StepIndex norms_step_ = 0;  // of the newest
    LearningRates rates_;
    Clipping clipping_;
    Agent agent_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> loss_spike_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kLossSpike.name);
    all.push_back(rate_requirement(kLossSpike.name));
    all.push_back(loop_requirement(kLossSpike.name));
    all.push_back(unclipped_requirement(kLossSpike.name));
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 10, .dense_until = 20},
                   kLossSpike.name});
    return all;
}

}  // namespace

RuleEntry builtin::loss_spike() {
    return {&kLossSpike, &loss_spike_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LossSpike>(p); }};
}

}  // namespace traindbg::rules
