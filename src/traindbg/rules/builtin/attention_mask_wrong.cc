// An attention mask that hides what it is to show.

#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kAttentionMaskWrong = {
    .name = "attention_mask_wrong",
    .title = "Wrong attention mask",
    .summary =
        "An attention mask shows the padding and hides the rest, hides nothing at all, or lies along the "
        "wrong "
        "axis.",
    .when =
        "In `looks` steps in a row, of attention by nn.MultiheadAttention, scaled_dot_product_attention or a "
        "softmax that is written out: 90 % of the padding of an input of the same length is seen by "
        "positions "
        "that are no padding, and 90 % of all else is hidden from them (error). Padding is one number that "
        "stands only at the ends, or only at the beginnings, of rows of different lengths. Or in each row as "
        "many "
        "positions are hidden as it has padding, at its other end (error). Or a model that attends is given "
        "ids "
        "and a mask of truth values of the same shape, and nothing else of two dimensions and more, and in "
        "each row the "
        "mask hides positions at the end where the padding is, in half of the rows and more another number "
        "of "
        "them, "
        "while sorted these numbers are those of the padding (error). Or a mask holds "
        "the "
        "numbers 0.0 and 1.0 and nothing else: numbers are added to the scores, so these hide nothing "
        "(warning). Or, where each target is the input's next value, positions see later ones and no earlier "
        "one (error). Or a mask of (batch x heads, queries, keys) differs between the heads of one sample "
        "and "
        "comes again after as many rows as the batch has, but not after as many as there are heads: whole "
        "batches lie one after the other in it (error). Or to the queries that are padding, and to no "
        "others, "
        "all keys are alike or hidden, while the padding among the keys is seen (error); padding is also "
        "what "
        "a mask of truth values among the model's inputs says, at one end of rows of different lengths.",
    .why =
        "The model looks at the padding, which says nothing, or at what it must not see; it learns next to "
        "nothing, or something else than it should.",
    .fix =
        "Turn the mask round: in nn.MultiheadAttention and nn.Transformer True hides a position "
        "(key_padding_mask=ids == pad), in scaled_dot_product_attention True shows it (attn_mask=ids != "
        "pad). A "
        "mask of numbers holds 0 where a position is seen and -inf where it is hidden. A mask for each head "
        "is "
        "made by repeat_interleave(heads, dim=0).",
    .healthy =
        "No mask, where padding is seen as well as the rest; masks of sentences, windows or blocks; a bias "
        "that "
        "is learned and added to the scores; rows without padding.",
    .cost = "In at most six steps: a look at the masks of the first 16 rows of a batch.",
    .original = "",
    .source =
        "PyTorch documentation of MultiheadAttention and scaled_dot_product_attention, whose masks mean "
        "the opposite of each other",
    .severity = model::Severity::kError,
    .parameters = {{"looks", "steps", 2, 1, 6, "steps in a row that must show it"}},
};

