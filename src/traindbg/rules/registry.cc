// The one table of rules, and what is asked of it by name.

#include <algorithm>
#include <iterator>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/rule_instance.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/compatible/compatible.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

using base::Code;
using base::Result;
using base::Status;

const std::vector<RuleEntry>& builtin_rules() {
    static const std::vector<RuleEntry> entries = {
        builtin::accumulation_not_averaged(),  //
        builtin::attention_mask_wrong(),       //
        builtin::bad_optimizer_settings(),     //
        builtin::batchnorm_momentum(),         //
        builtin::best_weights_not_kept(),
        builtin::class_imbalance(),              //
        builtin::constant_feature(),             //
        builtin::constant_output(),              //
        builtin::dead_relu(),                    //
        builtin::detached_graph(),               //
        builtin::detached_loss(),                //
        builtin::divergence_ahead(),             //
        builtin::duplicate_shards(),             //
        builtin::duplicated_rows(),              //
        builtin::embedding_rows_unused(),        //
        builtin::eval_mode_while_training(),     //
        builtin::evaluation_at_chance(),         //
        builtin::exploding_gradient(),           //
        builtin::frozen_parameters(),            //
        builtin::future_leak(),                  //
        builtin::gradient_clipped_to_nothing(),  //
        builtin::gradient_underflow(),           //
        builtin::gradients_not_cleared(),        //
        builtin::indistinguishable_classes(),    //
        builtin::input_not_normalized(),         //
        builtin::label_noise(),                  //
        builtin::labels_of_others(),             //
        builtin::labels_out_of_range(),          //
        builtin::learning_rate_too_high(),       //
        builtin::learning_rate_too_low(),        //
        builtin::loss_input_range(),             //
        builtin::loss_not_decreasing(),          //
        builtin::loss_scale_overflow(),          //
        builtin::loss_shape_broadcast(),         //
        builtin::loss_sign_flipped(),            //
        builtin::loss_spike(),
        builtin::low_capacity(),  //
        builtin::low_feature_importance(),
        builtin::low_precision_updates_lost(),  //
        builtin::memory_leak(),                 //
        builtin::metric_contradicts_loss(),
        builtin::no_nonlinearity(),  //
        builtin::non_finite(),       //
        builtin::optimizer_never_steps(),
        builtin::output_activation_range(),      //
        builtin::over_regularized(),             //
        builtin::overfit(),                      //
        builtin::parameters_not_in_optimizer(),  //
        builtin::plateau(),                      //
        builtin::poor_weight_init(),             //
        builtin::posterior_collapse(),           //
        builtin::rank_collapse(),                //
        builtin::repeated_batch(),               //
        builtin::replica_divergence(),           //
        builtin::representation_collapse(),      //
        builtin::resume_lost_optimizer_state(),  //
        builtin::samples_mixed(),
        builtin::saturated_activation(),      //
        builtin::schedule_collapsed(),        //
        builtin::schedule_never_steps(),      //
        builtin::step_without_gradient(),     //
        builtin::stopped_too_early(),         //
        builtin::target_leak(),               //
        builtin::target_not_normalized(),     //
        builtin::targets_in_order(),          //
        builtin::train_mode_in_validation(),  //
        builtin::train_val_mismatch(),        //
        builtin::train_val_overlap(),         //
        builtin::underfit(),
        builtin::unregistered_parameters(),  //
        builtin::update_noise(),             //
        builtin::vanishing_gradient(),       //
        builtin::wrong_loss(),               //
    };
    return entries;
}

namespace {

// Theirs know of one training in a run.
std::vector<RuleEntry> as_one_training(std::vector<RuleEntry> entries) {
    for (RuleEntry& entry : entries) entry.outlives_trainings = true;
    return entries;
}

}  // namespace

