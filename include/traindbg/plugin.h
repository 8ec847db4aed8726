/* Rules of your own in a shared library, for `traindbg run --rule-plugin ./libmy_rule.so`.
 *
 * A plugin is a shared library that exports one function, `traindbg_plugin_describe`. It gives a list of
 * rules; each says its name, its parameters and what it needs captured, and is then shown every recorded step
 * of a training, of which it reads what it asked for. What it sees, it tells by `fire`. This header is all
 * that a plugin needs; it is C11 and C++11, and nothing has to be linked. `traindbg rules new NAME --cpp`
 * writes a whole one, and docs/custom-rules.md explains it line by line.
 *
 * Where it runs: in the program `traindbg`, never in the training. One that crashes ends the judging; the
 * training goes on. (Rules in Python run in a process of their own, with limits.)
 *
 * Threads: calls come one at a time, from one thread.
 *
 * Memory: what the host hands over is valid until the call returns. What a plugin hands over is read before
 * the call that takes it returns; the description lives as long as the library.
 *
 * Text: UTF-8 with a NUL at its end; a null pointer is an empty text.
 *
 * Errors: no function may let an exception out. A rule that cannot go on says so (`create`, `on_step`,
 * `on_end`), and is reported as not checked, with its words.
 *
 * Versions: TRAINDBG_PLUGIN_ABI counts incompatible changes, and a plugin of another one is refused, by name.
 * Within one, structs only grow at their ends: each begins with its `size` as its maker knew it, and what
 * lies beyond is neither read nor written. Numbers never change their meaning; there may be new ones.
 */
#ifndef TRAINDBG_PLUGIN_H
#define TRAINDBG_PLUGIN_H

/* This header is C: its checks are not those of our C++. NOLINTBEGIN */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRAINDBG_PLUGIN_ABI 1u
#define TRAINDBG_PLUGIN_EXPORT __attribute__((visibility("default")))

/* Numbers. */

enum { TRAINDBG_INFO = 0, TRAINDBG_WARNING = 1, TRAINDBG_ERROR = 2 }; /* severities */
enum { TRAINDBG_TRAIN = 1, TRAINDBG_EVAL = 2, TRAINDBG_PREDICT = 3 }; /* modes of steps */
enum {
    TRAINDBG_NUMBER = 0,
    TRAINDBG_WHOLE = 1,
    TRAINDBG_FLAG = 2,
    TRAINDBG_TEXT = 3
}; /* types of parameters */

/* What is taken of a tensor: bits. */
enum {
    TRAINDBG_STATISTICS = 1, /* traindbg_statistics; of losses, metrics and the like: their value */
    TRAINDBG_UNITS = 2,      /* of activations: dead and saturated units */
    TRAINDBG_CLASSES = 4,    /* of the collection "classes": how often each was label, prediction, both */
    TRAINDBG_RAW = 8,        /* every value */
    TRAINDBG_HISTOGRAM = 16,
    TRAINDBG_CHANNELS = 32, /* the extremes and the share of zeros of each channel */
    TRAINDBG_DIGEST = 64    /* a fingerprint */
};

/* What a step has of a tensor. */

typedef struct traindbg_tensor {
    size_t size;
    const char* name;        /* unique in a worker: "gradient/fc1.weight" */
    const char* role;        /* "weight", "gradient", "loss", "activation", ... */
    const char* collection;  /* the built-in one: "weights", "gradients", "losses", ... */
    const char* module;      /* the layer: "fc1", or the parameter "fc1.weight" */
    const char* module_type; /* "Linear" */
    const char* activation;  /* "relu", "tanh", "sigmoid", "smooth", "none" */
    const char* dtype;       /* "float32" */
    int32_t layer;           /* its place in the forward pass; -1: not known */
    uint32_t rank;
    const int64_t* shape; /* `rank` numbers */
    uint32_t has; /* what this step has of it, of what the rule asked for: TRAINDBG_STATISTICS | ... */
} traindbg_tensor;

/* Of the finite elements, but for the counts. */
typedef struct traindbg_statistics {
    size_t size;
    uint64_t count, nan, positive_infinite, negative_infinite, zero;
    double min, max, mean, std, l1, l2;
} traindbg_statistics;