class AttentionMaskWrong final : public Rule {
  public:
    explicit AttentionMaskWrong(const Parameters& parameters)
        : inverted_(parameters.at("looks")),
          mirrored_(parameters.at("looks")),
          of_others_(parameters.at("looks")),
          added_(parameters.at("looks")),
          repeated_(parameters.at("looks")),
          turned_(parameters.at("looks")),
          of_queries_(parameters.at("looks")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (const auto padding = loop_fact(step, "padding_seen_instead")) {
            inverted_.add(step, padding->value >= 0.9);
            if (inverted_.is_enough()) fire_inverted(*padding, sink);
        }
        if (const auto mirrored = loop_fact(step, "padding_mirrored")) {
            mirrored_.add(step, mirrored->value > 0);
            if (mirrored_.is_enough()) fire_mirrored(*mirrored, sink);
        }
        if (const auto others = loop_fact(step, "padding_of_other_rows")) {
            of_others_.add(step, others->value > 0);
            if (of_others_.is_enough()) fire_of_others(*others, sink);
        }
        if (const auto added = loop_fact(step, "masks_added")) {
            added_.add(step, added->value > 0);
            if (added_.is_enough()) fire_added(*added, sink);
        }
        if (const auto repeated = loop_fact(step, "masks_repeated")) {
            repeated_.add(step, repeated->value > 0);
            if (repeated_.is_enough()) fire_repeated(*repeated, sink);
        }
        if (const auto later = loop_fact(step, "only_later_seen")) {
            turned_.add(step, later->value > 0);
            if (turned_.is_enough()) fire_turned(*later, sink);
        }
        if (const auto queries = loop_fact(step, "padding_hidden_as_queries")) {
            of_queries_.add(step, queries->value > 0);
            if (of_queries_.is_enough()) fire_of_queries(*queries, sink);
        }
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        return std::max({inverted_.judged(), added_.judged(), repeated_.judged(), turned_.judged(),
                         of_queries_.judged()});
    }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no attention was seen: of nn.MultiheadAttention, scaled_dot_product_attention or a softmax";
    }

  private:
    static std::string place_of(const LoopFact& fact) {
        return fact.place.empty() ? std::string("an attention") : std::string(fact.place);
    }
    void fire_inverted(const LoopFact& fact, FindingSink& sink) const {
        model::Finding finding = loop_finding("padding", model::Severity::kError, inverted_, fact);
        finding.message = base::format(
            "The mask of {} is the wrong way round: it shows the padding and hides {:.0f} % of all else.",
            place_of(fact), 100 * fact.value);
        finding.fix =
            "Turn the mask round. In nn.MultiheadAttention and nn.Transformer True hides a position: "
            "key_padding_mask=(ids == pad). In scaled_dot_product_attention True shows it: attn_mask=(ids != "
            "pad).";
        finding.evidence.push_back({"share that is the wrong way round", fact.value, "limit", 0.9});
        sink.fire(std::move(finding));
    }
    void fire_mirrored(const LoopFact& fact, FindingSink& sink) const {
        model::Finding finding = loop_finding("side", model::Severity::kError, mirrored_, fact);
        finding.message = base::format(
            "The mask of {} hides as many positions of each row as it has padding, at the other end: it "
            "hides "
            "what there is to read and shows the padding.",
            place_of(fact));
        finding.fix =
            "Pad and mask on the same side. The mask is best made of the ids: key_padding_mask=(ids == pad); "
            "by lengths, positions < lengths are there where rows are padded on the right, positions >= "
            "length - lengths where they are padded on the left.";
        finding.evidence.push_back({"masks at the other end", fact.value, "expected", 0});
        sink.fire(std::move(finding));
    }
    void fire_of_others(const LoopFact& fact, FindingSink& sink) const {
        model::Finding finding = loop_finding("rows", model::Severity::kError, of_others_, fact);
        finding.message = base::format(
            "The mask of {} is not that of the rows that it is given with: it hides the ends of rows by the "
            "lengths "
            "of others, as if rows and lengths came in another order.",
            place_of(fact));
        finding.fix =
            "Keep rows, lengths and labels in one order: where one is sorted, index the others by the same "
            "order; or make the mask of the ids, ids == pad.";
        finding.evidence.push_back({"masks of other rows", fact.value, "expected", 0});
        sink.fire(std::move(finding));
    }
    void fire_added(const LoopFact& fact, FindingSink& sink) const {
        model::Finding finding = loop_finding("added", model::Severity::kWarning, added_, fact);
        finding.message = base::format(
            "The mask of {} holds the numbers 0 and 1. Numbers are added to the scores of the attention, so "
            "this "
            "mask hides nothing.",
            place_of(fact));
        finding.fix =
            "Give a mask of truth values (dtype torch.bool), or one of numbers that holds -inf where a "
            "position "
            "is hidden and 0 elsewhere.";
        finding.evidence.push_back({"masks of 0 and 1", fact.value, "expected", 0});
        sink.fire(std::move(finding));
    }
    void fire_repeated(const LoopFact& fact, FindingSink& sink) const {
        model::Finding finding = loop_finding("repeated", model::Severity::kError, repeated_, fact);
        finding.message = base::format(
            "The mask of {} was repeated in the wrong order: it holds the masks of the whole batch one after "
            "the other, where those of the heads of one sample lie side by side. Most heads of most samples "
            "are given the mask of another sample.",
            place_of(fact));
        finding.fix =
            "Make it by mask.repeat_interleave(num_heads, dim=0) in place of mask.repeat(num_heads, 1, 1): "
            "row b * num_heads + h is of sample b.";
        finding.evidence.push_back({"masks in another order", fact.value, "expected", 0});
        sink.fire(std::move(finding));
    }
    void fire_turned(const LoopFact& fact, FindingSink& sink) const {
        model::Finding finding = loop_finding("turned", model::Severity::kError, turned_, fact);
        finding.message = base::format(
            "The mask of {} is the wrong way round: positions see those that come later, which they are to "
            "predict, and none that came before.",
            place_of(fact));
        finding.fix =
            "Turn the mask round: torch.triu(ones, diagonal=1) is what nn.MultiheadAttention must not show "
            "(True), torch.tril(ones) what scaled_dot_product_attention may (True).";
        finding.evidence.push_back({"masks that show later positions only", fact.value, "expected", 0});
        sink.fire(std::move(finding));
    }

    void fire_of_queries(const LoopFact& fact, FindingSink& sink) const {
        model::Finding finding = loop_finding("queries", model::Severity::kError, of_queries_, fact);
        finding.message = base::format(
            "The mask of {} lies along the queries, where keys are meant: what padding looks at is hidden, "
            "and "
            "the padding itself is seen by all other positions.",
            place_of(fact));
        finding.fix =
            "Lay the mask along the last dimension of the scores, that of the keys: mask[:, None, None, :] "
            "of "
            "a mask of shape (batch, length), in place of mask[:, None, :, None].";
        finding.evidence.push_back({"masks along the queries", fact.value, "expected", 0});
        sink.fire(std::move(finding));
    }

    InARow inverted_, mirrored_, of_others_, added_, repeated_, turned_, of_queries_;
};

std::vector<model::Requirement> attention_mask_wrong_needs(const Parameters&) {
    return sequence_requirements(kAttentionMaskWrong.name);
}

}  // namespace

RuleEntry builtin::attention_mask_wrong() {
    return {
        &kAttentionMaskWrong, &attention_mask_wrong_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<AttentionMaskWrong>(p); }};
}

}  // namespace traindbg::rules