const std::vector<RuleEntry>& compatible_rules() {
    static const std::vector<RuleEntry> entries = as_one_training({
        compatible::all_zero(),                       //
        compatible::check_input_images(),             //
        compatible::class_imbalance(),                //
        compatible::confusion(),                      //
        compatible::dead_relu(),                      //
        compatible::exploding_tensor(),               //
        compatible::feature_importance_overweight(),  //
        compatible::loss_not_decreasing(),            //
        compatible::nlp_sequence_ratio(),             //
        compatible::overfit(),                        //
        compatible::overtraining(),                   //
        compatible::poor_weight_initialization(),     //
        compatible::saturated_activation(),           //
        compatible::similar_across_runs(),            //
        compatible::stalled_training_rule(),          //
        compatible::tensor_variance(),                //
        compatible::tree_depth(),                     //
        compatible::unchanged_tensor(),               //
        compatible::vanishing_gradient(),             //
        compatible::weight_update_ratio(),            //
    });
    return entries;
}

namespace {

// Ours, the compatible ones, and behind them what was added.
std::vector<RuleEntry>& table() {
    static std::vector<RuleEntry> entries = [] {
        std::vector<RuleEntry> all = builtin_rules();
        all.insert(all.end(), compatible_rules().begin(), compatible_rules().end());
        return all;
    }();
    return entries;
}

bool has_rule(std::span<const RuleEntry> entries, std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const RuleEntry& entry) { return entry.info->name == name; });
}

}  // namespace

const std::vector<RuleEntry>& all_rules() { return table(); }

std::span<const RuleEntry> custom_rules() {
    return std::span<const RuleEntry>(table()).subspan(builtin_rules().size() + compatible_rules().size());
}

Status add_custom_rules(std::vector<RuleEntry> entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const std::string& name = entries[i].info->name;
        const auto others = std::span<const RuleEntry>(entries).first(i);
        if (!has_rule(all_rules(), name) && !has_rule(others, name)) continue;
        return {
            Code::kAlreadyExists,
            base::format("{}: there is a rule called {} already; give this one another name (in a "
                         "class of Python with `name = \"my_{}\"`)",
                         base::printable(entries[i].origin), base::printable(name), base::printable(name))};
    }
    std::move(entries.begin(), entries.end(), std::back_inserter(table()));
    return Status::ok();
}

bool is_on_by_default(std::string_view name) {
    return has_rule(builtin_rules(), name) || has_rule(custom_rules(), name);
}

bool want_raw(const std::vector<RuleChoice>& choices) {
    return std::any_of(choices.begin(), choices.end(), [](const RuleChoice& choice) {
        const Result<const RuleEntry*> entry = find_rule(choice.name);
        return entry.is_ok() && (*entry)->wants_raw;
    });
}

Result<const RuleEntry*> find_rule(std::string_view name) {
    std::vector<std::string> names;
    for (const RuleEntry& entry : all_rules()) {
        if (entry.info->name == model::rule_of(name)) return &entry;
        names.push_back(entry.info->name);
    }
    return Status(Code::kNotFound, base::format("no rule is called '{}'{}; `traindbg rules list` shows all",
                                                base::printable(name), base::did_you_mean(name, names)));
}

std::vector<RuleChoice> default_rules() {
    std::vector<RuleChoice> choices;
    for (const RuleEntry& entry : builtin_rules()) choices.push_back({entry.info->name, {}});
    for (const RuleEntry& entry : custom_rules()) choices.push_back({entry.info->name, {}});
    return choices;
}

Result<std::vector<model::Requirement>> requirements_of(const std::vector<RuleChoice>& choices) {
    std::vector<model::Requirement> all;
    for (const RuleChoice& choice : choices) {
        TRAINDBG_ASSIGN_OR_RETURN(const RuleEntry* entry, find_rule(choice.name));
        TRAINDBG_ASSIGN_OR_RETURN(const Parameters parameters,
                                  complete_parameters(*entry->info, choice.parameters));
        TRAINDBG_ASSIGN_OR_RETURN(std::vector<model::Requirement> needs, entry->needs(parameters));
        for (model::Requirement& needed : needs) {
            if (needed.asked_by == entry->info->name) needed.asked_by = choice.name;
            const auto same = std::find_if(all.begin(), all.end(), [&](const model::Requirement& known) {
                return known.collection == needed.collection && known.mode == needed.mode &&
                       known.what == needed.what && known.schedule == needed.schedule;
            });
            if (same == all.end()) all.push_back(std::move(needed));
            else if (same->asked_by != needed.asked_by) same->asked_by += ", " + needed.asked_by;
        }
    }
    return all;
}

}  // namespace traindbg::rules
