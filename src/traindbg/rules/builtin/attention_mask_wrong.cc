// An attention mask that hides what it is to show.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kAttentionMaskWrong = {
    .name = "attention_mask_wrong",
    .title = "Wrong attention mask",
    .summary =
        "An attention mask shows the padding and hides the rest, hides the window that it is to show, hides "
        "nothing at all, or lies along the wrong axis.",
    .when =
        "In `looks` steps in a row, the mask of an attention hides what it should show, shows what it "
        "should hide, or hides nothing.\n"
        "- Looked at: attention by nn.MultiheadAttention, scaled_dot_product_attention or a softmax that "
        "is written out.\n"
        "- Padding: one number that stands only at the ends, or only at the beginnings, of rows of "
        "different lengths.\n"
        "- Wrong way round (error): 90 % of the padding of an input of the same length is seen by "
        "positions that are no padding, and 90 % of all else is hidden from them.\n"
        "- Wrong end (error): in each row as many positions are hidden as it has padding, but at its other "
        "end.\n"
        "- Mask of other rows (error): a model that attends is given ids and a mask of truth values of the "
        "same shape, and nothing else of two or more dimensions. In each row the mask hides positions at "
        "the end where the padding is, but in at least half of the rows another number of them. Sorted, "
        "these numbers are those of the padding.\n"
        "- Hides nothing (warning): a mask holds the numbers 0.0 and 1.0 and nothing else. Numbers are "
        "added to the scores, so these hide nothing.\n"
        "- Hides next to nothing (warning): what is added to the scores, or put in their place, where a "
        "mask hides is one number just below 0, at most a millionth: -1e-9, say, in place of -1e9. "
        "Everywhere else the mask holds 0.\n"
        "- Hides next to nothing, in the place of scores: this counts where the mask is the same in several "
        "rows, heads or batches, which one that is computed of the scores is not.\n"
        "- Later positions only (error): each target is the input's next value, and positions see later "
        "ones and no earlier one.\n"
        "- Window hidden, note only (info): every mask over a sequence hides from each position itself and "
        "all "
        "neighbours up to one distance, at least 1, and shows all that is further away, which is the larger "
        "part. No other layer that carries something along the sequence is seen, and the targets are not "
        "numbers for each position, which may be what was hidden, nor an input.\n"
        "- Repeated in the wrong order (error): a mask of (batch x heads, queries, keys) differs between "
        "the heads of one sample. It comes again after as many rows as the batch has, but not after as "
        "many as there are heads: whole batches lie one after the other in it.\n"
        "- Along the queries (error): for the queries that are padding, and for no others, all keys are "
        "alike or hidden, while the padding among the keys is seen. Here padding is also what a mask of "
        "truth values among the model's inputs says, at one end of rows of different lengths.",
    .why =
        "The model looks at the padding, which says nothing, or at what it must not see; it learns next to "
        "nothing, or something else than it should.",
    .fix =
        "Turn the mask round: in nn.MultiheadAttention and nn.Transformer True hides a position "
        "(key_padding_mask=ids == pad), in scaled_dot_product_attention True shows it (attn_mask=ids != "
        "pad). A mask of numbers holds 0 where a position is seen and -inf where it is hidden. A mask for "
        "each head is made by repeat_interleave(heads, dim=0).",
    .healthy =
        "No mask, where padding is seen as well as the rest; masks of sentences, windows or blocks; a mask "
        "that hides neighbours where a value is to be told by others, or beside layers or inputs that hold "
        "them; a bias "
        "that is learned and added to the scores; rows without padding; a small number that makes some "
        "scores a little less, as -5e-4 is, or that takes the place of scores below it.",
    .cost = "In at most six steps: a look at the masks of the first 16 rows of a batch.",
    .original = "",
    .source =
        "PyTorch documentation of MultiheadAttention and scaled_dot_product_attention, whose masks mean the "
        "opposite of each other",
    .severity = model::Severity::kError,
    .parameters = {{"looks", "steps", 2, 1, 6, "steps in a row that must show it"}},
};

// One way in which a mask can be wrong: the fact that shows it, and what is said of it.
struct WrongMask {
    std::string_view fact;
    double least;  // the fact's value that is bad, and all above
    std::string_view key;
    model::Severity severity;
    std::string_view message;  // what follows on "The mask of <place> "
    std::string_view fix;
    std::string_view evidence;
};

constexpr double kAny = 1e-9;