/* A unit is a channel of an activation. `inactive` units had no element above 0; `low` and `high` count
 * elements at the flat ends of a tanh or sigmoid. */
typedef struct traindbg_units {
    size_t size;
    uint32_t units, inactive;
    uint64_t low, high;
} traindbg_units;

typedef struct traindbg_classes {
    size_t size;
    size_t count; /* of classes; each array has so many */
    const uint32_t *labels, *predictions, *hits;
} traindbg_classes;

/* Values from `lower` to `upper`; the bins that are not empty, ascending. */
typedef struct traindbg_bin {
    double lower, upper;
    uint64_t count;
} traindbg_bin;

typedef struct traindbg_channels {
    size_t size;
    size_t count; /* of channels; each array has so many */
    const float *min, *max, *zero;
} traindbg_channels;

typedef struct traindbg_digest {
    size_t size;
    uint64_t fingerprint; /* equal tensors have equal ones */
    double product;       /* of the finite elements */
} traindbg_digest;

typedef struct traindbg_raw {
    size_t size;
    const char* dtype;
    uint32_t rank;
    const int64_t* shape;
    const void* bytes; /* row-major */
    size_t byte_count;
} traindbg_raw;

/* What a rule found. */

typedef struct traindbg_evidence {
    const char* name; /* "gradient norm" */
    double value;
    const char* relation; /* how to read `reference`: "usual", "limit", "before"; empty: there is none */
    double reference;
} traindbg_evidence;

typedef struct traindbg_finding {
    size_t size;
    const char* key;     /* tells this fault from others of the same rule; the same at every step */
    const char* message; /* one sentence, with the numbers */
    const char* fix;     /* what to change */
    const char* kind;    /* the kind of fault; empty: the rule's name */
    const char* tensor;  /* the worst place, if there is one */
    const char* layer;   /* its module */
    int32_t severity;
    uint64_t places;     /* how many tensors show it; 0 stands for 1 */
    uint64_t first_step; /* where it began, if that was earlier; TRAINDBG_THIS_STEP: now */
    const traindbg_evidence* evidence;
    size_t evidence_count;
} traindbg_finding;
#define TRAINDBG_THIS_STEP UINT64_MAX

/* The host's side. */

typedef struct traindbg_parameters traindbg_parameters; /* what a rule's parameters are set to */
typedef struct traindbg_needs traindbg_needs;           /* where it says what is to be captured */
typedef struct traindbg_step traindbg_step;             /* one recorded step of one worker */
typedef struct traindbg_sink traindbg_sink;             /* where findings go */

typedef struct traindbg_host {
    size_t size;
    uint32_t abi; /* TRAINDBG_PLUGIN_ABI of the host */
    const char* version;

    /* Parameters, by name. 1: `value` was written; 0: no such parameter, or of another type. A text is valid
     * as long as the rule is. */
    int (*number)(const traindbg_parameters* parameters, const char* name, double* value);
    int (*flag)(const traindbg_parameters* parameters, const char* name, int* value);
    int (*text)(const traindbg_parameters* parameters, const char* name, const char** value);

    /* That `what` (bits) of a collection is wanted at every `every`-th step of `mode` (0: no step by
     * interval), and at all below `dense_until`. 0: no such mode or kind. */
    int (*need)(traindbg_needs* needs, const char* collection, uint32_t what, int32_t mode, uint64_t every,
                uint64_t dense_until);

    /* A step. */
    int32_t (*mode)(const traindbg_step* step);
    uint64_t (*index)(const traindbg_step* step);  /* of its mode, from 0 */
    uint32_t (*worker)(const traindbg_step* step); /* the rank */
    /* A fact about the training: "model_type", "framework", "optimizer"; empty where it is not known. */
    const char* (*fact)(const traindbg_step* step, const char* name);
    /* A number about it: "parameters", or a setting of the first optimizer: "lr", "momentum", ... 0: not
     * known. */
    int (*setting)(const traindbg_step* step, const char* name, double* value);

    /* Its tensors are numbered from 0. The functions give 1 where the step has that of the tensor;
     * `out->size` has to be set before. */
    size_t (*tensor_count)(const traindbg_step* step);
    int (*tensor)(const traindbg_step* step, size_t number, traindbg_tensor* out);
    int (*value)(const traindbg_step* step, size_t number, double* out); /* of a loss, a metric, ... */
    int (*statistics)(const traindbg_step* step, size_t number, traindbg_statistics* out);
    int (*units)(const traindbg_step* step, size_t number, traindbg_units* out);
    int (*classes)(const traindbg_step* step, size_t number, traindbg_classes* out);
    int (*channels)(const traindbg_step* step, size_t number, traindbg_channels* out);
    int (*digest)(const traindbg_step* step, size_t number, traindbg_digest* out);
    int (*raw)(const traindbg_step* step, size_t number, traindbg_raw* out);
    /* The first `room` bins are written; gives how many there are. */
    size_t (*histogram)(const traindbg_step* step, size_t number, traindbg_bin* out, size_t room);

    /* Findings. `fire` is called at every step at which the fault is seen, with the same key; the program
     * makes one finding of it. `clear` says that it is over. */
    void (*fire)(traindbg_sink* sink, const traindbg_finding* finding);
    void (*clear)(traindbg_sink* sink, const char* key);
    /* Why the rule cannot go on, or had nothing to judge; to be said before the call returns that tells so.
     */
    void (*say)(traindbg_sink* sink, const char* why);
} traindbg_host;