constexpr std::array<WrongMask, 9> kWrongMasks = {{
    {.fact = "padding_seen_instead",
     .least = 0.9,
     .key = "padding",
     .severity = model::Severity::kError,
     .message = "is the wrong way round: it shows the padding and hides the rest.",
     .fix = "Turn the mask round. In nn.MultiheadAttention and nn.Transformer True hides a position: "
            "key_padding_mask=(ids == pad). In scaled_dot_product_attention True shows it: attn_mask=(ids != "
            "pad).",
     .evidence = "share that is the wrong way round"},
    {.fact = "padding_mirrored",
     .least = kAny,
     .key = "side",
     .severity = model::Severity::kError,
     .message = "hides as many positions of each row as it has padding, at the other end: it hides "
                "what there is to read and shows the padding.",
     .fix =
         "Pad and mask on the same side. The mask is best made of the ids: key_padding_mask=(ids == pad); by "
         "lengths, positions < lengths are there where rows are padded on the right, positions >= length - "
         "lengths where they are padded on the left.",
     .evidence = "masks at the other end"},
    {.fact = "padding_of_other_rows",
     .least = kAny,
     .key = "rows",
     .severity = model::Severity::kError,
     .message = "is not that of the rows that it is given with: it hides the ends of rows by the "
                "lengths of others, as if rows and lengths came in another order.",
     .fix = "Keep rows, lengths and labels in one order: where one is sorted, index the others by the same "
            "order; or make the mask of the ids, ids == pad.",
     .evidence = "masks of other rows"},
    {.fact = "masks_added",
     .least = kAny,
     .key = "added",
     .severity = model::Severity::kWarning,
     .message = "holds the numbers 0 and 1. Numbers are added to the scores of the attention, so this "
                "mask hides nothing.",
     .fix = "Give a mask of truth values (dtype torch.bool), or one of numbers that holds -inf where a "
            "position is hidden and 0 elsewhere.",
     .evidence = "masks of 0 and 1"},
    {.fact = "masks_tiny",
     .least = kAny,
     .key = "tiny",
     .severity = model::Severity::kWarning,
     .message = "puts a number next to 0 where it is to hide, such as -1e-9. For a softmax that is a score "
                "like any other, so this mask hides nothing.",
     .fix = "Put -inf (or -1e9) where a position is hidden: scores.masked_fill(hidden, float(\"-inf\")).",
     .evidence = "masks of a number next to 0"},
    {.fact = "masks_repeated",
     .least = kAny,
     .key = "repeated",
     .severity = model::Severity::kError,
     .message = "was repeated in the wrong order: it holds the masks of the whole batch one after the "
                "other, where those of the heads of one sample lie side by side. Most heads of most samples "
                "are given the mask of another sample.",
     .fix = "Make it by mask.repeat_interleave(num_heads, dim=0) in place of mask.repeat(num_heads, 1, 1): "
            "row b * num_heads + h is of sample b.",
     .evidence = "masks in another order"},
    {.fact = "only_later_seen",
     .least = kAny,
     .key = "turned",
     .severity = model::Severity::kError,
     .message = "is the wrong way round: positions see those that come later, which they are to "
                "predict, and none that came before.",
     .fix = "Turn the mask round: torch.triu(ones, diagonal=1) is what nn.MultiheadAttention must not show "
            "(True), torch.tril(ones) what scaled_dot_product_attention may (True).",
     .evidence = "masks that show later positions only"},
    {.fact = "windows_hidden",
     .least = kAny,
     .key = "window",
     // The neighbours may come with the input, or be left out as they would tell the answer.
     .severity = model::Severity::kInfo,
     .message = "hides from each position itself and its neighbours within a window, and shows all that is "
                "further away. Unless that is meant, it is the wrong way round.",
     .fix = "Where the window is to be seen, turn the mask round. nn.MultiheadAttention hides what is True: "
            "attn_mask=(distance > window). "
            "scaled_dot_product_attention shows it: attn_mask=(distance <= window).",
     .evidence = "masks that hide a window"},
    {.fact = "padding_hidden_as_queries",
     .least = kAny,
     .key = "queries",
     .severity = model::Severity::kError,
     .message = "lies along the queries, where keys are meant: what padding looks at is hidden, and "
                "the padding itself is seen by all other positions.",
     .fix = "Lay the mask along the last dimension of the scores, that of the keys: mask[:, None, None, :] "
            "of a mask of shape (batch, length), in place of mask[:, None, :, None].",
     .evidence = "masks along the queries"},
}};

class AttentionMaskWrong final : public Rule {
  public:
    explicit AttentionMaskWrong(const Parameters& parameters)
        : seen_(kWrongMasks.size(), InARow(parameters.at("looks"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        for (std::size_t way = 0; way < kWrongMasks.size(); ++way) {
            const WrongMask& wrong = kWrongMasks[way];
            const auto fact = loop_fact(step, wrong.fact);
            if (!fact) continue;
            seen_[way].add(step, fact->value >= wrong.least);
            if (seen_[way].is_enough()) fire(wrong, seen_[way], *fact, sink);
        }
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        std::uint64_t most = 0;
        for (const InARow& seen : seen_) most = std::max(most, seen.judged());
        return most;
    }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no attention was seen: of nn.MultiheadAttention, scaled_dot_product_attention or a softmax";
    }

  private:
    static void fire(const WrongMask& wrong, const InARow& seen, const LoopFact& fact, FindingSink& sink) {
        const std::string place = fact.place.empty() ? std::string("an attention") : std::string(fact.place);
        model::Finding finding = loop_finding(std::string(wrong.key), wrong.severity, seen, fact);
        finding.message = base::format("The mask of {} {}", place, wrong.message);
        finding.fix = wrong.fix;
        const bool is_share = wrong.least > kAny;
        finding.evidence.push_back({std::string(wrong.evidence), fact.value, is_share ? "limit" : "expected",
                                    is_share ? wrong.least : 0});
        sink.fire(std::move(finding));
    }

    std::vector<InARow> seen_;  // one of each way
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