/* The plugin's side. */

typedef struct traindbg_parameter {
    size_t size;
    const char* name;
    const char* meaning;
    const char* unit; /* "steps", "ratio"; may be empty */
    int32_t type;     /* TRAINDBG_NUMBER, ... */
    double number;    /* the default: of numbers; of flags 0 or 1 */
    const char* text; /* the default of a text */
    double min, max;  /* of numbers */
} traindbg_parameter;

/* What `on_step` gives. */
enum {
    TRAINDBG_JUDGED = 1,  /* the step gave something to judge, found or not */
    TRAINDBG_NOTHING = 0, /* it did not; a rule with no other step was "not checked", for what it said last */
    TRAINDBG_FAILED = -1  /* the rule cannot go on, for what it said */
};

typedef struct traindbg_rule {
    size_t size;
    const char* name;    /* named after the fault: "stale_batch_norm" (letters, digits, '_') */
    const char* title;   /* "Stale batch norm" */
    const char* summary; /* one sentence: what is wrong when it fires */
    const char* when;    /* the exact condition, with the parameters by name */
    const char* why;     /* why it matters; this and the next two may be empty */
    const char* fix;
    const char* healthy; /* what looks alike and does not make it fire */
    int32_t severity;    /* the most severe that it gives */
    const traindbg_parameter* parameters;
    size_t parameter_count;

    /* Says what is to be captured. `self` is this struct, in all of these. */
    void (*needs)(const struct traindbg_rule* self, const traindbg_host* host,
                  const traindbg_parameters* parameters, traindbg_needs* needs);
    /* The state of one rule that judges one worker; a null pointer is one, too. On failure: `say` why, which
     * makes the rule "not checked". */
    void* (*create)(const struct traindbg_rule* self, const traindbg_host* host,
                    const traindbg_parameters* parameters, traindbg_sink* sink);
    void (*destroy)(void* state); /* may be null */
    /* A step of which something was recorded that the rule needs. Gives TRAINDBG_JUDGED, ... */
    int (*on_step)(void* state, const traindbg_host* host, const traindbg_step* step, traindbg_sink* sink);
    /* The training is over; may be null. */
    void (*on_end)(void* state, const traindbg_host* host, traindbg_sink* sink);
} traindbg_rule;

typedef struct traindbg_plugin {
    uint32_t abi; /* TRAINDBG_PLUGIN_ABI; read before anything else */
    uint32_t rule_count;
    const traindbg_rule* rules; /* an array of structs of `rules->size` bytes; that of parameters, too */
} traindbg_plugin;

/* What a plugin exports. */
TRAINDBG_PLUGIN_EXPORT const traindbg_plugin* traindbg_plugin_describe(void);

#ifdef __cplusplus
}
#endif
/* NOLINTEND */

#endif
